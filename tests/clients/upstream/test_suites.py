# SPDX-License-Identifier: Apache-2.0
"""The own tests of other clients that need a broker pass here as well."""

from pathlib import Path

import pytest
from tests.clients.upstream.suites import (
    AIOKAFKA,
    CONFLUENT_KAFKA,
    KAFKA_PYTHON,
    WHOLE_KAFKA_PYTHON,
    Suite,
    SuiteError,
    files_of,
    run,
)

pytestmark = [pytest.mark.clients, pytest.mark.timeout(1600)]

OLD = "skipped: Requires KAFKA_VERSION < 0.10.1"
KERBEROS = "skipped: Kohort has no Kerberos"
NOT_HERE: dict[str, dict[str, str]] = {
    "kafka-python": {
        "test_admin_integration::test_describe_metadata_quorum": (  # see docs/skipped.md
            "failed: kafka.errors.IncompatibleBrokerVersion: [Error 35] IncompatibleBrokerVersion: "
            "Kafka broker does not support the 'DescribeQuorumRequest' Kafka protocol."
        ),
        "test_consumer_integration::test_kafka_consumer_offsets_for_time_old": OLD,
        **{
            f"test_producer_integration::{test}[{codec}]": (
                f"skipped: Compression libraries not installed for {codec}"
            )
            for test in ("test_end_to_end", "test_kafka_producer_proper_record_metadata")
            for codec in ("snappy", "lz4")
        },
    },
    "aiokafka": {
        "TestKafkaSASL::test_sasl_plaintext_gssapi": KERBEROS,
        "TestKafkaSASL::test_admin_client_sasl_plaintext_gssapi": KERBEROS,
        "TestKafkaSASL::test_sasl_unknown_topic_describe": "skipped: unsupported kafka version",
    },
    "confluent-kafka": {
        "test_consumer_upgrade_downgrade::test_consumer_upgrade_downgrade": (
            "skipped: Skipping test as group protocol consumer is not enabled"
        ),
    },
}
"""How every test ends that does not pass. What is skipped but for Kerberos, its authors skip."""


def check(suite: Suite, folder: Path, passed: int) -> None:
    """So many tests pass, and the others of these files end as is written above."""
    try:
        files_of(suite)
    except SuiteError as error:
        pytest.skip(str(error))
    ends = run(suite, folder)
    others = {name: end for name, end in ends.items() if end != "passed"}
    assert others == {name: end for name, end in NOT_HERE[suite.name].items() if name in ends}
    assert len(ends) - len(others) == passed


def test_kafka_python_with_tls_and_sasl(tmp_path: Path) -> None:
    """Three mechanisms, and TLS (SEC-44a)."""
    check(KAFKA_PYTHON, tmp_path, 11)


@pytest.mark.prove
def test_all_of_kafka_python(tmp_path: Path) -> None:
    check(WHOLE_KAFKA_PYTHON, tmp_path, 61)


@pytest.mark.prove
def test_all_of_aiokafka(tmp_path: Path) -> None:
    """17 of them are about SASL, TLS and what rules deny (SEC-44a)."""
    check(AIOKAFKA, tmp_path, 234)


@pytest.mark.prove
def test_all_of_confluent_kafka(tmp_path: Path) -> None:
    """With users of SCRAM, authorized operations and tokens (SEC-44a)."""
    check(CONFLUENT_KAFKA, tmp_path, 33)
