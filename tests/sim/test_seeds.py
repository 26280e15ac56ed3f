# SPDX-License-Identifier: Apache-2.0
"""Fixed seeds, the same ones each time: a change of the broker is judged by all of them.

K848-184.
"""

import os
import subprocess
import sys

import pytest

from kohort.server.descriptors import share_out
from kohort.sim.draw import SECURE
from kohort.sim.run import simulate

MINUTES = 0.5  # the calm after them is most of what a seed costs
SEEDS = 10  # `make prove` plays ten thousand
WITH_RULES = (34, 62, 102)  # of the runs that have users who log in
COMMAND = [sys.executable, "-m", "kohort.sim.main"]
FOUND = {  # seeds that have found something once, with their minutes
    17: 1.0,
    163: 1.0,
    37: 5.0,
    74: 3.0,
    92: 4.0,
    208: 1.0,
    211: 0.375,
    240: 1.0,
    245: 3.0,
    316: 1.0,
    405: 1.0,
    476: 1.0,
    550: 1.0,
    573: 1.0,
    880: 1.0,
    1016: 0.5,
    3001: 1.0,
    3305: 1.0,
    3386: 1.5,
    3537: 1.0,
    3792: 1.0,
    3855: 1.0,
    3559: 3.0,
    3890: 3.0,
    5042: 1.0,
    5178: 1.0,
    5539: 1.0,
    8389: 1.0,
}
QUICK_FINDS = (17, 211, 316, 550, 1016, 3001, 5042, 8389)
"""Those of `FOUND` that `make test` plays: the others are like them, and take longer."""


@pytest.mark.parametrize("first", range(1, SEEDS + 1, 5))
def test_nothing_is_found(first):
    for seed in range(first, first + 5):
        outcome = simulate(seed, MINUTES)
        assert not outcome.broken, outcome.line()


@pytest.mark.parametrize("seed", WITH_RULES)
def test_nothing_is_found_where_rules_change(seed):
    outcome = simulate(seed, MINUTES)
    assert not outcome.broken, outcome.line()


@pytest.mark.parametrize(
    "seed",
    [pytest.param(seed, marks=() if seed in QUICK_FINDS else pytest.mark.prove) for seed in FOUND],
)
def test_what_was_found_once(seed):
    """Without the clients that came later: with them it would be another run."""
    outcome = simulate(seed, FOUND[seed], without=SECURE)
    assert not outcome.broken, outcome.line()


@pytest.mark.parametrize("seed", range(101, 105))
def test_a_seed_is_the_same_run_each_time(seed):
    """Also where sets of texts have another order."""
    command = [*COMMAND, "--seed", str(seed), "--minutes", "0.5"]
    processes = [
        subprocess.Popen(
            command,
            env={**os.environ, "PYTHONHASHSEED": number},
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in ("1", "2")
    ]
    lines = {process.communicate()[0] for process in processes}
    assert len(lines) == 1, lines
    assert f"seed {seed}: ok" in lines.pop()


def test_a_find_is_the_same_text_each_time():
    """An alarm names one of many things: which one must not hang on the order in a set."""
    found = {
        subprocess.run(
            [*COMMAND, "--seed", "1", "--minutes", "2", "--plant", "forget timer"],
            env={**os.environ, "PYTHONHASHSEED": number},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for number in ("1", "2")
    }
    assert len(found) == 1, found
    assert "convergence: " in found.pop()


def test_logs_that_take_their_open_files_from_each_other_lose_nothing(monkeypatch):
    """With room for two: a file is synced and closed for nearly each that is opened."""

    def few(*arguments, **options):
        return share_out(*arguments, **options)._replace(log_files=2)

    monkeypatch.setattr("kohort.server.cluster.share_out", few)
    for seed in (1, 2, 3):
        outcome = simulate(seed, 0.5)
        assert not outcome.broken, outcome.line()
        assert simulate(seed, 0.5).digest == outcome.digest
