# SPDX-License-Identifier: Apache-2.0
"""Objects as files of Arrow's: read by ranges, from the end on, where Parquet tells what it has.

A file that is small is read at once. Arrow has clients for stores of its own; this one asks as all
others here do, with the same credentials, settings and patience.
"""

import io
from functools import cache
from typing import Any

import pyarrow as pa
from pyarrow import fs

from kohort.pipeline.stores.objects import Objects

SMALL_BYTES = 4 << 20
FOOTER_BYTES = 64 << 10


class ObjectFile(io.RawIOBase):
    """An object that is read at any place. Its end is here from the beginning."""

    def __init__(self, objects: Objects, key: str, end_bytes: int | None = None) -> None:
        super().__init__()
        self._objects, self._key = objects, key
        self.length, self._end = objects.read_end(key, end_bytes or SMALL_BYTES)
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def size(self) -> int:
        return self.length

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self.length}[whence]
        self._at = base + offset
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        until = self.length if size is None or size < 0 else min(self._at + size, self.length)
        begin, self._at = self._at, max(until, self._at)
        if begin >= until:
            return b""
        known = self.length - len(self._end)
        if begin >= known:
            return self._end[begin - known : until - known]
        return self._objects.read(self._key, begin, until)


class _Files(fs.FileSystemHandler):  # type: ignore[misc]
    """Reading is all that Arrow is asked for."""

    def __init__(self, objects: Objects) -> None:
        super().__init__()
        self._objects = objects

    def get_type_name(self) -> str:
        return "kohort-objects"

    def normalize_path(self, path: str) -> str:
        return path

    def open_input_file(self, path: str) -> pa.NativeFile:
        return pa.PythonFile(ObjectFile(self._objects, path), mode="r")

    def open_input_stream(self, path: str) -> pa.NativeFile:
        return self.open_input_file(path)

    def get_file_info(self, paths: list[str]) -> list[fs.FileInfo]:
        return [fs.FileInfo(path, fs.FileType.File) for path in paths]

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError("objects are only read this way")

    get_file_info_selector = create_dir = delete_dir = delete_dir_contents = _refuse
    delete_root_dir_contents = delete_file = move = copy_file = _refuse
    open_output_stream = open_append_stream = _refuse


@cache
def filesystem(objects: Objects) -> fs.PyFileSystem:
    """Objects as a file system; its paths are their keys."""
    return fs.PyFileSystem(_Files(objects))
