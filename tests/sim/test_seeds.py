"""Fixed seeds: the same ones each time, so that a change of the broker is judged by all of them."""

import os
import subprocess
import sys

import pytest

from kohort.sim.run import simulate


@pytest.mark.parametrize("first", range(1, 31, 10))
def test_nothing_is_found(first):
    for seed in range(first, first + 10):
        outcome = simulate(seed, 3.0)
        assert not outcome.broken, outcome.line()


@pytest.mark.parametrize("seed", [5, 8])
def test_a_seed_is_the_same_run_each_time(seed):
    """Also where sets of texts have another order."""
    lines = {
        subprocess.run(
            [sys.executable, "-m", "kohort.sim.main", "--seed", str(seed), "--minutes", "3"],
            env={**os.environ, "PYTHONHASHSEED": number},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for number in ("1", "2")
    }
    assert len(lines) == 1, lines
