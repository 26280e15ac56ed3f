# SPDX-License-Identifier: Apache-2.0
"""Sequences in which members have instance ids (KIP-345): their own, another's, or one that nobody
has. Clients start again while the member before is still there, and leave for a while.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import Any

from tests.prove.differential.drawing import ACTORS, Draw
from tests.prove.differential.steps import EpochOf, Step

FROM = {"JoinGroup": 5, "SyncGroup": 3, "Heartbeat": 3, "OffsetCommit": 7, "LeaveGroup": 3}


def static(draw: Draw, steps: list[Step]) -> list[Step]:
    """The same steps by static members. Some stay dynamic."""
    dynamic = {one for one in ACTORS if draw.chance(0.2)}
    numbers = count(1)
    return [_static(draw, one, dynamic, numbers) for one in steps]


def _static(draw: Draw, step: Step, dynamic: set[str], numbers: Any) -> Step:
    fields = dict(step.fields)
    if step.api == "ConsumerGroupHeartbeat":
        fields["instance_id"] = _instance(draw, step.actor, dynamic)
        _consumer(draw, step, fields, numbers)
    elif step.version < FROM.get(step.api, 1 << 15):
        return step
    elif step.api == "LeaveGroup":
        fields["members"] = [_leaving(draw, step.actor, dynamic, one) for one in fields["members"]]
    else:
        fields["group_instance_id"] = _instance(draw, step.actor, dynamic)
        if step.api == "JoinGroup" and draw.chance(0.3):
            fields["member_id"] = ""
    return replace(step, fields=fields)


def _instance(draw: Draw, actor: str, dynamic: set[str]) -> str | None:
    if actor in dynamic or actor not in ACTORS:
        return draw.but(None, "i-nobody", odd=0.05)
    return draw.but(f"i-{actor}", None, f"i-{draw.one(*ACTORS)}", "i-nobody", "", odd=0.2)


def _leaving(draw: Draw, actor: str, dynamic: set[str], member: dict[str, Any]) -> dict[str, Any]:
    named = {**member, "group_instance_id": _instance(draw, actor, dynamic)}
    return {**named, "member_id": ""} if draw.chance(0.3) else named


def _consumer(draw: Draw, step: Step, fields: dict[str, Any], numbers: Any) -> None:
    """Who joins again has another member id: Kafka locks out one that comes back with its own. The
    ids end in different letters, so that Java's hash tables have one order for them.
    """
    epoch = fields["member_epoch"]
    if epoch == -1 and draw.chance(0.6):
        fields["member_epoch"] = -2
    elif epoch == 0 and fields["member_id"] == f"m-{step.actor}":
        fields["member_id"] = f"m-{chr(ord('@') + next(numbers))}"
    elif epoch == 0 and fields["member_id"]:
        fields["member_epoch"] = EpochOf(step.actor)
