"""Committed offsets: what is kept, and the three requests that write, read and delete them.

The store changes by `replay` and `replay_marker` alone; the handlers only describe what is to be
written.
"""

from kohort.coordinator.offsets.commit import commit
from kohort.coordinator.offsets.delete import (
    delete,
    of_former_topics,
    of_group_deleted,
    topics_deleted,
)
from kohort.coordinator.offsets.fetch import fetch
from kohort.coordinator.offsets.store import Offsets, replay, replay_marker

__all__ = [
    "Offsets",
    "commit",
    "delete",
    "fetch",
    "of_former_topics",
    "of_group_deleted",
    "replay",
    "replay_marker",
    "topics_deleted",
]
