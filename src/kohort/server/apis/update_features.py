# SPDX-License-Identifier: Apache-2.0
"""UpdateFeatures: the levels of features follow from settings, so none can be changed (KIP-584)."""

from kohort.errors import ApiError, ErrorCode
from kohort.machines.effects import Call
from kohort.server.access import ALTER, CLUSTER, CLUSTER_NAME, check
from kohort.server.apis.api_versions import GROUP_VERSION, group_version
from kohort.server.node import Node
from kohort.terms import Millis
from kohort.wire.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

_DOWNGRADES = (2, 3)  # kinds of change: a safe and an unsafe one; 1 is an upgrade


def update_features(
    node: Node, call: Call[UpdateFeaturesRequest], _now: Millis
) -> UpdateFeaturesResponse:
    """All updates or none. One to the level that a feature has succeeds. Raises ApiError."""
    request = call.request
    check(node.cluster.may, call.client, ALTER, CLUSTER, CLUSTER_NAME)
    for update in request.feature_updates:
        _check(node, update, call.version)
    results = [
        UpdatableFeatureResult(feature=update.feature, error_message="NONE")
        for update in request.feature_updates
    ]
    return UpdateFeaturesResponse(error_message=None, results=results if call.version < 2 else [])


def _check(node: Node, update: FeatureUpdateKey, version: int) -> None:
    name, level = update.feature, update.max_version_level
    said = f"Invalid update version {level} for feature {name}."
    if name != GROUP_VERSION:
        raise ApiError(
            ErrorCode.INVALID_UPDATE_VERSION, f"{said} This cluster does not support this feature."
        )
    if not 0 <= level <= 1:
        raise ApiError(
            ErrorCode.INVALID_UPDATE_VERSION, f"{said} This cluster supports levels 0 to 1."
        )
    now = group_version(node)
    if level == now:
        return
    may_fall = update.allow_downgrade if version == 0 else update.upgrade_type in _DOWNGRADES
    if level < now and not may_fall:
        raise ApiError(
            ErrorCode.INVALID_UPDATE_VERSION,
            f"{said} Can't downgrade the version of this feature without setting the upgrade type "
            "to either safe or unsafe downgrade.",
        )
    raise ApiError(
        ErrorCode.FEATURE_UPDATE_FAILED,
        f"{name} is {now} and cannot become {level} while the broker runs: it follows from "
        "group.coordinator.rebalance.protocols, which is read at the start",
    )
