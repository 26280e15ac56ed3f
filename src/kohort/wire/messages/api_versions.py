# SPDX-License-Identifier: Apache-2.0
"""ApiVersions (18): a broker's APIs, versions and features (KIP-35, KIP-511, KIP-584).

v1 adds the throttle time.
v2 answers before throttling.
v3 is flexible: the client names its software, the broker its features. The response header stays
at version 0.
v4 lets a feature start at version 0.
"""

from kohort.errors import ApiError
from kohort.wire.schema import Bool, Int16, Int32, Int64, String, at, request, response, struct


@request(18, versions="0-4", flexible="3+")
class ApiVersionsRequest:
    client_software_name: String = at("3+", default="")
    client_software_version: String = at("3+", default="")

    def refused(self, error: ApiError) -> "ApiVersionsResponse":
        return ApiVersionsResponse(error_code=error.code)


@struct
class ApiVersion:
    api_key: Int16 = 0
    min_version: Int16 = 0
    max_version: Int16 = 0


@struct
class SupportedFeatureKey:
    name: String = at("3+", default="")
    min_version: Int16 = at("3+", default=0)
    max_version: Int16 = at("3+", default=0)


@struct
class FinalizedFeatureKey:
    name: String = at("3+", default="")
    max_version_level: Int16 = at("3+", default=0)
    min_version_level: Int16 = at("3+", default=0)


@response(18, versions="0-4", flexible="3+")
class ApiVersionsResponse:
    error_code: Int16 = 0
    api_keys: list[ApiVersion] = []
    throttle_time_ms: Int32 = at("1+", default=0)
    supported_features: list[SupportedFeatureKey] = at("3+", tag=0, default=[])
    finalized_features_epoch: Int64 = at("3+", tag=1, default=-1)
    finalized_features: list[FinalizedFeatureKey] = at("3+", tag=2, default=[])
    zk_migration_ready: Bool = at("3+", tag=3, default=False)
