# SPDX-License-Identifier: Apache-2.0
"""The state machines of the suite with many more examples, from new seeds each time."""

import os

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test
from tests.coordinator.classic.test_machine import ClassicGroups
from tests.properties.test_consumer_groups import GroupMachine

EXAMPLES = int(os.environ.get("KOHORT_EXAMPLES", "2000"))


@pytest.mark.prove
@pytest.mark.timeout(900)
@pytest.mark.parametrize("machine", [ClassicGroups, GroupMachine])
def test_many_examples(machine):
    run_state_machine_as_test(
        machine,
        settings=settings(
            settings.get_profile("fresh"),
            max_examples=EXAMPLES,
            stateful_step_count=60,
            suppress_health_check=list(HealthCheck),
        ),
    )
