# SPDX-License-Identifier: Apache-2.0
"""Many seeds of the simulator, other ones each time. KOHORT_SEEDS says how many, and with
KOHORT_SIM_STATE a run goes on where the one before was stopped.
"""

import os
import subprocess
import sys
from random import SystemRandom

import pytest

SEEDS = int(os.environ.get("KOHORT_SEEDS", "10000"))
MINUTES = os.environ.get("KOHORT_SIM_MINUTES", "1")

pytestmark = [pytest.mark.prove, pytest.mark.timeout(6 * 3600)]


def test_ten_thousand_seeds(tmp_path):
    """Progress is shown with `pytest -s`. With a state file the seeds begin at 1, so that a second
    run goes on where the first was stopped.
    """
    state = os.environ.get("KOHORT_SIM_STATE")
    first = 1 if state else SystemRandom().getrandbits(40)
    command = [
        *(sys.executable, "-m", "kohort.sim.main", "--minutes", MINUTES),
        *("--seeds", f"{first}-{first + SEEDS - 1}", "--state", state or str(tmp_path / "played")),
    ]
    assert subprocess.run(command, check=False).returncode == 0
