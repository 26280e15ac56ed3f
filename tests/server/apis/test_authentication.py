# SPDX-License-Identifier: Apache-2.0
"""What is about SASL and delegation tokens, on a listener of plain text: the answers are those that
Apache Kafka 4.3.1 has given, and the connection goes on.
"""

import pytest
from tests.server.desk import Desk

from kohort.machines.effects import Client
from kohort.wire import codec
from kohort.wire.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
)
from kohort.wire.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from kohort.wire.messages.expire_delegation_token import ExpireDelegationTokenRequest
from kohort.wire.messages.renew_delegation_token import RenewDelegationTokenRequest
from kohort.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from kohort.wire.messages.sasl_handshake import SaslHandshakeRequest

HANDSHAKE = SaslHandshakeRequest(mechanism="PLAIN")
AUTHENTICATE = SaslAuthenticateRequest(auth_bytes=b"\0alice\0alice-secret")
LATE = b"SaslAuthenticate request received after successful authentication".hex()
CREATE = CreateDelegationTokenRequest(
    owner_principal_type=None, owner_principal_name=None, renewers=[], max_lifetime_ms=1000
)
FOR_ZED = CreateDelegationTokenRequest(
    owner_principal_type="User",
    owner_principal_name="zed",
    renewers=[CreatableRenewers(principal_type="User", principal_name="x")],
    max_lifetime_ms=1000,
)
RENEW = RenewDelegationTokenRequest(hmac=b"abc", renew_period_ms=5)
EXPIRE = ExpireDelegationTokenRequest(hmac=b"abc", expiry_time_period_ms=5)
DESCRIBE = DescribeDelegationTokenRequest(owners=None)
OF_NOBODY = DescribeDelegationTokenRequest(owners=[])
OF_ZED = DescribeDelegationTokenRequest(
    owners=[DescribeDelegationTokenOwner(principal_type="User", principal_name="zed")]
)
NEVER = "ff" * 24  # three times of -1
RECORDED = [  # request, version, and the bytes behind the header of the answer
    (HANDSHAKE, 0, "0022 00000000"),
    (HANDSHAKE, 1, "0022 00000000"),
    (AUTHENTICATE, 0, f"0022 0041 {LATE} 00000000"),
    (AUTHENTICATE, 1, f"0022 0041 {LATE} 00000000 0000000000000000"),
    (AUTHENTICATE, 2, f"0022 42 {LATE} 01 0000000000000000 00"),
    (CREATE, 1, f"0040 0004 55736572 0009 414e4f4e594d4f5553 {NEVER} 0000 00000000 00000000"),
    (CREATE, 2, f"0040 05 55736572 0a 414e4f4e594d4f5553 {NEVER} 01 01 00000000 00"),
    (CREATE, 3, f"0040 {'05557365720a414e4f4e594d4f5553' * 2} {NEVER} 01 01 00000000 00"),
    (
        FOR_ZED,
        3,
        f"0040 05 55736572 04 7a6564 05 55736572 0a 414e4f4e594d4f5553 {NEVER} 01 01 00000000 00",
    ),
    (RENEW, 1, "0040 ffffffffffffffff 00000000"),
    (RENEW, 2, "0040 ffffffffffffffff 00000000 00"),
    (EXPIRE, 1, "0040 ffffffffffffffff 00000000"),
    (EXPIRE, 2, "0040 ffffffffffffffff 00000000 00"),
    (DESCRIBE, 1, "0040 00000000 00000000"),
    (DESCRIBE, 2, "0040 01 00000000 00"),
    (DESCRIBE, 3, "0040 01 00000000 00"),
    (OF_NOBODY, 3, "0040 01 00000000 00"),
    (OF_ZED, 3, "0040 01 00000000 00"),
]


@pytest.mark.parametrize(("request_", "version", "answer"), RECORDED)
def test_the_answer_is_that_of_kafka_and_the_connection_goes_on(desk, request_, version, answer):
    for _ in range(2):
        found = desk.ask(request_, version)
        assert codec.encode(found, version).hex() == answer.replace(" ", "")
    desk.create()
    assert desk.produce().error_code == 0


def test_a_token_is_refused_to_whoever_asks():
    desk = Desk()
    connection = desk.connections[0]
    connection.client = Client("desk", connection.host, "User:alice")
    answer = desk.ask(CREATE, 3)
    assert answer.principal_name == answer.token_requester_principal_name == "alice"
