# SPDX-License-Identifier: Apache-2.0
"""A broker under test with TLS and SASL: one line, and any client logs in."""

import os
import subprocess
import sys

import pytest
from confluent_kafka.admin import AdminClient
from tests.testing.secured_clients import CLIENTS, Refused

from kohort.errors import KohortError
from kohort.testing import Broker
from kohort.testing.security import OWN_LISTENER, ListenerSecurity

AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
USERS = {"alice": "alice-secret", "admin": 'quote " and \\'}
RULES = {"authorizer.class.name": AUTHORIZER, "super.users": "User:admin"}
ALL = ["SASL_SSL", "SSL", "SASL_PLAINTEXT", "PLAINTEXT"]
every_client = pytest.mark.parametrize("client", CLIENTS)


@pytest.fixture(scope="module")
def broker():
    """Nobody but admin may do anything, unless the name of a topic begins with `open-`."""
    with Broker(RULES, security="SASL_SSL", users=USERS, in_memory=True) as broker:
        from confluent_kafka.admin import (
            AclBinding,
            AclOperation,
            AclPermissionType,
            ResourcePatternType,
            ResourceType,
        )

        admin = AdminClient(broker.client_settings("librdkafka", user="admin"))
        rule = AclBinding(
            *(ResourceType.TOPIC, "open-", ResourcePatternType.PREFIXED, "User:alice", "*"),
            *(AclOperation.ALL, AclPermissionType.ALLOW),
        )
        for done in admin.create_acls([rule]).values():
            done.result(10)
        yield broker


def settings(broker, client, **login):
    return broker.client_settings(
        "librdkafka" if client == "confluent-kafka" else "python", **login
    )


@every_client
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_any_client_logs_in(broker, client, mechanism):
    topic = f"open-{client}-{mechanism}"
    broker.create_topic(topic)  # its own calls are under no rule
    CLIENTS[client](settings(broker, client, mechanism=mechanism), topic)
    assert [record.text for record in broker.read(topic)] == ["value"]


@every_client
def test_a_wrong_password(broker, client):
    broker.create_topic(topic := f"open-password-{client}")
    with pytest.raises(Refused):
        CLIENTS[client](settings(broker, client, password="wrong"), topic)
    assert broker.read(topic) == []
    assert "Failed authentication with /127.0.0.1" in broker.log()


@every_client
def test_a_wrong_authority(broker, client):
    broker.create_topic(topic := f"open-authority-{client}")
    own = settings(broker, client)
    if client == "confluent-kafka":
        own["ssl.ca.location"] = broker.tls.other_ca_file
    else:
        import ssl

        own["ssl_context"] = ssl.create_default_context(cafile=broker.tls.other_ca_file)
    with pytest.raises(Refused):
        CLIENTS[client](own, topic)
    assert broker.read(topic) == []


@every_client
def test_a_topic_that_is_denied(broker, client):
    broker.create_topic(topic := f"denied-{client}")
    with pytest.raises(Refused, match=r"(?i)authoriz"):
        CLIENTS[client](settings(broker, client), topic)
    CLIENTS[client](settings(broker, client, user="admin"), topic)
    assert len(broker.read(topic)) == 1


@pytest.mark.parametrize("process", [False, True], ids=["thread", "process"])
def test_all_listeners_of_all_nodes_come_back(process):
    """Where they were, after a restart and with each node."""
    with Broker(security=ALL, nodes=2, process=process) as broker:
        broker.create_topic("t", partitions=2)
        before = {protocol: broker.bootstrap_of(protocol) for protocol in ALL}
        assert broker.bootstrap == before["SASL_SSL"]
        assert len({one for text in before.values() for one in text.split(",")}) == 8
        for change in (broker.restart, broker.node(0).restart, broker.node(1).restart):
            change()
            assert {protocol: broker.bootstrap_of(protocol) for protocol in ALL} == before
            for protocol in ALL:
                for address in before[protocol].split(","):
                    own = broker.client_settings("librdkafka", protocol=protocol)
                    admin = AdminClient({**own, "bootstrap.servers": address})
                    shown = admin.list_topics(timeout=30).brokers.values()
                    assert {f"{one.host}:{one.port}" for one in shown} == set(
                        before[protocol].split(",")
                    )
        assert "WARNING" not in broker.log()


