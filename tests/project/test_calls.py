# SPDX-License-Identifier: Apache-2.0
"""What a request costs in calls, and a start in modules, is what benchmarks/calls.json says.

A change that makes something dearer by more than 3 in 100 writes the new figure in the same commit,
and the commit says what was bought:

    KOHORT_CODEC=python .venv/bin/python benchmarks/calls.py --write
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
AGREED = json.loads((BENCHMARKS / "calls.json").read_text(encoding="utf-8"))
TOLERANCE = 0.03


def differences(counted, agreed):
    """What is dearer, what is cheaper and not written down, and what only one side knows."""
    lines = [f"{name} is counted and not agreed" for name in counted.keys() - agreed.keys()]
    lines += [f"{name} is agreed and not counted" for name in agreed.keys() - counted.keys()]
    for name in counted.keys() & agreed.keys():
        if abs(counted[name] - agreed[name]) > agreed[name] * TOLERANCE:
            lines.append(f"{name}: {counted[name]}, agreed are {agreed[name]}")
    return sorted(lines)


@pytest.mark.skipif(
    sys.version_info[:2] != (3, 11), reason="the figures are those of Python 3.11, another differs"
)
def test_a_request_costs_what_is_agreed():
    pytest.importorskip("uvloop")
    done = subprocess.run(
        [sys.executable, BENCHMARKS / "calls.py", "--json"],
        env={**os.environ, "KOHORT_CODEC": "python"},  # as they are agreed
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert differences(json.loads(done.stdout), AGREED) == []


def test_the_alarm_sees_what_is_dearer_cheaper_new_and_gone():
    agreed = {"a": 100, "b": 100, "c": 100, "gone": 1}
    counted = {"a": 103, "b": 104, "c": 96, "new": 1}
    assert differences(counted, agreed) == [
        "b: 104, agreed are 100",
        "c: 96, agreed are 100",
        "gone is agreed and not counted",
        "new is counted and not agreed",
    ]
