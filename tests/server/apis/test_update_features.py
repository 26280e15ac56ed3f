# SPDX-License-Identifier: Apache-2.0
"""UpdateFeatures: levels follow from settings."""

import pytest
from tests.server.desk import Desk

from kohort.errors import ErrorCode
from kohort.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

FEATURE = "group.version"


def update(desk, name, level, *, version=2, kind=1, falls=False):
    change = FeatureUpdateKey(
        feature=name, max_version_level=level, upgrade_type=kind, allow_downgrade=falls
    )
    answer = desk.ask(UpdateFeaturesRequest(feature_updates=[change]), version)
    assert [one.feature for one in answer.results] == (
        [name] if version < 2 and not answer.error_code else []
    )
    return answer.error_code


@pytest.mark.parametrize("version", [0, 1, 2])
def test_the_level_that_is_there_may_be_asked_for(version):
    """K848-029."""
    on = Desk(node_id="1")
    off = Desk(node_id="1", group_coordinator_rebalance_protocols="classic")
    assert update(on, FEATURE, 1, version=version) == 0
    assert update(off, FEATURE, 0, version=version) == 0
    assert update(off, FEATURE, 1, version=version) == ErrorCode.FEATURE_UPDATE_FAILED
    assert update(on, FEATURE, 0, version=version) == ErrorCode.INVALID_UPDATE_VERSION
    assert update(on, FEATURE, 0, version=version, kind=2, falls=True) == (
        ErrorCode.FEATURE_UPDATE_FAILED
    )


@pytest.mark.parametrize(("name", "level"), [(FEATURE, 2), (FEATURE, -1), ("share.version", 1)])
def test_what_is_not_there_is_refused(name, level):
    assert update(Desk(node_id="1"), name, level) == ErrorCode.INVALID_UPDATE_VERSION
