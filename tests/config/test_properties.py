# SPDX-License-Identifier: Apache-2.0
"""Java's properties format, as far as configuration files use it."""

import pytest

from kohort.config import BrokerConfig, read_properties

SERVER_PROPERTIES = """
# Licensed to nobody
############################# Server Basics #############################
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=/tmp/kraft-combined-logs
num.partitions=1
num.recovery.threads.per.data.dir=2
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
transaction.state.log.replication.factor=1
#log.flush.interval.messages=10000
log.retention.hours=168
log.retention.check.interval.ms=300000
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=b", {"a": "b"}),
        ("  a = b  c", {"a": "b  c"}),
        ("a: b", {"a": "b"}),
        ("a b", {"a": "b"}),
        ("a", {"a": ""}),
        ("# a=b\n! c=d\n\n", {}),
        ("a=b,\\\n   c", {"a": "b,c"}),
        ("a=b\\\\\nc=d", {"a": "b\\", "c": "d"}),
        ("a\\:b=c\\=d", {"a:b": "c=d"}),
        ("a=\\u00e9\\t.", {"a": "é\t."}),
        ("a=1\na=2", {"a": "2"}),
        ("a=b=c", {"a": "b=c"}),
        ("a=b\\", {"a": "b"}),
    ],
)
def test_lines(text, expected):
    assert read_properties(text) == expected


def test_upstreams_own_file_is_taken():
    config = BrokerConfig.of(read_properties(SERVER_PROPERTIES))

    assert config.node_id == 1
    assert config.log_dirs == ("/tmp/kraft-combined-logs",)
    assert config.listeners == ("PLAINTEXT://:9092", "CONTROLLER://:9093")
    assert "num.io.threads" in config.ignored
    assert "process.roles" in config.ignored
