# SPDX-License-Identifier: Apache-2.0
"""One seed of owners that take a log from each other, from its begin to its end."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from random import Random

from kohort.errors import ErrorCode, KohortError
from kohort.machines.effects import Producer
from kohort.remote.tenure import Expirations
from kohort.sim.events import MICROS, Events, VirtualLoop, virtual_loop
from kohort.sim.injected_bugs.replace_attribute import injected
from kohort.sim.remote.injected_bugs import TAKEOVER_BUGS
from kohort.sim.remote.nodes import SESSION_MS, Nodes
from kohort.sim.remote.owner import CLAIM_KEY, Owner
from kohort.sim.remote.partition import ProducerIds, RemotePartition
from kohort.sim.run import Outcome
from kohort.terms import Millis, Offset
from kohort.wire import batch

STRANGER = "a stranger"
ACTIVE = 60  # offsets of the segment that is written to: it is not compacted
LOST_MAX = 4  # an unclean election loses fewer records
CALM_S = 40  # two sessions, the latest requests, and a claim


@dataclass
class _Write:
    """A value in the log: which life has written it, and where it is."""

    life: str
    offset: int


@dataclass
class _Life:
    """A time for which an owner has served."""

    claimed_at: int  # the offset of its claim
    known_end: int  # everything before is known to it
    known: set[str]
    served_from: int
    has_answered: bool = False


class World:
    """A cluster with one log, its nodes, the faults of a seed, and what must hold."""

    def __init__(self, seed: int) -> None:
        self.events = Events()
        self.alarms: list[str] = []
        self.loop: VirtualLoop = virtual_loop(self.events, self._failed)
        self.digest = blake2b(digest_size=8)
        self.pieces = 0
        self.is_calm = False
        random = Random(f"{seed} settings")
        self.expirations = Expirations(30_000, 100_000)
        # What a partition forgets is beyond what fencing can do: the fence of a former producer id,
        # where epochs are used up, and everything while no node is there to write.
        self.uses_up_epochs = random.random() < 0.5
        self.clocks_stand_ms = 12_000 if self.uses_up_epochs else 90_000
        self.partition = RemotePartition(self.expirations.producer_id_ms)
        self.ids = ProducerIds(
            self.expirations.transactional_id_ms, 3 if self.uses_up_epochs else 1 << 30
        )
        self.nodes = Nodes(Random(f"{seed} nodes"), self._expelled)
        self.faults = [fault for fault in FAULTS if random.random() < 0.5]
        self.random = Random(f"{seed} faults")
        self.owners = [
            Owner(self, f"n{number}", self._new_loop(), Random(f"{seed} owner {number}"))
            for number in range(random.randrange(2, 5))
        ]
        for owner in self.owners:
            owner.write_pause_s = random.choice((0.5, 2.0, 25.0, 500.0))
        self.refusals = random.choice((0.0, 0.02, 0.2))
        self._writes: dict[str, _Write] = {}
        self._in_order: list[tuple[int, str]] = []  # offset and value of each of them
        self._lost_values: set[str] = set()  # by an unclean election
        self._lives: dict[str, _Life] = {}
        self._claims: dict[str, int] = {}
        self._disturbed_at = -1  # the last offset at which a stranger wrote, or records were lost
        self._acknowledged = 0
        self._accepted_at: dict[str, Millis] = {}
        self._forgotten: set[str] = set()  # lives that were silent for too long for the partition

    def _new_loop(self) -> VirtualLoop:
        return virtual_loop(self.events, self._failed)

    def _failed(self, error: BaseException) -> None:
        raise error

    @property
    def now(self) -> Millis:
        """By the cluster's clock."""
        return Millis(self.loop.now // 1000)

    def alarm(self, text: str) -> None:
        """Something is wrong."""
        self.alarms.append(text)

    def _expelled(self, name: str) -> None:
        """The group gives a node up: it must not answer any more, unless its clock has stood."""
        for owner in self.owners:
            if owner.name == name and owner.has_lease and not owner.clock_stood_ms:
                self.alarm(f"lease: {name} has one, and the log is given to another")

    # --- what owners tell

    def produce(self, life: str, data: bytes) -> tuple[ErrorCode, int]:
        """A batch has arrived at the log."""
        refused = not self.is_calm and self.random.random() < self.refusals
        if refused and self.random.random() < 0.5:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER, -1
        end = self.partition.end
        code, base = self.partition.produce(data, self.now)
        self.pieces += 1
        self.digest.update(b"%d %d %d" % (self.loop.now, code, base))
        if code is ErrorCode.NONE and self.partition.end > end:
            before = self._accepted_at.get(life, self.now)
            if self.now - before >= self.expirations.producer_id_ms:
                self._forgotten.add(life)  # what it sends again is written again, and it notices
            self._accepted_at[life] = self.now
            self._note(life, data, base)
        if refused and code is ErrorCode.NONE:
            return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, base
        return code, base

    def _note(self, life: str, data: bytes, base: int) -> None:
        for offset, (_, _, key, value) in enumerate(batch.entries(data), base):
            if key == CLAIM_KEY:
                self._claims[life] = min(self._claims.get(life, offset), offset)
            else:
                self._add((value or b"").decode(), life, offset)

    def _add(self, value: str, life: str, offset: int) -> None:
        self._writes[value] = _Write(life, offset)
        self._in_order.append((offset, value))

    def serves(self, life: str, end: Offset, known: set[str]) -> None:
        """An owner has read the log, and answers clients from now on."""
        self._lives[life] = _Life(self._claims[life], end, known, end)

    def acknowledged(self, life: str, value: str) -> None:
        """A client is told that its value is written."""
        self._acknowledged += 1
        if value.startswith(life) and ":" not in value:
            return  # the claim, once more
        write, mine = self._writes.get(value), self._lives[life]
        if write is None:
            if value not in self._lost_values:
                self.alarm(f"acknowledged: {value} is not in the log")
            return
        mine.has_answered = True
        first = bisect_left(self._in_order, (mine.known_end, ""))
        for offset, other in self._in_order[first:]:
            if offset >= write.offset:
                break
            if self._writes[other].life != life and other not in mine.known:
                self.alarm(f"unseen: {life} answers for offset {write.offset} without {other}")
        mine.known_end = write.offset + 1

    def lost(self, life: str, error: KohortError) -> None:
        """An owner has lost the log, and says why."""
        mine = self._claims.get(life, -1)
        others = any(at > mine for name, at in self._claims.items() if name != life)
        excused = life in self._forgotten or self._disturbed_at >= mine
        if not others and not excused and not self._asked_since(life):
            self.alarm(f"lost: {life} has lost the log to nobody: {error}")

    def _asked_since(self, life: str) -> bool:
        """Whether another one has asked for an epoch, and has not written yet."""
        return any(owner.life != life and owner.wants_log for owner in self.owners)

    # --- faults

    def stranger_writes(self) -> None:
        """Somebody writes into the log by mistake."""
        data = batch.build([(b"k0", STRANGER.encode())], self.now)
        base = self.partition.produce(data, self.now)[1]
        self._add(f"{STRANGER} at {base}", STRANGER, base)
        self._disturbed_at = base

    def lose_records(self) -> None:
        """An unclean election: what was acknowledged last is gone."""
        end = Offset(max(0, self.partition.end - self.random.randrange(1, LOST_MAX)))
        self.partition.truncate(end)
        while self._in_order and self._in_order[-1][0] >= end:
            value = self._in_order.pop()[1]
            del self._writes[value]
            self._lost_values.add(value)
        for life in self._lives.values():
            if life.claimed_at >= end:
                life.claimed_at = -1  # the log knows nothing of it any more
        self._disturbed_at = 1 << 62

    def someone(self, among: Sequence[Owner] | None = None) -> Owner:
        """Any node; more often the one that has the log."""
        among = self.owners if among is None else among
        having = [owner for owner in among if owner.name == self.nodes.owner]
        if having and self.random.random() < 0.6:
            return having[0]
        return self.random.choice(among)

    def someone_who_may_stand(self) -> Owner:
        """Not the last one: it takes over while others stand still."""
        return self.someone(self.owners[:-1])

    # --- the end

    def look_at_order(self) -> None:
        """No life has written behind the point from which a later one has served."""
        for value, write in self._writes.items():
            mine = self._claims.get(write.life, 1 << 62)
            for name, life in self._lives.items():
                later = life.claimed_at > mine and name != write.life
                if later and life.has_answered and life.served_from <= write.offset:
                    self.alarm(f"stale: {value} stands at {write.offset}, and {name} has served")
                    return

    def look_for_service(self) -> None:
        """Somebody serves once everything is calm."""
        before = self._acknowledged
        self.events.run(self.events.now + 60 * MICROS)
        if self._acknowledged == before:
            self.alarm("service: nobody has the log, and nothing is wrong any more")


def _cut(world: World) -> None:
    world.someone().cut()


def _pause(world: World) -> None:
    """A process stands still, and its clock is right when it goes on."""
    seconds = world.random.choice((3, 8, 20, 100, 400))
    world.someone_who_may_stand().loop.stand_still(seconds * MICROS)


def _suspend(world: World) -> None:
    """A machine stands still, and its clock with it: it takes its lease to be as old as before."""
    duration_ms = world.random.randrange(1000, world.clocks_stand_ms)
    owner = world.someone_who_may_stand()
    owner.loop.stand_still(duration_ms * 1000)
    owner.clock_stood_ms += duration_ms


def _end_transaction(world: World) -> None:
    """A marker of their transaction coordinator takes an offset of the log."""
    producer = Producer(1_000_000 + world.random.randrange(3), 0)
    world.partition.end_transaction(producer, world.now, commit=world.random.random() < 0.7)


def _compact(world: World) -> None:
    world.partition.compact(
        Offset(max(0, world.partition.end - world.random.randrange(ACTIVE, 2 * ACTIVE)))
    )


FAULTS: dict[str, tuple[float, Callable[[World], None]]] = {  # every so many seconds
    "cut": (20, _cut),
    "pause": (60, _pause),
    "suspend": (90, _suspend),
    "move": (40, lambda world: world.nodes.move(world.now)),
    "marker": (10, _end_transaction),
    "compaction": (30, _compact),
    "stranger": (150, World.stranger_writes),
    "unclean election": (250, World.lose_records),
}


def simulate_takeovers(seed: int, minutes: float, *, plant: str | None = None) -> Outcome:
    """Play a seed: faults for so many minutes, then calm, in which somebody has to serve."""
    with injected(TAKEOVER_BUGS, plant):
        return _simulate(seed, minutes)


def _simulate(seed: int, minutes: float) -> Outcome:
    world = World(seed)
    for owner in world.owners:
        owner.begin()
    for name in world.faults:
        _keep_happening(world, *FAULTS[name])
    _run(world, minutes * 60)
    world.is_calm = True
    _run(world, 400 + CALM_S)  # the longest pause ends
    if not world.alarms:
        world.look_at_order()
    if not world.alarms:
        world.look_for_service()
    return Outcome(
        seed,
        world.alarms[0] if world.alarms else "",
        world.digest.hexdigest(),
        world.events.now / MICROS,
        world.pieces,
        len(world.owners),
    )


def _keep_happening(world: World, pause_s: float, fault: Callable[[World], None]) -> None:
    def happen() -> None:
        if not world.is_calm:
            fault(world)
            plan()

    def plan() -> None:
        world.loop.call_later(world.random.expovariate(1 / pause_s), happen)

    plan()


def _run(world: World, seconds: float) -> None:
    end = world.events.now + round(seconds * MICROS)
    while world.events.now < end and not world.alarms:
        world.events.run(min(world.events.now + SESSION_MS * 1000, end))
