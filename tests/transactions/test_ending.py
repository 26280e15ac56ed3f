# SPDX-License-Identifier: Apache-2.0
"""The end of a transaction in every state, and after a crash in every state."""

import pytest
from tests.transactions.desk import P0, P1, START, Desk

from kohort.errors import ErrorCode
from kohort.machines.effects import Producer
from kohort.transactions.messages import MarkersWritten, Ticket

OK, FENCED, CONCURRENT, INVALID = (
    ErrorCode.NONE,
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.INVALID_TXN_STATE,
)


def empty(desk):
    answer = desk.init()
    return answer.producer_id, answer.producer_epoch


def ongoing(desk, **more):
    producer = empty(desk)
    desk.enrol(producer, P0, P1, **more)
    return producer


def prepared(commit):
    def make(desk):
        producer = ongoing(desk)
        desk.end(producer, commit=commit)
        return producer

    return make


def completed(commit):
    def make(desk):
        producer = prepared(commit)(desk)
        desk.written()
        return producer

    return make


def raised(make):
    """The same by a producer of the second version: the state and the epoch it was told last."""

    def raising(desk):
        producer = ongoing(desk, client_version=2)
        desk.end(producer, commit=make[0], version=5)
        if make[1]:
            desk.written()
        return producer

    return raising


TABLE = {
    # name: (how it comes about, state, code of a commit, code of an abort)
    "empty": (empty, "Empty", INVALID, INVALID),
    "ongoing": (ongoing, "Ongoing", OK, OK),
    "prepare commit": (prepared(commit=True), "PrepareCommit", CONCURRENT, INVALID),
    "prepare abort": (prepared(commit=False), "PrepareAbort", INVALID, CONCURRENT),
    "complete commit": (completed(commit=True), "CompleteCommit", OK, INVALID),
    "complete abort": (completed(commit=False), "CompleteAbort", INVALID, OK),
}


@pytest.mark.parametrize("crash", [False, True], ids=["live", "after a crash"])
@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
@pytest.mark.parametrize("name", TABLE)
def test_an_end_in_each_state(name, commit, crash):
    """The first version of transactions: the same request twice is answered as once."""
    make, state, on_commit, on_abort = TABLE[name]
    desk = Desk()
    producer = make(desk)
    if crash:
        desk.restart()
    assert desk.state() == state

    answer = desk.end(producer, commit=commit)

    assert answer.error_code == (on_commit if commit else on_abort)
    assert answer.producer_id == -1


SECOND = {
    # name: (how, commit with the old epoch, abort with it, commit with the new one, abort with it)
    "empty": (empty, INVALID, OK, FENCED, FENCED),
    "ongoing": (ongoing, OK, OK, FENCED, FENCED),
    "prepare commit": (raised((True, False)), CONCURRENT, INVALID, CONCURRENT, CONCURRENT),
    "prepare abort": (raised((False, False)), INVALID, CONCURRENT, CONCURRENT, CONCURRENT),
    "complete commit": (raised((True, True)), OK, INVALID, INVALID, OK),
    "complete abort": (raised((False, True)), INVALID, OK, INVALID, OK),
}


@pytest.mark.parametrize("crash", [False, True], ids=["live", "after a crash"])
@pytest.mark.parametrize("place", [1, 2, 3, 4], ids=["C old", "A old", "C new", "A new"])
@pytest.mark.parametrize("name", SECOND)
def test_an_end_that_raises_the_epoch_in_each_state(name, place, crash):
    """KIP-890: the epoch says whether a request is the same one again, or the next one.

    Upstream fences a producer that goes on, with the epoch that it was told, while the markers of
    its last transaction are being written; here it is asked to wait.
    """
    make, *codes = SECOND[name]
    desk = Desk()
    producer_id, epoch = make(desk)
    if crash:
        desk.restart()
    newer = place > 2

    answer = desk.end((producer_id, epoch + newer), commit=place in (1, 3), version=5)

    assert answer.error_code == codes[place - 1]
    if answer.error_code == OK:
        assert (answer.producer_id, answer.producer_epoch) == (producer_id, epoch + newer + 1)
    else:
        assert (answer.producer_id, answer.producer_epoch) == (-1, -1)


@pytest.mark.parametrize("version", [1, 2, 5])
def test_whoever_is_not_the_producer_is_refused(version):
    desk = Desk()
    producer_id, epoch = ongoing(desk)

    assert desk.end((producer_id, epoch), name="x", version=version).error_code == 49
    assert desk.end((producer_id, epoch), name="", version=version).error_code == 42
    assert desk.end((77, epoch), version=version).error_code == 49
    old = desk.end((producer_id, epoch - 1), version=version).error_code
    assert old == (47 if version < 2 else 90)


