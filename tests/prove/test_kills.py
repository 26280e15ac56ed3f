# SPDX-License-Identifier: Apache-2.0
"""Many `kill -9` at random instants, while real clients produce, consume, commit, join and leave
groups of both protocols, make and delete topics, and delete groups.

`KOHORT_KILLS` is the number of kills, and `KOHORT_KILLS_SEED` the seed of their instants and of
what the clients do.
"""

import os
from random import SystemRandom

import pytest
from tests.prove.killing.campaign import Campaign, kill_again_and_again

KILLS = int(os.environ.get("KOHORT_KILLS", "1000"))
SEED = int(os.environ.get("KOHORT_KILLS_SEED", SystemRandom().getrandbits(32)))


@pytest.mark.clients
def test_ten_kills(crew, tmp_path):
    groups = {"new": ["confluent-consumer"], "old": ["confluent-classic"]}
    with Campaign(crew, tmp_path, 1, groups=groups) as campaign:
        kill_again_and_again(campaign, 10)
        campaign.end()


@pytest.mark.prove
@pytest.mark.timeout(600 + 6 * KILLS)
def test_many_kills(crew, tmp_path):
    print(f"seed {SEED}, {KILLS} kills")
    with Campaign(crew, tmp_path, SEED) as campaign:
        kill_again_and_again(campaign, KILLS)
        campaign.end()
