# SPDX-License-Identifier: Apache-2.0
"""Clients take turns with what a turn had no time for."""

from hypothesis import given
from hypothesis import strategies as st

from kohort.machines.effects import Call, Client
from kohort.runtime.backlog import Backlog

CLIENTS = [Client("app", "/10.0.0.1") for _ in range(4)]
"""Connections of one application: they look alike, and each has its own."""


def calls_of(*owners):
    return [Call(None, number, 0, CLIENTS[owner]) for number, owner in enumerate(owners)]


def order(backlog, count=1000):
    return [call.request for call in backlog.take(count)]


def test_one_who_has_sent_a_few_does_not_wait_for_all_of_another():
    backlog = Backlog()
    backlog.add(calls_of(0, 0, 0, 0, 1, 0, 2))
    assert order(backlog) == [0, 4, 6, 1, 2, 3, 5]
    assert backlog.size == 0


def test_what_is_put_back_stays_in_front_of_the_rest_of_its_client():
    backlog = Backlog()
    backlog.add(calls_of(0, 0, 0, 1, 1))
    taken = backlog.take(4)
    assert [call.request for call in taken] == [0, 3, 1, 4]
    backlog.put_back(taken[2:])
    assert backlog.size == 3
    assert order(backlog) == [4, 1, 2]


@given(st.lists(st.tuples(st.lists(st.integers(0, 3), max_size=8), st.integers(0, 6))))
def test_calls_of_a_client_stay_in_their_order_and_none_is_lost(rounds):
    backlog, arrived, handled = Backlog(), [], []
    for owners, handles in rounds:
        new = calls_of(*owners)
        arrived += new
        backlog.add(new)
        taken = backlog.take(5)
        handled += taken[:handles]
        backlog.put_back(taken[handles:])
    handled += backlog.take(backlog.size)
    for client in CLIENTS:
        of_client = [call for call in handled if call.client is client]
        assert of_client == [call for call in arrived if call.client is client]
