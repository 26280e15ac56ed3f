# SPDX-License-Identifier: Apache-2.0
"""The parts of rules, by number."""

import pytest

from kohort import AclOperation, AclPermission, PatternType, ResourceType
from kohort.security.acls import operations_in


@pytest.mark.parametrize("kind", [AclOperation, AclPermission, PatternType, ResourceType])
def test_a_number_that_is_newer_is_unknown(kind: type[AclOperation]) -> None:
    assert kind(99) is kind.UNKNOWN
    assert kind(1) is kind.ANY


@pytest.mark.parametrize(
    ("bits", "expected"),
    [
        (-(2**31), None),
        (0, frozenset()),
        (1 << 3 | 1 << 8, {AclOperation.READ, AclOperation.DESCRIBE}),
        (1 << 30 | 1 << 3, {AclOperation.UNKNOWN, AclOperation.READ}),
    ],
)
def test_operations_are_bits_and_newer_ones_unknown(
    bits: int, expected: frozenset[AclOperation] | None
) -> None:
    assert operations_in(bits) == expected
