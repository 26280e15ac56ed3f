# SPDX-License-Identifier: Apache-2.0
"""Transactional ids that nobody uses are forgotten, and others are not."""

import pytest
from tests.transactions.desk import Desk
from tests.transactions.test_ending import TABLE, completed, empty

DAY = 86_400_000


@pytest.mark.parametrize("crash", [False, True], ids=["live", "after a crash"])
@pytest.mark.parametrize("name", ["empty", "complete commit", "complete abort"])
def test_an_id_without_a_transaction_expires(name, crash):
    desk = Desk()
    TABLE[name][0](desk)
    desk.wait(DAY)
    if crash:
        desk.restart()

    desk.wait(6 * DAY - 1)
    assert desk.known() is not None
    desk.wait(1)
    assert desk.known() is None
    desk.restart()
    assert desk.known() is None
    assert desk.state() == ""
    assert "expires" in desk.told.lines[-1]


def test_an_id_expired_while_no_broker_was_running():
    desk = Desk()
    empty(desk)
    desk.now += 8 * DAY
    desk.restart()
    desk.wait(0)

    assert desk.known() is None


def test_an_id_whose_markers_cannot_be_written_does_not_expire():
    desk = Desk(transactional_id_expiration_ms=1000)
    TABLE["prepare commit"][0](desk)

    desk.wait(10_000)
    assert desk.state() == "PrepareCommit"


def test_use_puts_it_off():
    desk = Desk()
    completed(commit=True)(desk)
    desk.wait(6 * DAY)
    desk.init()
    desk.wait(6 * DAY)
    assert desk.state() == "Empty"
    desk.wait(DAY)
    assert desk.state() == ""


def test_a_producer_whose_id_has_expired_begins_anew():
    desk = Desk()
    producer = empty(desk)
    desk.wait(7 * DAY)

    assert desk.enrol(producer).code == 49
    answer = desk.init()
    assert answer.producer_epoch == 0
    assert answer.producer_id != producer[0]
