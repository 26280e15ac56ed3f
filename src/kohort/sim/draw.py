# SPDX-License-Identifier: Apache-2.0
"""What a seed draws before anything happens: how large the world is, and which faults exist in it.

A run in which everything goes wrong at once finds little: nothing is ever acknowledged. So each
kind of fault is there or not, and each part of the world has a stream of chance of its own. Leaving
one out does not change the others, which is how a story is made shorter.
"""

from dataclasses import dataclass, field
from random import Random

from kohort.sim.ruled import secure_settings

RUNS_OF_TEN = {  # how many of them have each kind of fault
    "crash": 5,
    "power": 4,
    "torn write": 3,
    "stop": 3,
    "stall": 3,
    "clock jump": 3,
    "other settings": 2,
    "foreign files": 2,
    "slow disk": 3,
    "failing sync": 2,
    "refusing path": 3,
    "full disk": 2,
    "immovable folder": 4,
    "bit flip": 2,
    "roll": 6,
    "slow network": 4,
    "cut up": 4,
    "broken connections": 4,
    "partition": 3,
}


SESSIONS_MS = (6000, 12_000, 45_000)

# The numbers of these come from the stream of the settings. A kind that came later has its own: a
# seed that is known for something keeps its settings.
FIRST_KINDS = frozenset(
    {
        "committer",
        "remover",
        "producer",
        "reader",
        "admin",
        "raw consumer",
        "classic",
        "hostile",
    }
)


RARE = {"assigner": 0.15}  # part of the runs that have them at all
PROGRAMS = frozenset({"reading program", "writing program", "copying program"})
WITH_PROGRAMS = 0.12  # part of the runs that have any of these: they have them together

LITTLE_ROOM = "100000"  # bytes
GREEDY = frozenset({"staller", "large bystander", "deaf reader", "repeater", "parker"})
WITH_GREEDY = 0.2
"""Likewise, of clients that take more than their share. In these runs there is little room."""

SECURE = frozenset({"ruler", "principal", "principal member"})
WITH_SECURE = 0.15
"""Likewise, of users who log in, and of whoever makes the rules for them."""

SHORT_TIMES = 0.25
"""The part of the runs in which offsets expire after a minute. Nobody sets the clock there, or all
would expire at once; and of these kinds of clients there are none, which take for granted that
nothing of theirs expires while they cannot reach a broker."""
NOT_IN_SHORT_TIMES = PROGRAMS | {"clock jump", "worker", "tuner", "migrating member"}
ONLY_IN_SHORT_TIMES = frozenset({"lodger"})


UNSYNCED = 0.08
"""The part of the runs with log.sync=none. There a process that is killed loses nothing, and a
machine that loses its power anything: so none does, and no answer need wait for the disk.
"""
MANY_NODES = 0.1  # the part of the runs that have more nodes than three


def stream(seed: int, name: str) -> Random:
    """A stream of chance that belongs to one part of the world."""
    return Random(f"{seed} {name}")


@dataclass(frozen=True)
class Draw:
    """One world. `faults` has the mean pause between two of a kind, in seconds."""

    seed: int
    minutes: float
    nodes: int
    shards: int
    faults: dict[str, float]
    actors: dict[str, int] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)

    def stream(self, name: str) -> Random:
        return stream(self.seed, name)


def draw(
    seed: int, minutes: float, kinds: dict[str, int], without: frozenset[str] = frozenset()
) -> Draw:
    """The world of a seed. `kinds` has the most actors of each kind; `without` leaves out faults
    and kinds of actors by name.
    """
    random = stream(seed, "draw")
    short = stream(seed, "short times").random() < SHORT_TIMES
    short = short and ONLY_IN_SHORT_TIMES.isdisjoint(without)  # else nobody looks at what expires
    without |= NOT_IN_SHORT_TIMES if short else ONLY_IN_SHORT_TIMES
    unsynced = stream(seed, "log.sync").random() < UNSYNCED
    greedy = stream(seed, "greedy").random() < WITH_GREEDY and not without >= GREEDY
    secure = stream(seed, "rules").random() < WITH_SECURE and not without >= SECURE
    if unsynced:
        without |= {"power"}
    faults = {}
    for name, tenths in RUNS_OF_TEN.items():
        there, pause = random.random() * 10 < tenths, random.choice([15.0, 40.0, 90.0])
        if there and name not in without:
            faults[name] = pause
    actors = {}
    for name, most in kinds.items():
        chance = random if name in FIRST_KINDS else stream(seed, f"number of {name}")
        number = chance.randint(0 if chance.random() < 0.3 else 1, most)
        if name in RARE and chance.random() >= RARE[name]:
            number = 0
        if name in PROGRAMS and stream(seed, "programs").random() >= WITH_PROGRAMS:
            number = 0
        if name in GREEDY and not greedy:
            number = 0
        if name in SECURE:
            number = max(number, 1) if secure else 0
        if number and name not in without:
            actors[name] = number
    settings = _settings(seed, random, short=short, unsynced=unsynced)
    if greedy:
        settings["queued.max.request.bytes"] = LITTLE_ROOM
    if secure:
        settings |= secure_settings()
        settings["connections.max.reauth.ms"] = stream(seed, "sessions").choice(["0", "8000"])
    nodes = random.choice([1, 2, 3])
    many = stream(seed, "many nodes")
    if many.random() < MANY_NODES:
        nodes = many.choice([4, 5, 7])
    return Draw(
        seed,
        minutes,
        nodes=nodes,
        shards=random.choice([1, 2, 4]),
        faults=faults,
        actors=actors,
        settings=settings,
    )


def _settings(seed: int, random: Random, *, short: bool, unsynced: bool) -> dict[str, str]:
    transactions = stream(seed, "transactions")
    settings = {
        "group.initial.rebalance.delay.ms": random.choice(["0", "500", "3000"]),
        "group.consumer.min.session.timeout.ms": "6000",
        "group.consumer.session.timeout.ms": str(random.choice(SESSIONS_MS)),
        "group.consumer.min.heartbeat.interval.ms": "1000",
        "group.consumer.heartbeat.interval.ms": random.choice(["1000", "3000"]),
        "group.consumer.assignment.interval.ms": random.choice(["0", "0", "1000"]),
        "log.cleaner.min.cleanable.ratio": random.choice(["0", "0.3"]),
        "log.cleaner.backoff.ms": random.choice(["1000", "15000"]),
        "log.cleaner.delete.retention.ms": random.choice(["0", "20000", "86400000"]),
        "log.flush.offset.checkpoint.interval.ms": random.choice(["2000", "60000"]),
        "queued.max.request.bytes": random.choice([LITTLE_ROOM, "67108864"]),
        "queued.max.response.bytes": random.choice([LITTLE_ROOM, "67108864"]),
        "offsets.retention.check.interval.ms": stream(seed, "expiry").choice(
            ["1000", "5000", "600000"]
        ),
        "transaction.state.log.num.partitions": transactions.choice(["1", "3"]),
        "transactional.id.expiration.ms": transactions.choice(["20000", "604800000", "604800000"]),
    }
    if short:
        times = stream(seed, "length of short times")
        settings |= {
            "offsets.retention.minutes": "1",
            "offsets.retention.check.interval.ms": times.choice(["1000", "5000"]),
            "log.retention.check.interval.ms": times.choice(["1000", "5000"]),
            "log.initial.task.delay.ms": "1000",
        }
    if unsynced:
        settings["log.sync"] = "none"
    return settings
