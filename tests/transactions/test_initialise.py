# SPDX-License-Identifier: Apache-2.0
"""InitProducerId with a transactional id, in every state and with every epoch."""

import pytest
from tests.transactions.desk import P0, Desk
from tests.transactions.test_ending import TABLE, at_the_last_epoch, empty, ongoing

from kohort.errors import ErrorCode


def test_the_first_producer_begins_at_epoch_0_and_each_that_follows_one_higher():
    desk = Desk()
    first = desk.init(timeout=1000)
    again = desk.init(timeout=2000)
    other = desk.init("other")

    assert (first.error_code, first.producer_epoch) == (0, 0)
    assert (again.producer_id, again.producer_epoch) == (first.producer_id, 1)
    assert other.producer_id != first.producer_id
    assert desk.known().timeout_ms == 2000
    assert desk.state() == "Empty"


@pytest.mark.parametrize(
    ("name", "timeout", "code"),
    [("", 60_000, 42), ("t", 0, 50), ("t", -1, 50), ("t", 900_001, 50), ("t", 900_000, 0)],
)
def test_a_request_that_no_state_could_grant(name, timeout, code):
    answer = Desk().init(name, timeout=timeout)

    assert answer.error_code == code
    assert (answer.producer_id < 0) == bool(code)


@pytest.mark.parametrize("crash", [False, True], ids=["live", "after a crash"])
@pytest.mark.parametrize("name", TABLE)
def test_a_new_producer_in_each_state(name, crash):
    """It gets the id once nothing of the producer before is open."""
    make, state, *_ = TABLE[name]
    desk = Desk()
    producer_id, epoch = make(desk)
    if crash:
        desk.restart()

    answer = desk.init()

    waits = state in ("Ongoing", "PrepareCommit", "PrepareAbort")
    assert answer.error_code == (ErrorCode.CONCURRENT_TRANSACTIONS if waits else 0)
    if waits:
        desk.written()
        answer = desk.init()
        assert answer.error_code == 0
    assert answer.producer_id == producer_id
    # An open transaction is aborted in an epoch of its own, which nobody is told.
    assert answer.producer_epoch == epoch + (2 if state == "Ongoing" else 1)
    assert desk.state() == "Empty"


def test_an_open_transaction_is_aborted_for_the_next_producer():
    desk = Desk()
    producer_id, epoch = ongoing(desk)
    desk.init()

    (markers,) = desk.sent
    assert (markers.commit, markers.producer.epoch) == (False, epoch + 1)
    assert desk.enrol((producer_id, epoch)).code == ErrorCode.PRODUCER_FENCED


def test_a_producer_asks_for_its_next_epoch_and_gets_it_once():
    """KIP-360: the same question again gets the same answer, an older one none."""
    desk = Desk()
    producer_id, _ = empty(desk)

    first = desk.init(producer=(producer_id, 0))
    again = desk.init(producer=(producer_id, 0))
    assert (first.producer_epoch, again.producer_epoch) == (1, 1)
    assert desk.init(producer=(producer_id, 1)).producer_epoch == 2

    for producer in [(producer_id, 0), (producer_id, 3), (999, 2)]:
        assert desk.init(producer=producer).error_code == ErrorCode.PRODUCER_FENCED
        older = desk.init(producer=producer, version=3)
        assert older.error_code == ErrorCode.INVALID_PRODUCER_EPOCH


def test_who_names_an_older_epoch_does_not_abort_what_the_next_one_has_begun():
    desk = Desk()
    producer_id, _ = empty(desk)
    desk.init(producer=(producer_id, 0))
    desk.enrol((producer_id, 1), P0)

    assert desk.init(producer=(producer_id, 0)).error_code == ErrorCode.PRODUCER_FENCED
    assert desk.state() == "Ongoing"
    assert desk.init(producer=(producer_id, 1)).error_code == ErrorCode.CONCURRENT_TRANSACTIONS
    desk.written()
    assert desk.init(producer=(producer_id, 1)).producer_epoch == 2


def test_a_producer_whose_transaction_was_aborted_asks_for_its_next_epoch():
    """KIP-588: it was only slow."""
    desk = Desk()
    producer_id, epoch = ongoing(desk)
    desk.wait(60_000)
    desk.written()

    answer = desk.init(producer=(producer_id, epoch))

    assert (answer.error_code, answer.producer_epoch) == (0, epoch + 1)


@pytest.mark.parametrize("named", [False, True])
def test_after_the_last_epoch_comes_another_producer_id(named):
    desk = Desk()
    producer_id = at_the_last_epoch(desk)
    desk.end((producer_id, 32766))
    desk.written()
    producer = (producer_id, 32766) if named else (-1, -1)

    answer = desk.init(producer=producer)

    assert (answer.error_code, answer.producer_epoch) == (0, 0)
    assert answer.producer_id > producer_id
    for _ in range(3 if named else 0):  # an answer may be lost more than once
        again = desk.init(producer=producer)
        assert (again.producer_id, again.producer_epoch) == (answer.producer_id, 0)


def test_without_reserved_ids_a_new_producer_waits():
    desk = Desk()
    desk.reserved = False
    assert desk.init().error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    desk.reserved = True
    assert desk.init().error_code == 0
