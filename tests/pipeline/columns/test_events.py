# SPDX-License-Identifier: Apache-2.0
"""Rows of a group as events of its history, headers of our own broker included."""

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

import pyarrow as pa
from tests.coordinator.assigning import Assigner, offer, settle, share
from tests.coordinator.consumers import Consumer, beat
from tests.spark import rows
from tests.spark.gold.stories import Story, stalls, ticking

from kohort.history import Commits, History, HistoryInputs, Names, RebalanceRow, Record
from kohort.history.rows import AssignmentComputation
from kohort.pipeline.columns.decode import decode
from kohort.pipeline.columns.events import events
from kohort.pipeline.columns.record_positions import ArrowRows
from kohort.pipeline.columns.segments import parse
from kohort.pipeline.schemas import DECODED
from kohort.spark.gold.history_replay import as_table


def log_of(desk):
    """The bytes of everything that a desk's coordinator has written."""
    return b"".join(desk._batches.read(0, 1 << 30))


def rebalances(desk):
    parsed = parse(log_of(desk), 0)
    table = pa.Table.from_batches([decode(one) for one in parsed.pieces], DECODED.arrow)
    history = History(HistoryInputs(Names({}), None, 0))
    history.feed(events(table))
    found = [*history.closed, *history.open_rows()]
    return sorted(
        (row for row in found if isinstance(row, RebalanceRow)), key=lambda row: row.offset
    )


def test_what_the_broker_writes_is_proof():
    desk = Story(group_consumer_assignment_interval_ms=0)
    a = Consumer(desk, "a").join()
    Consumer(desk, "b").join()
    ticking(desk, 3, a)
    beat(desk, "b", -1)
    ticking(desk, 2, a)
    Consumer(desk, "c").join()
    ticking(desk, 50, a)  # c is silent
    found = rebalances(desk)
    assert [row.trigger for row in found] == ["join", "join", "leave", "join", "session timeout"]
    assert [row.possible for row in found] == [[]] * 5
    assert "the coordinator wrote: session timeout of app at /127.0.0.1 (c)" in found[-1].evidence


def test_a_rebalance_timeout_is_one():
    assert "rebalance timeout" in [row.trigger for row in rebalances(stalls())]


def test_who_has_computed_an_assignment():
    """A member, for a reason, in a time and with an outcome; or the broker, and why."""
    desk = Story(group_consumer_assignment_interval_ms=0)
    a, b = Assigner(desk, "a").join(), Assigner(desk, "b").join()
    settle(a, b)
    b.beat(client_assignors=[offer(reason=3)])
    desk.wait(1234)
    b.compute(*share(b.prepare()))
    settle(a, b)
    b.beat(client_assignors=[offer(reason=4)])
    desk.wait(500)
    b.install(b.prepare().group_epoch, error=7)
    settle(a, b)
    a.beat(client_assignors=[offer("y")])
    settle(a, b)
    found = {row.epoch: row.computed for row in rebalances(desk) if row.assigned_at is not None}
    computed = [one for one in found.values() if one is not None]
    assert AssignmentComputation("x", "b", 1.234, 0, 3, None) in computed
    assert AssignmentComputation("x", "b", 0.5, 7, 4, None) in computed
    last = found[max(found)]
    assert (last.member_id, last.seconds, last.error, last.reason) == (None,) * 4
    assert (last.assignor, bool(last.why)) == ("uniform", True)
    of_table = as_table(0, "g", rebalances(desk)).column("rebalances").to_pylist()
    assert [row["computed"] for row in of_table] == [
        None if row.computed is None else row.computed._asdict() for row in rebalances(desk)
    ]


def test_where_nobody_offers_assignors_the_log_does_not_say_who_has_computed():
    assert {row.computed for row in rebalances(stalls())} == {None}


def test_commits_that_were_folded_and_those_that_were_not():
    raw = rows.golden("codec-zstd")
    table = pa.Table.from_batches([decode(ArrowRows(raw))], DECODED.arrow)
    found = events(table)
    commits = [one for one in found if isinstance(one, Commits)]
    assert {one.count for one in commits} == {1}
    assert all(one.first_at == one.at for one in commits)
    assert all(one.first_committed == one.last_committed for one in commits)
    assert {one.plain for one in commits} == {True, False}
    records = [one for one in found if isinstance(one, Record)]
    assert {2, 3, 5, 8} <= {one.type for one in records}
    assert any(one.value is None for one in records)
    assert [one.offset for one in found] == sorted(one.offset for one in found)
