"""A shard with a clock of its own and everything it ever wrote: what tests of the coordinator talk
to.
"""

from itertools import count
from typing import Any

from kohort.config import BrokerConfig
from kohort.coordinator.effects import Call, Client, Effects
from kohort.coordinator.shard import Shard
from kohort.coordinator.topics import Topic, Topics
from kohort.records.codec import Record
from kohort.terms import Millis, TopicId

START = Millis(1_700_000_000_000)


def topic_id(name: str) -> TopicId:
    return TopicId(name.encode().ljust(16, b"."))


def topics(**partitions: int) -> Topics:
    return Topics(Topic(topic_id(name), name, size) for name, size in partitions.items())


class Asked:
    """A request that was sent. Its answer is None while it is parked."""

    def __init__(self) -> None:
        self.answer: Any = None
        self.order = 0


class Desk:
    """`ask` sends a request, `wait` lets time pass; `log` holds every record written."""

    def __init__(self, *, known: Topics | None = None, **settings: object) -> None:
        names = {name.replace("_", "."): str(value) for name, value in settings.items()}
        self.config = BrokerConfig.of(names)
        self.known = known or topics(orders=4, payments=2)
        self.log: list[Record] = []
        self.now = START
        self.answered = 0
        self._uuids = count(1)
        self._shard()

    def _shard(self) -> None:
        self.shard = Shard(self.config, lambda: next(self._uuids).to_bytes(16), self.known)
        for record in self.log:
            self.shard.replay(record)
        self._take(self.shard.start(self.now))

    def ask(self, request: Any, version: int, client: str = "app") -> Asked:
        asked = Asked()
        call = Call(asked, request, version, Client(client, "/127.0.0.1"))
        self._take(self.shard.call(call, self.now))
        return asked

    def told(self, request: Any, version: int, client: str = "app") -> Any:
        """The answer to a request that is answered at once."""
        asked = self.ask(request, version, client)
        assert asked.answer is not None, f"{type(request).__name__} was parked"
        return asked.answer

    def wait(self, milliseconds: int) -> None:
        """Let time pass, stopping wherever the shard wants to be woken."""
        end = self.now + milliseconds
        while (wake := self.shard.wake_at()) is not None and wake <= end:
            self.now = Millis(max(self.now, wake))
            self._take(self.shard.tick(self.now))
        self.now = Millis(end)

    def restart(self) -> None:
        """Forget everything but the log."""
        self._shard()

    def written(self) -> list[Record]:
        """The records written since this was last asked."""
        new, self._seen = self.log[getattr(self, "_seen", 0) :], len(self.log)
        return new

    def _take(self, effects: Effects) -> None:
        self.log += effects.records
        for reply in effects.replies:
            assert reply.token.answer is None, "a call was answered twice"
            self.answered += 1
            reply.token.answer = reply.response
            reply.token.order = self.answered
