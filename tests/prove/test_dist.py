# SPDX-License-Identifier: Apache-2.0
"""`make dist` builds what a package index gets, and tries each wheel alone."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = [pytest.mark.prove, pytest.mark.timeout(3600)]


def test_everything_that_is_uploaded_is_built_checked_and_tried():
    if shutil.which("make") is None:
        pytest.skip("make is not on this machine")
    done = subprocess.run(["make", "dist"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    made = sorted(path.name for path in (ROOT / "dist").iterdir())
    wheels = [name for name in made if name.endswith(".whl")]
    assert [name for name in wheels if name.endswith("-py3-none-any.whl")]
    assert len(wheels) >= 2
    assert done.stdout.count("a record went through a group") == len(wheels)
    others = [name for name in made if name not in wheels]
    assert [name.rpartition(".")[2] for name in others] == ["json", "gz"]
