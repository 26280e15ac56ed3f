# SPDX-License-Identifier: Apache-2.0
"""The committed offsets of one group for one topic, in arrays: 20 bytes for each instead of 200.

Nearly every offset is a number, an epoch and a time. The arrays hold these; metadata and expiry,
which few offsets have, are kept beside them.
"""

from array import array
from collections.abc import Iterator

from kohort.errors import Broken
from kohort.records.schemas import OffsetCommitValue
from kohort.terms import Millis, TopicId

NEVER = (1 << 63) - 1  # later than every time
ABSENT = -(1 << 63)  # in `timestamps`: nothing is committed. Offsets themselves may be any number
_MOST_PARTITIONS = 1 << 24  # an index beyond is no partition of any cluster, and would cost memory


class OffsetCount:
    """How many offsets all tables of a shard hold together."""

    __slots__ = ("number",)

    def __init__(self) -> None:
        self.number = 0


class TopicOffsets:
    """Offsets by partition. `fetch` reads the arrays itself; all others use the functions."""

    __slots__ = (
        "among",
        "count",
        "expires",
        "leader_epochs",
        "metadata",
        "offsets",
        "oldest",
        "timestamps",
        "topic_id",
    )

    def __init__(self, topic_id: TopicId, among: OffsetCount | None = None) -> None:
        """`among` counts the offsets of this table together with those of others."""
        self.topic_id = topic_id
        self.among = among or OffsetCount()
        self.count = 0
        self.oldest = NEVER  # no commit is older; none may be as old any more
        self.offsets = array("q")
        self.leader_epochs = array("i")
        self.timestamps = array("q")
        self.metadata: dict[int, str] = {}
        self.expires: dict[int, int] = {}

    def __contains__(self, partition: int) -> bool:
        return 0 <= partition < len(self.timestamps) and self.timestamps[partition] != ABSENT

    def partitions(self) -> Iterator[int]:
        """The partitions that have an offset, ascending."""
        for partition, timestamp in enumerate(self.timestamps):
            if timestamp != ABSENT:
                yield partition

    def indexes(self) -> list[int]:
        """The same as a list."""
        end = len(self.timestamps)
        return [*range(end)] if self.count == end else [*self.partitions()]

    def committed_until(self, time: Millis) -> Iterator[int]:
        """The partitions whose offset was committed at `time` or before, ascending."""
        for partition, timestamp in enumerate(self.timestamps):
            if ABSENT < timestamp <= time:
                yield partition

    def may_have_expired(self, until: Millis) -> bool:
        """Whether it is worth while to ask for `expired`; nearly always it is not."""
        return self.oldest <= until or bool(self.expires)

    def expired(self, until: Millis, now: Millis) -> Iterator[int]:
        """The partitions whose offset was committed at `until` or before. Where a commit has named
        a time of its own, which versions 2 to 4 could, that is over at `now`.
        """
        expires = self.expires
        oldest = NEVER
        for partition, timestamp in enumerate(self.timestamps):
            if timestamp == ABSENT:
                continue
            oldest = min(oldest, timestamp)
            if expires and partition in expires:
                if expires[partition] <= now:
                    yield partition
            elif timestamp <= until:
                yield partition
        self.oldest = oldest

    def put(self, partition: int, value: OffsetCommitValue) -> None:
        """Set an offset, replacing any other."""
        timestamps = self.timestamps
        if partition >= len(timestamps):
            self._grow(partition)
        if timestamps[partition] == ABSENT:
            self.count += 1
            self.among.number += 1
        self.offsets[partition] = value.offset
        self.leader_epochs[partition] = value.leader_epoch
        timestamps[partition] = value.commit_timestamp
        if value.commit_timestamp < self.oldest:  # noqa: PLR1730  (every commit comes here)
            self.oldest = value.commit_timestamp
        if value.metadata:
            self.metadata[partition] = value.metadata
        elif self.metadata:
            self.metadata.pop(partition, None)
        if value.expire_timestamp != -1:
            self.expires[partition] = value.expire_timestamp
        elif self.expires:
            self.expires.pop(partition, None)

    def remove(self, partition: int) -> None:
        """Forget an offset, if there is one."""
        if partition in self:
            self.count -= 1
            self.among.number -= 1
            self.timestamps[partition] = ABSENT
            self.metadata.pop(partition, None)
            self.expires.pop(partition, None)

    def _grow(self, partition: int) -> None:
        if partition >= _MOST_PARTITIONS:
            raise Broken(f"an offset is for partition {partition}, beyond {_MOST_PARTITIONS - 1}")
        missing = partition + 1 - len(self.timestamps)
        if missing == 1:  # the common case: partitions come in order
            self.offsets.append(0)
            self.leader_epochs.append(-1)
            self.timestamps.append(ABSENT)
            return
        self.offsets.extend([0] * missing)
        self.leader_epochs.extend([-1] * missing)
        self.timestamps.extend([ABSENT] * missing)
