# SPDX-License-Identifier: Apache-2.0
"""UpdateFeatures (57): change the finalized levels of features (KIP-584).

v1 names the kind of change, and can only try.
v2 has one error for all updates.
"""

from kohort.errors import ApiError
from kohort.wire.schema import Bool, Int8, Int16, Int32, String, at, request, response, struct


@struct
class FeatureUpdateKey:
    feature: String
    max_version_level: Int16
    allow_downgrade: Bool = at("0", default=False)
    upgrade_type: Int8 = at("1+", default=1)


@request(57, versions="0-2", flexible="0+")
class UpdateFeaturesRequest:
    timeout_ms: Int32 = 60_000
    feature_updates: list[FeatureUpdateKey]
    validate_only: Bool = at("1+", default=False)

    def refused(self, error: ApiError) -> "UpdateFeaturesResponse":
        return UpdateFeaturesResponse(error_code=error.code, error_message=error.message)


@struct
class UpdatableFeatureResult:
    feature: String = ""
    error_code: Int16 = 0
    error_message: String | None = ""


@response(57, versions="0-2", flexible="0+")
class UpdateFeaturesResponse:
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = ""
    results: list[UpdatableFeatureResult] = at("0-1", default=[])
