# SPDX-License-Identifier: Apache-2.0
"""The records that the application was handed and has not finished with: nobody may commit beyond
them.

Asking for more says that the earlier ones are processed. Until then the application is inside: the
records that it works on count as not processed, and partitions that are taken away wait for it.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence

from kohort.client.fetcher import AnyRecord, OffsetAndEpoch
from kohort.terms import TopicPartition

Runs = Mapping[TopicPartition, Sequence[AnyRecord]]
"""Records of partitions, none of them empty, each ascending."""


class InFlightRecords:
    """Hands records out one by one, a run of one partition after the other, or notes a batch.

    `last` is the record that the application works on, when it is handed one by one. A partition
    may be sought while it is in work: then its position is elsewhere, and it is in work still.
    """

    def __init__(self) -> None:
        self.last: AnyRecord | None = None
        self._run: Iterator[AnyRecord] = iter(())
        self._of: TopicPartition | None = None  # whose run it is
        self._next: OffsetAndEpoch | None = (
            None  # the first record of the run, until `last` says more
        )
        self._waiting: dict[TopicPartition, Sequence[AnyRecord]] = {}  # runs to come
        self._began: dict[TopicPartition, OffsetAndEpoch] = {}  # of a batch
        self._left: dict[TopicPartition, OffsetAndEpoch] = {}  # was in work when it was sought

    # Handing out

    def line_up(self, runs: Runs) -> None:
        """The next records to hand out one by one."""
        self._waiting.update(runs)

    def take(self) -> AnyRecord | None:
        """The next record, None when there is none. The one before it is processed."""
        record = next(self._run, None)
        if record is None:
            record = self._next_run()
        self.last = record
        return record

    def note(self, batch: Runs) -> None:
        """The application gets these, all at once."""
        self._began = {partition: _position_of(records[0]) for partition, records in batch.items()}

    def _next_run(self) -> AnyRecord | None:
        self._of = self._next = None
        if not self._waiting:
            return None
        self._of = next(iter(self._waiting))
        records = self._waiting.pop(self._of)
        self._next = _position_of(records[0])
        self._run = iter(records)
        return next(self._run)

    # The application's way

    @property
    def in_work(self) -> bool:
        """Whether the application works on anything."""
        return self.last is not None or bool(self._began) or bool(self._left)

    def works_on(self, partitions: Collection[TopicPartition]) -> bool:
        """Whether the application works on a record of any of these."""
        if self.last is not None and _of(self.last) in partitions:
            return True
        return any(partition in self._began or partition in self._left for partition in partitions)

    def mark_processed(self) -> None:
        """The application has finished with what it was handed. Records that it was not handed yet
        stay.
        """
        if self.last is not None and self._next is not None:
            self._next = _after(self.last)
        self.last = None
        self._began.clear()
        self._left.clear()

    def take_back(self) -> dict[TopicPartition, OffsetAndEpoch]:
        """Nobody works any more on what was handed out last. Returns where each partition has to be
        read again; one that was sought goes on where it was sought.
        """
        found = dict(self._began)
        if self.last is not None:
            found[_of(self.last)] = _position_of(self.last)
        self.drop([*found, *self._left])
        return found

    def on_seek(self, partition: TopicPartition) -> None:
        """A partition goes on elsewhere. Its records in work are not processed by that."""
        place = self._in_work(partition)
        self.drop([partition])
        if place is not None:
            self._left[partition] = place

    def put_back(
        self, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, OffsetAndEpoch]:
        """Hand out no more of these partitions. Returns where each has to be read again."""
        found = {
            partition: _position_of(self._waiting.pop(partition)[0])
            for partition in list(self._waiting)
            if partition in partitions
        }
        if self._of is not None and self._of in partitions:
            place = self._here()
            if place is not None:
                found[self._of] = place
            self._run = iter(())
            self._of = self._next = None
        return found

    def drop(self, partitions: Collection[TopicPartition]) -> None:
        """Forget these partitions, and that the application works on them."""
        self.put_back(partitions)
        if self.last is not None and _of(self.last) in partitions:
            self.last = None
        for partition in partitions:
            self._began.pop(partition, None)
            self._left.pop(partition, None)

    # Positions

    def position(self, partition: TopicPartition, fetched: OffsetAndEpoch) -> OffsetAndEpoch:
        """The next record of a partition to hand out; `fetched` is where its runs end."""
        if partition in self._waiting:
            return _position_of(self._waiting[partition][0])
        here = self._here() if partition == self._of else None
        return fetched if here is None else here

    def processed(self, partition: TopicPartition, fetched: OffsetAndEpoch) -> OffsetAndEpoch:
        """The first record of a partition that the application has not finished with."""
        position = self.position(partition, fetched)
        place = self._in_work(partition)
        return position if place is None else min(place, position, key=_offset)

    def _in_work(self, partition: TopicPartition) -> OffsetAndEpoch | None:
        """The first record of it that the application works on."""
        places = [known[partition] for known in (self._began, self._left) if partition in known]
        if self.last is not None and _of(self.last) == partition:
            places.append(_position_of(self.last))
        return min(places, key=_offset, default=None)

    def _here(self) -> OffsetAndEpoch | None:
        """The next record of the run that is being handed out."""
        if self.last is not None and _of(self.last) == self._of:
            return _after(self.last)
        return self._next


def _of(record: AnyRecord) -> TopicPartition:
    return TopicPartition(record.topic, record.partition)


def _offset(place: OffsetAndEpoch) -> int:
    return place.offset


def _position_of(record: AnyRecord) -> OffsetAndEpoch:
    return OffsetAndEpoch(record.offset, record.leader_epoch)


def _after(record: AnyRecord) -> OffsetAndEpoch:
    return OffsetAndEpoch(record.offset + 1, record.leader_epoch)
