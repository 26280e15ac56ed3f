# SPDX-License-Identifier: Apache-2.0
"""Causes that Kohort's own broker has written beside its records are proof."""

import pytest
from tests.history import log as logs
from tests.history.log import Log, end_of, epoch, has, has_nothing, member, tables

from kohort.history import TRIGGERS
from kohort.history.written import TRIGGER_OF
from kohort.records.causes import Because, Cause


def left(*causes, beside_epoch=False):
    log = Log()
    log.write(member("a"), member("b"), epoch(2))
    log.write(has("a", 2, 0, before=0), has("b", 2, 1, before=0))
    here, there = ([], [*causes]) if beside_epoch else ([*causes], [])
    log.at(50).write(has_nothing("a"), end_of("a", causes=here), epoch(3, causes=there))
    return tables(log).epoch(3)


@pytest.mark.parametrize("beside_epoch", [False, True])
@pytest.mark.parametrize(
    ("cause", "trigger"),
    [
        (Cause.LEAVE, "leave"),
        (Cause.KICKED, "leave"),
        (Cause.SESSION, "session timeout"),
        (Cause.REBALANCE, "rebalance timeout"),
    ],
)
def test_the_end_of_a_member_has_the_cause_that_is_written(cause, trigger, beside_epoch):
    assert left().possible == ["session timeout", "leave"]
    row = left(Because(cause, "a"), beside_epoch=beside_epoch)
    assert (row.trigger, row.triggers, row.possible) == (trigger, [trigger], [])


@pytest.mark.parametrize("named", [True, False])
def test_the_last_consumer_of_a_group_that_is_converted_has_the_cause_of_its_end(named):
    """Its end is written before the generation that follows from it."""
    why = [Because(Cause.LEAVE, "b")] if named else []
    log = Log()
    log.write(member("a", classic_protocols=["range"]), member("b"), epoch(2))
    log.at(5).write(
        has_nothing("b"),
        end_of("a"),
        end_of("b", causes=why),
        epoch(None),
        logs.generation(2, logs.classic("a"), causes=[Because(Cause.MIGRATION), *why]),
    )
    log.at(6).write(logs.generation(3, logs.classic("a", 0), causes=[Because(Cause.MIGRATION)]))
    row = tables(log).epoch(3)
    assert row.trigger == "migration"
    assert row.possible == ([] if named else ["session timeout", "leave"])
    assert ("the coordinator wrote: leave of b" in row.evidence) is named


def test_the_cause_of_another_member_proves_nothing_about_this_one():
    row = left(Because(Cause.LEAVE, "b"), beside_epoch=True)
    assert row.triggers == ["leave", "unknown"]
    assert row.possible == ["session timeout", "leave"]


def test_reasons_stand_in_the_evidence():
    row = left(Because(Cause.LEAVE, "a", "the consumer is closed"), beside_epoch=True)
    assert row.evidence.endswith(
        "the coordinator wrote: leave of a-client at /10.0.0.1 (a) (the consumer is closed)"
    )


def test_what_begins_no_rebalance_names_none():
    assert left(Because(Cause.EXPIRY), Because("made up"), beside_epoch=True).triggers == [
        "unknown"
    ]


def test_a_generation_says_why_it_began():
    log = Log()
    log.write(logs.generation(1, logs.classic("a", 0)))
    again = logs.generation(2, logs.classic("a", 0), causes=[Because(Cause.REJOIN, "a")])
    log.at(5).write(again)
    assert tables(log).epoch(2).triggers == ["rejoin"]


def test_a_cooperative_follow_up_is_no_other_subscription():
    log = Log()
    log.write(logs.generation(1, logs.classic("a", 0, 1)))
    both = [logs.classic("a", 0, claims=(0, 1)), logs.classic("b")]
    log.at(1).write(logs.generation(2, *both))
    why = [Because(Cause.SUBSCRIPTION, "a")]
    log.at(2).write(logs.generation(3, logs.classic("a", 0), logs.classic("b", 1), causes=why))
    assert tables(log).epoch(3).triggers == ["cooperative follow-up"]


def test_every_trigger_has_its_place():
    assert {*TRIGGER_OF.values()} <= {*TRIGGERS}
