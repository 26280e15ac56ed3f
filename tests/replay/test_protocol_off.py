# SPDX-License-Identifier: Apache-2.0
"""A broker without KIP-848, as a real one was recorded: new APIs say so, classic groups work."""

from tests.golden import frames
from tests.replay.player import RecordedScenario
from tests.replay.test_golden_scenarios import SETTINGS
from tests.world import World

OFF = {
    "group.coordinator.rebalance.protocols": "classic",
    "log.index.size.max.bytes": "8192",
    "group.consumer.session.timeout.ms": "1800000",
    "group.consumer.max.session.timeout.ms": "1800000",
}
DIFFERENCES = {
    "protocol_off/find": "the internal topic is there from the start",
}


def test_with_the_protocol_off_it_goes_as_it_went():
    """K848-029, K848-030."""
    story = RecordedScenario(World(SETTINGS | OFF), frames("protocol-off"))
    story.play()

    assert story.skipped == ["protocol_off/streams-heartbeat"]
    different = {name: told for name, told in story.results.items() if told}
    assert different.keys() == DIFFERENCES.keys(), different
