# SPDX-License-Identifier: Apache-2.0
"""Members of the classic protocol in a story: what they ask, and what waits for its answer."""

from typing import Any

from tests.coordinator.desk import Asked, Desk
from tests.scenarios.partitions import parsed, shown

from kohort.errors import ErrorCode
from kohort.records.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    decode_assignment,
    encode,
)
from kohort.records.schemas import GroupMetadataValue
from kohort.wire.messages.heartbeat import HeartbeatRequest
from kohort.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kohort.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kohort.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

GROUP = "g"


class ClassicMembers:
    """`ids` has the id that the broker gave to each name of the story."""

    def __init__(self) -> None:
        self.ids: dict[str, str] = {}
        self.waiting: list[tuple[str, Asked]] = []

    def forget(self) -> None:
        """The connections are gone, and whoever waited gets no answer."""
        self.waiting.clear()

    # What they ask

    def join(self, desk: Desk, name: str, fields: dict[str, str]) -> list[str]:
        version = int(fields.pop("version", "9"))
        topics = fields.pop("subscribe", "t")
        metadata = encode(
            ConsumerProtocolSubscription(
                topics=[] if topics == "-" else topics.split(","), owned_partitions=[]
            )
        )
        request = JoinGroupRequest(
            group_id=GROUP,
            member_id=self.ids.get(name, ""),
            group_instance_id=fields.pop("instance", None),
            session_timeout_ms=int(fields.pop("session", "10000")),
            rebalance_timeout_ms=int(fields.pop("rebalance", "60000")),
            protocol_type=fields.pop("type", "consumer"),
            protocols=[
                JoinGroupRequestProtocol(name=one, metadata=metadata)
                for one in fields.pop("protocols", "range").split(",")
            ],
        )
        assert not fields, f"join does not know {', '.join(fields)}"
        return self._asked(name, desk.ask(request, version))

    def sync(self, desk: Desk, name: str, fields: dict[str, str]) -> list[str]:
        given = dict(one.split(":", 1) for one in fields.get("gives", "").split(",") if one)
        request = SyncGroupRequest(
            group_id=GROUP,
            member_id=self.ids.get(name, name),
            group_instance_id=fields.get("instance"),
            generation_id=int(fields["generation"]),
            protocol_type="consumer",
            protocol_name=fields.get("protocol", "range"),
            assignments=[
                SyncGroupRequestAssignment(member_id=self.ids[one], assignment=_given(text))
                for one, text in given.items()
            ],
        )
        return self._asked(name, desk.ask(request, 5))

    def beat(self, desk: Desk, name: str, fields: dict[str, str]) -> list[str]:
        request = HeartbeatRequest(
            group_id=GROUP,
            member_id=self.ids.get(name, name),
            group_instance_id=fields.get("instance"),
            generation_id=int(fields["generation"]),
        )
        return [f"> {ErrorCode(desk.told(request, 4).error_code).name}"]

    def depart(self, desk: Desk, names: list[str]) -> list[str]:
        """`a`, by its member id; `a@i`, with an instance id; `@i`, by that alone."""
        members = []
        for text in names:
            name, _, instance_id = text.partition("@")
            member_id = self.ids.get(name, name)
            members.append(
                MemberIdentity(member_id=member_id, group_instance_id=instance_id or None)
            )
        answer = desk.told(LeaveGroupRequest(group_id=GROUP, members=members), 5)
        return [
            f"> {name} {_left(one.error_code)}"
            for name, one in zip(names, answer.members, strict=True)
        ]

    # What they are told

    def released(self) -> list[str]:
        """The answers of those who have waited, in the order in which they were given."""
        done = sorted(
            (one for one in self.waiting if one[1].answer is not None),
            key=lambda one: one[1].order,
        )
        self.waiting = [one for one in self.waiting if one[1].answer is None]
        return [self._answer(name, asked.answer) for name, asked in done]

    def _asked(self, name: str, asked: Asked) -> list[str]:
        self.waiting.append((name, asked))
        return [] if asked.answer is not None else [f"> {name} waits"]

    def _answer(self, name: str, answer: Any) -> str:
        code = ErrorCode(answer.error_code)
        if code is ErrorCode.MEMBER_ID_REQUIRED:
            self.ids[name] = answer.member_id
            return f"> {name} has an id now and comes back with it"
        if code:
            return f"> {name} {code.name}"
        if hasattr(answer, "assignment"):
            return f"> {name} has {_shown(answer.assignment) or 'nothing'}"
        self.ids.setdefault(name, answer.member_id)  # a static member has its id from the start
        role = f"follows {self.name(answer.leader)}"
        if answer.leader == answer.member_id:
            role = f"leads {','.join(self.name(one.member_id) for one in answer.members)}"
            role += " and need not assign" if answer.skip_assignment else ""
        return f"> {name} is in generation {answer.generation_id} by {answer.protocol_name}, {role}"

    # What can be seen

    def describe(self, desk: Desk) -> list[str]:
        group = desk.shard.groups.classic(GROUP)
        if group is None:
            return ["> no such group"]
        lines = [f"> {group.state} generation {group.generation} by {group.protocol or '-'}"]
        for one in group.members.values():
            leads = ", leads" if one.id == group.leader else ""
            lines.append(f"> {self.name(one.id)} has {_shown(one.assignment) or '-'}{leads}")
        return lines

    def recorded(self, value: GroupMetadataValue) -> str:
        """A record of the group in words."""
        members = ",".join(
            f"{self.name(one.member_id)}:{_shown(one.assignment) or '-'}" for one in value.members
        )
        return f"generation {value.generation} by {value.protocol or '-'} with {members or '-'}"

    def name(self, member_id: str) -> str:
        """The last one that has the id: who comes back may have another."""
        names = [name for name, known in self.ids.items() if known == member_id]
        return names[-1] if names else member_id


def _given(text: str) -> bytes:
    """Partitions as an assignor writes them; any other word as it stands."""
    if ":" not in text:
        return text.encode()
    given = [TopicPartition(topic=name, partitions=ones) for name, ones in parsed(text).items()]
    return encode(ConsumerProtocolAssignment(assigned_partitions=given))


def _shown(assignment: bytes) -> str:
    if not assignment.startswith(b"\0"):
        return assignment.decode()
    given = decode_assignment(assignment).assigned_partitions
    return shown({one.topic: one.partitions for one in given})


def _left(code: int) -> str:
    return ErrorCode(code).name if code else "has left"
