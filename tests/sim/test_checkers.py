# SPDX-License-Identifier: Apache-2.0
"""Each checker sees what it is there for, in a history that no broker has made."""

import pytest

from kohort.runtime.driver import INTERNAL, LOADED_AGAIN
from kohort.sim.checkers.availability import AvailabilityChecker
from kohort.sim.checkers.commits import Commits
from kohort.sim.checkers.compaction import CompactionChecker
from kohort.sim.checkers.convergence import Convergence
from kohort.sim.checkers.deletion import Deletion
from kohort.sim.checkers.departed_members import DepartedMembers
from kohort.sim.checkers.epochs import Epochs
from kohort.sim.checkers.fenced_producers import FencedProducers
from kohort.sim.checkers.fencing import Fencing
from kohort.sim.checkers.forged_batches import ForgedBatchChecker
from kohort.sim.checkers.instances import Instances
from kohort.sim.checkers.lifetimes import Lifetimes
from kohort.sim.checkers.owners import Owners
from kohort.sim.checkers.producer_ids import ProducerIds
from kohort.sim.checkers.records import Records
from kohort.sim.checkers.refusals import RefusalChecker
from kohort.sim.checkers.settings import Settings
from kohort.sim.checkers.transactions import Transactions
from kohort.sim.disk import SimulatedFiles
from kohort.sim.facts import (
    AllCommittedRead,
    AllRead,
    BitFlipped,
    CommitLost,
    CommitRead,
    CommitsDeleted,
    CommitSent,
    CommittedRead,
    HeartbeatAccepted,
    HeartbeatFailed,
    InstanceConfirmed,
    MemberAtEnd,
    MemberExpelled,
    MemberJoined,
    MemberLeft,
    OffsetOfTransaction,
    OffsetsInTransaction,
    OwnershipBelief,
    PartitionEnrolled,
    ProducerIdGiven,
    ProducerServed,
    ProducerTaken,
    RecordKept,
    RecordRead,
    RecordSent,
    SentInTransaction,
    SettingLost,
    SettingRead,
    SettingSent,
    StillUnavailable,
    TopicDeleted,
    TopicDoubtful,
    TopicMade,
    TopicsAtEnd,
    TopicsSeen,
    TransactionAtEnd,
    TransactionEnded,
    TransactionEnding,
)
from kohort.sim.lasting_facts import (
    BrokerStarted,
    ChangeDone,
    ChangeLost,
    ChangeRefused,
    CompactedRead,
    EndSeen,
    ForgedAnswered,
    HeldRead,
    LifetimeSeen,
    LogReloaded,
    MemberDeparted,
    MembersSeen,
    StateRead,
)
from kohort.sim.process import OperatorLog

ID, OTHER = b"i" * 16, b"o" * 16
PLACE = ID, 0
SECOND = 1_000_000
LATER = 3 * SECOND


def alarms(checker, *facts):
    said = []
    judge = checker(said.append)
    ears = dict(judge.ears())
    for fact in facts:
        ears[type(fact)](fact)
    judge.at_the_end()
    return said


def sent(value=b"v", *, once=False):
    return RecordSent(PLACE, value, once=once)


def accepted(member, epoch, since, left, place=PLACE):
    return HeartbeatAccepted("g", member, epoch, {place: since}, left, left)


def named(member, sent, *, new=False, instance="i"):
    """Answered a second after it was sent."""
    return InstanceConfirmed("g", instance, member, new, sent * SECOND, (sent + 1) * SECOND)


def at_end(member, epoch, *indexes):
    return MemberAtEnd("g", member, epoch, frozenset((ID, one) for one in indexes), ("t",))


def believes(member, sent, place=PLACE, session=0):
    """Answered at once."""
    return OwnershipBelief("g", member, frozenset({place}), session, sent * SECOND, sent * SECOND)


def lives(*, there, at, until=50, gone_by=90):
    return LifetimeSeen("x", there, at * SECOND, at * SECOND, until * SECOND, gone_by * SECOND)


def taken(epoch, at, producer_id=1, name="x"):
    return ProducerTaken(name, producer_id, epoch, at)


def served(epoch, sent, producer_id=1):
    return ProducerServed("x", producer_id, epoch, "end", sent)


