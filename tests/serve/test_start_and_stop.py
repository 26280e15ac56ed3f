# SPDX-License-Identifier: Apache-2.0
"""Starting and ending `kohort serve`: what it says, what it refuses, and that it ends soon."""

import signal
import socket

import pytest
from tests.ports import free_port
from tests.serve.talk import refused, serving

from kohort.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource

MEMORY = ["--in-memory", "--listen", "127.0.0.1:0"]

# What upstream ships for one node that is broker and controller, without its comments.
PROPERTIES = """\
process.roles=broker,controller
node.id=5
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:{port},CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs={directory}
num.partitions=2
num.recovery.threads.per.data.dir=1
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
#log.flush.interval.messages=10000
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""


def test_a_stop_with_clients_connected_and_fetches_parked(tmp_path):
    with serving("--data-dir", str(tmp_path)) as broker:
        clients = [broker.talk() for _ in range(20)]
        clients[0].create_topic("t")
        for client in clients[:10]:
            client.send(client.fetch_request("t", max_wait_ms=600_000), 12)
        assert broker.end(signal.SIGTERM) == 0
        for client in clients:
            assert client.closed_by_peer()
            client.socket.close()
        assert "Traceback" not in broker.errors


def test_a_stop_with_a_client_that_does_not_read(tmp_path):
    with serving("--data-dir", str(tmp_path)) as broker, broker.talk() as client:
        client.create_topic("t")
        for _ in range(10):
            assert client.produce("t", bytes(900_000)).error_code == 0
        for _ in range(20):
            client.send(client.fetch_request("t"), 12)
        assert client.socket.recv(1)
        assert broker.end(signal.SIGTERM) == 0


def test_what_stood_in_the_log_at_the_stop_is_there_at_the_next_start(tmp_path):
    with serving("--data-dir", str(tmp_path)) as broker, broker.talk() as client:
        client.create_topic("t")
        assert client.produce("t", b"1").error_code == 0
        assert client.commit("g", "t", 1) == 0
        assert broker.end() == 0
    with serving("--data-dir", str(tmp_path)) as broker, broker.talk() as client:
        assert client.committed("g") == {("t", 0): 1}
        assert client.produce("t", b"2").base_offset == 1


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (["no.such.setting=1"], ["no.such.setting"]),
        (["group.consumer.sesion.timeout.ms=1"], ["group.consumer.session.timeout.ms"]),
        (["num.partitions=0"], ["num.partitions", "'0'", "1"]),
        (["max.connections=many"], ["max.connections", "'many'"]),
        (["socket.request.max.bytes=-1"], ["socket.request.max.bytes", "'-1'"]),
        (["log.sync=always"], ["log.sync", "'always'", "group", "none"]),
        (["auto.create.topics.enable=maybe"], ["auto.create.topics.enable", "true", "false"]),
        (["advertised.listeners=nowhere"], ["advertised.listeners", "nowhere", "HOST:PORT"]),
        (["advertised.listeners=PLAINTEXT://h:99999"], ["advertised.listeners", "h:99999"]),
    ],
)
def test_a_setting_that_is_refused(settings, words):
    code, line = refused(*MEMORY, *(part for one in settings for part in ("-X", one)))
    assert code == 2
    for word in words:
        assert word in line


def test_a_file_in_the_place_of_the_directory(tmp_path):
    (tmp_path / "taken").write_text("")
    for path in (tmp_path / "taken", tmp_path / "taken" / "below"):
        code, line = refused("--listen", "127.0.0.1:0", "--data-dir", str(path))
        assert (code, str(path) in line) == (1, True)


def test_a_directory_that_belongs_to_another_node(tmp_path):
    with serving("--data-dir", str(tmp_path)):
        pass
    code, line = refused("--listen", "127.0.0.1:0", "--data-dir", str(tmp_path), "-X", "node.id=4")
    assert code == 1
    assert "node.id is 0, this broker's is 4" in line


def test_an_address_that_is_not_of_this_machine():
    code, line = refused("--listen", "192.0.2.1:0", "--in-memory")
    assert code == 1
    assert "192.0.2.1:0" in line


def test_a_port_taken_by_the_second_node():
    for port in range(free_port(), 65000, 3):
        try:
            taken = socket.create_server(("127.0.0.1", port + 1))
        except OSError:
            continue
        with taken:
            code, line = refused("--listen", f"127.0.0.1:{port}", "--in-memory", "--nodes", "2")
        break
    assert code == 1
    assert f"127.0.0.1:{port + 1}" in line


def test_more_nodes_than_ports():
    code, line = refused("--listen", "127.0.0.1:65535", "--in-memory", "--nodes", "2")
    assert code == 2
    assert "2 nodes from port 65535 on end beyond port 65535" in line


@pytest.mark.parametrize("text", [None, b"\xff\xfe=1", b"listeners=\n"])
def test_a_config_that_cannot_be_used(tmp_path, text):
    path = tmp_path / "server.properties"
    if text is not None:
        path.write_bytes(text)
    code, line = refused("--in-memory", "--config", str(path))
    assert code == 2
    assert str(path) in line or "listeners" in line


def test_upstreams_server_properties(tmp_path):
    port = free_port()
    path = tmp_path / "server.properties"
    path.write_text(PROPERTIES.format(port=port, directory=tmp_path / "data"))
    with serving("--config", str(path), listen="") as broker, broker.talk() as client:
        assert broker.addresses == [f"127.0.0.1:{port}"]
        assert str(tmp_path / "data") in broker.ready_line
        answer = client.metadata("made-by-asking")
        assert [(one.node_id, one.host, one.port) for one in answer.brokers] == [
            (5, "localhost", port)
        ]
        assert client.partitions("made-by-asking") == 2
        assert broker.end() == 0
        (warning,) = [line for line in broker.errors.splitlines() if "mean nothing here" in line]
    for name in ("num.network.threads", "controller.quorum.bootstrap.servers", "process.roles"):
        assert warning.count(name) == 1
    assert "num.partitions" not in warning
    assert "beyond this machine" not in broker.errors


def test_flags_stand_above_settings_and_settings_above_the_file(tmp_path):
    path = tmp_path / "server.properties"
    path.write_text(PROPERTIES.format(port=1, directory="/nowhere/at/all"))
    with (
        serving(
            "--config", str(path), "-X", "num.partitions=4", "--data-dir", str(tmp_path / "d")
        ) as broker,
        broker.talk() as client,
    ):
        assert broker.address != "127.0.0.1:1"
        assert (tmp_path / "d").is_dir()
        assert client.partitions("t") == 4


def test_what_is_advertised_is_what_clients_are_told():
    settings = ["advertised.listeners=PLAINTEXT://broker.example:19092", "node.id=41"]
    with (
        serving("--in-memory", *(part for one in settings for part in ("-X", one))) as broker,
        broker.talk() as client,
    ):
        answer = client.metadata()
        assert [(one.node_id, one.host, one.port) for one in answer.brokers] == [
            (41, "broker.example", 19092)
        ]
        assert answer.controller_id == 41


def test_a_controllers_advertised_listener_is_not_for_clients():
    settings = [
        "advertised.listeners=CONTROLLER://c:1,PLAINTEXT://b:2",
        "controller.listener.names=CONTROLLER",
    ]
    with (
        serving("--in-memory", *(part for one in settings for part in ("-X", one))) as broker,
        broker.talk() as client,
    ):
        assert [(one.host, one.port) for one in client.metadata().brokers] == [("b", 2)]


@pytest.mark.parametrize(("host", "warned"), [("0.0.0.0", True), ("127.0.0.1", False)])
def test_the_warning_beyond_loopback(host, warned):
    with serving("--in-memory", listen=f"{host}:0") as broker:
        assert broker.end() == 0
        assert ("beyond this machine" in broker.errors) is warned


def test_ipv6():
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError as error:
        pytest.skip(f"no IPv6 here: {error}")
    with serving("--in-memory", listen="[::1]:0") as broker:
        assert broker.address.startswith("[::1]:")
        with socket.create_connection(("::1", int(broker.address.rpartition(":")[2])), 5):
            pass
        assert "beyond this machine" not in broker.errors


def shown(talk, node_id, *names):
    resource = DescribeConfigsResource(
        resource_type=4, resource_name=node_id, configuration_keys=list(names)
    )
    (result,) = talk.ask(DescribeConfigsRequest(resources=[resource])).results
    return {one.name: (one.value, one.config_source) for one in result.configs}


def test_a_broker_tells_the_listeners_and_the_directory_that_are_in_force(tmp_path):
    """Flags and free ports stand in no file, and yet they are what counts."""
    with serving("--data-dir", str(tmp_path), "--nodes", "2", "-X", "node.id=3") as served:
        for index, address in enumerate(served.addresses):
            with served.talk(index) as talk:
                assert shown(
                    talk, f"{3 + index}", "listeners", "advertised.listeners", "log.dirs"
                ) == {
                    "listeners": (f"PLAINTEXT://{address}", 4),
                    "advertised.listeners": (f"PLAINTEXT://{address}", 4),
                    "log.dirs": (str(tmp_path), 4),
                }


def test_a_broker_tells_what_is_advertised_instead():
    told = "advertised.listeners=PLAINTEXT://example.org:9999"
    with serving("--in-memory", "-X", told) as served, served.talk() as talk:
        assert shown(talk, "0", "listeners", "advertised.listeners", "log.dirs") == {
            "listeners": (f"PLAINTEXT://{served.address}", 4),
            "advertised.listeners": ("PLAINTEXT://example.org:9999", 4),
            "log.dirs": ("", 5),
        }