def test_users_are_made_once_and_again_where_nothing_is_kept(tmp_path):
    """Else a restart would undo what a test has done to them."""
    from confluent_kafka.admin import ScramMechanism, UserScramCredentialDeletion

    for options, returns in (({"data_dir": tmp_path / "data"}, False), ({"in_memory": True}, True)):
        with Broker(security="SASL_PLAINTEXT", users={"bob": "secret"}, **options) as broker:
            own = broker.client_settings("librdkafka", mechanism="SCRAM-SHA-256")
            admin = AdminClient(own)
            deletion = UserScramCredentialDeletion("bob", ScramMechanism.SCRAM_SHA_256)
            for done in admin.alter_user_scram_credentials([deletion]).values():
                done.result(10)
            broker.restart()
            if returns:
                assert AdminClient(own).list_topics(timeout=30).brokers
            else:
                with pytest.raises(Refused):
                    CLIENTS["confluent-kafka"](own, "t")


def test_certificates_of_clients(tmp_path):
    """SEC-10, SEC-11: without one a client is anonymous, unless it is required."""
    rules = {**RULES, "super.users": "User:CN=alice"}
    with Broker(rules, security="SSL", in_memory=True) as broker:
        broker.create_topic("t")
        for client in CLIENTS:
            CLIENTS[client](settings(broker, client, user="alice"), "t")
            for other in (None, "bob"):
                with pytest.raises(Refused, match=r"(?i)authoriz"):
                    CLIENTS[client](settings(broker, client, user=other), "t")
        assert len(broker.read("t")) == len(CLIENTS)
    with Broker({"ssl.client.auth": "required"}, security="SSL", in_memory=True) as broker:
        CLIENTS["Kohort"](settings(broker, "Kohort", user="alice"), "t")
        with pytest.raises(Refused):
            CLIENTS["Kohort"](settings(broker, "Kohort"), "t")


def test_a_token_goes_by_the_clock_of_the_broker():
    """Certificates go by that of the machine, wherever the broker's stands."""
    enabled = {"sasl.enabled.mechanisms": "OAUTHBEARER,PLAIN"}
    with Broker(enabled, security="SASL_SSL", clock="manual", in_memory=True) as broker:
        token = broker.client_settings("librdkafka", mechanism="OAUTHBEARER", user="carol")
        with pytest.raises(Refused):
            CLIENTS["confluent-kafka"](token, "t")  # it is issued at a time that is yet to come
        broker.clock.advance(600)
        CLIENTS["confluent-kafka"](token, "t")
        broker.clock.advance(2 * 365 * 86_400)
        with pytest.raises(Refused):
            CLIENTS["confluent-kafka"](token, "t")
        CLIENTS["confluent-kafka"](broker.client_settings("librdkafka"), "t")


def test_faults_strike_on_every_listener():
    with Broker(security=["SASL_SSL", "SSL"], in_memory=True) as broker:
        broker.create_topic("t")
        for protocol in ("SASL_SSL", "SSL"):
            with broker.faults.error("Produce", "INVALID_RECORD", times=None) as fault:
                with pytest.raises(Refused):
                    CLIENTS["Kohort"](settings(broker, "Kohort", protocol=protocol), "t")
                assert fault.hits
        with pytest.raises(KohortError, match=r"^SaslAuthenticate is no request that can fail"):
            broker.faults.close("SaslAuthenticate")
        assert list(broker.faults) == []