def ends(name="t", *, commit=True, told=True):
    """A transaction with two records, one of them in another partition, and an offset."""
    return [
        SentInTransaction(name, "x", PLACE, name.encode() + b"0"),
        SentInTransaction(name, "x", (ID, 1), name.encode() + b"1"),
        OffsetsInTransaction(name, "x", "g", 0, ""),
        TransactionEnding(name, commit),
        *([TransactionEnded(name, commit)] if told else []),
    ]


def looked(first, second, metadata=None, *, stopped=9):
    """What readers of committed records get of both partitions, and of the offset."""
    offsets = [] if metadata is None else [OffsetOfTransaction("g", 0, metadata, at_rest=True)]
    return [
        AllCommittedRead(PLACE, first, stopped, 9),
        AllCommittedRead((ID, 1), second, 9, 9),
        *offsets,
    ]


WHOLE = looked({0: b"t0"}, {0: b"t1"}, "t")
NOTHING = looked({}, {}, "")
LOGS = TopicsAtEnd(
    {"t": (ID, 2), "__consumer_offsets": (OTHER, 1), "__transaction_state": (b"", 1)}
)
COMMITS = [CommitSent("g", 0, 1), CommitSent("g", 0, 2)]
SET = [SettingSent("g", 1), SettingSent("g", 2)]
MADE = TopicMade(ID, "t", 10)
TWO = TopicsAtEnd({"t": (ID, 2)})


