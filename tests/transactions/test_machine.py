# SPDX-License-Identifier: Apache-2.0
"""The machine as its driver sees it."""

import pytest
from tests.transactions.desk import P0, P1, Desk

from kohort.errors import Broken, ErrorCode, WireError
from kohort.machines.effects import Call, Client, Producer
from kohort.records import transactions as records
from kohort.records.transactions import Record, Unknown
from kohort.terms import Offset
from kohort.transactions.messages import Enrol
from kohort.wire import batch


def test_live_state_is_replayed_state():
    """K40-32 for transactions: what a load brings back is what there was."""
    desk = Desk()
    for number in range(20):
        name = f"t{number}"
        producer_id = desk.init(name).producer_id
        if number % 2:
            desk.enrol((producer_id, 0), P0, P1, name=name)
        if number % 4 == 3:
            desk.end((producer_id, 0), name=name, commit=number % 8 == 3)
        if number % 3 == 0:
            desk.written()
    live = dict(desk.driver.machine.transactions)
    desk.restart()

    assert desk.driver.machine.transactions == live


def test_a_start_goes_on_with_everything_that_was_decided():
    """K40-32: also where there are more than one turn takes."""
    desk = Desk()
    for number in range(5):
        name = f"t{number}"
        producer = desk.init(name).producer_id, 0
        desk.enrol(producer, P0, name=name)
        desk.end(producer, name=name)
    desk.restart()

    assert [one.transactional_id for one in desk.sent] == [f"t{number}" for number in range(5)]
    desk.written()
    assert {desk.state(f"t{number}") for number in range(5)} == {"CompleteCommit"}


def test_a_decision_without_partitions_is_completed_by_a_start():
    """A crash between its two records, or a broker that writes them apart."""
    desk = Desk()
    producer = desk.init().producer_id, 0
    desk.enrol(producer)
    known = desk.known()._replace(partitions={})
    record = known._replace(state=type(known.state).PREPARE_ABORT).record()
    desk.log.append(batch.build([records.encode(record)], desk.now), 1)
    desk.restart()

    assert desk.state() == "CompleteAbort"
    desk.restart()
    assert desk.state() == "CompleteAbort"


def test_a_clock_that_jumps_takes_the_deadlines_along():
    desk = Desk()
    desk.enrol((desk.init().producer_id, 0))
    desk.now += 3_600_000
    desk.driver.clock_jumped(3_600_000)

    desk.wait(59_999)
    assert desk.state() == "Ongoing"
    desk.wait(1)
    assert desk.state() == "PrepareAbort"


def test_a_deadline_that_could_not_be_met_comes_again():
    desk = Desk()
    desk.enrol((desk.init().producer_id, 0))
    machine = desk.driver.machine
    now = desk.now + 60_000
    next(machine.tick(now))
    machine.put_off(now)

    assert machine.wake_at() == now + 500


def test_records_of_other_types_are_passed_over_and_other_versions_are_not():
    desk = Desk()
    machine = desk.driver.machine
    other = machine.decode(b"\x00\x07abc", b"")
    machine.replay(other, Offset(0), None)

    assert other == Unknown(7)
    with pytest.raises(WireError, match="version 9"):
        machine.decode(records.encode(Record("t"))[0], b"\x00\x09")


def test_nothing_in_this_log_belongs_to_a_transaction():
    machine = Desk().driver.machine

    with pytest.raises(Broken, match="in a transaction"):
        machine.replay(Record("t"), Offset(0), Producer(1, 0))


def test_markers_in_this_log_are_passed_over_and_told_of_once():
    """A broker has written some where it had let a transaction write to this very log."""
    desk = Desk()
    producer_id = desk.init().producer_id
    for commit in (True, False):
        marker = batch.build_marker(
            commit=commit, timestamp=desk.now, producer_id=1, producer_epoch=0, coordinator_epoch=0
        )
        desk.log.append(marker, 1)
    desk.log.sync()
    desk.restart()

    assert desk.driver.active
    assert desk.known().producer_id == producer_id
    (told,) = desk.told.warnings
    assert told.startswith("2 markers in a log of transactional ids end nothing")
    assert told.endswith("producer 1 (commit: False)")
    assert desk.init().producer_epoch == 1


def test_a_topic_that_is_deleted_changes_nothing_here():
    desk = Desk()
    assert list(desk.driver.machine.topics_changed(None, desk.now)) == []


def test_a_machine_that_is_loading_refuses():
    desk = Desk()
    desk.driver.start_loading()
    enrol = Enrol("t", Producer(1, 0), (P0,))
    seen = []

    class Token:
        answer = staticmethod(seen.append)

    desk.driver.submit(Call(Token, enrol, 0, Client("app", "/127.0.0.1")))
    (reply,) = desk.driver.synced(desk.log.end)

    assert reply.response.code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def test_producer_ids_in_the_log_are_not_given_out_again():
    """The catalog may be lost, or the log come from another broker."""
    desk = Desk()
    producer_id = desk.init().producer_id
    desk.noted.clear()
    desk.restart()

    assert desk.noted == [producer_id]
