"""Our definitions are for humans; this holds them against upstream's own, field by field."""

import pytest
from tests.golden import versions
from tests.wire.layouts import expected, facts_of, layouts

from kohort.wire.apis import APIS
from kohort.wire.frames import RequestHeader, ResponseHeader
from kohort.wire.schema import Versions

MESSAGES = [cls for api in APIS.values() for cls in (api.request, api.response)] + [
    RequestHeader,
    ResponseHeader,
]


@pytest.mark.parametrize("cls", MESSAGES, ids=lambda cls: cls.__name__)
def test_a_definition_says_what_upstream_says(cls):
    """Order, types, versions, nullability, tags and defaults of every field, nested ones
    included.
    """
    table = layouts()[cls.__name__]
    within = Versions.of(table["versions"])

    assert cls.versions == within
    assert str(cls.flexible) == str(Versions.of(table["flexible"]))
    assert facts_of(cls, within) == expected(table["fields"], within)


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
def test_a_served_version_is_one_that_a_real_broker_offers(api):
    """The range served is the range of Apache Kafka 4.3.1; Produce lists 0 there but serves from
    3.
    """
    offered = next(one for one in versions()["apis"] if one["key"] == api.key)

    assert api.name == offered["name"]
    assert api.versions.last == offered["max"]
    assert api.versions.first == (3 if api.name == "Produce" else offered["min"])
