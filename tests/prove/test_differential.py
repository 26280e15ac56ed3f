# SPDX-License-Identifier: Apache-2.0
"""Many thousand requests, from new seeds each time, beside a real Apache Kafka."""

import asyncio
import os
import time

import pytest
from tests.peers.kafka import unavailable
from tests.prove.differential.campaign import all_modes, campaign, seeds
from tests.prove.differential.modes import RESTARTING

PAIRS = int(os.environ.get("KOHORT_PAIRS", "20000"))
RESTARTS = 80  # sequences with a restart in the middle
UNSTEADY_SHARE = 0.005  # of all sequences: what comes once is a race, and is told


@pytest.mark.prove
@pytest.mark.java
@pytest.mark.timeout(3600)
def test_both_brokers_answer_alike():
    """What differs is printed as a short story; `python -m tests.prove.differential` plays it."""
    if reason := unavailable():
        pytest.skip(reason)
    first = int(time.time())
    steady = [mode for mode in all_modes() if mode not in RESTARTING]
    todo = [*seeds(RESTARTING, first, RESTARTS), *seeds(steady, first, PAIRS // 15)]
    report = asyncio.run(campaign(todo, wanted_pairs=PAIRS, tell=print))
    print(f"seeds from {first} on: {report}")
    assert report.pairs >= PAIRS // 2
    assert not report.differing, report.stories
    assert len(report.unsteady) <= 1 + UNSTEADY_SHARE * report.sequences, report.unsteady
