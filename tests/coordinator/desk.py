# SPDX-License-Identifier: Apache-2.0
"""A shard on a log in memory, with a clock of its own and everything it ever wrote: what tests of
the coordinator talk to.
"""

from copy import deepcopy
from itertools import count
from typing import Any

from tests.observer import RecordingObserver

from kohort.config import BrokerConfig
from kohort.coordinator.classic import no_op_heartbeats as classic_heartbeats
from kohort.coordinator.consumer import no_op_heartbeats as consumer_heartbeats
from kohort.coordinator.descriptions import Description, Descriptions
from kohort.coordinator.shard import Shard
from kohort.coordinator.state import TopicRights
from kohort.machines.effects import Call, Client, Effects, Producer
from kohort.machines.topics import Topic, Topics
from kohort.records.codec import Record, Unknown, encode
from kohort.runtime.driver import PartitionDriver
from kohort.server.background.background_tasks import TaskRun
from kohort.sim.checkers.kept_answers import describes_as_it_is, lists_as_it_is
from kohort.sim.checkers.replay import counts, walked
from kohort.storage.memory import MemoryLog
from kohort.terms import Millis, Offset, TopicId
from kohort.wire import batch
from kohort.wire import codec as wire
from kohort.wire.messages import consumer_group_describe as consumer_wire
from kohort.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kohort.wire.messages.describe_groups import DescribeGroupsResponse
from kohort.wire.messages.heartbeat import HeartbeatRequest

START = Millis(1_700_000_000_000)


def topic_id(name: str) -> TopicId:
    return TopicId(name.encode().ljust(16, b"."))


def set_topic(
    topics: dict[str, Topic], name: str, partitions: int, new_id: TopicId, *, renewed: bool
) -> bool:
    """Make a topic, let it grow, delete it (no partitions), or delete it and make it anew. Whether
    it is a new one, with the new id.
    """
    known = topics.pop(name, None)
    if not partitions:
        return False
    grows = known is not None and not renewed
    if grows:
        topics[name] = Topic(known.id, name, max(known.partitions, partitions))
    else:
        topics[name] = Topic(new_id, name, partitions)
    return not grows


def topics(**partitions: int) -> Topics:
    return Topics(Topic(topic_id(name), name, size) for name, size in partitions.items())


def replay(shard: Shard, *records: Record | Unknown) -> None:
    """Records of a log, one after the other, outside of any transaction."""
    for offset, record in enumerate(records):
        shard.replay(record, Offset(offset), None)
    shard.event_log.begin(shard.groups)  # no turn tells of them


def readable(answer: Any) -> Any:
    """An answer as a message, as it is on the wire."""
    if type(answer) is not Descriptions:
        return answer
    groups = []
    for group in answer.groups:
        if type(group) is Description:
            encoder = wire.piecewise_encoder(group.response, group.version, "groups")
            around = encoder.around(group.response(), 1)
            message = wire.decode(group.response, group.version, group.body.join(around))
            groups += message.groups
        else:
            groups.append(group)
    response: type[Any] = DescribeGroupsResponse
    if any(isinstance(group, consumer_wire.DescribedGroup) for group in groups):
        response = consumer_wire.ConsumerGroupDescribeResponse
    return response(groups=groups)


class Asked:
    """A request that was sent. Its answer is None while it is parked."""

    def __init__(self) -> None:
        self.answer: Any = None
        self.order = 0


NO_OPS: dict[type[Any], Any] = {
    HeartbeatRequest: classic_heartbeats.no_op_heartbeat_or_none,
    ConsumerGroupHeartbeatRequest: consumer_heartbeats.no_op_heartbeat_or_none,
}


class Recorded(Shard):
    """A shard that keeps what it writes, as records. What `reads` says of a call must be so, and
    what a heartbeat of before is answered from memory must be what it is answered now.
    """

    log: list[Record]
    remembered: dict[tuple[Client, bytes], Any]  # heartbeats of before, by who sent which bytes

    def call(self, call: Call[Any], now: Millis) -> Effects:
        reads = self.reads(call)
        no_op = self._remembered(call)
        effects = super().call(call, now)
        if reads:
            assert not effects.records, call.request
        if no_op is not None:
            (reply,) = effects.replies
            assert reply.response == no_op.answer(), call.request
            assert not effects.records
            deadlines = {key: self.deadlines.at(key) for key in self.deadlines._deadlines}
            assert no_op.holds(self)
            self.deadlines.renew(no_op.session, now)
            assert deadlines == {key: self.deadlines.at(key) for key in self.deadlines._deadlines}
        return effects

    def _remembered(self, call: Call[Any]) -> Any:
        """What a heartbeat would be answered from memory by, if it would."""
        remember = NO_OPS.get(type(call.request))
        if remember is None:
            return None
        key = call.client, wire.encode(call.request, call.version)
        known = self.remembered.get(key)
        if known is not None and known.holds(self):
            return known
        self.remembered[key] = remember(self, call.request, call.client)
        return self.remembered[key]

    def encode(self, record: Record) -> tuple[bytes, bytes | None]:
        self.log.append(record)
        return super().encode(record)


