# SPDX-License-Identifier: Apache-2.0
"""Many histories of a broker on a disk that fails, other ones each time."""

import os
from random import SystemRandom

import pytest
from tests.server.histories import History

HISTORIES = int(os.environ.get("KOHORT_HISTORIES", "4000"))

pytestmark = [pytest.mark.prove, pytest.mark.timeout(3600)]


@pytest.mark.parametrize("steps", [40, 200, 600])
def test_what_was_acknowledged_is_there_or_refused(steps):
    first = SystemRandom().getrandbits(40)
    for seed in range(first, first + HISTORIES * 40 // steps):
        try:
            History(seed).run(steps)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}, {steps} steps: {error}") from error
