# SPDX-License-Identifier: Apache-2.0
"""Each checker of programs sees what it is there for, in a history that no client has made."""

import pytest
from tests.sim.test_checkers import alarms

from kohort.sim.checkers.at_least_once import AtLeastOnceChecker
from kohort.sim.checkers.consumption import SLACK_US, ConsumptionChecker
from kohort.sim.checkers.delivery import Deliveries
from kohort.sim.checkers.exactly_once import ExactlyOnceChecker
from kohort.sim.facts import AllCommittedRead, AllRead, BitFlipped, TopicsAtEnd
from kohort.sim.programs.facts import (
    ClientGone,
    CommitRefused,
    ConsumerSeek,
    CopyGroup,
    DeliveryRefused,
    DeliveryUnresolved,
    FinalPositions,
    GroupOffset,
    PartitionPause,
    PartitionsAssigned,
    PartitionsUnassigned,
    RecordDelivered,
    RecordHandedOut,
    RecordProcessed,
    SendCalled,
    TransactionConcluded,
)

SECOND = 1_000_000
SESSION = 6 * SECOND
LONG = 100 * SECOND
IDS = {"t": (b"i" * 16, 2), "c": (b"c" * 16, 1)}
TOPICS = TopicsAtEnd(IDS)
PART = ("t", 0)


def has(client="a", at=0, *, committed=False):
    return PartitionsAssigned(client, "g", (PART,), committed, SESSION, at)


def ends(client="a", *, lost=False):
    return PartitionsUnassigned(client, (PART,), lost, 0)


def gets(offset, client="a", at=0, value=None):
    return RecordHandedOut(
        client, "g", PART, offset, b"%d" % offset if value is None else value, at
    )


def log(*offsets, topic="t", index=0):
    """The log of a partition as any reader gets it: each value is its offset."""
    values = {offset: b"%d" % offset for offset in offsets}
    return [TOPICS, AllRead((IDS[topic][0], index), values), committed(values, topic, index)]


def committed(values, topic="t", index=0):
    return AllCommittedRead((IDS[topic][0], index), values, 9, 9)


def delivered(number, offset, index=0):
    return [
        SendCalled("p", number, "t", b"v%d" % number),
        RecordDelivered("p", number, ("t", index), offset, b"v%d" % number),
    ]


def produced(values, visible=None, second=()):
    """What both partitions of the topic have, and what of the first is committed."""
    return [
        TOPICS,
        AllRead((IDS["t"][0], 0), values),
        AllRead((IDS["t"][0], 1), dict(second)),
        committed(values if visible is None else visible),
        committed(dict(second), index=1),
    ]


def copied(at, copies, source=(0, 1)):
    return [
        CopyGroup("g", "t", "c"),
        GroupOffset("g", PART, at),
        *log(*source),
        committed(dict(enumerate(copies)), "c"),
    ]


V = SendCalled("p", 1, "t", b"v1")


@pytest.mark.parametrize(
    ("checker", "facts"),
    [
        # a record of what is not there to be handed out
        (ConsumptionChecker, [gets(0)]),
        (ConsumptionChecker, [has(), ends(), gets(0)]),
        (ConsumptionChecker, [has(), ends(lost=True), gets(0)]),
        (ConsumptionChecker, [has(), PartitionPause("a", PART, on=True), gets(0)]),
        (ConsumptionChecker, [has(), gets(0), *log(1)]),
        (ConsumptionChecker, [has(), gets(0, value=b"other"), *log(0)]),
        (ConsumptionChecker, [has(committed=True), gets(0), TOPICS, committed({})]),
        (ConsumptionChecker, [has(), gets(0), has("b"), gets(0, "b", value=b"other")]),
        # its order
        (ConsumptionChecker, [has(), gets(1), gets(0), *log(0, 1)]),
        (ConsumptionChecker, [has(), gets(1), gets(1), *log(0, 1)]),
        (ConsumptionChecker, [has(), gets(0), gets(2), *log(0, 1, 2)]),
        (ConsumptionChecker, [has(), gets(2), ConsumerSeek("a", PART, 0), gets(1), *log(0, 1, 2)]),
        # two at a time
        (ConsumptionChecker, [has(), gets(0), has("b", 1), gets(0, "b", 1), gets(1, at=LONG)]),
        (ConsumptionChecker, [has(), gets(0), CommitRefused("a", 1), gets(1, at=2)]),
        (
            AtLeastOnceChecker,
            [has(), RecordProcessed("g", PART, 0), GroupOffset("g", PART, 2), *log(0, 1)],
        ),
        (AtLeastOnceChecker, [has(), GroupOffset("g", PART, 1), *log(0)]),
        (AtLeastOnceChecker, [has(), FinalPositions("a", "g", ("t",), {PART: 1}), *log(0, 1)]),
        (AtLeastOnceChecker, [has(), FinalPositions("a", "g", ("t",), {}), *log(0, 1)]),
        (
            AtLeastOnceChecker,
            [has(), FinalPositions("a", "g", ("t",), {PART: 2}, inside=False), *log(0, 1)],
        ),
        (Deliveries, [V, DeliveryUnresolved("p", b"v1")]),
        (Deliveries, [*delivered(1, 0), *produced({})]),
        (Deliveries, [*delivered(1, 0), *produced({0: b"x", 1: b"v1"})]),
        (Deliveries, [*delivered(1, 0), *produced({}, second={0: b"v1"})]),
        (Deliveries, [*delivered(1, -1), *produced({}, second={0: b"v1"})]),
        (Deliveries, [*delivered(1, 0), *produced({0: b"v1", 1: b"v1"})]),
        (Deliveries, [*delivered(1, 0), *produced({0: b"v1"}, second={0: b"v1"})]),
        (Deliveries, [*delivered(1, 1), *delivered(2, 0), *produced({1: b"v1", 0: b"v2"})]),
        (Deliveries, [V, DeliveryRefused("p", b"v1", maybe=False), *produced({0: b"v1"})]),
        (
            Deliveries,
            [V, TransactionConcluded((b"v1",), committed=True), *produced({0: b"v1"}, {})],
        ),
        (Deliveries, [V, TransactionConcluded((b"v1",), committed=False), *produced({0: b"v1"})]),
        (ExactlyOnceChecker, copied(2, [b"t:0:0"])),
        (ExactlyOnceChecker, copied(2, [b"t:0:0", b"t:0:1", b"t:0:0"])),
        (ExactlyOnceChecker, copied(1, [b"t:0:0", b"t:0:1"])),
        (ExactlyOnceChecker, copied(1, [b"t:0:0"])),  # it has not come to the end
    ],
)
def test_what_must_not_be_is_seen(checker, facts):
    said = alarms(checker, *facts)
    assert said
    assert all(one.startswith(f"{checker.name}: ") for one in said)


