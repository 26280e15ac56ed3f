# SPDX-License-Identifier: Apache-2.0
"""The settings of an admin client: those of its dict, and its arguments above them."""

import pytest
from tests.client.scripted import ScriptedCluster, asynchronous

from kohort import AdminClient
from kohort.client.network.address import Address


def test_a_dict_has_upstreams_names():
    given = {
        "bootstrap.servers": "a:1,b:2",
        "client.id": "mine",
        "default.api.timeout.ms": "1500",
        "security.protocol": "plaintext",
    }
    admin = AdminClient(given)
    assert admin._addresses == [Address("a", 1), Address("b", 2)]
    assert (admin._cluster.client_id, admin._timeout_s) == ("mine", 1.5)
    assert AdminClient({"default.api.timeout.ms": 60_000})._timeout_s == 60


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"bootstrap.server": "a:1"}, ", did you mean 'bootstrap.servers'?"),
        (
            {"sasl.mechanism": "PLAIN"},
            "sasl.mechanism is given, but security.protocol",
        ),
        ({"acks": 1}, "unknown setting 'acks'"),
        ({"security.protocol": "SASL_TLS"}, "is 'SASL_TLS', expected one of PLAINTEXT"),
        ({"client.id": None}, "client.id is None, expected a text"),
        ({"default.api.timeout.ms": 0}, "default.api.timeout.ms is 0, expected a whole number"),
        ({"default.api.timeout.ms": 1.5}, "default.api.timeout.ms is 1.5, expected a whole"),
        ({"default.api.timeout.ms": "soon"}, "default.api.timeout.ms is 'soon', expected"),
    ],
)
def test_what_is_refused(given, words):
    with pytest.raises(ValueError, match=r"expected|unknown") as caught:
        AdminClient(given)
    assert words in str(caught.value)


@asynchronous
async def test_an_admin_client_of_a_dict():
    async with ScriptedCluster() as scripted:
        given = {"bootstrap.servers": scripted.bootstrap, "client.id": "theirs"}
        async with AdminClient(given) as admin:
            (node,) = await admin.describe_cluster()
            assert node.port == scripted.nodes[0].port
            assert admin._cluster.client_id == "theirs"
            assert admin._timeout_s == 30


def test_an_argument_stands_above_the_dict():
    given = {"bootstrap.servers": ["a:1"], "client.id": "theirs", "default.api.timeout.ms": 5}
    admin = AdminClient(given, client_id="mine", timeout=7)
    assert (admin._cluster.client_id, admin._timeout_s) == ("mine", 7)


def test_a_dict_without_servers_means_the_usual_one():
    admin = AdminClient({"client.id": "mine"})
    assert admin._cluster._bootstrap == (Address("127.0.0.1", 9092),)


@pytest.mark.parametrize(
    "timeout", [float("nan"), float("inf"), -1, 0, 10**400, True, "1"], ids=lambda it: repr(it)[:9]
)
def test_a_timeout_that_is_none_is_refused(timeout):
    with pytest.raises((TypeError, ValueError), match=r"timeout is .*, expected .* seconds"):
        AdminClient(timeout=timeout)
