# SPDX-License-Identifier: Apache-2.0
"""A plug-in for kafka-python's own tests: its fixture starts Kohort instead of Apache Kafka.

All that the tests see of the fixture stays the same: a host, a port, a security protocol, a user,
and a folder with the certificate of an authority.
"""

import shutil
from pathlib import Path
from types import SimpleNamespace

from suite_broker import CERTIFICATES, SuiteBroker, plain
from test.integration import fixtures


def _without_an_archive(_fixture):
    """In place of a look for Apache Kafka on the disk."""


def _open(fixture):
    if fixture.running:
        return
    fixture.running, fixture.zookeeper = True, None
    user, password = fixture.broker_user, fixture.broker_password
    fixture.suite_broker = SuiteBroker(
        {fixture.transport: f"{fixture.host}:{fixture.port}"},
        {
            **(plain({user: password}) if fixture.sasl_mechanism == "PLAIN" else {}),
            **({"sasl.enabled.mechanisms": fixture.sasl_mechanism} if fixture.sasl_enabled else {}),
            "num.partitions": str(fixture.partitions),
            "broker.id": str(fixture.broker_id),
        },
    )
    fixture.child = SimpleNamespace(dump_logs=lambda: None)
    if (fixture.sasl_mechanism or "").startswith("SCRAM"):
        fixture.suite_broker.add_user(user, password)
    if fixture.ssl_enabled:
        fixture.ssl_dir = str(fixture.tmp_dir)
        shutil.copy(CERTIFICATES / "ca.crt", Path(fixture.ssl_dir) / "ca-cert")


def _close(fixture):
    if fixture.running:
        fixture.running = False
        fixture.suite_broker.stop()


fixtures.Fixture.__init__ = _without_an_archive
fixtures.KafkaFixture.open = fixtures.KafkaFixture.start = _open
fixtures.KafkaFixture.close = fixtures.KafkaFixture.stop = _close
fixtures.KafkaFixture.get_topic_names = lambda fixture: fixture.suite_broker.topics()
