# SPDX-License-Identifier: Apache-2.0
"""Sequences are always the same ones, can be sent in their versions, and reach every API."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from tests.prove.differential.modes import END, MODES, sequence
from tests.prove.differential.steps import API_BY_NAME, Memory, message, on

from kohort.wire.codec import decode, encode

SEEDS = range(25)
NOT_ASKED = {
    "ApiVersions",  # what is offered differs, and is tested where it is told
    "AddPartitionsToTxn",  # up to version 3: the newer ones are for brokers
    # APIs of administration: what they do shows in settings of one broker, and in rules.
    "DescribeLogDirs",
    "ElectLeaders",
    "AlterPartitionReassignments",
    "ListPartitionReassignments",
    "UpdateFeatures",
    "DescribeAcls",
    "CreateAcls",
    "DeleteAcls",
    "AlterReplicaLogDirs",
    "DescribeUserScramCredentials",
    "AlterUserScramCredentials",
    "DescribeClientQuotas",
    "AlterClientQuotas",
    # A plain listener refuses them: tests/server/apis/test_authentication.py has Kafka's answers.
    "SaslHandshake",
    "SaslAuthenticate",
    "CreateDelegationToken",
    "RenewDelegationToken",
    "ExpireDelegationToken",
    "DescribeDelegationToken",
    # Ours alone.
    "ConsumerGroupPrepareAssignment",
    "ConsumerGroupInstallAssignment",
}


def digest() -> str:
    return repr([sequence(mode, seed) for mode in MODES for seed in SEEDS])


@pytest.mark.parametrize("mode", MODES)
def test_every_request_can_be_sent(mode):
    """What a broker has not said yet has a value too, and every value fits its field."""
    for seed in SEEDS:
        steps = sequence(mode, seed)
        assert 10 <= len(steps) - len(END) <= 42
        for step in steps:
            if not step.is_request:
                continue
            api = API_BY_NAME[step.api]
            assert step.version in api.versions
            request = message(api.request, on(step.fields, Memory("s-")))
            decode(api.request, step.version, encode(request, step.version))


def test_every_api_is_asked_in_all_its_versions():
    asked: Counter[tuple[str, int]] = Counter()
    for mode in MODES:
        for seed in range(150):
            asked.update((one.api, one.version) for one in sequence(mode, seed) if one.is_request)
    missing = [
        f"{api.name} v{version}"
        for api in API_BY_NAME.values()
        for version in range(api.versions.first, api.versions.last + 1)
        if api.name not in NOT_ASKED and not asked[api.name, version]
    ]
    assert not missing


def test_a_seed_is_the_same_in_every_process():
    code = "from tests.prove.differential.test_modes import digest; print(hash_of(digest()))"
    code = "import hashlib;" + code.replace(
        "hash_of(digest())", "hashlib.md5(digest().encode()).hexdigest()"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(Path.cwd())},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1


def test_seeds_differ():
    assert len({repr(sequence(mode, seed)) for mode in MODES for seed in SEEDS}) == len(
        MODES
    ) * len(SEEDS)
