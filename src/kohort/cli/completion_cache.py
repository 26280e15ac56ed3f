# SPDX-License-Identifier: Apache-2.0
"""The names that a shell was offered lately, in files of the user's cache folder.

Only the user can read them. The name of a file is a digest of whom the names were shown to and by
which cluster; neither it nor the file has a secret.
"""

import hashlib
import json
import os
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

KEPT_S = 60
_PRIVATE = 0o700
_OTHERS = 0o077


class CompletionCache:
    """A file with names. What cannot be read or written is as if it were not there."""

    def __init__(self, file: Path) -> None:
        self._file = file

    @classmethod
    def of_user(cls, *key: str) -> "CompletionCache":
        """The file for this key, in `$XDG_CACHE_HOME/kohort/completion`."""
        home = Path(os.environ.get("XDG_CACHE_HOME", ""))  # a relative one counts for nothing
        folder = home if home.is_absolute() else Path("~/.cache").expanduser()
        digest = hashlib.sha256(json.dumps(key).encode()).hexdigest()[:32]
        return cls(folder / "kohort" / "completion" / f"{digest}.json")

    def read(self) -> list[str] | None:
        """The names, in their order; None where there are none, or they are a minute old."""
        try:
            if not self._is_private():
                return None
            age = time.time() - self._file.stat().st_mtime
            names = json.loads(self._file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        is_good = isinstance(names, list) and all(isinstance(name, str) for name in names)
        return names if is_good and 0 <= age < KEPT_S else None

    def write(self, names: Sequence[str]) -> None:
        """Keep the names, and forget what is too old to be read."""
        with suppress(OSError, UnicodeEncodeError):
            self._file.parent.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
            if not self._is_private():
                return
            _remove_old(self._file.parent.iterdir())
            temporary = self._file.with_suffix(f".{os.getpid()}")
            number = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(number, "w", encoding="utf-8") as stream:
                json.dump(list(names), stream)
            temporary.replace(self._file)

    def _is_private(self) -> bool:
        """Whether nobody else may have put something into the folder, or can look into it."""
        status = self._file.parent.stat()
        is_own = not hasattr(os, "getuid") or status.st_uid == os.getuid()
        return is_own and not status.st_mode & _OTHERS


def _remove_old(files: Iterable[Path]) -> None:
    for file in files:
        with suppress(OSError):
            if not 0 <= time.time() - file.stat().st_mtime < KEPT_S:
                file.unlink()
