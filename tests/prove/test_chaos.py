# SPDX-License-Identifier: Apache-2.0
"""Eight members of ours in one process, in a storm of `KOHORT_CHAOS_SECONDS` for each protocol."""

import os
import time
from random import SystemRandom

import pytest
from tests.client.consumer.chaos import chaos
from tests.client.consumer.running import PROTOCOLS
from tests.client.scripted import asynchronous

SECONDS = int(os.environ.get("KOHORT_CHAOS_SECONDS", "600"))
SEED = int(os.environ.get("KOHORT_CHAOS_SEED", SystemRandom().getrandbits(32)))


@pytest.mark.prove
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.timeout(300 + 2 * SECONDS)
@asynchronous
async def test_eight_members_in_a_long_storm(protocol: str) -> None:
    print(f"seed {SEED}, {SECONDS} s")
    until = time.monotonic() + SECONDS
    async with chaos(protocol, SEED) as world:
        while time.monotonic() < until:
            await world.step()
