# SPDX-License-Identifier: Apache-2.0
"""A refusal says since when there is what a broker does not offer."""

import ast
import inspect
import re

import pytest

from kohort.client.admin import (
    acls,
    cluster_description,
    configs,
    elections,
    features,
    groups,
    listings,
    log_dirs,
    offset_changes,
    records,
    scram_credentials,
    topics,
    transactions,
)
from kohort.client.network.api_releases import SINCE
from kohort.wire.apis import APIS

ALWAYS = {"ApiVersions", "ListOffsets", "Metadata", "OffsetCommit"}  # a broker has these
MODULES = (
    *(acls, cluster_description, configs, elections, features, groups, listings, log_dirs),
    *(offset_changes, records, scram_credentials, topics, transactions),
)


@pytest.mark.parametrize("module", MODULES)
def test_each_request_of_the_admin_client_has_a_release(module):
    names = {
        node.id
        for node in ast.walk(ast.parse(inspect.getsource(module)))
        if isinstance(node, ast.Name)
    }
    names |= {
        node.attr
        for node in ast.walk(ast.parse(inspect.getsource(module)))
        if isinstance(node, ast.Attribute)
    }
    asked = {api.name for api in APIS.values() if api.request.__name__ in names}
    assert asked
    assert {api.name for key, api in APIS.items() if key in SINCE} >= asked - ALWAYS


@pytest.mark.parametrize("key", SINCE)
def test_a_release_is_that_of_an_api(key):
    assert key in APIS
    assert re.fullmatch(r"(KIP-\d+, )?Apache Kafka \d\.\d+(\.\d)?", SINCE[key])
