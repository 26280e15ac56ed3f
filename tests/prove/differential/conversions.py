# SPDX-License-Identifier: Apache-2.0
"""When the group of a sequence has gone over to the other protocol, told from answers alone.

Explanations about migrating groups ask it, so that they are about what a conversion has led to and
not about anything else that a mixed group shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

UP, DOWN = "upgrade", "downgrade"


@dataclass(frozen=True)
class Conversion:
    """`at` is the step that has led to it; `api` is that of the step."""

    way: str
    at: int
    api: str
    own_id: bool  # by a member that went over under the id that it had


@dataclass
class _MemberProtocols:
    """The members of one group by Kafka's answers: whether each uses the consumer protocol."""

    modern: dict[str, bool] = field(default_factory=dict)
    instances: dict[str, str] = field(default_factory=dict)

    def add(self, member: str, instance: str | None, *, modern: bool) -> None:
        if instance:
            former = self.instances.get(instance)
            if former is not None and former != member:
                self.modern.pop(former, None)
            self.instances[instance] = member
        self.modern[member] = modern

    def drop(self, member: str, instance: str | None) -> None:
        self.modern.pop(member or self.instances.get(instance or "", ""), None)


def conversions(before: Sequence[Any], side: int = 0) -> Iterator[Conversion]:
    """Those of the group `g1`, in order, as far as they are known from what was answered."""
    seen = _MemberProtocols()
    consumer = False
    for at, told in enumerate(before):
        if not told.requests or not isinstance(told.answers[side], dict):
            continue
        request, answer = told.requests[side], told.answers[side]
        if not str(request.get("group_id", "")).endswith("-g1"):
            continue
        had = bool(seen.modern)
        known = seen.modern.get(request.get("member_id", ""))
        _take(seen, told.step.api, request, answer)
        any_modern = any(seen.modern.values())
        if any_modern and not consumer:
            if had:
                yield Conversion(UP, at, told.step.api, known is not None)
            consumer = True
        elif consumer and not any_modern:
            if seen.modern:
                yield Conversion(DOWN, at, told.step.api, known is not None)
            consumer = False


def _take(
    seen: _MemberProtocols, api: str, request: dict[str, Any], answer: dict[str, Any]
) -> None:
    """What a request has changed. A join that waits has its member in the group too."""
    if api == "JoinGroup" and not answer["error_code"]:
        seen.add(answer["member_id"], request.get("group_instance_id"), modern=False)
    elif api == "ConsumerGroupHeartbeat" and not answer["error_code"]:
        if request["member_epoch"] == -1:
            seen.drop(request["member_id"], None)
        else:
            seen.add(answer["member_id"], request.get("instance_id"), modern=True)
    elif api == "LeaveGroup" and not answer["error_code"]:
        for one in answer.get("members") or [request]:
            if not one.get("error_code"):
                seen.drop(one["member_id"], one.get("group_instance_id"))
