# SPDX-License-Identifier: Apache-2.0
"""Whole messages to and from the process of a broker."""

import _socket
import os
import threading
from multiprocessing.connection import Connection
from pickle import PicklingError

import pytest
from tests.waiting import SOON_S

from kohort.testing.pipe import CommandPipe


@pytest.fixture
def ends():
    """The pipe, and the other end of it as the process has it."""
    mine, theirs = (Connection(end.detach()) for end in _socket.socketpair())
    pipe = CommandPipe(mine)
    pipe.start()
    yield pipe, theirs
    pipe.close()
    theirs.close()


def test_messages_arrive_in_their_order_and_the_end_behind_them(ends):
    pipe, theirs = ends
    for number in range(3):
        pipe.send(number)
        assert theirs.recv() == number
        theirs.send(("answer", number))
    theirs.close()
    assert [pipe.receive(SOON_S) for _ in range(3)] == [("answer", number) for number in range(3)]
    for _ in range(2):
        with pytest.raises(EOFError):
            pipe.receive(SOON_S)
    pipe.send("to nobody")


def test_none_is_received_where_none_comes(ends):
    pipe, _ = ends
    assert pipe.receive(0.001) is None


def test_nothing_is_sent_of_what_cannot_be_pickled(ends):
    pipe, theirs = ends
    with pytest.raises((PicklingError, AttributeError)):
        pipe.send(lambda: None)
    pipe.send("the next one")
    assert theirs.recv() == "the next one"


@pytest.mark.parametrize("bytes_left", [0, 8 << 20], ids=["idle", "in the middle of a message"])
def test_close_ends_both_threads_though_the_process_lives_and_reads_nothing(bytes_left):
    mine, theirs = (Connection(end.detach()) for end in _socket.socketpair())
    before = threading.active_count()
    pipe = CommandPipe(mine)
    pipe.start()
    if bytes_left:
        pipe.send(os.urandom(bytes_left))
    pipe.close()
    pipe.close()
    assert threading.active_count() == before
    theirs.close()