def test_settings_of_the_tests_own_win(tmp_path):
    with Broker(security="SASL_SSL", in_memory=True) as broker:
        identity = broker.tls.server()
        own = {
            "ssl.keystore.key": identity.key,
            "ssl.keystore.certificate.chain": identity.certificate,
            "sasl.enabled.mechanisms": "SCRAM-SHA-512",
            "listener.security.protocol.map": "OTHER:SSL",
        }
        with Broker(own, security="SASL_SSL", in_memory=True) as other:
            assert other.settings["ssl.keystore.key"] == identity.key
            with pytest.raises(KohortError, match=r"^the settings have a keystore of yours"):
                other.client_settings("java")
            login = {**broker.client_settings("librdkafka"), "sasl.mechanisms": "SCRAM-SHA-512"}
            CLIENTS["confluent-kafka"]({**login, "bootstrap.servers": other.bootstrap}, "t")
            login |= {"sasl.mechanisms": "PLAIN", "bootstrap.servers": other.bootstrap}
            with pytest.raises(Refused):
                CLIENTS["confluent-kafka"](login, "t")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"security": "TLS"}, "security is 'TLS', expected one of PLAINTEXT, SSL"),
        ({"security": []}, "security is [], expected one of PLAINTEXT, SSL"),
        ({"security": ["SSL", "SSL"]}, "security is ['SSL', 'SSL'], expected one of"),
        ({"security": None}, "security is None, expected one of"),
        ({"security": 5}, "security is 5, expected one of"),
        ({"users": {"a": "b"}}, "users stand beside security PLAINTEXT, expected one with SASL"),
        ({"security": "SSL", "users": {"a": "b"}}, "users stand beside security SSL, expected"),
        ({"security": "SASL_SSL", "users": {}}, "users is empty, expected one at least"),
        ({"security": "SASL_SSL", "users": ["a"]}, "users is a list, expected a dict"),
        ({"security": "SASL_SSL", "users": {1: "b"}}, "users has the key 1, expected a text"),
        ({"security": "SASL_SSL", "users": {"a": 1}}, "the password of a is none, expected a"),
        ({"security": "SASL_SSL", "users": {"a": ""}}, "the password of a is none, expected a"),
        ({"security": "SASL_SSL", "users": {"a\n": "b"}}, "users has the name 'a\\n', expected"),
        ({"security": "SASL_SSL", "users": {"kohort.testing": "b"}}, "users has the name 'kohort."),
        (
            {"security": "SASL_SSL", "settings": {"sasl.enabled.mechanisms": "GSSAPI"}},
            "sasl.enabled.mechanisms has 'GSSAPI'",
        ),
    ],
)
def test_a_mistake_is_one_line_before_anything_starts(options, words):
    with pytest.raises(KohortError) as caught:
        Broker(**options)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_secures_a_broker_is_not_imported_for_one_of_plain_text():
    program = """
import sys
from kohort.testing import Broker
with Broker(in_memory=True) as broker:
    broker.create_topic("t")
print(sorted(name for name in sys.modules if name.startswith((
    "cryptography", "kohort.testing.security", "kohort.testing.authority",
    "kohort.testing.client_settings", "kohort.server.sasl", "kohort.server.secure_listeners"))))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_without_the_package_for_certificates_a_line_says_how_to_get_it():
    program = """
import sys
sys.modules["cryptography"] = None
from kohort.errors import KohortError
from kohort.testing import Broker
with Broker(security="SASL_PLAINTEXT", in_memory=True) as broker:
    broker.create_topic("t")
try:
    Broker(security="SSL")
except KohortError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == (
        "certificates for listeners of TLS are made by the package cryptography, which is not"
        " installed: pip install '.[security]' in a clone of Kohort\n"
    )


def test_its_own_listener_lets_nobody_else_in(broker):
    """Nobody knows the password, which no error and no repr shows."""
    own = broker._addresses[OWN_LISTENER]
    security = broker._security
    assert security.own.password not in repr(security) + repr(security.own) + repr(broker)
    for login in ({"sasl.username": "kohort.testing", "sasl.password": "guess"}, {}):
        found = broker.client_settings("librdkafka", user="admin") | login
        found |= {"bootstrap.servers": own, "security.protocol": "SASL_PLAINTEXT"}
        with pytest.raises(Refused):
            CLIENTS["confluent-kafka"](found, "open-own")


def test_a_fork_leaves_the_files_where_they_are():
    with Broker(security="SSL", in_memory=True) as broker:
        file = broker.tls.ca_file
        child = os.fork()
        if child == 0:
            broker.close()
            os._exit(0)
        os.waitpid(child, 0)
        assert os.path.exists(file)  # noqa: PTH110
    assert not os.path.exists(file)  # noqa: PTH110


def test_mechanisms_of_scram_are_those_of_any_listener():
    given = {"listener.name.sasl_ssl.sasl.enabled.mechanisms": "SCRAM-SHA-512"}
    both = ListenerSecurity(["SASL_SSL", "SASL_PLAINTEXT"], None, given)
    assert both.mechanisms("SASL_SSL") == ("SCRAM-SHA-512",)
    assert both.scram_mechanisms == ["SCRAM-SHA-256", "SCRAM-SHA-512"]
    assert ListenerSecurity(["SASL_SSL", "SSL"], None, given).scram_mechanisms == ["SCRAM-SHA-512"]
    assert ListenerSecurity("SSL", None, given).scram_mechanisms == []
