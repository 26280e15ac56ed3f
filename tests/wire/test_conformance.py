# SPDX-License-Identifier: Apache-2.0
"""Our definitions are for humans; this holds them against upstream's own, field by field."""

import pytest
from tests.golden import versions
from tests.wire.layouts import OWN_TAGS, expected, facts_of, layouts

from kohort.wire.apis import APIS
from kohort.wire.frames import RequestHeader, ResponseHeader
from kohort.wire.schema import Versions

UPSTREAM = [api for api in APIS.values() if api.key < OWN_TAGS]
MESSAGES = [cls for api in UPSTREAM for cls in (api.request, api.response)] + [
    RequestHeader,
    ResponseHeader,
]


@pytest.mark.parametrize("cls", MESSAGES, ids=lambda cls: cls.__name__)
def test_a_definition_says_what_upstream_says(cls):
    """Order, types, versions, nullability, tags and defaults of every field, nested ones included.

    Holds K40-01, K40-02, K40-08, K40-09, K40-10, K40-12, K40-27, K518-01, K518-02, K518-04,
    K518-24, K709-02, K709-04, K709-05, K709-06, K709-07, K709-08, K709-09, K229-01, K229-02,
    K229-03, K848-086, K848-136, K848-139, K848-140, K848-141, K848-151, K848-152, K848-153,
    K848-154.
    """
    table = layouts()[cls.__name__]
    within = Versions.of(table["versions"])

    assert cls.versions == within
    assert str(cls.flexible) == str(Versions.of(table["flexible"]))
    assert facts_of(cls, within) == expected(table["fields"], within)


@pytest.mark.parametrize("api", UPSTREAM, ids=lambda api: api.name)
def test_a_served_version_is_one_that_a_real_broker_offers(api):
    """The range served is the range of Apache Kafka 4.3.1; Produce lists 0 there but serves from 3.

    Holds K40-29, K709-01, K229-04, K848-104, K848-150.
    """
    offered = next(one for one in versions()["apis"] if one["key"] == api.key)

    assert api.name == offered["name"]
    assert api.versions.last == offered["max"]
    assert api.versions.first == (3 if api.name == "Produce" else offered["min"])
