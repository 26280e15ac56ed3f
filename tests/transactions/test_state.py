# SPDX-License-Identifier: Apache-2.0
"""What the machine knows beside its log."""

from tests.transactions.desk import P0, Desk

from kohort.transactions.state import EXPIRY, MARKERS, TIMEOUT, TransactionSettings


def test_the_settings_are_those_of_the_broker():
    desk = Desk(transaction_max_timeout_ms=5, transactional_id_expiration_ms=6)

    assert TransactionSettings.of(desk.config) == TransactionSettings(5, 6)
    assert desk.init(timeout=6).error_code == 50


def test_many_transactions_leave_no_deadlines_behind():
    """Each of them puts off the day on which its id expires, a week from now."""
    desk = Desk()
    desk.init("idle")
    made = desk.init()
    producer = made.producer_id, made.producer_epoch
    for _ in range(200):
        desk.enrol(producer, P0, client_version=1)
        desk.end(producer)
        desk.written()
        desk.now += 10

    deadlines = desk.driver.machine.deadlines
    assert len(deadlines) == 2
    assert len(deadlines._heap) <= 4  # growth shows nowhere else


def test_an_id_has_one_deadline_at_a_time():
    """It expires, or its transaction must end, or its markers are asked for again."""
    desk = Desk()
    deadlines = desk.driver.machine.deadlines

    def kinds():
        return [kind for kind in (TIMEOUT, EXPIRY, MARKERS) if (kind, "t") in deadlines]

    producer = desk.init().producer_id, 0
    assert kinds() == [EXPIRY]
    desk.enrol(producer)
    assert kinds() == [TIMEOUT]
    desk.end(producer)
    assert kinds() == []
    desk.written(*desk.sent[0].partitions)
    assert kinds() == [MARKERS]
    desk.wait(500)
    desk.written()
    assert kinds() == [EXPIRY]
