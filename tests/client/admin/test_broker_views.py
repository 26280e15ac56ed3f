# SPDX-License-Identifier: Apache-2.0
"""The words that callers choose from are those that are sent."""

from typing import get_args

from kohort import FeatureUpdate
from kohort.client.admin.broker_views import ElectionType, UpgradeType
from kohort.client.admin.elections import ELECTION_TYPES
from kohort.client.admin.features import UPGRADE_TYPES


def test_words_have_upstreams_numbers():
    assert dict.fromkeys(get_args(ElectionType)) == dict.fromkeys(ELECTION_TYPES)
    assert ELECTION_TYPES == {"preferred": 0, "unclean": 1}
    assert dict.fromkeys(get_args(UpgradeType)) == dict.fromkeys(UPGRADE_TYPES)
    assert UPGRADE_TYPES == {"upgrade": 1, "safe_downgrade": 2, "unsafe_downgrade": 3}
    assert FeatureUpdate(1).upgrade_type == "upgrade"
