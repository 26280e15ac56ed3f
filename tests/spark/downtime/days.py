# SPDX-License-Identifier: Apache-2.0
"""What happens in a story, drawn from a seed. All groups live the same day at the same time.

Each client is done one thing to, and is followed by a new one of another name: so a name tells what
became of its member. Then the broker itself is away, twice.
"""

import random
from typing import Literal, NamedTuple

What = Literal["start", "kill", "stop", "hang", "leave", "pause", "crash", "wait"]
KINDS = ("classic", "cooperative", "consumer", "aiokafka")
"""Of the groups, which are called so."""
BROKER = "broker"


class Act(NamedTuple):
    """Something is done to a client of every group, or to the broker, and lasts so long."""

    what: What
    who: str = ""
    seconds: float = 0.0


class Day(NamedTuple):
    """The acts, and the timing of the clients."""

    seed: int
    commit_s: float
    poll_s: float
    max_poll_ms: int
    hang_s: float
    backoff_ms: int
    acts: list[Act]


def day(seed: int) -> Day:
    """The same for the same seed."""
    chance = random.Random(f"felt {seed}")
    ends: list[What] = ["kill", "stop", "hang", "leave"]
    chance.shuffle(ends)
    outages: list[What] = ["pause", "crash"]
    chance.shuffle(outages)
    acts = [Act("start", name) for name in "abc"]
    acts.append(Act("wait", seconds=12))
    for victim, follower, end in zip("abcd", "defg", ends, strict=True):
        lasts = chance.uniform(9, 12) if end == "stop" else 0.0
        acts.append(Act(end, victim, lasts))
        acts.append(Act("wait", seconds=4 if end == "leave" else chance.uniform(14, 17)))
        if end in {"stop", "hang"}:  # who has come back makes room
            acts += [Act("leave", victim), Act("wait", seconds=3)]
        acts += [Act("start", follower), Act("wait", seconds=chance.uniform(6, 9))]
    for outage in outages:
        acts.append(Act(outage, BROKER, chance.uniform(9, 13)))
        acts.append(Act("wait", seconds=chance.uniform(20, 24)))
    acts += [Act("kill", "e"), Act("wait", seconds=0.5), Act(outages[0], BROKER, 10.0)]
    acts.append(Act("wait", seconds=22))
    acts += [Act("leave", "f"), Act("wait", seconds=4), Act("kill", "g"), Act("wait", seconds=8)]
    return Day(
        seed,
        round(chance.uniform(0.3, 1.2), 1),
        round(chance.uniform(0.1, 0.25), 2),
        6500,
        round(chance.uniform(9, 11), 1),
        chance.choice([1000, 10_000]),
        acts,
    )
