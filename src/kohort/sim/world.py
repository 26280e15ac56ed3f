# SPDX-License-Identifier: Apache-2.0
"""The simulated world: a broker with its disk, the network, the clients, and what happens to all.

Faults call the methods here: the process dies, the machine loses its power, the process stands
still, the clock is set. A broker that has died is started again by `operator`, which is a person
who does nothing but look whether it runs.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace
from random import Random
from typing import Any, Protocol

from kohort.config import STANDARD_AUTHORIZER, BrokerConfig
from kohort.errors import KohortError
from kohort.machines.effects import ANONYMOUS
from kohort.server.coordinators.coordinator_partitions import Driver
from kohort.sim.actor_context import ActorContext
from kohort.sim.actors.actor import Actor
from kohort.sim.actors.ruler import Ruler
from kohort.sim.actors.table import KINDS
from kohort.sim.actors.tuner import Tuner
from kohort.sim.checkers.bounds import Bounds
from kohort.sim.checkers.consumption import ConsumptionChecker
from kohort.sim.checkers.durability import DurabilityChecker
from kohort.sim.checkers.fencing import Fencing
from kohort.sim.checkers.holdings import Holdings
from kohort.sim.checkers.kept_answers import KeptAnswers
from kohort.sim.checkers.latency import LatencyChecker
from kohort.sim.checkers.owners import Owners
from kohort.sim.checkers.replay import ReplayChecker
from kohort.sim.checkers.table import CHECKERS
from kohort.sim.codes import CREATED
from kohort.sim.costs import SYNC_US
from kohort.sim.disk import MachineCrash, SimulatedFiles
from kohort.sim.draw import SESSIONS_MS, Draw
from kohort.sim.events import MICROS, Events, virtual_loop
from kohort.sim.facts import (
    BitFlipped,
    Fact,
    TopicsSeen,
)
from kohort.sim.lasting_facts import BrokerStarted, LogReloaded
from kohort.sim.loading import LoadingWatch
from kohort.sim.network import Network, NetworkConditions, Watcher
from kohort.sim.process import OperatorLog, Process, addresses_of
from kohort.sim.ruled import TOPICS as RULED
from kohort.terms import TopicId
from kohort.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest

TOPICS = {"home": 2}  # that exist from the begin on, and that nobody deletes
RULED_TOPICS = dict.fromkeys(RULED, 1)  # likewise, in runs with rules about them
PAGES = (16, 64, 512, 4096)
STARTS_MAX = 50  # refused ones of all lives
STOP_US = 120 * MICROS  # no ordered stop takes longer, with every fault of the disk
EXCUSE_US = 60 * MICROS  # what has failed so soon after the disk has refused may come of that


class Witness(Watcher, Protocol):
    """Somebody who remembers a run, to tell of it."""

    def happens(self, now: int, what: str) -> None: ...
    def topics_seen(self, fact: TopicsSeen) -> None: ...


class Setup(Actor):
    """Makes the topics that every run has."""

    kind = "setup"

    async def live(self) -> None:
        wanted = [
            CreatableTopic(
                name=name, num_partitions=number, replication_factor=1, assignments=[], configs=[]
            )
            for name, number in self.stage.topics.items()
        ]
        while True:
            answer = await self.ask(CreateTopicsRequest(topics=wanted), 7)
            if answer is not None and all(topic.error_code in CREATED for topic in answer.topics):
                break
            await self.pause(100)
        self.caller.hang_up()


def _session_us(draw: Draw, which: Callable[[Iterable[int]], int]) -> int:
    """The shortest or longest session that a member of a KIP-848 group can have in this run."""
    if "other settings" in draw.faults or Tuner.kind in draw.actors:
        return which(SESSIONS_MS) * 1000
    return int(draw.settings["group.consumer.session.timeout.ms"]) * 1000


class World:
    """`alarms` is what no broker may do; a run ends with the first one."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.alarms: list[str] = []
        self.events = Events()
        self.loop = virtual_loop(self.events, self._client_failed)
        self.network = Network(draw.stream("network"))
        self.disk = SimulatedFiles()
        self.disk.told_refusal = self._disk_has_refused
        self._refused_at = -EXCUSE_US  # when the disk last refused something
        self.damaged: set[str] = set()  # folders in which a bit was flipped
        self.operator_log = OperatorLog(
            self.failed_inside, lambda: self.tell(LogReloaded(self.now))
        )
        self.skew = 0.0
        self.lives = 0
        self._errors_before = 0  # that the broker had told before this life
        self.process: Process | None = None
        self.config = BrokerConfig.of(
            {
                **draw.settings,
                "offsets.topic.num.partitions": str(draw.shards),
                "max.partitions": "80",
                "authorizer.class.name": STANDARD_AUTHORIZER,
                "super.users": ANONYMOUS,  # every actor: the rules are kept, and deny nobody
            }
        )
        self.checkers = [checker(self.alarm) for checker in CHECKERS]
        self._patience = LatencyChecker(self.alarm)
        self._let_watch()
        self._ears: dict[type[Any], list[Callable[[Any], None]]] = {}
        for checker in self.checkers:
            for kind, hear in checker.ears():
                self._ears.setdefault(kind, []).append(hear)
        self._bounds = Bounds(self.alarm)
        self._holdings = Holdings(self.alarm)
        self._replayed = ReplayChecker(self.alarm, self.damaged)
        self._kept_answers = KeptAnswers(self.alarm)
        self.stage = ActorContext(
            self.loop,
            self.network,
            draw.nodes,
            draw.stream,
            self.tell,
            self.alarm,
            failed_inside=self.failed_inside,
            topics=TOPICS | (RULED_TOPICS if Ruler.kind in draw.actors else {}),
            session_ms=_session_us(draw, max) // 1000,
            offsets_retention_us=self.config.offsets_retention_minutes * 60 * MICROS,
        )
        self._random: Random = draw.stream("world")
        self._refused = 0
        self._lives: dict[str, asyncio.Task[None]] = {}  # of actors, by name
        self._witnesses: list[Witness] = []

    def _let_watch(self) -> None:
        """Show the checkers what they look at beside facts: the wire, and the disk."""
        for checker in self.checkers:
            if isinstance(checker, Fencing | Owners):
                checker.session_us = _session_us(self.draw, min)
            if isinstance(checker, ConsumptionChecker):
                checker.session_us = _session_us(self.draw, max)
        durable = DurabilityChecker(
            self.alarm,
            lambda: self.disk,
            self._name_of,
            logs_are_synced=self.config.log_sync == "group",
        )
        self.network.watchers += [
            checker for checker in self.checkers if isinstance(checker, Fencing)
        ]
        self.network.watchers.append(durable)
        self.network.leaving.append(durable.leaves)
        self.disk.directory_synced = durable.directory_synced
        self.disk.spends_sync = self._sync_takes_time
        self.network.watchers.append(self._patience)
        self.network.leaving.append(self._patience.leaves)
        loading = LoadingWatch(self._group_drivers, self._is_loading)
        self.network.watchers.append(loading)
        self.network.leaving.append(loading.leaves)

    @property
    def now(self) -> int:
        return self.events.now

    def alarm(self, text: str) -> None:
        self.alarms.append(text)

    def _group_drivers(self) -> Iterable[Driver]:
        """Those of the broker that runs."""
        cluster = self.process.broker.cluster if self.process is not None else None
        return () if cluster is None else cluster.drivers.values()

    def _is_loading(self) -> None:
        self.stage.loading_at = self.now

    def _sync_takes_time(self) -> None:
        if self.process is not None:
            self.process.loop.spend(SYNC_US)

    def _disk_has_refused(self) -> None:
        self._refused_at = self.now

    def failed_inside(self, text: str) -> None:
        """The broker says that it has failed: an alarm, unless the disk has made it fail."""
        if self.now - self._refused_at >= EXCUSE_US and self._refused_at <= self.now:
            self.alarm(f"broker: {text}")

    def tell(self, fact: Fact) -> None:
        for hear in self._ears.get(type(fact), ()):
            hear(fact)

    def _client_failed(self, error: BaseException) -> None:
        raise error

    def call_witness(self, witness: Witness) -> None:
        """Have somebody told what happens."""
        self._witnesses.append(witness)
        self.network.watchers.append(witness)
        self._ears.setdefault(TopicsSeen, []).append(witness.topics_seen)

    def happens(self, what: str) -> None:
        """Note a fault, for the story."""
        for witness in self._witnesses:
            witness.happens(self.now, what)

    async def pause(self, ms: float) -> None:
        """Wait, as a fault does."""
        future = self.loop.create_future()
        self.loop.call_later(ms / 1000, future.set_result, None)
        await future

    def make_calm(self) -> None:
        """Nothing fails any more, from now on."""
        self.stage.calm = True
        self.network.conditions = NetworkConditions()
        for node in range(self.draw.nodes):
            for address in addresses_of(node):
                self.network.reach_again(address)
        self.mend_disk()
        if self.process is None:
            self.start()

    def start_who_has_failed(self) -> None:
        """A broker that has told an error is started anew: a log whose sync has failed is out of
        service until then. Any other must come round itself.
        """
        if self.process is not None and len(self.operator_log.errors) > self._errors_before:
            self.crash()

    def flip(self, path: str, position: int, bit: int) -> None:
        """A bit of a file is another one now."""
        self.disk.flip(path, position, bit)
        folder = path.split("/")[2]
        self.damaged.add(folder)
        self.tell(BitFlipped(folder))

    def _name_of(self, topic_id: bytes) -> str | None:
        """The name of a topic, as the broker that runs knows it."""
        cluster = self.process.broker.cluster if self.process is not None else None
        topic = cluster.catalog.by_id.get(TopicId(topic_id)) if cluster is not None else None
        return None if topic is None else topic.name

    def look_inside(self, *, at_rest: bool = False, replay: bool = False) -> None:
        """Have those checkers look that look into the broker; `at_rest` when nobody is there."""
        process = self.process
        if process is None or not self.running or process.broker.cluster is None:
            return
        self._bounds.look(process.broker, self.network.open_lines)
        self._holdings.look(process.broker)
        self._kept_answers.look(process.broker.cluster)
        if at_rest:
            self._bounds.look_at_rest(process.broker)
        if replay:
            self._replayed.look(process.broker.cluster)

    # The broker's process.

    def start(self) -> None:
        """Begin the next life of the broker."""
        self.lives += 1
        self.happens("restart")
        self.tell(BrokerStarted(self.now))
        self._errors_before = len(self.operator_log.errors)
        # a copy of its own: a broker may change its settings while it runs
        process = self.process = Process(
            self.events,
            self.network,
            self.disk,
            replace(self.config),
            self.draw.stream(f"life {self.lives}"),
            nodes=self.draw.nodes,
            operator_log=self.operator_log,
            skew=lambda: self.skew,
            failed=lambda error: self._failed(process, error),
        )
        process.loop.begin(process.start())

    def _failed(self, process: Process, error: BaseException) -> None:
        """Something has come out of the broker that nothing in it has caught."""
        if process is not self.process:
            return
        if isinstance(error, MachineCrash):
            if self._random.random() < 0.5 or self.config.log_sync == "none":
                self.crash()
            else:
                self.lose_power()
        elif not process.started and isinstance(error, KohortError | OSError):
            self._does_not_start(error)
        else:
            self.alarm(f"broker: it has raised {type(error).__name__}: {error}")

    def _does_not_start(self, error: BaseException) -> None:
        """A disk that refuses is mended by the operator; without a reason it is an alarm.

        So is one refusal too many in a run.
        """
        self._refused += 1  # counted over the whole run: no run has so many faults
        if not self.disk_refuses or self._refused > STARTS_MAX:
            self.alarm(f"broker: it does not start, and nothing refuses: {error}")
            return
        self.mend_disk()
        self.crash()

    @property
    def disk_refuses(self) -> bool:
        disk = self.disk
        return bool(
            disk.faults or disk.refused or disk.immovable or disk.refuses_sync
            or disk.room_bytes is not None
        )  # fmt: skip

    def mend_disk(self) -> None:
        """Nothing refuses any more. What is wrong on the disk stays."""
        disk = self.disk
        disk.faults.clear()
        disk.refused.clear()
        disk.immovable.clear()
        disk.crash_at = None
        disk.room_bytes = None

    @property
    def running(self) -> bool:
        """Whether there is a process that serves."""
        process = self.process
        return process is not None and process.started and not process.stopping

    def crash(self) -> None:
        """The process is killed: the disk has all that was written."""
        if self.process is not None:
            self.process.die()
            self.process = None
            self.disk = self.disk.after_crash()
            self._start_soon()

    def lose_power(self) -> None:
        """The machine is gone, with any part of what was not synced."""
        if self.process is not None:
            self.process.die(silently_us=3 * MICROS)
            self.process = None
            page = self._random.choice(PAGES)
            self.disk = self.disk.after_power_loss(random=self._random, page_bytes=page)
            self._start_soon()

    async def stop(self) -> None:
        """The broker is told to stop, and does. Returns when it has, or has died meanwhile."""
        process = self.process
        if process is None or not self.running:
            return
        process.stopping = True
        process.loop.call_soon(process.stop_soon)
        began = self.now
        while process.loop.alive and not process.stopped:
            await self.pause(10)
            if self.now - max(began, process.loop.busy_until) > STOP_US:
                self.alarm("broker: it is told to stop, and does not come to an end")
                return
        if process is self.process:
            process.die()
            self.process = None
            self.disk = self.disk.after_crash()

    def _start_soon(self) -> None:
        """The operator comes after a while."""
        pause = self._random.choice([0.05, 1.0, 10.0]) * (0.5 + self._random.random())
        self.loop.call_later(pause, self.start_if_down)

    def start_if_down(self) -> None:
        if self.process is None:
            self.start()

    def stand_still(self, ms: int) -> None:
        if self.process is not None:
            self.process.stand_still(ms)
            self._patience.stands_still(self.process.loop.busy_until)

    @property
    def stands_still_seconds(self) -> float:
        """How long the broker will go on standing still."""
        until = self.now if self.process is None else self.process.loop.busy_until
        return max(until - self.now, 0) / MICROS

    # The clients.

    def begin(self, then: Callable[[], None]) -> None:
        """Start the broker, and everybody else when the first topics are there."""
        self.start()
        self.loop.begin(self._open(then))

    async def _open(self, then: Callable[[], None]) -> None:
        await Setup(self.stage, 0).live()
        then()
        for kind, number in self.draw.actors.items():
            for index in range(number):
                actor = KINDS[kind][0](self.stage, index)
                self._lives[actor.name] = self.loop.begin(actor.live())

    def bury(self) -> None:
        """Forget the processes of applications: none of it runs any more."""
        for program in self.stage.programs:
            program.bury()

    def look_for_the_living(self) -> None:
        """Alarm about clients that have not come to their end, though all is calm and over."""
        for name, life in self._lives.items():
            if not life.done():
                self.alarm(f"end: {name} waits for something that does not come")
