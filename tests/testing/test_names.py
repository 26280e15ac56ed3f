# SPDX-License-Identifier: Apache-2.0
"""Names for what a test needs."""

import re

import pytest

from kohort.testing.names import LONGEST, fresh_name


@pytest.mark.parametrize("test", ["test_it[a/b: ü]", "", "...", "x" * 500, "test_plain"])
def test_a_name_is_legal_and_nobody_elses(test):
    names = [fresh_name(test) for _ in range(3)]
    assert len(set(names)) == 3
    for name in names:
        assert re.fullmatch(r"[a-zA-Z0-9._-]+", name)
        assert len(name) <= LONGEST + 10


def test_a_name_says_what_test_it_is_of():
    assert re.fullmatch(r"test_it-a-b-\d+", fresh_name("test_it[a/b]"))
