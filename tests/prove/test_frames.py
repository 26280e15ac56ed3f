# SPDX-License-Identifier: Apache-2.0
"""Millions of spoiled frames, while groups that none of them names are served on.

`KOHORT_FRAMES` is the number of frames, and `KOHORT_FRAMES_STATE` a file that says how far an
earlier run has come.
"""

import os
from pathlib import Path

import pytest
from tests.prove.fuzzing.campaign import Progress, play, run

FRAMES = int(os.environ.get("KOHORT_FRAMES", "10000000"))
STATE = os.environ.get("KOHORT_FRAMES_STATE")


@pytest.mark.parametrize("number", [0, 4])
def test_a_round(number):
    assert play(1, number, 3000).groups_compared > 0


def test_a_run_goes_on_where_it_was(tmp_path):
    state = tmp_path / "state.json"
    first = Progress(state)
    assert [first.take(), first.take(), first.take()] == [0, 1, 2]
    first.done(play(first.seed, 0, 100))
    first.done(play(first.seed, 2, 100))
    second = Progress(state)
    assert (second.seed, second.frames) == (first.seed, first.frames)
    assert [second.take(), second.take()] == [1, 3]


@pytest.mark.prove
@pytest.mark.timeout(4 * 3600)
def test_millions_of_frames():
    run(FRAMES, Path(STATE) if STATE else None)
