"""The own tests of other clients about TLS, SASL and rules of access pass here as well."""

from pathlib import Path

import pytest
from tests.clients.upstream.suites import (
    AIOKAFKA,
    CONFLUENT_KAFKA,
    KAFKA_PYTHON,
    Suite,
    SuiteError,
    files_of,
    run,
)

pytestmark = [pytest.mark.clients, pytest.mark.timeout(600)]

PASSED = {"kafka-python": 11, "aiokafka": 17, "confluent-kafka": 34}
KERBEROS = "skipped: Kohort has no Kerberos"
NOT_HERE = {
    "kafka-python": {},
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
"""How every test ends that does not pass: their authors skip two of them on a new broker."""


def check(suite: Suite, folder: Path) -> None:
    try:
        files_of(suite)
    except SuiteError as error:
        pytest.skip(str(error))
    ends = run(suite, folder)
    others = {name: end for name, end in ends.items() if end != "passed"}
    assert others == NOT_HERE[suite.name]
    assert len(ends) - len(others) == PASSED[suite.name]


def test_kafka_python(tmp_path: Path) -> None:
    """Three mechanisms, and TLS (SEC-44a)."""
    check(KAFKA_PYTHON, tmp_path)


@pytest.mark.prove
@pytest.mark.parametrize("suite", [AIOKAFKA, CONFLUENT_KAFKA], ids=lambda suite: suite.name)
def test_suites_that_are_in_repositories(suite: Suite, tmp_path: Path) -> None:
    """SASL, TLS, what rules deny, users of SCRAM, and authorized operations (SEC-44a)."""
    check(suite, tmp_path)
