# SPDX-License-Identifier: Apache-2.0
"""Stories of members of classic groups, in the form of tests/client/members/base_transcript.py.

    join MEMBER subscribe=TOPICS [protocols=NAMES] [rebalance=MS]
    hear MEMBER             a parked answer, if it has come
    again MEMBER            have the group rebalance

Time is given to the first rebalance of a group by `wait 3s`, its initial delay.
"""

from collections.abc import Iterable
from typing import Any

from tests.client.members.base_transcript import MemberTranscript
from tests.client.members.classic_player import ClassicPlayer

from kohort.client.members.classic_assigning import read_assignment
from kohort.client.members.classic_membership import ClassicMemberConfig
from kohort.errors import ErrorCode
from kohort.records.consumer_protocol import decode_subscription
from kohort.terms import TopicPartition
from kohort.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kohort.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from kohort.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from kohort.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse


class ClassicMemberTranscript(MemberTranscript):
    """Joins and syncs may be parked, so what is said and what is heard are two things."""

    players: dict[str, ClassicPlayer]

    def hears_what_came(self, name: str) -> Iterable[str] | None:
        asked = self.players[name].asked
        return None if asked is None or asked.answer is None else self._tell_hear(name)

    def places(self, places: Iterable[TopicPartition]) -> str:
        topics: dict[str, list[int]] = {}
        for one in places:
            topics.setdefault(one.topic, []).append(one.partition)
        by_id = {self.topics[name].id: ones for name, ones in topics.items()}
        return self._shown_or_nothing(by_id)

    # Commands

    def _tell_join(self, name: str, **fields: str) -> Iterable[str]:
        if name not in self.players:
            self.players[name] = ClassicPlayer(self.desk, name, ClassicMemberConfig(()))
        list(self._tell_want(name, **fields))
        return self._events(name, self.players[name].join())

    def _tell_want(self, name: str, **fields: str) -> Iterable[str]:
        player = self.players[name]
        wanted = player.machine.config
        if "subscribe" in fields:
            names = fields.pop("subscribe")
            wanted = wanted._replace(topics=() if names == "-" else tuple(names.split(",")))
        if "protocols" in fields:
            wanted = wanted._replace(protocols=tuple(fields.pop("protocols").split(",")))
        if "rebalance" in fields:
            wanted = wanted._replace(rebalance_timeout_ms=int(fields.pop("rebalance")))
        assert not fields, f"nobody knows {', '.join(fields)}"
        return self._events(name, player.take(player.machine.want(wanted, self.desk.now)))

    def _tell_again(self, name: str) -> Iterable[str]:
        player = self.players[name]
        return self._events(name, player.take(player.machine.join_again(self.desk.now)))

    def _tell_talk(
        self, name: str, request: str = "", answer: str = "", refused: str = ""
    ) -> Iterable[str]:
        player = self.players[name]
        sent = player.send()
        if sent is None:
            yield f"> {name} {self._silence(player)}"
            return
        yield f"> {name} {self._said(sent.request)}"
        if request == "lost":
            yield "> nobody hears it"
            yield from self._events(name, player.lose())
            return
        if refused:
            code = ErrorCode[refused]
            yield f"> {name} hears {code.name}"
            player.under_way = None
            reply = _REFUSED[type(sent.request)](error_code=code)
            machine = player.machine
            yield from self._events(
                name, player.take(machine.received(sent.number, reply, self.desk.now))
            )
            return
        player.reach()
        if answer == "lost":
            yield f"> {name} does not hear {self._heard(player)}"
            yield from self._events(name, player.lose())
            return
        yield from self._tell_hear(name)

    def _tell_hear(self, name: str) -> Iterable[str]:
        player = self.players[name]
        yield f"> {name} {self._hears(player)}"
        yield from self._events(name, player.hear())

    def _tell_look(self) -> Iterable[str]:
        for name, player in self.players.items():
            machine = player.machine
            by = machine.commits_as
            commits = f"commits by generation {by[1]}" if by else "cannot commit"
            leads = ", leads" if machine.leads else ""
            yield (
                f"> {name} is {machine.stage}{leads}, consumes "
                f"{self.places(machine.consumable)}, {commits}"
            )

    # Words

    def _said(self, request: Any) -> str:
        match request:
            case JoinGroupRequest():
                wanted = decode_subscription(request.protocols[0].metadata)
                has = frozenset(
                    TopicPartition(one.topic, index)
                    for one in wanted.owned_partitions
                    for index in one.partitions
                )
                names = ",".join(one.name for one in request.protocols)
                reads = ",".join(wanted.topics) or "nothing"
                by = "" if request.member_id else " without an id"
                return f"joins{by}, reads {reads}, has {self.places(has)}, by {names}"
            case SyncGroupRequest():
                given = ", ".join(
                    f"{self._name(one.member_id)} {self.places(read_assignment(one.assignment))}"
                    for one in request.assignments
                )
                return f"syncs generation {request.generation_id}" + (given and f": {given}")
            case HeartbeatRequest():
                return f"beats in generation {request.generation_id}"
            case LeaveGroupRequest():
                return "says good-bye"
        raise AssertionError(request)

    def _hears(self, player: ClassicPlayer) -> str:
        if player.asked is None or player.asked.answer is None:
            return "waits"
        return f"hears {self._heard(player)}"

    def _heard(self, player: ClassicPlayer) -> str:
        answer = player.asked.answer if player.asked else None
        match answer:
            case None:
                return "anything"
            case _ if answer.error_code:
                return ErrorCode(answer.error_code).name
            case JoinGroupResponse():
                leads = "it leads" if answer.leader == answer.member_id else "it follows"
                return f"generation {answer.generation_id} by {answer.protocol_name}, {leads}"
            case SyncGroupResponse():
                return self.places(read_assignment(answer.assignment))
            case _:
                return "that all is well"

    def _name(self, member_id: str) -> str:
        for name, player in self.players.items():
            if player.machine.member_id == member_id:
                return name
        return "somebody"


_REFUSED = {
    JoinGroupRequest: JoinGroupResponse,
    SyncGroupRequest: SyncGroupResponse,
    HeartbeatRequest: HeartbeatResponse,
    LeaveGroupRequest: LeaveGroupResponse,
}
