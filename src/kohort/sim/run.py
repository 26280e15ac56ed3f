# SPDX-License-Identifier: Apache-2.0
"""One seed from its begin to its end, and what is to be said of it."""

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b

from kohort.sim import costs
from kohort.sim.actors.auditor import Auditor
from kohort.sim.actors.table import KINDS
from kohort.sim.draw import draw
from kohort.sim.events import MICROS
from kohort.sim.faults import keep_happening
from kohort.sim.injected_bugs.table import inject_bug
from kohort.sim.network import Line
from kohort.sim.world import Witness, World

LATE_SECONDS = 12  # the longest sync: one that began before the calm may still fail
CALM_SECONDS = 100  # the longest session, and the rounds of a rebalance after it
END_SECONDS = 30
AUDIT_SECONDS = 300
SLICE = MICROS // 2
REPLAY_EVERY = 20 * MICROS


class Digest:
    """All that has arrived anywhere, and when."""

    def __init__(self) -> None:
        self._hash = blake2b(digest_size=8)
        self.pieces = 0

    def arrived(self, line: Line, data: bytes, *, to_broker: bool) -> None:
        self.pieces += 1
        head = b"%d %d %d " % (line.client_loop.events.now, line.number, to_broker)
        self._hash.update(head)
        self._hash.update(data)

    def text(self) -> str:
        return self._hash.hexdigest()


@dataclass(frozen=True)
class Outcome:
    """What became of a seed. `broken` is empty when nothing was wrong."""

    seed: int
    broken: str
    digest: str
    virtual_seconds: float
    pieces: int  # that the network has carried
    lives: int

    def line(self) -> str:
        """The last line of a run."""
        if self.broken:
            return f"seed {self.seed}: {self.broken} (digest {self.digest})"
        return f"seed {self.seed}: ok (digest {self.digest})"


def simulate(
    seed: int,
    minutes: float,
    *,
    without: frozenset[str] = frozenset(),
    plant: str | None = None,
    witness: Witness | None = None,
    prepare: Callable[[World], None] | None = None,
) -> Outcome:
    """Play a seed: faults for so many minutes, then calm, then a last look at everything. A witness
    is told what happens, and changes nothing. `prepare` gets the world before it begins: it may put
    files on the disk that an older broker has left.
    """
    try:
        with costs.charged(), inject_bug(plant):
            return _simulate(seed, minutes, without, witness, prepare)
    except Exception as error:
        error.add_note(f"seed {seed}, {minutes:g} minutes, plant {plant}")
        raise


def _simulate(
    seed: int,
    minutes: float,
    without: frozenset[str],
    witness: Witness | None,
    prepare: Callable[[World], None] | None,
) -> Outcome:
    most = {name: number for name, (_, number) in KINDS.items()}
    world = World(draw(seed, minutes, most, without))
    digest = Digest()
    world.network.watchers.append(digest)
    if witness is not None:
        world.call_witness(witness)
    if prepare is not None:
        prepare(world)
    world.begin(lambda: _begin_faults(world))
    _run(world, minutes * 60)
    if not world.alarms:
        world.make_calm()
        world.start_who_has_failed()
        _run(world, LATE_SECONDS)
        world.start_who_has_failed()
        _run(world, world.stands_still_seconds + CALM_SECONDS)
    if not world.alarms:
        world.stage.over = True
        _run(world, END_SECONDS)
    if not world.alarms:
        world.look_for_the_living()
    if not world.alarms:
        audit = world.loop.begin(Auditor(world.stage, 0).live())
        _run(world, AUDIT_SECONDS, audit.done)
        if not audit.done() and not world.alarms:
            world.alarm("audit: it does not come to its end")
        _run(world, 1)
    if not world.alarms:
        world.look_inside(at_rest=True, replay=True)
        for checker in world.checkers:
            checker.at_the_end()
    world.bury()
    return Outcome(
        seed,
        world.alarms[0] if world.alarms else "",
        digest.text(),
        world.now / MICROS,
        digest.pieces,
        world.lives,
    )


def _begin_faults(world: World) -> None:
    for name, pause_s in world.draw.faults.items():
        world.loop.begin(keep_happening(world, name, pause_s))


def _run(world: World, seconds: float, done: Callable[[], bool] = lambda: False) -> None:
    """Let time pass, until it is enough or something is wrong."""
    end = world.now + round(seconds * MICROS)
    while world.now < end and not world.alarms and not done():
        world.events.run(min(world.now + SLICE, end))
        world.look_inside(replay=world.now // REPLAY_EVERY != (world.now - SLICE) // REPLAY_EVERY)
