# SPDX-License-Identifier: Apache-2.0
"""Which partitions exist, which of them are open, and what the disk still has to do for them.

Topics change with each write of the catalog; changes that come during one write are made by the
next. A partition that cannot be opened is tried again, and a damaged one is left alone until
somebody has repaired it. Neither affects other partitions.
"""

from collections.abc import Iterable
from itertools import chain, zip_longest
from typing import Protocol

from kohort.config import BrokerConfig
from kohort.errors import Broken, StorageError
from kohort.runtime.observers import Observer
from kohort.server.catalog import INTERNAL_TOPICS, Catalog, Draft, Topic
from kohort.server.partitions.disk_work import (
    DELETE_SLICE_LOGS,
    OPEN_SLICE_LOGS,
    Change,
    DiskWork,
    Finish,
    OpenedLog,
    PartitionKey,
    TopicDeletion,
)
from kohort.server.partitions.log_starts import LogStarts
from kohort.server.partitions.logs import Logs
from kohort.server.partitions.partition import Partition
from kohort.terms import Millis, Offset, PartitionIndex, TopicId


class PartitionListener(Protocol):
    """What is told about partitions and topics, in the turns of the loop."""

    def opened(self, partition: Partition, now: Millis) -> None: ...
    def dropped(self, partition: Partition) -> None: ...
    def topics_changed(self, now: Millis) -> None: ...
    def start_moved(self, partition: Partition) -> None: ...


class UnsettledDraft:
    """A draft that is written and may not be durable. It counts, since a restart finds it. Nobody
    is answered and nothing is built on it until it is durable: it is written again with the next
    change, or when housekeeping comes.
    """

    def __init__(self, draft: Draft, finishes: list[Finish]) -> None:
        self.draft = draft
        self.finishes = finishes
        self.due = False  # to be written again