def test_markers_leave_when_the_decision_is_durable():
    desk = Desk()
    producer = ongoing(desk)
    desk.end(producer)

    (markers,) = desk.sent
    assert markers.producer == Producer(*producer)
    assert (markers.commit, markers.partitions) == (True, (P0, P1))
    assert desk.state() == "PrepareCommit"

    desk.written()

    assert desk.state() == "CompleteCommit"
    assert desk.known().partitions == {}


def test_a_marker_that_cannot_be_written_is_asked_for_again():
    desk = Desk()
    desk.end(ongoing(desk))
    desk.written(P1)
    assert desk.state() == "PrepareCommit"
    assert desk.sent == []

    desk.wait(500)

    assert desk.sent[0].partitions == (P1,)
    desk.written()
    assert desk.state() == "CompleteCommit"


def test_a_crash_after_the_decision_asks_for_all_markers_again():
    """Of the earlier attempt nothing counts any more."""
    desk = Desk()
    desk.end(ongoing(desk), commit=False)
    (before,) = desk.sent
    desk.restart()

    (markers,) = desk.sent
    assert (markers.commit, markers.partitions) == (False, (P0, P1))
    desk.tell(MarkersWritten("t", before.ticket, (P0, P1), ()))
    desk.tell(MarkersWritten("t", Ticket(), (P0, P1), ()))
    assert desk.state() == "PrepareAbort"
    desk.written()
    assert desk.state() == "CompleteAbort"
    desk.tell(MarkersWritten("t", markers.ticket, (P0,), ()))
    assert desk.state() == "CompleteAbort"


def test_the_marker_of_the_second_version_has_the_next_epoch():
    """Late writes of the transaction are then fenced where it has written."""
    desk = Desk()
    producer_id, epoch = ongoing(desk, client_version=2)
    desk.end((producer_id, epoch), version=5)

    assert desk.sent[0].producer == Producer(producer_id, epoch + 1)
    desk.written()
    assert desk.enrol((producer_id, epoch)).code == FENCED
    assert desk.enrol((producer_id, epoch + 1)).code == OK


def test_an_abort_of_nothing_is_over_at_once():
    desk = Desk()
    producer_id, epoch = empty(desk)

    answer = desk.end((producer_id, epoch), commit=False, version=5)

    assert answer.producer_epoch == epoch + 1
    assert (desk.sent, desk.state()) == ([], "CompleteAbort")
    assert desk.known().started_at == START


def at_the_last_epoch(desk, **more):
    """A producer whose epochs are used up but for one."""
    producer_id, _ = empty(desk)
    desk.restart()
    known = desk.known()
    desk.driver.machine.transactions["t"] = known._replace(epoch=32766)
    desk.enrol((producer_id, 32766), P0, **more)
    return producer_id


@pytest.mark.parametrize("crash", [False, True], ids=["live", "after a crash"])
def test_a_producer_without_further_epochs_goes_on_under_another_id(crash):
    desk = Desk()
    producer_id = at_the_last_epoch(desk, client_version=2)

    answer = desk.end((producer_id, 32766), version=5)

    assert (answer.error_code, answer.producer_epoch) == (0, 0)
    assert answer.producer_id > producer_id
    if crash:
        desk.restart()
    assert desk.sent[0].producer == Producer(producer_id, 32767)
    again = desk.end((producer_id, 32766), version=5)
    assert again.error_code == CONCURRENT
    assert desk.enrol((answer.producer_id, 0)).code == CONCURRENT
    assert desk.end((answer.producer_id, 0), commit=False, version=5).error_code == CONCURRENT
    desk.written()
    again = desk.end((producer_id, 32766), version=5)
    assert (again.error_code, again.producer_id, again.producer_epoch) == (
        0,
        answer.producer_id,
        0,
    )
    assert desk.enrol((answer.producer_id, 0)).code == OK


def test_an_end_waits_while_no_producer_id_is_reserved():
    desk = Desk()
    producer_id = at_the_last_epoch(desk)
    desk.reserved = False

    answer = desk.end((producer_id, 32766), version=5)

    assert answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert desk.state() == "Ongoing"


@pytest.mark.parametrize("crash", [False, True], ids=["live", "after a crash"])
def test_a_transaction_that_is_open_too_long_is_aborted_and_its_producer_fenced(crash):
    desk = Desk()
    producer_id, epoch = ongoing(desk)
    if crash:
        desk.restart()

    desk.wait(59_999)
    assert desk.state() == "Ongoing"
    desk.wait(1)

    assert desk.state() == "PrepareAbort"
    (markers,) = desk.sent
    assert (markers.producer, markers.commit) == (Producer(producer_id, epoch + 1), False)
    assert desk.end((producer_id, epoch)).error_code == FENCED
    desk.written()
    assert desk.state() == "CompleteAbort"
    assert "it is aborted" in desk.told.lines[-1]


def test_an_ended_transaction_meets_no_deadline():
    desk = Desk()
    desk.end(ongoing(desk))
    desk.wait(120_000)
    assert desk.state() == "PrepareCommit"
    desk.written()
    desk.wait(120_000)
    assert desk.state() == "CompleteCommit"