@pytest.mark.parametrize(
    ("checker", "facts"),
    [
        (Transactions, [*ends(), *looked({0: b"t0"}, {}, "t")]),
        (Transactions, [*ends(), *looked({0: b"t0"}, {0: b"t1"}, "")]),
        (Transactions, [*ends(), *NOTHING]),
        (Transactions, [*ends(told=False), *looked({}, {}, "t")]),
        (Transactions, [*ends(told=False), *looked({}, {0: b"t1"}, "")]),
        (Transactions, [*ends(commit=False), *looked({0: b"t0"}, {}, "")]),
        (Transactions, [*ends(commit=False), CommittedRead(PLACE, 0, 1, {0: b"t0"})]),
        (Transactions, [*ends(commit=False), OffsetOfTransaction("g", 0, "t", at_rest=False)]),
        (Transactions, [OffsetOfTransaction("g", 0, "t", at_rest=False)]),
        (Transactions, [*ends()[:2], *ends()[3:], *WHOLE]),  # it has never taken the group on
        (
            Transactions,
            [*ends(), *ends("u"), *looked({0: b"t0", 2: b"u0"}, {0: b"t1", 2: b"u1"}, "u")],
        ),
        (Transactions, [CommittedRead(PLACE, 0, 5, {}), *ends(), *WHOLE]),
        (Transactions, [*ends()[:3], TransactionAtEnd("x", "Ongoing")]),
        (Transactions, [*ends()[:3], *looked({}, {}, stopped=4)]),
        (  # another log than its own
            Transactions,
            [BitFlipped("t-7"), LOGS, *ends(), TransactionAtEnd("x", "PrepareCommit")],
        ),
        (Settings, [*SET, SettingRead("g", 1, 2, LATER)]),
        (Settings, [*SET, SettingRead("g", 7, 2, LATER)]),
        (Settings, [*SET, SettingLost("g", 1, SECOND), SettingRead("g", 1, 2, 100 * SECOND)]),
        (FencedProducers, [taken(1, 10), taken(2, 20), served(1, 30)]),
        (FencedProducers, [taken(1, 10), taken(0, 20, producer_id=2), served(1, 30)]),
        (FencedProducers, [taken(1, 10), taken(1, 20)]),
        (FencedProducers, [taken(1, 10), taken(0, 20, name="y")]),
        (Commits, [*COMMITS, CommitRead("g", 0, 1, 2, LATER)]),
        (Commits, [*COMMITS, CommitRead("g", 0, -1, 2, LATER)]),
        (  # what was on its way has long arrived
            Commits,
            [
                *COMMITS,
                CommitLost("g", 0, 1, at=SECOND),
                CommitRead("g", 0, 2, 2, sent=50 * SECOND),
                CommitRead("g", 0, 1, 2, sent=100 * SECOND),
            ],
        ),
        (Commits, [CommitSent("g", 0, 1), CommitRead("g", 1, 1, -1, LATER)]),
        (
            Commits,
            [*COMMITS, CommitsDeleted("g", 0), CommitRead("g", 0, 2, -1, LATER)],
        ),
        (Records, [sent(), RecordKept(PLACE, 5, b"v", 0), AllRead(PLACE, {4: b"v"})]),
        (Records, [sent(), sent(b"w"), *(RecordKept(PLACE, 5, one, 0) for one in (b"v", b"w"))]),
        (Records, [RecordRead(PLACE, 5, b"v", 0)]),
        (Records, [sent(once=True), AllRead(PLACE, {4: b"v", 5: b"v"})]),
        (Deletion, [MADE, TopicsSeen({}, sent=20)]),
        (Deletion, [TopicDeleted(ID, 10), TopicsSeen({ID: "t"}, sent=20)]),
        (Deletion, [TopicDeleted(ID, 10), RecordKept(PLACE, 5, b"v", sent=20)]),
        (AvailabilityChecker, [BitFlipped("t-0"), StillUnavailable("t-1", 56)]),
        (ProducerIds, [ProducerIdGiven(7, 0, asked_for=False, to="a")] * 2),
        (
            ProducerIds,
            [
                ProducerIdGiven(7, 1, asked_for=True, to="a"),
                ProducerIdGiven(7, 0, asked_for=False, to="b"),
            ],
        ),
        (Owners, [accepted("a", 1, 0, 100), accepted("b", 2, 50, 120)]),
        (Owners, [accepted("b", 2, 50, 120), accepted("a", 1, 0, 100)]),
        (Owners, [believes("a", 1), believes("b", 5)]),
        (Owners, [believes("a", 1, session=9 * SECOND), believes("b", 9)]),
        (RefusalChecker, [StateRead("x", "1", 1), ChangeRefused("x", "2"), StateRead("x", "2", 9)]),
        (RefusalChecker, [ChangeDone("x", "1"), StateRead("x", "", 9)]),
        (
            RefusalChecker,
            [
                ChangeLost("x", "1", SECOND),
                ChangeDone("x", "2"),
                StateRead("x", "2", 95 * SECOND),
                StateRead("x", "1", 100 * SECOND),
            ],
        ),
        (CompactionChecker, [CompactedRead(PLACE, {b"k": 7}, {5: b"v:k;", 8: b"v:l;"})]),
        (CompactionChecker, [HeldRead(PLACE, {5: b"v:k;"}, {}, 5)]),
        (CompactionChecker, [HeldRead(PLACE, {5: b"v:k;"}, {5: b"v:k;"}, 6)]),
        (Lifetimes, [lives(there=False, at=49)]),
        (Lifetimes, [lives(there=True, at=90)]),
        (
            DepartedMembers,
            [MemberDeparted("g", "m", 5, for_good=True), MembersSeen("g", ("m",), 6)],
        ),
        (
            DepartedMembers,
            [
                MemberDeparted("g", "m", 5, for_good=True),
                BrokerStarted(6),
                MembersSeen("g", ("m",), 7),
            ],
        ),
        (
            DepartedMembers,
            [
                MemberDeparted("g", "m", 5, for_good=True),
                LogReloaded(6),
                MembersSeen("g", ("m",), 7),
            ],
        ),
        (ForgedBatchChecker, [ForgedAnswered("control batch", 0, 0)]),
        (ForgedBatchChecker, [EndSeen(PLACE, 7, 6)]),
        (Epochs, [accepted("a", 3, 0, 1), accepted("a", 2, 0, 2)]),
        (Instances, [named("a", 0, new=True), named("b", 2, new=True), named("a", 4)]),
        (Convergence, [TWO, at_end("a", 1, 0)]),
        (Convergence, [TWO, at_end("a", 1, 0, 1), at_end("b", 1, 1)]),
        (Convergence, [TWO, at_end("a", 1, 0), at_end("b", 2, 1)]),
        (Convergence, [TWO, at_end("a", 1, 0, 1, 2)]),
        (Fencing, [MemberJoined("g", "a", 0), MemberExpelled("g", "a", 5 * SECOND)]),
    ],
)
def test_what_must_not_be_is_seen(checker, facts):
    said = alarms(checker, *facts)
    assert said
    assert all(one.startswith(f"{checker.name}: ") for one in said)


