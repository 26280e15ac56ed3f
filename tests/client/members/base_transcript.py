# SPDX-License-Identifier: Apache-2.0
"""Stories that members tell: real machines at a real coordinator, text in, text out.

The form is that of tests/scenarios/transcript.py, with its `topic`, `delete`, `broker`, `wait`,
`restart` and `describe`. The commands of members of either protocol:

    join MEMBER subscribe=TOPICS [rebalance=MS]
    talk MEMBER [request=lost|answer=lost|refused=CODE]     its next request, if it is due
    calm                    all talk and release at once, until nobody has anything to say
    beat                    time passes until the next request is due, then all are calm
    release MEMBER          the application has let go of all that it is to give up
    want MEMBER subscribe=TOPICS
    leave MEMBER
    look                    who consumes what, and commits by which epoch
"""

from collections.abc import Iterable
from typing import Any

from tests.scenarios.transcript import TranscriptRunner

from kohort.client.members import events as told


class MemberTranscript(TranscriptRunner):
    """`players` are the members of the story, by name. A subclass knows what they say."""

    def __init__(self) -> None:
        super().__init__()
        self.players: dict[str, Any] = {}

    def tell(self, line: str) -> list[str]:
        command, *words = line.split()
        fields = dict(word.split("=", 1) for word in words if "=" in word)
        plain = [word for word in words if "=" not in word]
        own = getattr(self, f"_tell_{command}", None)
        if own is None:
            return self.told_by_others(command, self.carry_out(line))
        lines: list[str] = list(own(*plain, **fields))
        return lines

    # What a subclass knows

    def told_by_others(self, command: str, says: list[str]) -> list[str]:
        """What is shown of a command that is no member's."""
        del command, says
        return []

    def hears_what_came(self, name: str) -> Iterable[str] | None:
        """A parked answer, if one has come."""
        del name
        return None

    def stage_of(self, player: Any) -> str:
        """Where a member stands, in words."""
        return str(player.machine.stage)

    def places(self, places: Iterable[Any]) -> str:
        raise NotImplementedError

    def _tell_talk(self, name: str, **fates: str) -> Iterable[str]:
        raise NotImplementedError

    # Commands

    def _tell_release(self, name: str) -> Iterable[str]:
        player = self.players[name]
        yield f"> {name} lets go of {self.places(player.to_release)}"
        yield from self._events(name, player.release())

    def _tell_leave(self, name: str) -> Iterable[str]:
        return self._events(name, self.players[name].leave())

    def _tell_calm(self) -> Iterable[str]:
        moved = True
        while moved:
            moved = False
            for name, player in self.players.items():
                heard = self.hears_what_came(name)
                if heard is not None:
                    moved = True
                    yield from heard
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

    # Words

    def _silence(self, player: Any) -> str:
        wake = player.machine.wake_at()
        if wake is None:
            return f"has nothing to say while it is {self.stage_of(player)}"
        return f"has nothing to say for {wake - self.desk.now} ms"

    def _events(self, name: str, events: Iterable[Any]) -> Iterable[str]:
        return [f"> {name} {self._event(one)}" for one in events]

    def _event(self, event: Any) -> str:
        match event:
            case told.PartitionsAssigned(partitions):
                return f"begins with {self.places(partitions)}"
            case told.PartitionsRevoked(partitions):
                return f"stops {self.places(partitions)}"
            case told.PartitionsLost(partitions, error):
                return f"has lost {self.places(partitions)} ({error.code.name})"
            case told.CoordinatorWanted():
                return "looks for the coordinator"
            case told.HangUp():
                return "hangs up"
            case told.TopicsWanted(topics):
                return f"leads, and looks at {','.join(topics) or 'no topics'}"
            case told.RequestRefused(error):
                return f"is refused ({error.code.name})"
            case told.MembershipFailed(error):
                return f"gives up ({error.code.name})"
            case told.GroupLeft():
                return "is out"
        raise AssertionError(event)

    def _shown_or_nothing(self, topics: dict[Any, list[int]]) -> str:
        shown = self._shown(topics)
        return "nothing" if shown == "-" else shown
