# SPDX-License-Identifier: Apache-2.0
"""Files of a lake in a directory, as pyiceberg wants them: each is on the disk when it is closed.

Its own are not. After a power cut a catalog would name files that are not there, and what
it names so can be neither read nor replaced.
"""

import io
import os
from pathlib import Path

from pyiceberg.io import InputFile, OutputFile
from pyiceberg.io.pyarrow import PyArrowFileIO

from kohort.pipeline.stores.local_store import sync

SCHEME = "file://"
"""In front of a path that is written as it is, without any %."""


class DurableFiles(PyArrowFileIO):
    """The `py-io-impl` of a catalog whose tables are on the local disk."""

    def new_output(self, location: str) -> OutputFile:  # type: ignore[override]
        """A file that will be there, and on the disk, when it is closed."""
        return _DurableFile(location, self)


class _DurableFile(OutputFile):
    def __init__(self, location: str, files: DurableFiles) -> None:
        super().__init__(location)
        self._path = Path(location.removeprefix(SCHEME))
        self._files = files

    def __len__(self) -> int:
        return self._path.stat().st_size

    def exists(self) -> bool:
        return self._path.exists()

    def to_input_file(self) -> InputFile:
        return self._files.new_input(self.location)

    def create(self, overwrite: bool = False) -> io.BufferedWriter:  # noqa: FBT001, FBT002  (theirs)
        make_directory(self._path.parent)
        return _SyncedWriter(self._path, "wb" if overwrite else "xb")


class _SyncedWriter(io.BufferedWriter):
    def __init__(self, path: Path, mode: str) -> None:
        super().__init__(io.FileIO(path, mode))
        self._path = path

    def close(self) -> None:
        if not self.closed:
            try:
                self.flush()
                os.fsync(self.fileno())
            finally:
                super().close()
            sync(self._path.parent)


def make_directory(directory: Path) -> None:
    """A directory that stays, with those above it that are missing."""
    missing = [place for place in (directory, *directory.parents) if not place.exists()]
    directory.mkdir(parents=True, exist_ok=True)
    for place in missing:
        sync(place.parent)
