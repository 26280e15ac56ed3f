# SPDX-License-Identifier: Apache-2.0
"""How many connections there may be."""

import socket

import pytest
from tests.waiting import SOON_S

from kohort import ApiError, ConfigSource, SyncAdminClient
from kohort.config import BrokerConfig
from kohort.config.listeners import client_listeners
from kohort.server.descriptors import WAITING_MAX, Limit, share_out
from kohort.server.network.connection_limits import ConnectionLimits
from kohort.testing import Broker

SETTINGS = {"listeners": "PLAINTEXT://127.0.0.1:0,OUT://127.0.0.1:0,THIRD://127.0.0.1:0"}
SETTINGS["listener.security.protocol.map"] = "OUT:PLAINTEXT,THIRD:PLAINTEXT"


def limits(**settings):
    named = {name.replace("_", "."): str(value) for name, value in settings.items()}
    config = BrokerConfig.of({**SETTINGS, **named})
    return ConnectionLimits(config, client_listeners(config))


def test_a_listener_has_its_own_limit_and_that_of_the_broker():
    found = limits(max_connections=3, listener_name_out_max_connections=2)
    for _ in range(2):
        assert found.full(1) is None
        found.enter("a", 1)
    assert found.full(1) == "listener.name.out.max.connections=2"
    assert found.full(0) is None
    found.enter("a", 0)
    assert found.full(0) == found.full(2) == "max.connections=3"
    found.leave("a", 1)
    assert [found.full(number) for number in range(3)] == [None, None, None]
    found.enter("a", 2)
    assert found.full(1) == "max.connections=3"  # its own has room


def test_other_limits_count_for_connections_to_come():
    """KIP-226, KIP-402. A listener without a limit of its own follows the broker."""
    found = limits(max_connections=1, max_connections_per_ip=1)
    found.enter("a", 0)
    assert (found.full(0), bool(found.too_many_of("a"))) == ("max.connections=1", True)
    more = {"max.connections": "3", "max.connections.per.ip": "2"}
    own = {"listener.name.out.max.connections": "1"}
    found.reconfigure(BrokerConfig.of({**SETTINGS, **more, **own}))
    assert (found.full(0), found.too_many_of("a")) == (None, None)
    found.enter("a", 1)
    assert found.full(1) == "listener.name.out.max.connections=1"
    assert found.too_many_of("a") == "a connection from a is refused: max.connections.per.ip=2"
    found.reconfigure(BrokerConfig.of({**SETTINGS, "max.connections": "1"}))
    assert found.full(0) == found.full(1) == "max.connections=1"


def test_the_limit_of_an_address_is_of_all_listeners():
    """Upstream has none for one listener, and passes over such a setting."""
    prefixed = "listener.name.out.max.connections.per.ip"
    config = BrokerConfig.of({**SETTINGS, "max.connections.per.ip": "2", prefixed: "1"})
    assert config.ignored == (prefixed,)
    found = ConnectionLimits(config, client_listeners(config))
    found.enter("a", 0)
    found.enter("b", 1)
    assert found.too_many_of("a") is None
    found.enter("a", 1)
    assert found.too_many_of("a") == "a connection from a is refused: max.connections.per.ip=2"
    assert found.too_many_of("b") is None
    found.leave("a", 0)
    assert found.too_many_of("a") is None


def test_descriptors_are_for_those_who_wait_as_well():
    few = share_out(Limit(120, 10), 20, 10, on_disk=False)
    found = limits()
    for _ in range(few.connections - 2):
        found.enter("a", 0)
    assert found.refusal(1, few) is None
    why = found.refusal(2, few)
    assert why.startswith(f"a connection is refused: {few.connections} are open, and")
    assert "limit of open files, 120" in why


@pytest.mark.parametrize(
    ("descriptors", "most"), [(100_000, WAITING_MAX), (1200, 50), (120, 5), (20, 1)]
)
def test_those_who_wait_leave_most_descriptors_to_those_who_can_be_served(descriptors, most):
    """Three listeners share an eighth of few descriptors."""
    shares = share_out(Limit(descriptors, 10), 0, 60, on_disk=False)
    assert limits().most_waiting(shares) == most


@pytest.mark.parametrize("text", ["-1", "many", str(1 << 31)])
def test_a_limit_of_a_listener_is_checked_as_that_of_all(text):
    with pytest.raises(ValueError, match=r"listener\.name\.out\.max\.connections"):
        BrokerConfig.of({**SETTINGS, "listener.name.out.max.connections": text})


def is_served(bootstrap):
    """Whether a new connection is left open for half a second."""
    host, _, port = bootstrap.rpartition(":")
    with socket.create_connection((host, int(port)), SOON_S) as sock:
        sock.settimeout(0.5)
        try:
            return sock.recv(1) != b""
        except TimeoutError:
            return True


def test_limits_are_changed_while_the_broker_runs_and_count_after_a_restart(tmp_path):
    """KIP-226: the connection that changes them stays."""
    here = ("broker", "0")
    unknown = "listener.name.out.max.connections"
    known = "listener.name.plaintext.max.connections"
    with Broker(data_dir=tmp_path) as broker, SyncAdminClient(broker.bootstrap) as admin:
        (admin.alter_configs({here: {"max.connections.per.ip": "1"}})).all()
        assert not is_served(broker.bootstrap)
        described = (admin.describe_configs([here]))[here]
        assert not described["max.connections.per.ip"].read_only
        assert described["max.connections.per.ip"].value == "1"
        (admin.alter_configs({here: {"max.connections.per.ip": None}})).all()
        assert is_served(broker.bootstrap)
        refused = admin.alter_configs({here: {unknown: "1"}})
        assert "expected the name of a listener: listener.name.plaintext." in str(
            refused.failed[here]
        )
        (admin.alter_configs({("broker", ""): {known: "7"}})).all()
        found = (admin.describe_configs([here]))[here][known]
        assert (found.value, found.source) == ("7", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG)
        (admin.alter_configs({here: {known: "1"}})).all()
        for name in (known, "max.connections", "max.connections.per.ip"):
            refused = admin.alter_configs({here: {name: "0"}})
            assert "nobody could connect to change it back" in str(refused.failed[here])
    with Broker(data_dir=tmp_path) as broker:
        host, _, port = broker.bootstrap.rpartition(":")
        with (
            socket.create_connection((host, int(port)), SOON_S),
            SyncAdminClient(broker.bootstrap, timeout=1) as admin,
            pytest.raises(ApiError),
        ):
            admin.list_topics()
