# SPDX-License-Identifier: Apache-2.0
"""ApiVersions: which APIs are served, and in which versions."""

import re

from kohort.errors import ApiError, ErrorCode
from kohort.machines.effects import Call
from kohort.server.node import Node
from kohort.terms import Millis
from kohort.wire.apis import APIS
from kohort.wire.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from kohort.wire.messages.end_txn import EndTxnRequest
from kohort.wire.messages.produce import ProduceRequest
from kohort.wire.messages.txn_offset_commit import TxnOffsetCommitRequest

# What producers send once a broker says that it has transactions of the second version (KIP-890).
_TRANSACTIONS_2 = {
    ProduceRequest.api_key: 12,  # type: ignore[attr-defined]
    EndTxnRequest.api_key: 5,  # type: ignore[attr-defined]
    TxnOffsetCommitRequest.api_key: 5,  # type: ignore[attr-defined]
}
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?")


GROUP_VERSION = "group.version"


def group_version(node: Node) -> int:
    """The level of the feature: 1 when the protocol of KIP-848 is switched on."""
    return int("consumer" in node.cluster.config.group_coordinator_rebalance_protocols)


def api_versions(node: Node, call: Call[ApiVersionsRequest], _now: Millis) -> ApiVersionsResponse:
    """Tell what is served. A client that names its software must use the characters of KIP-511."""
    request = call.request
    if call.version >= 3 and not (
        _SOFTWARE.fullmatch(request.client_software_name)
        and _SOFTWARE.fullmatch(request.client_software_version)
    ):
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"client software {request.client_software_name!r} "
            f"{request.client_software_version!r}, expected letters, digits, dots and hyphens",
        )
    keys = [
        ApiVersion(
            api_key=key,
            # librdkafka 2.0 takes a missing Produce 0-2 for missing compression, so upstream lists
            # what it does not serve, and so do we.
            min_version=0 if APIS[key].request is ProduceRequest else versions.first,
            max_version=versions.last,
        )
        for key, versions in sorted(node.served.items())
    ]
    supported = []
    if call.version >= 4:  # only v4 can say that a feature starts at 0
        supported.append(SupportedFeatureKey(name=GROUP_VERSION, min_version=0, max_version=1))
        supported.append(
            SupportedFeatureKey(name="transaction.version", min_version=0, max_version=2)
        )
    finalized = []
    if all(
        key in node.served and node.served[key].last >= version
        for key, version in _TRANSACTIONS_2.items()
    ):
        finalized.append(
            FinalizedFeatureKey(
                name="transaction.version", max_version_level=2, min_version_level=2
            )
        )
    level = group_version(node)
    if level:
        finalized.append(
            FinalizedFeatureKey(
                name=GROUP_VERSION, max_version_level=level, min_version_level=level
            )
        )
    return ApiVersionsResponse(
        error_code=0,
        api_keys=keys,
        supported_features=supported,
        finalized_features_epoch=0,
        finalized_features=finalized,
    )
