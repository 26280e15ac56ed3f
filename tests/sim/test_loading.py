# SPDX-License-Identifier: Apache-2.0
"""A loading coordinator answers each classic heartbeat with success: that proves nothing."""

from random import Random
from types import SimpleNamespace

import pytest

from kohort.errors import ErrorCode
from kohort.runtime.driver import Condition
from kohort.sim.actor_context import ActorContext
from kohort.sim.actors.classic import ClassicConsumer
from kohort.sim.actors.table import KINDS
from kohort.sim.events import Events, virtual_loop
from kohort.sim.facts import HeartbeatAccepted, OwnershipBelief
from kohort.sim.loading import LoadingWatch
from kohort.sim.network import Network
from kohort.sim.run import simulate
from kohort.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse

SENT = 5
CLASSIC = ["classic member", "classic double", "migrating member"]
HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
ENDS = [ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS]


def fail(what):
    raise AssertionError(what)


def new_stage(told, loading_at):
    loop = virtual_loop(Events(), fail)
    loop.events.run(SENT)
    stage = ActorContext(loop, Network(Random(1)), 1, lambda _: Random(2), told.append, fail, fail)
    stage.loading_at = loading_at
    return stage


@pytest.mark.parametrize("code", ENDS)
@pytest.mark.parametrize("kind", CLASSIC)
@pytest.mark.parametrize(
    ("loading_at", "proves"), [(SENT - 1, True), (SENT, False), (SENT + 1, False)]
)
def test_what_was_sent_before_the_end_of_loading_shows_no_member(kind, code, loading_at, proves):
    member = KINDS[kind][0](new_stage([], loading_at), 1)
    member.machine = None  # of the classic protocol
    answer = HeartbeatResponse(error_code=code)
    assert member.counts(HEARTBEAT, answer, SENT) is proves


@pytest.mark.parametrize(
    ("loading_at", "facts"), [(SENT - 1, [HeartbeatAccepted, OwnershipBelief]), (SENT, [])]
)
def test_a_consumer_without_a_machine_tells_nothing_of_it_either(loading_at, facts):
    told = []
    member = ClassicConsumer(new_stage(told, loading_at), 1)
    member.generation = 1

    async def answered(*_arguments, **_options):
        return HeartbeatResponse()

    member.ask_coordinator = answered
    with pytest.raises(StopIteration):
        member.heartbeat().send(None)
    assert [type(fact) for fact in told] == facts


@pytest.mark.parametrize("condition", Condition)
def test_a_shard_is_noticed_only_while_it_is_loading(condition):
    found = []
    drivers = [SimpleNamespace(condition=Condition.ACTIVE), SimpleNamespace(condition=condition)]
    watch = LoadingWatch(lambda: drivers, lambda: found.append(None))
    watch.arrived(None, b"", to_broker=True)
    watch.leaves(None, b"")
    watch.arrived(None, b"", to_broker=False)
    assert len(found) == (2 if condition is Condition.LOADING else 0)


def test_a_run_with_crashes_has_heartbeats_that_prove_nothing():
    """Else nothing is judged."""
    worlds, found = [], []

    def prepare(world):
        worlds.append(world)
        world.network.leaving.append(lambda *_: found.append(world.stage.loading_at))

    simulate(11, 1.0, prepare=prepare)
    assert len(set(found)) > 1
    assert max(found) <= worlds[0].now
