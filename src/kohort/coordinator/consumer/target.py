# SPDX-License-Identifier: Apache-2.0
"""What one member of a group should have."""

from dataclasses import dataclass
from typing import NamedTuple

from kohort.assignors import Assignment


class Attachment(NamedTuple):
    """What a client-side assignor adds to the partitions of a member: bytes that only it reads, in
    a version of its own, and an error when it has failed. `assignor` has written the bytes; where
    there are none, it has failed.
    """

    error: int = 0
    version: int = 0
    metadata: bytes = b""
    assignor: str = ""


@dataclass(frozen=True, slots=True)
class Target:
    """Partitions, and what a client-side assignor adds; one of the broker adds nothing."""

    partitions: Assignment
    attachment: Attachment | None = None


NOTHING = Target({})