@pytest.mark.parametrize(
    ("checker", "facts"),
    [
        (ConsumptionChecker, [has(), gets(0), gets(1), *log(0, 1)]),
        (ConsumptionChecker, [has(), gets(0), gets(2), *log(0, 2)]),  # there is none between them
        (
            ConsumptionChecker,
            [has(committed=True), gets(0), gets(2), TOPICS, committed({0: b"0", 2: b"2"})],
        ),
        (ConsumptionChecker, [has(), gets(1), ConsumerSeek("a", PART, 0), gets(0), *log(0, 1)]),
        (ConsumptionChecker, [has(), gets(1), ends(), has(), gets(0), *log(0, 1)]),
        (ConsumptionChecker, [has(), gets(1), has("b"), gets(0, "b"), *log(0, 1)]),
        (
            ConsumptionChecker,
            [
                has(),
                PartitionPause("a", PART, on=True),
                PartitionPause("a", PART, on=False),
                gets(0),
            ],
        ),
        (
            ConsumptionChecker,
            [has(), PartitionPause("a", PART, on=True), ends(), has(), gets(0), *log(0)],
        ),
        (ConsumptionChecker, [has(), gets(0), BitFlipped("t-0"), *log(1)]),
        (
            ConsumptionChecker,
            [has(), gets(0), has("b", 1), gets(0, "b", 1), gets(1, at=SESSION + SLACK_US)],
        ),
        (
            ConsumptionChecker,
            [has(), gets(0), ends(), has("b", 1), gets(0, "b", 1), gets(1, "b", LONG)],
        ),
        (
            ConsumptionChecker,
            [has(), gets(0), ClientGone("a"), has("b", 1), gets(0, "b", 1), gets(1, "b", LONG)],
        ),
        (ConsumptionChecker, [has(), gets(0), CommitRefused("a", 1), gets(1, at=1)]),
        (
            ConsumptionChecker,
            [has(), gets(0), CommitRefused("a", 1), ends(), has(), gets(1, at=LONG)],
        ),
        (
            AtLeastOnceChecker,
            [has(), RecordProcessed("g", PART, 0), GroupOffset("g", PART, 2), TOPICS, *log(0)],
        ),
        (AtLeastOnceChecker, [has(), GroupOffset("g", PART, -1), *log(0)]),
        (
            AtLeastOnceChecker,
            [has(), BitFlipped("__consumer_offsets-0"), GroupOffset("g", PART, 1), *log(0)],
        ),
        (
            AtLeastOnceChecker,
            [
                BitFlipped("__consumer_offsets-0"),
                FinalPositions("a", "g", ("t",), {}, inside=False),
            ],
        ),
        (
            AtLeastOnceChecker,
            [
                has(),
                FinalPositions("a", "g", ("t",), {PART: 0}),
                FinalPositions("b", "g", ("t",), {PART: 2}),
                *log(0, 1),
            ],
        ),
        (Deliveries, [*delivered(1, 0), *produced({0: b"v1"})]),
        (Deliveries, [*delivered(1, -1), *produced({0: b"v1"})]),
        (
            Deliveries,
            [*delivered(1, 0), *delivered(2, 0, index=1), *produced({0: b"v1"}, second={0: b"v2"})],
        ),
        (Deliveries, [V, DeliveryRefused("p", b"v1", maybe=True), *produced({0: b"v1"})]),
        (Deliveries, [V, DeliveryRefused("p", b"v1", maybe=True), *produced({})]),
        (Deliveries, [V, *produced({0: b"v1"})]),  # its program has died
        (Deliveries, [*delivered(1, 0), BitFlipped("t-0"), *produced({})]),
        (
            Deliveries,
            [V, TransactionConcluded((b"v1",), committed=None), *produced({0: b"v1"}, {})],
        ),
        (
            Deliveries,
            [V, TransactionConcluded((b"v1",), committed=False), *produced({0: b"v1"}, {})],
        ),
        (ExactlyOnceChecker, copied(2, [b"t:0:0", b"t:0:1"])),
        (ExactlyOnceChecker, copied(9, [b"t:0:0"], source=[0])),
        (ExactlyOnceChecker, [BitFlipped("__transaction_state-0"), *copied(2, [])]),
    ],
)
def test_what_may_be_is_not(checker, facts):
    assert not alarms(checker, *facts)
