# SPDX-License-Identifier: Apache-2.0
"""Features of a cluster, as brokers of all ages tell and change them."""

import pytest
from tests.client.scripted import ScriptedCluster, asynchronous

from kohort import ApiError, ErrorCode, FeatureLevels, FeatureUpdate, UnsupportedVersionError
from kohort.wire.messages.api_versions import (
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from kohort.wire.messages.update_features import (
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

UP, DOWN = FeatureUpdate(2), FeatureUpdate(0, "unsafe_downgrade")


class FeatureCluster(ScriptedCluster):
    """Its features change each time that somebody asks."""

    epoch = 0

    def _api_versions(self, asked):
        self.epoch += 1
        answer = super()._api_versions(asked)
        answer.finalized_features_epoch = self.epoch
        answer.finalized_features = [
            FinalizedFeatureKey(name="b", min_version_level=1, max_version_level=2),
            FinalizedFeatureKey(name="a", min_version_level=0, max_version_level=asked.node),
        ]
        answer.supported_features = [SupportedFeatureKey(name="a", min_version=0, max_version=9)]
        return answer


@asynchronous
async def test_features_are_those_of_now_and_of_the_broker_that_is_named():
    async with FeatureCluster(2) as scripted, scripted.admin() as admin:
        first = await admin.describe_features(broker_id=1)
        second = await admin.describe_features(broker_id=1)
        with pytest.raises(ApiError, match="broker 7 is not in the cluster"):
            await admin.describe_features(broker_id=7)
        assert (await admin.describe_features()).supported == first.supported
    assert list(first.finalized) == ["a", "b"]
    assert first.finalized == {"a": FeatureLevels(0, 1), "b": FeatureLevels(1, 2)}
    assert first.supported == {"a": FeatureLevels(0, 9)}
    assert second.finalized_epoch == first.finalized_epoch + 1  # asked again, not remembered


@asynchronous
async def test_a_broker_without_features_says_so():
    async with ScriptedCluster(1) as scripted, scripted.admin() as admin:
        described = await admin.describe_features()
        assert (described.finalized, described.finalized_epoch) == ({}, None)
        scripted.offer("ApiVersions", "0-2")
        await scripted.stop_connections()
        with pytest.raises(UnsupportedVersionError, match=r"features needs v3 \(KIP-584"):
            await admin.describe_features()


@asynchronous
async def test_changes_are_sent_as_they_are_and_one_error_is_that_of_all():
    refusal = UpdateFeaturesResponse(
        error_code=ErrorCode.INVALID_UPDATE_VERSION, error_message="no such level"
    )

    def answer(asked):
        return refusal if asked.request.feature_updates[0].feature == "wrong" else fine

    fine = UpdateFeaturesResponse()
    answers = {UpdateFeaturesRequest: answer}
    async with ScriptedCluster(1, answers) as scripted, scripted.admin() as admin:
        assert (await admin.update_features({"a": UP, "b": DOWN})).all() == {"a": None, "b": None}
        await admin.update_features({"a": UP}, validate_only=True)
        refused = await admin.update_features({"wrong": UP, "a": UP})
    assert {error.message for error in refused.failed.values()} == {"no such level"}
    assert list(refused.failed) == ["wrong", "a"]
    first, second, _ = (asked.request for asked in scripted.sent("UpdateFeatures"))
    assert [
        (each.feature, each.max_version_level, each.upgrade_type) for each in first.feature_updates
    ] == [("a", 2, 1), ("b", 0, 3)]
    assert (first.validate_only, second.validate_only) == (False, True)


@asynchronous
async def test_older_brokers_answer_for_each_and_are_not_asked_to_try():
    results = [
        UpdatableFeatureResult(feature="a"),
        UpdatableFeatureResult(feature="b", error_code=ErrorCode.FEATURE_UPDATE_FAILED),
    ]
    answers = {UpdateFeaturesRequest: lambda _: UpdateFeaturesResponse(results=results)}
    async with ScriptedCluster(1, answers) as scripted, scripted.admin() as admin:
        scripted.offer("UpdateFeatures", "0")
        outcomes = await admin.update_features({"a": UP, "b": UP})
        assert outcomes.succeeded == {"a": None}
        assert outcomes.failed["b"].code is ErrorCode.FEATURE_UPDATE_FAILED
        for updates, tried in (({"a": UP}, True), ({"a": DOWN}, False)):
            refused = await admin.update_features(updates, validate_only=tried)
            assert "needs v1 (KIP-778, Apache Kafka 3.3)" in refused.failed["a"].message
    assert len(scripted.sent("UpdateFeatures")) == 1
