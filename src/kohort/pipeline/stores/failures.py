# SPDX-License-Identifier: Apache-2.0
"""What a store refuses: an OSError, as a disk's refusal is, and one sentence for whoever asked."""

import errno

from kohort.errors import KohortError


class StoreError(KohortError, OSError):
    """A store that did not do what it was asked; `filename` is what it was asked for."""

    def __init__(self, text: str, uri: str, number: int = errno.EIO) -> None:
        super().__init__(number, text, uri)

    def __str__(self) -> str:
        return f"{self.filename}: {self.strerror}"

    def __reduce__(self) -> tuple[type["StoreError"], tuple[object, ...]]:
        """It may go to another process."""
        return type(self), (self.strerror, self.filename, self.errno)


class MissingError(StoreError, FileNotFoundError):
    """There is no such object or file."""


class ConflictError(StoreError, FileExistsError):
    """An object is not as it was expected to be: somebody else has written it."""


class HeldError(BlockingIOError):
    """Somebody else holds the lock; the text names him."""
