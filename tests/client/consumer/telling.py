"""Stories that members tell: real machines at a real coordinator, text in, text out.

The form is that of tests/scenarios/transcript.py, with its `topic`, `delete`, `broker`, `wait`,
`restart` and `describe`. The commands of members:

    join MEMBER subscribe=TOPICS [assignor=NAME] [rebalance=MS]
    talk MEMBER [request=lost|answer=lost|refused=CODE]     its next heartbeat, if it is due
    calm                    all talk and release at once, until nobody has anything to say
    beat                    time passes until the next heartbeat is due; all talk
    release MEMBER          the application has let go of all that it is to give up
    want MEMBER subscribe=TOPICS
    leave MEMBER
    late MEMBER             the last lost answer arrives after all
    look                    who consumes what, and commits by which epoch
"""

from collections.abc import Iterable
from typing import Any

from tests.client.consumer.player import Player
from tests.scenarios.transcript import Story

from kohort.client.consumer import events as told
from kohort.client.consumer.events import TopicIdPartition
from kohort.client.consumer.heartbeat import Profile
from kohort.client.consumer.membership import Heartbeat, Stage
from kohort.errors import ErrorCode
from kohort.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)


class MemberStory(Story):
    """`players` are the members of the story, by name."""

    def __init__(self) -> None:
        super().__init__()
        self.players: dict[str, Player] = {}
        self.kept: dict[str, tuple[Heartbeat, Any]] = {}

    def tell(self, line: str) -> list[str]:
        command, *words = line.split()
        fields = dict(word.split("=", 1) for word in words if "=" in word)
        plain = [word for word in words if "=" not in word]
        own = getattr(self, f"_tell_{command}", None)
        if own is None:
            says = self.carry_out(line)
            return says if command == "describe" else []
        lines: list[str] = list(own(*plain, **fields))
        return lines

    # Commands

    def _tell_join(self, name: str, **fields: str) -> Iterable[str]:
        if name not in self.players:
            self.players[name] = Player(self.desk, name, Profile())
        player = self.players[name]
        self._tell_want(name, **fields)
        return self._events(name, player.join())

    def _tell_want(self, name: str, **fields: str) -> Iterable[str]:
        machine = self.players[name].machine
        wanted = machine.profile
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

    def _tell_release(self, name: str) -> Iterable[str]:
        player = self.players[name]
        yield f"> {name} lets go of {self._places(player.to_release)}"
        yield from self._events(name, player.release())

    def _tell_leave(self, name: str) -> Iterable[str]:
        return self._events(name, self.players[name].leave())

    def _tell_calm(self) -> Iterable[str]:
        moved = True
        while moved:
            moved = False
            for name, player in self.players.items():
                wake = player.machine.wake_at()
                if wake is not None and wake <= self.desk.now:
                    moved = True
                    yield from self._tell_talk(name)
                if player.to_release:
                    moved = True
                    yield from self._tell_release(name)

    def _tell_beat(self) -> Iterable[str]:
        wakes = [player.machine.wake_at() for player in self.players.values()]
        due = [wake for wake in wakes if wake is not None]
        self.desk.wait(max(0, min(due) - self.desk.now))
        yield from self._tell_calm()

    def _tell_look(self) -> Iterable[str]:
        for name, player in self.players.items():
            machine = player.machine
            by = machine.commits_as
            commits = f"commits by epoch {by[1]}" if by else "cannot commit"
            yield (
                f"> {name} is {_IS[machine.stage]}, consumes "
                f"{self._places(machine.consumable)}, {commits}"
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

    def _silence(self, player: Player) -> str:
        wake = player.machine.wake_at()
        if wake is None:
            return f"has nothing to say while it is {_IS[player.machine.stage]}"
        return f"has nothing to say for {wake - self.desk.now} ms"

    def _events(self, name: str, events: Iterable[Any]) -> Iterable[str]:
        return [f"> {name} {self._event(one)}" for one in events]

    def _event(self, event: Any) -> str:
        match event:
            case told.Assigned(partitions):
                return f"begins with {self._places(partitions)}"
            case told.Revoked(partitions):
                return f"stops {self._places(partitions)}"
            case told.Lost(partitions, error):
                return f"has lost {self._places(partitions)} ({error.code.name})"
            case told.CoordinatorWanted():
                return "looks for the coordinator"
            case told.Refused(error):
                return f"is refused ({error.code.name})"
            case told.Failed(error):
                return f"gives up ({error.code.name})"
            case told.Left():
                return "is out"
        raise AssertionError(event)

    def _topics(self, topics: Iterable[TopicPartitions]) -> str:
        return self._shown_or_nothing({one.topic_id: one.partitions for one in topics})

    def _places(self, places: Iterable[TopicIdPartition]) -> str:
        topics: dict[Any, list[int]] = {}
        for one in places:
            topics.setdefault(one.topic_id, []).append(one.partition)
        return self._shown_or_nothing(topics)

    def _shown_or_nothing(self, topics: dict[Any, list[int]]) -> str:
        shown = self._shown(topics)
        return "nothing" if shown == "-" else shown


_IS = {
    Stage.OUTSIDE: "outside",
    Stage.JOINING: "joining",
    Stage.MEMBER: "a member",
    Stage.LOST: "lost",
    Stage.PARTING: "parting",
    Stage.LEAVING: "leaving",
    Stage.FAILED: "failed",
}
