# SPDX-License-Identifier: Apache-2.0
"""Partitions come into a transaction, in every state."""

import pytest
from tests.transactions.desk import P0, P1, Desk
from tests.transactions.test_ending import TABLE, empty, ongoing

from kohort.errors import ErrorCode
from kohort.terms import TopicPartition

CONCURRENT = ErrorCode.CONCURRENT_TRANSACTIONS
P2 = TopicPartition("payments", 0)


@pytest.mark.parametrize("crash", [False, True], ids=["live", "after a crash"])
@pytest.mark.parametrize("name", TABLE)
def test_adding_in_each_state(name, crash):
    """What is being ended takes nothing more; anything else is a transaction afterwards."""
    make, state, *_ = TABLE[name]
    desk = Desk()
    producer = make(desk)
    desk.wait(5)
    if crash:
        desk.restart()

    answer = desk.enrol(producer, P2)

    if state.startswith("Prepare"):
        assert (answer.code, desk.state()) == (CONCURRENT, state)
        return
    assert (answer.code, desk.state()) == (ErrorCode.NONE, "Ongoing")
    began = state == "Ongoing"
    assert list(desk.known().partitions) == ([P0, P1, P2] if began else [P2])
    assert desk.known().started_at == desk.now - (5 if began else 0)


@pytest.mark.parametrize("name", TABLE)
def test_asking_in_each_state(name):
    """A question changes nothing."""
    make, state, *_ = TABLE[name]
    desk = Desk()
    producer = make(desk)

    answer = desk.enrol(producer, P0, P2, verify_only=True)

    assert desk.state() == state
    if state.startswith("Prepare"):
        assert answer.code == CONCURRENT
    else:
        assert answer.code == ErrorCode.NONE
        assert answer.missing == ({P2} if state == "Ongoing" else {P0, P2})


@pytest.mark.parametrize("verify", [False, True])
def test_who_may_not(verify):
    desk = Desk()
    producer_id, epoch = empty(desk)

    def code(name, *producer):
        return desk.enrol(producer, name=name, verify_only=verify).code

    assert code("", producer_id, epoch) == ErrorCode.INVALID_REQUEST
    assert code("x", producer_id, epoch) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert code("t", 77, epoch) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert code("t", producer_id, epoch - 1) == ErrorCode.PRODUCER_FENCED
    assert code("t", producer_id, epoch + 1) == ErrorCode.PRODUCER_FENCED
    assert desk.state() == "Empty"


def test_what_is_in_it_already_is_not_written_again():
    desk = Desk()
    producer = ongoing(desk)
    end = desk.log.end

    assert desk.enrol(producer, P1, P0, P1).code == ErrorCode.NONE
    assert desk.log.end == end


def test_the_time_of_a_transaction_counts_from_its_first_partition():
    desk = Desk()
    producer = empty(desk)
    desk.wait(100_000)
    desk.enrol(producer, P0)
    desk.wait(50_000)
    desk.enrol(producer, P1)
    desk.wait(9_999)
    assert desk.state() == "Ongoing"
    desk.wait(1)
    assert desk.state() == "PrepareAbort"
