# SPDX-License-Identifier: Apache-2.0
"""A transaction is seen whole or not at all: its records, and the offsets that it commits.

Readers of committed records never pass over one that is committed later: they are stopped where it
begins. And in the end no transaction is open.
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import ClassVar

from kohort.java import coordinator_partition
from kohort.sim.checkers.checker import Alarm, Checker
from kohort.sim.facts import (
    AllCommittedRead,
    BitFlipped,
    CommittedRead,
    OffsetOfTransaction,
    OffsetsInTransaction,
    PartitionEnrolled,
    PartitionId,
    SentInTransaction,
    TopicsAtEnd,
    TransactionAtEnd,
    TransactionEnded,
    TransactionEnding,
)

GROUPS_TOPIC, IDS_TOPIC = "__consumer_offsets", "__transaction_state"
OPEN = frozenset({"Ongoing", "PrepareCommit", "PrepareAbort"})
Group = tuple[str, int]
"""A group, and the partition that it has an offset of."""


class Transaction:
    """What its producer has told. `asked` says how it was to end, once it was."""

    def __init__(self, transactional_id: str) -> None:
        self.transactional_id = transactional_id
        self.values: dict[bytes, PartitionId] = {}
        self.before: dict[Group, str] = {}
        self.asked: bool | None = None
        self.ended = False


class Transactions(Checker):
    """What a transaction leaves of an offset names it, and each knows which one was before it: the
    committed ones are a chain. Where a log is damaged nothing is expected of who needs it.
    """

    name: ClassVar[str] = "transactions"
    hears: ClassVar = {
        SentInTransaction: "sent",
        PartitionEnrolled: "enrolled",
        OffsetsInTransaction: "offsets",
        TransactionEnding: "ending",
        TransactionEnded: "over",
        CommittedRead: "read",
        OffsetOfTransaction: "offset",
        AllCommittedRead: "all_read",
        TransactionAtEnd: "state",
        TopicsAtEnd: "topics",
        BitFlipped: "flipped",
    }

    def __init__(self, alarm: Alarm) -> None:
        super().__init__(alarm)
        self._known: dict[str, Transaction] = {}
        self._of: dict[bytes, str] = {}
        self._folders: dict[str, set[str]] = defaultdict(set)
        self._reads: dict[PartitionId, list[CommittedRead]] = defaultdict(list)
        self._all: dict[PartitionId, AllCommittedRead] = {}
        self._last: dict[Group, str] = {}
        self._states: list[TransactionAtEnd] = []
        self._topics: dict[str, tuple[bytes, int]] = {}
        self._damaged: set[str] = set()

    def sent(self, fact: SentInTransaction) -> None:
        known = self._known.setdefault(fact.transaction, Transaction(fact.transactional_id))
        known.values[fact.value] = fact.place
        self._of[fact.value] = fact.transaction

    def enrolled(self, fact: PartitionEnrolled) -> None:
        self._folders[fact.transactional_id].add(fact.folder)

    def offsets(self, fact: OffsetsInTransaction) -> None:
        known = self._known.setdefault(fact.transaction, Transaction(fact.transactional_id))
        known.before[fact.group, fact.partition] = fact.before

    def ending(self, fact: TransactionEnding) -> None:
        if fact.transaction in self._known:
            self._known[fact.transaction].asked = fact.commit

    def over(self, fact: TransactionEnded) -> None:
        if fact.transaction in self._known:
            self._known[fact.transaction].ended = True

    def read(self, fact: CommittedRead) -> None:
        self._reads[fact.place].append(fact)
        for offset, value in fact.values.items():
            if value in self._of:
                self._may_be_seen(self._of[value], f"at {_shown(fact.place)} offset {offset}")

    def offset(self, fact: OffsetOfTransaction) -> None:
        if fact.metadata:
            self._may_be_seen(fact.metadata, f"in {fact.group} partition {fact.partition}")
        if fact.at_rest:
            self._last[fact.group, fact.partition] = fact.metadata

    def _may_be_seen(self, name: str, where: str) -> None:
        known = self._known.get(name)
        if known is None or not known.asked:
            self.alarm(f"{name} is seen {where}, and nobody has committed it")

    def all_read(self, fact: AllCommittedRead) -> None:
        self._all[fact.place] = fact

    def state(self, fact: TransactionAtEnd) -> None:
        self._states.append(fact)

    def topics(self, fact: TopicsAtEnd) -> None:
        self._topics = fact.topics

    def flipped(self, fact: BitFlipped) -> None:
        self._damaged.add(fact.folder)

    def at_the_end(self) -> None:
        chains = {group: set(self._chain(group)) for group in self._last}
        for name, known in self._known.items():
            self._judge(name, known, chains)
        for place, found in self._all.items():
            self._judge_reads(place, found)
        self._judge_open()

    def _chain(self, group: Group) -> Iterator[str]:
        """The transactions that have taken a group to where it is, the last one first."""
        name, seen = self._last[group], set[str]()
        while name and name not in seen:
            seen.add(name)
            yield name
            known = self._known.get(name)
            if known is None or group not in known.before:
                self.alarm(f"{group[0]} partition {group[1]} is at {name}, which never took it on")
                return
            name = known.before[group]

    def _judge(self, name: str, known: Transaction, chains: dict[Group, set[str]]) -> None:
        """Alarm unless everything of a transaction is there, or nothing."""
        seen = dict(self._parts(name, known, chains))
        there = [what for what, is_there in seen.items() if is_there]
        missing = [what for what, is_there in seen.items() if not is_there]
        if there and not known.asked:
            self.alarm(f"{name} is seen {there[0]}, and nobody has committed it")
        elif there and missing:
            self.alarm(f"{name} is seen {there[0]}, and not {missing[0]}")
        elif missing and known.asked and known.ended:
            self.alarm(f"{name} is committed, and not seen {missing[0]}")

    def _parts(
        self, name: str, known: Transaction, chains: dict[Group, set[str]]
    ) -> Iterator[tuple[str, bool]]:
        """Each part of a transaction that can be judged: where it is, and whether it is seen."""
        for value, place in known.values.items():
            found = self._all.get(place)
            if found is not None and found.stopped == found.end:
                yield f"at {_shown(place)} as {value!r}", value in found.values.values()
        for group in known.before:
            if group in chains:
                yield f"in {group[0]} partition {group[1]}", name in chains[group]

    def _judge_reads(self, place: PartitionId, found: AllCommittedRead) -> None:
        """Alarm where a reader has been past what it should have been given."""
        for read in self._reads[place]:
            for offset, value in found.values.items():
                if (
                    read.start <= offset < read.end
                    and offset not in read.values
                    and value in self._of
                ):
                    self.alarm(
                        f"a reader has passed {_shown(place)} offset {offset} before"
                        f" {self._of[value]} was committed"
                    )

    def _judge_open(self) -> None:
        """Alarm about transactions that are open, and about partitions where readers wait."""
        waits = self._who_waits()
        for state in self._states:
            if state.state in OPEN and state.transactional_id in self._folders.keys() - waits:
                self.alarm(
                    f"{state.transactional_id} is {state.state} though nothing fails any more"
                )
        for place, found in self._all.items():
            writers = {
                self._known[self._of[number]].transactional_id for number in self._written(place)
            }
            if found.stopped < found.end and not writers & waits:
                self.alarm(
                    f"readers of {_shown(place)} are stopped at {found.stopped}, it ends at"
                    f" {found.end}, and nothing fails any more"
                )

    def _written(self, place: PartitionId) -> Iterator[bytes]:
        for known in self._known.values():
            yield from (value for value, where in known.values.items() if where == place)

    def _who_waits(self) -> set[str]:
        """The transactional ids whose log is damaged, or that of somebody who needs a marker."""
        names = {topic_id: name for name, (topic_id, _) in self._topics.items()}
        folders = self._folders
        for transaction in self._known.values():
            mine = folders[transaction.transactional_id]
            mine.add(self._folder(IDS_TOPIC, transaction.transactional_id))
            mine.update(
                f"{names.get(place[0])}-{place[1]}" for place in transaction.values.values()
            )
            mine.update(self._folder(GROUPS_TOPIC, group) for group, _ in transaction.before)
        return {name for name, needed in folders.items() if needed & self._damaged}

    def _folder(self, topic: str, key: str) -> str:
        """Where a topic of the broker keeps what belongs to a key."""
        partitions = self._topics.get(topic, (b"", 0))[1]
        return f"{topic}-{coordinator_partition(key, partitions) if partitions else 0}"


def _shown(place: PartitionId) -> str:
    return f"{place[0].hex()[:8]}-{place[1]}"