@pytest.mark.parametrize(
    ("checker", "facts"),
    [
        (Transactions, [*ends(), *WHOLE]),
        (Transactions, [*ends(told=False), *WHOLE]),
        (Transactions, [*ends(told=False), *NOTHING]),
        (Transactions, [*ends(commit=False), *NOTHING]),
        (Transactions, [*ends(), AllCommittedRead(PLACE, {0: b"t0"}, 9, 9)]),  # t-1 is deleted
        (Transactions, [CommittedRead(PLACE, 1, 5, {}), *ends(), *WHOLE]),
        (Transactions, [CommittedRead(PLACE, 0, 5, {}), *ends(commit=False), *NOTHING]),
        (Transactions, [*ends(), TransactionAtEnd("x", "CompleteCommit")]),
        (Transactions, [TransactionAtEnd("of somebody else", "Ongoing")]),
        (
            Transactions,
            [BitFlipped("t-1"), LOGS, *ends(), TransactionAtEnd("x", "PrepareCommit")],
        ),
        (
            Transactions,
            [
                BitFlipped("other-3"),
                LOGS,
                PartitionEnrolled("x", "other-3"),
                *ends(),
                TransactionAtEnd("x", "PrepareCommit"),
            ],
        ),
        (
            Transactions,
            [BitFlipped("__transaction_state-0"), LOGS, *ends(), *looked({}, {}, stopped=0)[:1]],
        ),
        (Settings, [*SET, SettingRead("g", 9, 0, SECOND), SettingRead("g", 2, 2, LATER)]),
        (Settings, [*SET, SettingLost("g", 1, SECOND), SettingRead("g", 1, 2, LATER)]),
        (
            Settings,
            [
                *SET,
                SettingLost("g", 1, SECOND),
                SettingRead("g", 1, 2, LATER),
                SettingRead("g", 1, 2, 100 * SECOND),
            ],
        ),
        (FencedProducers, [taken(1, 10), taken(2, 20), served(1, 15), served(2, 30)]),
        (FencedProducers, [taken(2, 10), taken(1, 20), served(2, 30)]),  # told late
        (Commits, [*COMMITS, CommitRead("g", 0, 2, 1, LATER)]),
        (
            Commits,
            [
                *COMMITS,
                CommitLost("g", 0, 1, at=SECOND),
                CommitRead("g", 0, 1, 2, LATER),
            ],
        ),
        (Commits, [CommitRead("g", 1, -1, -1, LATER)]),
        (Records, [sent(), RecordKept(PLACE, 5, b"v", 0), AllRead(PLACE, {5: b"v"})]),
        (Records, [sent(), AllRead(PLACE, {4: b"v", 5: b"v"})]),
        (Deletion, [MADE, TopicsSeen({}, sent=5), TopicsSeen({ID: "t"}, sent=20)]),
        (Deletion, [MADE, TopicDoubtful(ID), TopicsSeen({}, sent=20)]),
        (Deletion, [TopicDoubtful(ID), MADE, TopicsSeen({}, sent=20)]),
        (Deletion, [TopicDeleted(ID, 10), TopicsSeen({OTHER: "t"}, sent=20)]),
        (AvailabilityChecker, [BitFlipped("t-1"), StillUnavailable("t-1", 56)]),
        *(
            (ProducerIds, [ProducerIdGiven(7, epoch, epoch > 0, "a") for epoch in epochs])
            for epochs in ((0, 1), (1, 0), (0, 1, 2, 2))
        ),
        (Owners, [accepted("a", 1, 0, 100), accepted("b", 2, 110, 120)]),
        (Owners, [believes("a", 1), believes("b", 7)]),
        (Owners, [believes("a", 1), MemberLeft("g", "a"), believes("b", 2)]),
        (Owners, [believes("a", 1), MemberExpelled("g", "a", 2), believes("b", 2)]),
        (Owners, [believes("a", 1), believes("b", 2, place=(ID, 1))]),
        (RefusalChecker, [ChangeDone("x", "1"), ChangeRefused("x", "2"), StateRead("x", "1", 9)]),
        (
            RefusalChecker,
            [
                ChangeDone("x", "1"),
                ChangeLost("x", "2", SECOND),
                StateRead("x", "2", 100 * SECOND),
                StateRead("x", "2", 200 * SECOND),
            ],
        ),
        (CompactionChecker, [CompactedRead(PLACE, {b"k": 7}, {8: b"v:k;"})]),
        (CompactionChecker, [HeldRead(PLACE, {5: b"v:k;"}, {5: b"v:k;"}, 5)]),
        (Lifetimes, [lives(there=False, at=50), lives(there=True, at=89)]),
        (
            DepartedMembers,
            [MemberDeparted("g", "m", 5, for_good=True), MembersSeen("g", ("m",), 4)],
        ),
        (
            DepartedMembers,
            [
                MemberDeparted("g", "m", 5, for_good=False),
                BrokerStarted(6),
                MembersSeen("g", ("m",), 7),
            ],
        ),
        (
            DepartedMembers,
            [
                MemberDeparted("g", "m", 5, for_good=False),
                LogReloaded(6),
                MembersSeen("g", ("m",), 7),
            ],
        ),
        (ForgedBatchChecker, [ForgedAnswered("honest", 0, 3), ForgedAnswered("wrong crc", 2, 0)]),
        (ForgedBatchChecker, [EndSeen(PLACE, 6, 6)]),
        (Epochs, [accepted("a", 3, 0, 1), MemberLeft("g", "a"), accepted("a", 2, 0, 2)]),
        (Instances, [named("a", 0, new=True), named("a", 4), named("b", 6, new=True)]),
        (  # sent before the other one had heard of its place
            Instances,
            [named("a", 0, new=True), named("b", 2, new=True), named("a", 2)],
        ),
        (  # it has joined again
            Instances,
            [named("a", 0, new=True), named("b", 2, new=True), named("a", 4, new=True)],
        ),
        (
            Instances,
            [named("a", 0, new=True), named("b", 2, new=True, instance="j"), named("a", 4)],
        ),
        (Convergence, [TWO, at_end("a", 1, 0), at_end("b", 1, 1)]),
        (Convergence, [BitFlipped("__consumer_offsets-0"), TWO, at_end("a", 1, 0)]),
        (Fencing, [MemberJoined("g", "a", 0), MemberExpelled("g", "a", 7 * SECOND)]),
        (
            Fencing,
            [
                MemberJoined("g", "a", 0),
                HeartbeatFailed("g", "a"),
                MemberExpelled("g", "a", 7 * SECOND),
            ],
        ),
        (
            Fencing,
            [MemberJoined("g", "a", 0), MemberLeft("g", "a"), MemberExpelled("g", "a", 5 * SECOND)],
        ),
    ],
)
def test_what_may_be_is_not(checker, facts):
    assert not alarms(checker, *facts)


