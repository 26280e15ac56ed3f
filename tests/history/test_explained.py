# SPDX-License-Identifier: Apache-2.0
"""The row of a rebalance: causes in their order, and everything in an order of its own."""

from tests.history import log as logs
from tests.history.log import Log, end_of, epoch, has, has_nothing, member, tables

from kohort.history import TRIGGERS, undecided_or_none


def test_several_causes_are_named_in_their_order():
    log = Log()
    log.write(member("a"), member("b"), epoch(2))
    log.write(has("a", 2, 0, before=0), has("b", 2, 1, before=0))
    log.at(1).write(
        has_nothing("b"),
        end_of("b"),
        member("c"),
        member("a", subscribed_topic_names=["payments"]),
        epoch(3),
        has("c", 3, before=0),
    )
    row = tables(log, session_timeout_ms=45_000).epoch(3)
    assert row.triggers == ["leave", "subscription change", "join"]
    assert row.trigger == "leave"
    assert sorted(row.triggers, key=TRIGGERS.index) == row.triggers
    assert row.evidence == (
        "c-client at /10.0.0.1 (c) joined; a-client at /10.0.0.1 (a) changed the subscription; "
        "b-client at /10.0.0.1 (b) is gone: last sign of life 1.0 s before, session timeout 45.0 s"
    )


def test_what_is_unknown_comes_with_what_is_possible():
    log = Log()
    log.write(member("a"), epoch(2))
    log.at(50).write(end_of("a"), epoch(3))
    row = tables(log).epoch(3)
    assert (row.trigger, row.possible) == ("unknown", ["session timeout", "leave"])


def test_moves_come_by_partition_and_what_is_null_first():
    log = Log()
    log.write(member("b"), member("a"), epoch(2))
    other = has("a", 2, 1, before=0)
    other.value.assigned_partitions[0].topic_id = "a-topic"
    log.write(has("b", 2, 2, 0, before=0), other)
    moves = tables(log).epoch(2).moves
    assert [(one.topic_id, one.topic_partition) for one in moves] == [
        ("a-topic", 1),
        ("orders-id", 0),
        ("orders-id", 2),
    ]


def test_an_epoch_whose_record_is_hidden_has_no_row():
    log = Log()
    log.write(member("a"), logs.target(3), has("a", 3, 0))
    assert tables(log).rebalances == []
    assert [row.gained_by for row in tables(log).assignments] == [None]


def test_causes_that_a_known_session_would_decide_are_counted():
    """A copy of a log does not tell the session timeout of its cluster."""

    def rows(**more):
        log = Log()
        log.write(member("a"), member("b"), epoch(2))
        log.write(has("a", 2, 0, before=0), has("b", 2, 1, before=0))
        log.at(12).write(has_nothing("a"), end_of("a"), epoch(3))
        found = tables(log, **more)
        return [{"trigger": row.trigger, "evidence": row.evidence} for row in found.rebalances]

    said = undecided_or_none(rows())

    assert said.startswith("1 unknown cause rests on an assumed session timeout: `--session-timeo")
    assert undecided_or_none([*rows(), *rows()]).startswith("2 unknown causes rest on an assumed")
    known = rows(session_timeout_ms=45_000)
    assert [row["trigger"] for row in known][-1] == "leave"
    assert undecided_or_none(known) is None
    assert undecided_or_none([{"trigger": "unknown", "evidence": None}]) is None
