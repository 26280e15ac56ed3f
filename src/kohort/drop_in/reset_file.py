# SPDX-License-Identifier: Apache-2.0
"""The files of `--from-file` and `--export`: CSV, with a column for the group where there are
several.

The Java tools take a column that is missing for 0, and so reset to offset 0 what a line names by
mistake. Here such a file is refused.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kohort.drop_in.java import JavaError, at_run_time, illegal
from kohort.drop_in.running import UsageError
from kohort.terms import TopicPartition
from kohort.user_files import DATA_BYTES_MAX, file_bytes

if TYPE_CHECKING:  # the client is imported when a tool asks
    from kohort.client.admin.group_views import CommittedOffset
    from kohort.client.admin.offsets_csv import OffsetsByGroup


def offsets_in(path: str) -> "OffsetsByGroup":
    """The offsets of a file, by group; None stands for the one group of a file without that column.
    Raises JavaError, and UsageError for a negative offset.
    """
    from kohort.client.admin.offsets_csv import NegativeOffsetError, read_offsets

    try:
        return read_offsets(_text(path))
    except NegativeOffsetError as error:
        raise UsageError("Invalid negative offset", f"{path}: {error}") from None
    except ValueError as error:
        raise at_run_time(illegal(f"{path}: {error}")) from None


def _text(path: str) -> str:
    try:
        return file_bytes(path, DATA_BYTES_MAX).decode()
    except FileNotFoundError:
        cause = JavaError("java.nio.file.NoSuchFileException", path)
    except OSError as error:
        cause = JavaError("java.io.IOException", error.strerror)
    except UnicodeDecodeError as error:
        cause = JavaError("java.io.IOException", f"byte {error.start} is not UTF-8")
    raise at_run_time(JavaError("java.io.IOException", f"Unable to read file {path}", cause))


def as_csv(
    offsets: "Mapping[str, Mapping[TopicPartition, CommittedOffset]]", *, with_group: bool
) -> str:
    """The lines of a file that `offsets_in` reads; those of one group need not name it."""
    from kohort.client.admin.offsets_csv import offsets_csv

    return offsets_csv({group if with_group else None: found for group, found in offsets.items()})
