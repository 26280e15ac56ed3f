# SPDX-License-Identifier: Apache-2.0
"""The property tests of the suite, from fresh seeds and with more examples than in `make test`.

A counterexample fails this test, and its output shows it: keep it as an `@example`.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SECONDS = int(os.environ.get("KOHORT_PROPERTY_SECONDS", "600"))
ROUND_SECONDS = 2400
"""A round of all property tests takes three minutes on two cores that nobody else uses."""


@pytest.mark.prove
@pytest.mark.timeout(SECONDS + ROUND_SECONDS + 60)
def test_fresh_seeds_find_no_counterexample():
    """Rounds with new seeds each, until the time is over; one that has begun is ended."""
    command = [sys.executable, "-m", "pytest", "-q", "-m", "hypothesis and not prove", "tests"]
    command += ["--hypothesis-profile=fresh", "--timeout=900", "-p", "no:cacheprovider", "-n", "2"]
    end = time.monotonic() + SECONDS
    while True:
        done = subprocess.run(
            command,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=ROUND_SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        if time.monotonic() > end:
            return