class Desk:
    """`ask` sends a request, `wait` lets time pass; `log` holds every record written."""

    def __init__(
        self,
        *,
        known: Topics | None = None,
        rights: TopicRights | None = None,
        **settings: object,
    ) -> None:
        names = {name.replace("_", "."): str(value) for name, value in settings.items()}
        self.config = BrokerConfig.of(names)
        self.known = known or topics(orders=4, payments=2)
        self.rights = rights
        self.log: list[Record] = []
        self.remembered: dict[tuple[Client, bytes], Any] = {}
        self.now = START
        self.answered = 0
        self.errands_held = False  # else what is done beside the shard is done at once
        self.told_lines = RecordingObserver()
        self._uuids = count(1)
        self._batches = MemoryLog()
        self.restart()

    def _new_shard(self) -> Recorded:
        shard = Recorded(
            self.config,
            lambda: next(self._uuids).to_bytes(16),
            self.known,
            rights=self.rights,
        )
        shard.log = self.log
        shard.remembered = self.remembered
        return shard

    @property
    def shard(self) -> Recorded:
        return self.driver.machine

    def restart(self) -> None:
        """Forget everything but the log."""
        self.driver = PartitionDriver(
            self._batches, self._new_shard, self.told_lines, name="the shard"
        )
        self.driver.start_loading()
        self.driver.load_some(self.now)
        self._step()

    def ask(self, request: Any, version: int, client: str = "app") -> Asked:
        asked = Asked()
        self.driver.submit(Call(asked, request, version, Client(client, "/127.0.0.1")))
        self._step()
        return asked

    def told(self, request: Any, version: int, client: str = "app") -> Any:
        """The answer to a request that is answered at once."""
        asked = self.ask(request, version, client)
        assert asked.answer is not None, f"{type(request).__name__} was parked"
        return asked.answer

    def wait(self, milliseconds: int) -> None:
        """Let time pass, stopping wherever the shard wants to be woken."""
        end = self.now + milliseconds
        while (wake := self.driver.wake_at()) is not None and wake <= end:
            self.now = Millis(max(self.now, wake))
            self._step()
        self.now = Millis(end)

    def topics_changed(self, known: Topics) -> None:
        """Another image of the topics, and all that follows from it."""
        self.known = known
        self.driver.topics_changed(known, self.now)
        self._step()
        self.wait(0)

    def run_errands(self) -> None:
        """Do what was held back."""
        self.errands_held = False
        self._step()
        self.errands_held = True

    def beside(self, **settings: object) -> "Desk":
        """Another desk, started from a copy of this one's log."""
        other = Desk(known=self.known, **settings)
        other.log, other.now = list(self.log), self.now
        other._batches = deepcopy(self._batches)
        other.restart()
        return other

    def write(self, *records: Record, producer: Producer | None = None, live: bool = True) -> None:
        """Records that somebody else has put into the log; true at once, or after a restart."""
        end = self._batches.end
        who = producer or Producer(-1, -1)
        data = batch.build(
            [encode(record) for record in records],
            self.now,
            producer_id=who.id,
            producer_epoch=who.epoch,
            transactional=producer is not None,
        )
        self._batches.append(data, len(records))
        self.log += records
        if live:
            for offset, record in enumerate(records, end):
                self.shard.replay(record, Offset(offset), producer)
            self.shard.event_log.begin(self.shard.groups)  # no turn has told of them

    def end_transaction(self, producer: Producer, *, commit: bool) -> None:
        """A marker that somebody else has put into the log."""
        data = batch.build_marker(
            commit=commit,
            timestamp=self.now,
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            coordinator_epoch=0,
        )
        self._batches.append(data, 1)
        self.shard.replay_marker(producer, commit=commit)

    def written(self) -> list[Record]:
        """The records written since this was last asked."""
        new, self._seen = self.log[getattr(self, "_seen", 0) :], len(self.log)
        return new

    def _step(self) -> None:
        self.driver.turn(self.now)
        while self.driver.tasks and not self.errands_held:
            task_run = TaskRun(self.driver, self.driver.tasks.popleft())
            while task_run.step():
                pass
            self.driver.task_done(task_run.task, task_run.outcome)
            self.driver.turn(self.now)
        for reply in self.driver.synced(self._batches.sync()):
            assert reply.token.answer is None, "a call was answered twice"
            self.answered += 1
            reply.token.answer = readable(reply.response)
            reply.token.order = self.answered
        assert not self.told_lines.errors, self.told_lines.errors
        assert counts(self.shard) == walked(self.shard)
        assert lists_as_it_is(self.shard)
        assert describes_as_it_is(self.shard)
