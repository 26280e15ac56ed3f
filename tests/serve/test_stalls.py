# SPDX-License-Identifier: Apache-2.0
"""A broker that the system has stopped for a while, with everybody's heartbeats in its sockets."""

import signal
import time
from contextlib import ExitStack

from tests.serve.talk import serving
from tests.serve.test_limits import settings

from kohort.wire.codec import decode
from kohort.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

SESSION_MS = 6000  # as long as everybody may need to join, on a loaded machine


def heartbeat(member: str, epoch: int) -> ConsumerGroupHeartbeatRequest:
    if epoch:
        return ConsumerGroupHeartbeatRequest(group_id="g", member_id=member, member_epoch=epoch)
    return ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id=member,
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=["t"],
        topic_partitions=[],
    )


def test_nobody_is_fenced_whose_heartbeat_was_sent():
    """The stop lasts longer than the sessions; each member's heartbeat was sent in time."""
    given = settings(
        group_consumer_session_timeout_ms=SESSION_MS,
        group_consumer_min_session_timeout_ms=1000,
        group_consumer_heartbeat_interval_ms=500,
        group_consumer_min_heartbeat_interval_ms=500,
    )
    with serving("--in-memory", *given) as broker, ExitStack() as stack:
        members = {f"m{at}": stack.enter_context(broker.talk()) for at in range(20)}
        epochs = {}
        for name, talk in members.items():
            epochs[name] = talk.ask(heartbeat(name, 0), 1).member_epoch
        for name, talk in members.items():  # everybody has seen the last change
            epochs[name] = talk.ask(heartbeat(name, epochs[name]), 1).member_epoch
        broker.process.send_signal(signal.SIGSTOP)
        try:
            for name, talk in members.items():
                talk.send(heartbeat(name, epochs[name]), 1)
            time.sleep(1.5 * SESSION_MS / 1000)
        finally:
            broker.process.send_signal(signal.SIGCONT)

        told = [
            decode(ConsumerGroupHeartbeatResponse, 1, talk.answer(), 5) for talk in members.values()
        ]
        again = [talk.ask(heartbeat(name, epochs[name]), 1) for name, talk in members.items()]
        assert [one.error_code for one in told + again] == [0] * 40