def test_heartbeats_that_arrived_count_but_not_after_two_lost_answers():
    said = []
    judge = Fencing(said.append)
    judge.joined(MemberJoined("g", "a", 0))
    for second in (4, 8, 12, 16):
        judge.heartbeat("g", "a", second * SECOND)
    judge.expelled(MemberExpelled("g", "a", 17 * SECOND))
    assert not said
    judge.joined(MemberJoined("g", "a", 0))
    for second in (4, 8):
        judge.heartbeat("g", "a", second * SECOND)
    judge.expelled(MemberExpelled("g", "a", 13 * SECOND))
    assert len(said) == 1


def test_a_crash_does_not_mend_the_disk():
    disk = SimulatedFiles()
    disk.faults["sync", "/data"] = 5
    disk.immovable["/data/a-0"] = 16
    disk.room_bytes = 50
    for next_one in (disk.after_crash(), disk.after_power_loss()):
        assert next_one.faults == disk.faults
        assert next_one.immovable == disk.immovable
        assert next_one.room_bytes == 50


def test_only_faults_of_the_broker_itself_are_failures():
    failures, loaded = [], []
    said = OperatorLog(failures.append, lambda: loaded.append(True))
    said.error("shard 0 cannot be loaded, its calls are refused: the disk refuses")
    assert not failures
    said.error(f"{INTERNAL}OffsetCommit has failed in shard 0:\nTraceback\nZeroDivisionError\n")
    assert failures == ["OffsetCommit has failed in shard 0: ZeroDivisionError"]
    assert not loaded
    said.error(f"shard 0 has failed, 1 calls are refused{LOADED_AGAIN}StorageError: full")
    assert loaded == [True]
