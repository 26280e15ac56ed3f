# SPDX-License-Identifier: Apache-2.0
"""The captured scenarios, played against our broker with a clock of our own,
compared field by field.
"""

from fnmatch import fnmatch

import pytest
from tests.golden import scenarios
from tests.replay.known_differences import COUNTS, DIFFERENCES
from tests.replay.player import RecordedScenario
from tests.world import World

# Of the capture, where they differ from the defaults (tests/data/README.md).
SETTINGS = {
    "node.id": "1",
    "offsets.topic.num.partitions": "4",
    "num.partitions": "4",
    "group.max.size": "4",
    "group.consumer.max.size": "4",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.assignment.interval.ms": "1000",
}
STORIES = scenarios()
# The capture played them all on one broker; this one meets a group that another has left behind.
AFTER = {"listing": "offsets"}


def reason_for(frame: str) -> str | None:
    """Why an answer may differ from upstream's."""
    return next((why for pattern, why in DIFFERENCES.items() if fnmatch(frame, pattern)), None)


def played(name: str) -> RecordedScenario:
    """A scenario, played on a fresh broker to its end."""
    world = World(SETTINGS)
    if name in AFTER:
        RecordedScenario(world, STORIES[AFTER[name]]).play()
    story = RecordedScenario(world, STORIES[name])
    story.play()
    return story


@pytest.mark.parametrize("name", STORIES)
def test_a_scenario_goes_as_it_went(name):
    """Every answer is upstream's, but for those in the list of known differences."""
    story = played(name)

    wrong = {
        frame: differences
        for frame, differences in story.results.items()
        if differences and reason_for(frame) is None
    }
    assert wrong == {}
    assert sum(map(bool, story.results.values())) == COUNTS.get(name, 0)
