# SPDX-License-Identifier: Apache-2.0
"""Stories of members of KIP-848 groups, in the form of tests/client/members/base_transcript.py.

Its own commands:

    join MEMBER subscribe=TOPICS [assignor=NAME] [rebalance=MS]
    late MEMBER             the last lost answer arrives after all
"""

from collections.abc import Iterable
from typing import Any

from tests.client.members.base_transcript import MemberTranscript
from tests.client.members.player import Player

from kohort.client.members.events import TopicIdPartition
from kohort.client.members.heartbeat import MemberConfig
from kohort.client.members.membership import Heartbeat, Stage
from kohort.errors import ErrorCode
from kohort.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)


class ConsumerMemberTranscript(MemberTranscript):
    """`kept` are the answers that got lost, by the name of their member."""

    players: dict[str, Player]

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[str, tuple[Heartbeat, Any]] = {}

    def told_by_others(self, command: str, says: list[str]) -> list[str]:
        return says if command == "describe" else []

    def stage_of(self, player: Player) -> str:
        return _IS[player.machine.stage]

    def places(self, places: Iterable[TopicIdPartition]) -> str:
        topics: dict[Any, list[int]] = {}
        for one in places:
            topics.setdefault(one.topic_id, []).append(one.partition)
        return self._shown_or_nothing(topics)

    # Commands

    def _tell_join(self, name: str, **fields: str) -> Iterable[str]:
        if name not in self.players:
            self.players[name] = Player(self.desk, name, MemberConfig())
        player = self.players[name]
        self._tell_want(name, **fields)
        return self._events(name, player.join())

    def _tell_want(self, name: str, **fields: str) -> Iterable[str]:
        machine = self.players[name].machine
        wanted = machine.config
        if "subscribe" in fields:
            names = fields.pop("subscribe")
            wanted = wanted._replace(names=() if names == "-" else tuple(names.split(",")))
        if "assignor" in fields:
            wanted = wanted._replace(server_assignor=fields.pop("assignor"))
        if "rebalance" in fields:
            wanted = wanted._replace(rebalance_timeout_ms=int(fields.pop("rebalance")))
        assert not fields, f"nobody knows {', '.join(fields)}"
        machine.want(wanted)
        return ()

    def _tell_talk(
        self, name: str, request: str = "", answer: str = "", refused: str = ""
    ) -> Iterable[str]:
        player = self.players[name]
        heartbeat = player.send()
        if heartbeat is None:
            yield f"> {name} {self._silence(player)}"
            return
        yield f"> {name} says {self._said(heartbeat.request)}"
        if request == "lost":
            yield "> nobody hears it"
            yield from self._events(name, player.lose())
            return
        reply = ConsumerGroupHeartbeatResponse(error_code=ErrorCode[refused]) if refused else None
        reply = reply or player.arrive(heartbeat)
        if answer == "lost":
            yield f"> {name} does not hear {self._heard(reply)}"
            self.kept[name] = heartbeat, reply
            yield from self._events(name, player.lose())
            return
        yield f"> {name} hears {self._heard(reply)}"
        yield from self._events(name, player.hear(heartbeat, reply))

    def _tell_late(self, name: str) -> Iterable[str]:
        heartbeat, reply = self.kept.pop(name)
        yield f"> {name} hears {self._heard(reply)}"
        events = list(self._events(name, self.players[name].hear(heartbeat, reply)))
        yield from events or [f"> {name} does not care"]

    def _tell_look(self) -> Iterable[str]:
        for name, player in self.players.items():
            machine = player.machine
            by = machine.commits_as
            commits = f"commits by epoch {by[1]}" if by else "cannot commit"
            yield (
                f"> {name} is {self.stage_of(player)}, consumes "
                f"{self.places(machine.consumable)}, {commits}"
            )

    # Words

    def _said(self, request: ConsumerGroupHeartbeatRequest) -> str:
        words = [f"epoch {request.member_epoch}"]
        if request.member_epoch == -1:
            return "good-bye"
        if request.subscribed_topic_names is not None:
            words.append(f"I read {','.join(request.subscribed_topic_names) or 'nothing'}")
        if request.server_assignor is not None:
            words.append(f"I vote {request.server_assignor}")
        if request.topic_partitions is not None:
            words.append(f"I have {self._topics(request.topic_partitions)}")
        return ", ".join(words)

    def _heard(self, answer: ConsumerGroupHeartbeatResponse) -> str:
        if answer.error_code:
            return ErrorCode(answer.error_code).name
        if answer.member_epoch == -1:
            return "good-bye"
        if answer.assignment is None:
            return f"epoch {answer.member_epoch}, as before"
        return f"epoch {answer.member_epoch}, {self._topics(answer.assignment.topic_partitions)}"

    def _topics(self, topics: Iterable[TopicPartitions]) -> str:
        return self._shown_or_nothing({one.topic_id: one.partitions for one in topics})


_IS = {
    Stage.OUTSIDE: "outside",
    Stage.JOINING: "joining",
    Stage.MEMBER: "a member",
    Stage.LOST: "lost",
    Stage.PARTING: "parting",
    Stage.LEAVING: "leaving",
    Stage.FAILED: "failed",
}