class PartitionTable:
    """The partitions of one cluster by topic and index. DiskWork for the disk is handed out by
    `begin`, one piece at a time, and taken back by `end`.
    """

    def __init__(
        self,
        config: BrokerConfig,
        catalog: Catalog,
        logs: Logs,
        observe: Observer,
        listener: PartitionListener,
    ) -> None:
        self.open: dict[PartitionKey, Partition] = {}
        self.starts = LogStarts(listener.start_moved)
        self.damaged: dict[PartitionKey, str] = {}  # out of service until somebody has repaired it
        self._config = config
        self._catalog = catalog
        self._logs = logs
        self._observe = observe
        self._listener = listener
        self._to_open: dict[PartitionKey, None] = {}
        self._opening: list[
            PartitionKey
        ] = []  # by the work that is out: a second log would write over it
        self._wanted: dict[PartitionKey, None] = {}  # those of them that somebody has asked for
        self._refused: dict[PartitionKey, str] = {}  # by the disk: they are tried again and again
        self._to_delete: dict[TopicId, list[PartitionIndex]] = {}  # not tried yet, of some topics
        self._undeleted: dict[TopicId, dict[PartitionIndex, str]] = {}  # of those that are tried
        self._left: dict[TopicId, dict[PartitionIndex, str]] = {}  # not deleted, and why
        self._left_alone: set[TopicId] = set()  # until housekeeping comes again
        self._note_synced = False
        self._not_noted = ""
        self._not_forgotten = ""
        self._changes: list[Change] = []
        self._unsettled: UnsettledDraft | None = None
        self._work: DiskWork | None = None

    def get(self, name: str, index: int) -> Partition | None:
        return self.open.get((name, PartitionIndex(index)))

    def why_closed(self, name: str, index: int) -> str:
        """Why a partition of a topic is not open. If nothing prevents it, it is opened next, since
        somebody has asked for it.
        """
        place = name, PartitionIndex(index)
        known = self.damaged.get(place) or self._refused.get(place)
        if known is None and place in self._to_open:
            self._wanted[place] = None
        return known or "it is about to be opened"

    def change(self, change: Change) -> None:
        """Judge a change of the topics when its turn comes, and make it. All changes that wait are
        made by one write of the catalog.
        """
        self._changes.append(change)

    def open_missing(self) -> None:
        """Open what is not open and delete what is still to be deleted, from the first on."""
        self._left_alone.clear()
        if self._unsettled is not None:
            self._unsettled.due = True
        self._to_open = dict.fromkeys(self._places_without(self._catalog.by_name.values()))

    def reconfigure(self, config: BrokerConfig) -> None:
        """Adopt changed settings of the broker: topics that do not set their own follow them."""
        self._config = config
        for partition in self.open.values():
            partition.reconfigure(partition.topic, config)

    def note_synced(self) -> None:
        """Have the ends of the durable logs written down."""
        self._note_synced = True

    @property
    def whole(self) -> bool:
        """Whether every partition of every topic is open."""
        count = sum(topic.partitions for topic in self._catalog.by_name.values())
        return len(self.open) == count

    @property
    def busy(self) -> bool:
        """Whether a piece of work is out, or waits to be handed out."""
        if self._work is not None or self.starts.waiting:
            return True
        if self._unsettled is not None:
            return bool(self._changes or self._unsettled.due)
        return bool(self._changes or self._to_open)

    @property
    def has_work(self) -> bool:
        """Whether `begin` has something to do. It is asked behind every turn."""
        if self._work is not None:
            return False
        if self._changes or self._to_open or self._note_synced or self._catalog.deleting:
            return True
        if self._unsettled is not None and self._unsettled.due:
            return True
        open_files = self._logs.open_files
        return bool(self.starts.waiting or (open_files is not None and open_files.nameless))

    def _synced(self) -> dict[PartitionKey, Offset]:
        return {place: partition.log.synced for place, partition in self.open.items()}

    def begin(self) -> DiskWork | None:
        """The next piece; None when there is nothing to do, or a piece is out already."""
        if self._work is not None:
            return None
        draft, finishes = self._apply_changes()
        to_open, leaving = [], []
        waits = self._catalog.deleting or self._to_open  # nearly always nothing does
        if draft is not None or (waits and self._unsettled is None):
            leaving = self._next_to_delete(draft)
            to_open = self._next_to_open(draft, leaving)
        moves = self.starts.take() if self.starts.waiting else []
        open_files = self._logs.open_files
        closing = open_files.take_nameless() if open_files and open_files.nameless else []
        if draft is None and not (to_open or leaving or moves or closing or self._note_synced):
            for finish in finishes:
                finish(None)
            return None
        self._work = DiskWork(
            self._catalog,
            self._logs,
            self._config,
            draft=draft,
            finishes=finishes,
            to_open=to_open,
            leaving=leaving,
            moves=moves,
            closing=closing,
            synced=self._synced() if self._note_synced else None,
        )
        self._note_synced = False
        return self._work

    def end(self, work: DiskWork, now: Millis) -> None:
        """Adopt the result, then answer the requests that wait for it."""
        self._work = None
        self._opening = []
        self.starts.end(work.moves)
        finishes = work.finishes
        changed = work.draft is not None and (work.saved or work.unsettled is not None)
        if work.draft is not None and changed:
            self._catalog.become(work.draft, settled=work.saved)
            finishes = self._settled_by(work, work.draft)
            self._drop_and_reconfigure()
        for opened in work.opened:
            self._take(opened, now)
        if changed:
            self._to_open = dict.fromkeys(self._places_without(self._catalog.by_name.values()))
        gone = [leaving.topic for leaving, left in work.removed if self._all_gone(leaving, left)]
        if gone:
            self.change(self._forget(gone))
        if work.failed:
            self._left_alone.update(topic.topic_id for topic in self._catalog.deleting)
            self._observe.error(f"work for the disk has not come to its end: {work.failed}")
        if work.not_noted is not None and str(work.not_noted) != self._not_noted:
            self._not_noted = str(work.not_noted)
            self._observe.warning(self._not_noted)
        if changed:
            self._listener.topics_changed(now)
        for finish in finishes:
            finish(work.error)

    def _settled_by(self, work: DiskWork, draft: Draft) -> list[Finish]:
        """Those that may be answered now: none while the draft is not durable."""
        before = self._unsettled
        finishes = work.finishes if before is None else before.finishes + work.finishes
        if work.unsettled is not None:
            if before is None:
                self._observe.warning(f"{work.unsettled}; it is written again until it is")
            self._unsettled = UnsettledDraft(draft, finishes)
            return []
        if before is not None:
            self._observe.warning("the catalog of topics is durable again")
            self._unsettled = None
        return finishes

    def _apply_changes(self) -> tuple[Draft | None, list[Finish]]:
        """All changes that wait, made in one draft; None when none of them changes anything."""
        before = self._unsettled
        if not self._changes and not (before and before.due):
            return None, []
        draft = self._catalog.draft() if before is None else before.draft.scratch()
        if before is not None:
            before.due = False
        changes, self._changes = self._changes, []
        finishes = [change(draft) for change in changes]
        return (draft if draft.changed or before else None), finishes

    def _next_to_delete(self, draft: Draft | None) -> list[TopicDeletion]:
        """A slice of the topics that are deleted durably and whose folders may be there, small ones
        first.
        """
        known = None if draft is None else {topic.topic_id for topic in draft.deleting}
        going = [
            (topic, self._to_delete.setdefault(topic.topic_id, self._leaving(topic)))
            for topic in self._catalog.deleting
            if topic.topic_id not in self._left_alone and (known is None or topic.topic_id in known)
        ]
        room = DELETE_SLICE_LOGS
        slices = []
        for topic, indexes in sorted(going, key=lambda item: len(item[1])):
            if room > 0:
                slices.append(TopicDeletion(topic, indexes[:room]))
                room -= len(indexes)
        return slices

    def _next_to_open(
        self, draft: Draft | None, leaving: list[TopicDeletion]
    ) -> list[PartitionKey]:
        """A slice of what is not open; the first partitions of new topics come first. Then what
        somebody has asked for and all the rest take turns: a tool asks for everything, and small
        topics shall not wait for that. Where the folder of a deleted topic of that name is yet to
        be removed, that comes before.
        """
        new = [] if draft is None else self._places_without(draft.by_name.values())
        taken = self._still_taken(leaving)
        found: dict[PartitionKey, None] = {}
        in_turns = chain.from_iterable(zip_longest(self._wanted, self._to_open))
        for place in chain(new, in_turns):
            if len(found) == OPEN_SLICE_LOGS:
                break
            if place is not None and place not in taken:
                found[place] = None
        places = list(found)
        for place in places:
            self._to_open.pop(place, None)
            self._wanted.pop(place, None)
        self._opening = places
        return places

    def _still_taken(self, leaving: list[TopicDeletion]) -> set[PartitionKey]:
        """The places of deleted topics that are not removed yet, nor by this piece."""
        removed = {(topic.topic_id, index) for topic, indexes in leaving for index in indexes}
        return {
            (topic.name, index)
            for topic in self._catalog.deleting
            for index in self._to_delete.get(topic.topic_id, ())
            if (topic.topic_id, index) not in removed
        }

    def _places_without(self, topics: Iterable[Topic]) -> list[PartitionKey]:
        """The partitions of these topics that are neither open nor damaged nor being opened: those
        that have not failed before come first, then those of coordinators. The first partitions of
        all topics come before the second ones, so that small topics do not wait for large ones.
        """
        opening = set(self._opening)
        places = [
            place
            for topic in topics
            for index in range(topic.partitions)
            if (place := (topic.name, PartitionIndex(index))) not in self.open
            and place not in self.damaged
            and place not in opening
        ]

        def rank(place: PartitionKey) -> tuple[bool, bool, int]:
            return place in self._refused, place[0] not in INTERNAL_TOPICS, place[1]

        return sorted(places, key=rank)

    def _drop_and_reconfigure(self) -> None:
        """Close partitions whose topic is gone or was made anew; give others their new settings."""
        by_id = self._catalog.by_id
        for place, partition in list(self.open.items()):
            topic = by_id.get(partition.topic.topic_id)
            if topic is None:
                del self.open[place]
                self.starts.forget(partition)
                self._listener.dropped(partition)
            elif topic is not partition.topic:
                partition.reconfigure(topic, self._config)
        for known in (self.damaged, self._refused):
            for place in [place for place in known if place[0] not in self._catalog.by_name]:
                del known[place]

    def _leaving(self, topic: Topic) -> list[PartitionIndex]:
        left = self._left.get(topic.topic_id)
        if left is not None:
            return list(left)
        return [PartitionIndex(index) for index in range(topic.partitions)]

    def _all_gone(self, leaving: TopicDeletion, left: dict[PartitionIndex, str]) -> bool:
        """Take what has become of a slice of a deleted topic: whether nothing of that is left."""
        topic = leaving.topic
        tried = set(leaving.indexes)
        waiting = self._to_delete[topic.topic_id]
        waiting[:] = [index for index in waiting if index not in tried]
        refused = self._undeleted.setdefault(topic.topic_id, {})
        refused |= left
        if waiting:
            return False
        del self._to_delete[topic.topic_id], self._undeleted[topic.topic_id]
        if refused:
            self._take_left(topic, refused)
            return False
        if self._left.pop(topic.topic_id, None) is not None:
            self._observe.warning(f"the logs of the deleted topic {topic.name} are gone now")
        return True

    def _take_left(self, topic: Topic, left: dict[PartitionIndex, str]) -> None:
        """What is left of a deleted topic is told once, and tried again every few seconds."""
        if self._left.get(topic.topic_id) != left:
            reason = next(iter(left.values()))
            self._observe.warning(
                f"{topic.name} is deleted, {len(left)} of its {topic.partitions} logs are not yet: "
                f"{reason}"
            )
        self._left[topic.topic_id] = left
        self._left_alone.add(topic.topic_id)

    def _take(self, opened: OpenedLog, now: Millis) -> None:
        place, outcome = opened.place, opened.outcome
        name = f"{opened.topic.name}-{opened.index}"
        topic = self._catalog.by_id.get(opened.topic.topic_id)
        if isinstance(outcome, StorageError):
            # It is tried again every few seconds, but warned about once.
            if self._refused.get(place) != str(outcome):
                self._refused[place] = str(outcome)
                self._observe.warning(f"{name} cannot be opened, and is tried again: {outcome}")
        elif isinstance(outcome, Broken):
            self.damaged[place] = str(outcome)
            self._observe.error(f"{name} is damaged and out of service: {outcome}")
        elif topic is None:
            outcome.close()  # it was deleted meanwhile
        else:
            if self._refused.pop(place, None) is not None:
                self._observe.warning(f"{name} is open now")
            self._catalog.note_producer_id(outcome.highest_producer_id)
            note = self._catalog.note_producer_id
            partition = Partition(topic, opened.index, outcome, self._config, note)
            self.open[place] = partition
            self._listener.opened(partition, now)

    def _forget(self, deleted: list[Topic]) -> Change:
        """Their folders are gone. Where that cannot be noted, they are looked at again with the
        next sweep, and not at once: a full disk stays full for a while.
        """

        def finish(error: StorageError | None) -> None:
            if error is None:
                self._not_forgotten = ""
                return
            self._left_alone.update(topic.topic_id for topic in deleted)
            if self._not_forgotten != str(error):
                self._not_forgotten = str(error)
                names = ", ".join(topic.name for topic in deleted)
                self._observe.warning(
                    f"{names}: deleted with all logs, which cannot be forgotten yet: {error}"
                )

        def change(draft: Draft) -> Finish:
            draft.deleted(*deleted)
            return finish

        return change
