"""The parts of rules, by number."""

import pytest

from kohort import AclOperation, AclPermission, PatternType, ResourceType


@pytest.mark.parametrize("kind", [AclOperation, AclPermission, PatternType, ResourceType])
def test_a_number_that_is_newer_is_unknown(kind: type[AclOperation]) -> None:
    assert kind(99) is kind.UNKNOWN
    assert kind(1) is kind.ANY
