"""What one member of a group should have."""

from dataclasses import dataclass

from kohort.assignors import Assignment


@dataclass(frozen=True, slots=True)
class Target:
    """Partitions. A client-side assignor adds metadata, in a version of its own, and an error for
    its member; a server-side assignor adds neither.
    """

    partitions: Assignment
    metadata: bytes = b""
    metadata_version: int = 0
    error: int = 0


NOTHING = Target({})
