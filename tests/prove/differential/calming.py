# SPDX-License-Identifier: Apache-2.0
"""Heartbeats of well-behaved members, as often as it takes until their group has come to rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.prove.differential.lines import Line
from tests.prove.differential.steps import Memory, OwnedBy, Step, learn, message, plain

from kohort.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

VERSION = 1


@dataclass(frozen=True)
class Beating:
    """A member of a consumer group, as its client knows it."""

    actor: str
    group_id: str
    instance_id: str | None


def members(before: Sequence[Any], side: int) -> list[Beating]:
    """Those that have joined by the consumer protocol, and have not left since."""
    found: dict[str, Beating] = {}
    for told in before:
        answer = told.answers[side]
        if told.step.api != "ConsumerGroupHeartbeat" or not isinstance(answer, dict):
            continue
        request = told.requests[side]
        actor = told.step.actor
        if not answer["error_code"] and request["member_epoch"] < 0:
            found.pop(actor, None)
        elif not answer["error_code"]:
            instance_id = request.get("instance_id")
            found[actor] = Beating(actor, request["group_id"], instance_id)
    return list(found.values())


async def beat(line: Line, member: Beating, memory: Memory) -> bool:
    """One heartbeat that says what the member has. Whether its answer tells of anything new."""
    membership = memory.of(member.actor)
    fields = {
        "group_id": member.group_id,
        "member_id": membership.member_id,
        "member_epoch": membership.epoch,
        "instance_id": member.instance_id,
        "topic_partitions": OwnedBy(member.actor).on(memory),
    }
    if not membership.epoch:
        return False
    before = membership.epoch, membership.owned
    request = message(ConsumerGroupHeartbeatRequest, fields)
    answer = plain(await line.ask(request, VERSION), VERSION)
    step = Step(member.actor, "ConsumerGroupHeartbeat", VERSION, {})
    learn(memory, step, fields, answer)
    return before != (membership.epoch, membership.owned)
