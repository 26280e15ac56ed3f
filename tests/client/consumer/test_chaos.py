# SPDX-License-Identifier: Apache-2.0
"""Eight members in a storm of some seconds; `make prove` has one of ten minutes."""

import pytest
from tests.client.consumer.chaos import chaos
from tests.client.consumer.running import PROTOCOLS
from tests.client.scripted import asynchronous


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.timeout(180)
@asynchronous
async def test_eight_members_in_a_storm(protocol: str) -> None:
    async with chaos(protocol, seed=7) as world:
        for _ in range(12):
            await world.step()
