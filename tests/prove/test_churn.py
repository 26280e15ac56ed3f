# SPDX-License-Identifier: Apache-2.0
"""Twenty clients that come and go in several groups of both protocols, while the broker restarts.

`KOHORT_CHURN_SECONDS` says for how long.
"""

import os
from random import SystemRandom

import pytest
from tests.prove.killing.campaign import Campaign, restart_now_and_then

SECONDS = int(os.environ.get("KOHORT_CHURN_SECONDS", "600"))
SEED = int(os.environ.get("KOHORT_CHURN_SEED", SystemRandom().getrandbits(32)))
GROUPS = {
    "new": ["confluent-consumer"] * 3,
    "newer": ["confluent-consumer"] * 3,
    "old": ["confluent-classic"] * 3,
    "older": ["confluent-classic"] * 3,
    "python": ["kafka-python"] * 2,
    "asyncio": ["aiokafka"] * 2,
}
LIVES = 4
OURS = {
    "new": ["kohort-consumer"] * 3,
    "computing": ["kohort-weighed"] * 3,
    "old": ["kohort-classic"] * 2,
}


@pytest.mark.clients
def test_churn_for_a_moment(crew, tmp_path):
    groups = {"new": ["confluent-consumer"], "old": ["confluent-classic"]}
    with Campaign(crew, tmp_path, 1, groups=groups, lives=1, pause=(0.5, 1.5)) as campaign:
        restart_now_and_then(campaign, 4, 2)
        campaign.end()


@pytest.mark.prove
@pytest.mark.timeout(900 + 2 * SECONDS)
def test_twenty_clients(crew, tmp_path):
    assert sum(map(len, GROUPS.values())) + LIVES == 20
    print(f"seed {SEED}, {SECONDS} s")
    with Campaign(crew, tmp_path, SEED, groups=GROUPS, lives=LIVES, pause=(0.5, 3)) as campaign:
        restart_now_and_then(campaign, SECONDS, 10)
        campaign.end()


@pytest.mark.prove
@pytest.mark.timeout(900 + 2 * SECONDS)
def test_eight_members_of_ours(crew, tmp_path):
    """They leave, are killed and come back, and the broker restarts: every record is processed, and
    no commit goes back.
    """
    assert sum(map(len, OURS.values())) == 8
    print(f"seed {SEED}, {SECONDS} s")
    with Campaign(crew, tmp_path, SEED, groups=OURS, lives=1, pause=(0.5, 3)) as campaign:
        restart_now_and_then(campaign, SECONDS, 10)
        campaign.end()
