# SPDX-License-Identifier: Apache-2.0
"""A property test finds what it finds in every run: luck is for `make prove`."""

import pytest
from hypothesis import settings
from tests.coordinator.classic.test_machine import ClassicGroups
from tests.properties.test_consumer_groups import GroupMachine
from tests.properties.test_members import MembersMachine

OF_MACHINES = [one.TestCase.settings for one in (ClassicGroups, GroupMachine, MembersMachine)]


@pytest.mark.parametrize("used", [settings(), *OF_MACHINES])
def test_examples_are_the_same_in_every_run(used, pytestconfig):
    if pytestconfig.getoption("--hypothesis-profile"):
        pytest.skip("another profile was asked for")
    assert used.derandomize
    assert used.database is None
    assert used.deadline is None
