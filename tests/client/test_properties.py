"""Upstream's names for settings: those that are known, and what is said of all others."""

import pytest
from tests.client.scripted import Scripted, asynchronous

from kohort import AdminClient
from kohort.client.address import Address
from kohort.client.properties import Properties, read_properties


def test_what_is_known():
    given = {
        "bootstrap.servers": "a:1,b:2",
        "client.id": "mine",
        "default.api.timeout.ms": 1500,
        "security.protocol": "plaintext",
    }
    assert read_properties(given) == Properties("a:1,b:2", "mine", 1.5)
    assert read_properties({}) == Properties(None, None, None)
    assert read_properties({"default.api.timeout.ms": "60000"}).timeout_s == 60


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            {"bootstrap.server": "a:1"},
            "unknown setting 'bootstrap.server', expected one of bootstrap.s",
        ),
        ({"bootstrap.server": "a:1"}, ", did you mean 'bootstrap.servers'?"),
        ({"sasl.mechanism": "PLAIN"}, ": Kohort speaks no TLS and no SASL yet"),
        ({"sasl.mechanism": "PLAIN", "acks": 1}, "unknown settings 'sasl.mechanism', 'acks', exp"),
        ({"security.protocol": "SASL_SSL"}, "is 'SASL_SSL', expected PLAINTEXT: Kohort speaks no"),
        ({"bootstrap.servers": 9092}, "bootstrap.servers is 9092, expected host:port"),
        ({"bootstrap.servers": [("a", 1)]}, "bootstrap.servers is"),
        ({"client.id": None}, "client.id is None, expected a text"),
        ({"default.api.timeout.ms": 0}, "default.api.timeout.ms is 0, expected milliseconds"),
        ({"default.api.timeout.ms": "soon"}, "default.api.timeout.ms is 'soon', expected"),
    ],
)
def test_what_is_refused(given, words):
    with pytest.raises(ValueError, match="expected") as caught:
        AdminClient(given)
    assert words in str(caught.value)


@asynchronous
async def test_an_admin_client_of_a_dict():
    async with Scripted() as scripted:
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
