"""Rules and credentials as values."""

import pytest

from kohort import AclOperation, AclPermission, PatternType, ResourceType, ScramUpsertion


@pytest.mark.parametrize("kind", [AclOperation, AclPermission, PatternType, ResourceType])
def test_a_number_that_is_newer_is_unknown(kind):
    assert kind(99) is kind.UNKNOWN
    assert kind(1) is kind.ANY


def test_a_password_is_not_shown():
    change = ScramUpsertion("alice", "hunter2", salt=b"hunter2")
    assert "hunter2" not in repr(change)
    assert "alice" in repr(change)
