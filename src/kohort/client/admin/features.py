# SPDX-License-Identifier: Apache-2.0
"""Features: the levels that a cluster has agreed on, and those that its brokers support (KIP-584).

What is changed is all changed, or nothing.
"""

from collections.abc import Mapping, Sequence

from kohort.client.admin.broker_views import (
    FeatureLevels,
    FeatureMetadata,
    FeatureUpdate,
    UpgradeType,
)
from kohort.client.admin.request_rounds import settle
from kohort.client.admin.single_requests import broker_by_id, settle_one
from kohort.client.admin.topics import controller, left_ms
from kohort.client.admin.views import Outcomes
from kohort.client.network.cluster import Cluster, Node
from kohort.client.network.connection import SOFTWARE_NAME, Need
from kohort.client.network.denials import explained
from kohort.errors import ApiError, api_error
from kohort.version import VERSION
from kohort.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kohort.wire.messages.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

UPGRADE_TYPES: dict[UpgradeType, int] = {"upgrade": 1, "safe_downgrade": 2, "unsafe_downgrade": 3}
FEATURES = Need(3, "features", "KIP-584, Apache Kafka 2.7")
DRY_RUN = Need(1, "validate_only", "KIP-778, Apache Kafka 3.3")
DOWNGRADES = Need(1, "a kind of downgrade", "KIP-778, Apache Kafka 3.3")
ONE_ERROR = 2  # UpdateFeatures names no features in its answer from this version on


async def describe_features(
    cluster: Cluster, broker_id: int | None, *, deadline: float
) -> FeatureMetadata:
    """See `AdminClient.describe_features`."""

    async def ask(node: Node, deadline: float) -> FeatureMetadata:
        request = ApiVersionsRequest(
            client_software_name=SOFTWARE_NAME, client_software_version=VERSION
        )
        answer: ApiVersionsResponse = await cluster.ask(
            node, request, deadline=deadline, need=FEATURES
        )
        if answer.error_code:
            raise api_error(answer.error_code)
        return FeatureMetadata(
            {
                feature.name: FeatureLevels(feature.min_version_level, feature.max_version_level)
                for feature in sorted(answer.finalized_features, key=lambda feature: feature.name)
            },
            answer.finalized_features_epoch if answer.finalized_features_epoch >= 0 else None,
            {
                feature.name: FeatureLevels(feature.min_version, feature.max_version)
                for feature in sorted(answer.supported_features, key=lambda feature: feature.name)
            },
        )

    locate = broker_by_id(cluster, lambda _: broker_id)
    return await settle_one(cluster, "", locate, ask, deadline=deadline)


async def update_features(
    cluster: Cluster,
    updates: Mapping[str, FeatureUpdate],
    *,
    validate_only: bool,
    deadline: float,
) -> Outcomes[str, None]:
    """See `AdminClient.update_features`."""
    falls = any(update.upgrade_type != "upgrade" for update in updates.values())
    need = DRY_RUN if validate_only else DOWNGRADES if falls else None

    async def ask(node: Node, names: Sequence[str], deadline: float) -> dict[str, ApiError | None]:
        request = UpdateFeaturesRequest(
            timeout_ms=left_ms(deadline),
            feature_updates=[_update(name, updates[name]) for name in names],
            validate_only=validate_only,
        )
        connection = await cluster.connection(node.address, deadline)
        answer: UpdateFeaturesResponse = await connection.ask(request, deadline=deadline, need=need)
        if answer.error_code:
            error = api_error(answer.error_code, answer.error_message)
            return dict.fromkeys(names, explained(error, cluster.principal, "", "Alter"))
        if connection.version(UpdateFeaturesRequest) >= ONE_ERROR:
            return dict.fromkeys(names, None)
        return {
            result.feature: api_error(result.error_code, result.error_message)
            if result.error_code
            else None
            for result in answer.results
        }

    return Outcomes(
        await settle(
            cluster, updates, controller(cluster), ask, deadline=deadline, repeatable=False
        )
    )


def _update(name: str, update: FeatureUpdate) -> FeatureUpdateKey:
    return FeatureUpdateKey(
        feature=name,
        max_version_level=update.level,
        upgrade_type=UPGRADE_TYPES[update.upgrade_type],
    )
