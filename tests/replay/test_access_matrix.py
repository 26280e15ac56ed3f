# SPDX-License-Identifier: Apache-2.0
"""167 requests under 68 sets of rules: what Apache Kafka 4.3.1 has answered to each, and we do."""

import pytest
from tests.golden import access
from tests.replay.access_world import AccessWorld, comparable
from tests.wire.test_golden_frames import lowered

from kohort.wire.apis import APIS

NOT_SERVED = {
    "describe-quorum-v2": "there is no quorum of controllers",
    "share-group-describe-v1": "share groups are not there yet",
    "streams-group-describe-v0": "streams groups are not there yet",
    "unregister-broker-v0": "there is no controller to register with",
}
_NO_SUCH_RESOURCE = "loggers and client metrics have no settings here: 42 instead"
DIFFERENT = {
    "api-versions-v4": "the APIs and features are those of this broker",
    "find-coordinator-v6-unknown-type": "our text says which types there are",
    "incremental-alter-configs-v1": _NO_SUCH_RESOURCE,
    "describe-configs-v4": _NO_SUCH_RESOURCE,
    "alter-configs-v2": "there are no eligible leader replicas, which upstream protects",
    "alter-client-quotas-v1": "there are no quotas: 44 instead",
}
"""Answers that differ from upstream's where they are not refused, and why."""

PROFILES = {profile["name"]: profile for profile in access("profiles")}
LINES = [line for line in access("matrix") if line["label"] not in NOT_SERVED]
EXPECTED = {
    (line["label"], profile): comparable(lowered(answer["response"]))
    for line in LINES
    for answer in line["answers"]
    for profile in answer["profiles"]
}


@pytest.fixture(scope="module")
def world():
    return AccessWorld()


@pytest.mark.parametrize("name", PROFILES)
def test_every_request_is_answered_as_upstream_answers_it(world, name):
    """K848-166, SEC-61 to SEC-65: each right that an API asks for."""
    profile = PROFILES[name]
    world.set_rules(profile["rules"])
    world.become(profile["principal"])

    wrong = {
        line["label"]: (answer, EXPECTED[line["label"], name])
        for line in LINES
        if (line["label"], name) in EXPECTED and line["label"] not in DIFFERENT
        if (answer := comparable(world.ask(line))) != EXPECTED[line["label"], name]
    }

    assert wrong == {}


@pytest.mark.parametrize("label", DIFFERENT)
def test_what_is_listed_as_different_is(world, label):
    (line,) = (line for line in LINES if line["label"] == label)
    world.set_rules(PROFILES["all"]["rules"])
    world.become(PROFILES["all"]["principal"])

    assert comparable(world.ask(line)) not in {EXPECTED.get((label, name)) for name in PROFILES}


def test_what_is_not_served_is_not():
    offered = {api.name: api.request.versions for api in APIS.values()}
    for line in access("matrix"):
        served = line["version"] in offered.get(line["api"], ())
        assert served == (line["label"] not in NOT_SERVED), line["label"]
