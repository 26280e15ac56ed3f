# SPDX-License-Identifier: Apache-2.0
"""Sessions that end all the time while records flow: clients log in again, and nothing is noticed.

`KOHORT_REAUTH_SECONDS` says for how long each client runs. aiokafka is not here: it does not know
of sessions, so the broker closes its connections, and it connects again. It loses no record, but
its consumer may wait for itself in `stop`.
"""

import os
from collections.abc import Iterator

import pytest
from tests.clients.secured import Secured, secured
from tests.clients.steady_flow import flow_through
from tests.peers.kafka import unavailable

pytestmark = [pytest.mark.clients, pytest.mark.prove]

SECONDS = float(os.environ.get("KOHORT_REAUTH_SECONDS", "20"))
SESSION_MS = 1500  # clients renew at 85 % or later, and nobody may within a second of the last time
AGAIN = ("librdkafka", "kafka-python", "kohort", pytest.param("java", marks=pytest.mark.java))


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    settings = {"listener.name.short.connections.max.reauth.ms": str(SESSION_MS)}
    with secured(tmp_path_factory.mktemp("reauthentication"), settings) as here:
        yield here


@pytest.mark.timeout(600 + 3 * SECONDS)
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512", "OAUTHBEARER"])
@pytest.mark.parametrize("client", AGAIN)
def test_no_record_is_lost_and_no_error_shown(
    running: Secured, client: str, mechanism: str
) -> None:
    """SEC-49: each client that can renews its session before the broker ends it."""
    if client == "java" and (reason := unavailable()):
        pytest.skip(reason)
    counts = running.broker.traffic.authentications
    before = counts.reauthenticated
    ended, refused = counts.expired, counts.reauthentication_failed
    flow = flow_through(client, running, "SHORT", mechanism, SECONDS)
    flow.check()
    assert counts.reauthentication_failed == refused
    renewed = counts.reauthenticated - before
    assert renewed >= SECONDS / 4  # Java starts for seconds
    # It renews after 95 % at the latest: a machine that stands still for 75 ms ends a session.
    assert counts.expired - ended <= renewed / 10
