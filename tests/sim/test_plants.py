"""Each planted bug is found, by a seed that is known to find it.

A new kind of actor or fault makes another world of each seed. Then `kohort-sim --plant NAME --seeds
1-200 --minutes 2` names a seed for this table.
"""

import pytest

from kohort.sim.plants import PLANTS
from kohort.sim.run import simulate

FINDS = {  # the seed, its minutes, and the checker that says so
    "reply before sync": (1, 2.0, "durable"),
    "skip revocation": (2, 2.0, "owners"),
    "forget timer": (1, 2.0, "convergence"),
    "drop tombstone": (3, 2.0, "replayed"),
    "shard by index": (11, 2.0, "commits"),
    "delete by name": (38, 2.0, "durable"),
    "unchecked crc": (9, 2.0, "served"),
    "producer id twice": (1, 2.0, "producer ids"),
}


@pytest.mark.parametrize("plant", FINDS)
def test_a_planted_bug_is_found(plant):
    seed, minutes, checker = FINDS[plant]
    outcome = simulate(seed, minutes, plant=plant)
    assert outcome.broken.startswith(f"{checker}: "), outcome.line()


def test_every_plant_has_a_seed():
    assert FINDS.keys() == PLANTS.keys()
