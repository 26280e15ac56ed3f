# SPDX-License-Identifier: Apache-2.0
"""The files that a user names, read as far as the memory of a machine allows it.

A path may lead anywhere: to a device without an end, or to a pipe into which nobody writes.
"""

import errno
import os
import stat
import sys
from io import StringIO
from threading import Timer

from kohort.escaping import visible

DATA_BYTES_MAX = 64 << 20  # of offsets, groups and queries: some hundred thousand lines
SETTINGS_BYTES_MAX = 1 << 20  # of settings and passwords, as for keystores
_PATIENCE_S = 2.0


def file_bytes(path: str, most: int) -> bytes:
    """The bytes of a file, or of a pipe, as `<(command)` is one. A line on stderr says that a pipe
    is waited for. Raises OSError, also for a device, and for more bytes than `most`.
    """
    mode = os.stat(path).st_mode  # noqa: PTH116  (pathlib takes as long as all else in a drop-in)
    if stat.S_ISFIFO(mode):
        told = Timer(_PATIENCE_S, _tell_of_pipe, (path,))
        told.daemon = True
        told.start()
        try:
            return _bytes(path, most)
        finally:
            told.cancel()
    return _bytes(path, most)


def settings_text(path: str) -> str:
    """The text of a file of settings, its lines ended by line feeds. Raises OSError as
    `file_bytes`, and UnicodeDecodeError.
    """
    return StringIO(file_bytes(path, SETTINGS_BYTES_MAX).decode(), newline=None).read()


def stdin_bytes(most: int) -> bytes:
    """What stdin has. Raises OSError for more bytes than `most`."""
    data = sys.stdin.buffer.read(most + 1)
    _check_size(len(data), most, "-", is_all=False)
    return data


def _bytes(path: str, most: int) -> bytes:
    with open(path, "rb") as file:  # noqa: PTH123  (as above)
        status = os.fstat(file.fileno())
        is_device = stat.S_ISCHR(status.st_mode) or stat.S_ISBLK(status.st_mode)
        if is_device and not (file.isatty() or _is_null(status)):
            raise OSError(errno.EINVAL, "it is a device, expected a file or a pipe", path)
        if stat.S_ISREG(status.st_mode):
            _check_size(status.st_size, most, path, is_all=True)
        data = file.read(most + 1)
    _check_size(len(data), most, path, is_all=False)
    return data


def _check_size(size: int, most: int, path: str, *, is_all: bool) -> None:
    if size > most:
        has = f"{size:,} bytes" if is_all else f"more than {most:,} bytes"
        raise OSError(errno.EFBIG, f"it has {has}, expected {most:,} at most", path)


def _is_null(status: os.stat_result) -> bool:
    return status.st_rdev == os.stat(os.devnull).st_rdev  # noqa: PTH116  (as above)


def _tell_of_pipe(path: str) -> None:
    text = f"{path} is a pipe: waiting for what somebody writes into it, to its end"
    sys.stderr.write(f"kohort: {visible(text)}\n")
