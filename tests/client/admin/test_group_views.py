# SPDX-License-Identifier: Apache-2.0
"""What the admin client returns about a group."""

import pytest

from kohort.client.admin import GroupDescription
from kohort.terms import GroupState, GroupType


@pytest.mark.parametrize(
    ("protocol_type", "shows_partitions"), [("consumer", True), ("connect", False), ("", False)]
)
def test_only_members_with_payloads_of_consumers_show_partitions(protocol_type, shows_partitions):
    group = GroupDescription(
        *("g", GroupType.CLASSIC, GroupState.STABLE, protocol_type, "range"),
        *(0, "localhost", 9092, None, None, ()),
    )
    assert group.is_consumer is shows_partitions
