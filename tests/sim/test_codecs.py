# SPDX-License-Identifier: Apache-2.0
"""A world is the same with both codecs."""

import os
import re
import subprocess
import sys

import pytest
from tests.each_codec import native_codec


@pytest.mark.parametrize("seed", [1, 34], ids=["plain", "with users"])
def test_the_digests_are_equal(seed):
    native_codec()  # or this is skipped
    digests = []
    for codec in ("python", "native"):
        done = subprocess.run(
            [sys.executable, "-m", "kohort.sim", "--seed", str(seed), "--minutes", "0.5"],
            env={**os.environ, "KOHORT_CODEC": codec},
            capture_output=True,
            text=True,
            check=True,
        )
        digests += re.findall(r"digest (\w+)", done.stdout)
    assert len(digests) == 2
    assert len(set(digests)) == 1
