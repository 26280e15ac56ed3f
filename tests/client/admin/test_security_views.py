# SPDX-License-Identifier: Apache-2.0
"""Credentials as values."""

from kohort import ScramUpsertion


def test_a_password_is_not_shown():
    change = ScramUpsertion("alice", "hunter2", salt=b"hunter2")
    assert "hunter2" not in repr(change)
    assert "alice" in repr(change)
