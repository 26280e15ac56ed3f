"""What one member of a group is meant to have."""

from dataclasses import dataclass

from kohort.assignors import Assignment


@dataclass(frozen=True, slots=True)
class Target:
    """Partitions, and what an assignor on the side of the clients says about them beside: metadata
    in its own version, and an error that its member is to be told. A server-side assignor says
    neither.
    """

    partitions: Assignment
    metadata: bytes = b""
    metadata_version: int = 0
    error: int = 0


NOTHING = Target({})
