# SPDX-License-Identifier: Apache-2.0
"""A process that stood still: what clients have sent meanwhile counts before their time is over."""

from tests.coordinator.consumers import request
from tests.server.desk import Desk

from kohort.errors import ErrorCode


def heartbeats_in_the_sockets(desk, members):
    return [desk.send(request(name, epoch), 1) for name, epoch in members.items()]


def test_whoever_was_heard_during_a_stall_is_not_fenced():
    """The broker stood still from before the end of the sessions until after it."""
    desk = Desk()
    desk.create(partitions=4)
    members = {}
    for name in ("a", "b", "silent"):
        members[name] = desk.ask(request(name, 0), 1).member_epoch
    desk.wait(1000)
    stopped_at = desk.now

    desk.now += 60_000
    asked = heartbeats_in_the_sockets(desk, {"a": members["a"], "b": members["b"]})
    desk.cluster.turn(desk.now, due=stopped_at)
    desk.settle()

    assert [one.answer.error_code for one in asked] == [0, 0]
    late = desk.ask(request("silent", members["silent"]), 1)
    assert late.error_code == ErrorCode.UNKNOWN_MEMBER_ID
