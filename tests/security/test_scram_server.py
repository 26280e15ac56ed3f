# SPDX-License-Identifier: Apache-2.0
"""The server of SCRAM: it proves itself to our client, and tells nobody who exists (SEC-41)."""

from base64 import b64decode, b64encode

import pytest

from kohort.errors import WireError
from kohort.security.names import SCRAM_SHA_256, SCRAM_SHA_512
from kohort.security.sasl import Identity, SaslError
from kohort.security.scram import HASHES, Keys, ScramClient, salted, server_keys
from kohort.security.scram_server import Decoy, ScramServer
from kohort.terms import Millis

NOW = Millis(0)


class Credential:
    iterations = 4096
    salt = bytes(24)

    def __init__(self, keys: Keys) -> None:
        self.stored_key, self.server_key = keys


def server(name: str = SCRAM_SHA_256, decoy: bytes = b"decoy", nonce: str = "N") -> ScramServer:
    known = {
        "alice": Credential(
            server_keys(HASHES[name], salted(HASHES[name], "hunter2", Credential.salt, 4096))
        )
    }
    return ScramServer(name, known.get, nonce, Decoy(decoy, 4096))


@pytest.mark.parametrize("name", [SCRAM_SHA_256, SCRAM_SHA_512])
def test_both_sides_prove_that_they_know_the_password(name: str) -> None:
    client, machine = ScramClient(name, "alice", "hunter2", "C"), server(name)
    final = client.answer(machine.answer(client.first(), NOW))
    assert machine.identity is None
    assert final is not None
    assert client.answer(machine.answer(final, NOW)) is None
    assert machine.identity == Identity("alice")


def said_to(username: str, decoy: bytes = b"decoy") -> tuple[bytes, str]:
    """What a client with a wrong password is asked, and why it is refused."""
    client = ScramClient(SCRAM_SHA_256, username, "wrong", "C")
    machine = server(decoy=decoy)
    asked = machine.answer(client.first(), NOW)
    final = client.answer(asked)
    assert final is not None
    with pytest.raises(SaslError) as caught:
        machine.answer(final, NOW)
    assert machine.identity is None
    return asked, str(caught.value)


def test_a_user_that_is_not_there_is_asked_and_refused_like_another() -> None:
    known, unknown = said_to("alice"), said_to("nobody")
    assert len(known[0]) == len(unknown[0])
    assert known[1] == unknown[1] == "the user is not known, or the password is wrong"


def test_a_salt_that_is_made_up_stays_the_same_and_is_the_secret_of_the_server() -> None:
    assert said_to("nobody")[0] == said_to("nobody")[0]
    assert said_to("nobody")[0] != said_to("somebody")[0]
    assert said_to("nobody")[0] != said_to("nobody", decoy=b"other")[0]


def test_what_a_client_said_before_is_of_no_use_again() -> None:
    client, machine = ScramClient(SCRAM_SHA_256, "alice", "hunter2", "C"), server()
    final = client.answer(machine.answer(client.first(), NOW))
    assert final is not None
    again = server(nonce="M")
    again.answer(client.first(), NOW)
    with pytest.raises(SaslError, match="another nonce"):
        again.answer(final, NOW)


def test_nobody_logs_in_with_the_keys_that_are_made_up() -> None:
    """Not even who knows the secret that they are made of."""
    client, machine = ScramClient(SCRAM_SHA_256, "nobody", "x", "C"), server(decoy=b"")
    asked = machine.answer(client.first(), NOW)
    proof = b64encode(bytes(32)).decode()
    with pytest.raises(SaslError):
        machine.answer(f"c=biws,{asked.decode().partition(',')[0]},p={proof}".encode(), NOW)
    assert machine.identity is None


@pytest.mark.parametrize(
    ("first", "reason"),
    [
        ("", "first message"),
        ("n=alice,r=C", "first message"),
        ("y,,n=alice,r=C", "first message"),
        ("p=tls-unique,,n=alice,r=C", "first message"),
        ("n,,n=gr\xf6\xdfe,r=C", "first message"),
        ("n,,n=al=ice,r=C", "first message"),
        ("n,,n=" + "a" * (1 << 16), "a message of 65541 bytes, expected at most 65536"),
        ("n,,n=alice,r=a b", "first message"),
        ("n,,n=alice,r=C,tokenauth=true", "delegation token"),
        ("n,a=bob,n=alice,r=C", "authorization id that is different from username"),
        ("n,a=bob,n=nobody,r=C", "authorization id that is different from username"),
    ],
)
def test_a_first_message_that_is_none_is_refused(first: str, reason: str) -> None:
    with pytest.raises(SaslError, match=reason):
        server().answer(first.encode(), NOW)


def test_an_authorization_id_is_compared_as_the_name_is_written() -> None:
    assert server().answer(b"n,a=al=3Dice,n=al=3Dice,r=C", NOW).startswith(b"r=CN,")


@pytest.mark.parametrize(
    ("final", "reason"),
    [
        ("garbage", "last message is none"),
        ("c=biws,r=CN", "last message is none"),
        ("c=biws,r=CN,p=AAAAA", "no base64"),
        ("c=biw,r=CN,p=" + "A" * 43 + "=", "channel binding"),
        ("c=eSws,r=CN,p=" + "A" * 43 + "=", "channel binding"),
        ("c=biws,r=CX,p=" + "A" * 43 + "=", "another nonce"),
    ],
)
def test_a_last_message_that_is_none_is_refused(final: str, reason: str) -> None:
    machine = server()
    machine.answer(b"n,,n=alice,r=C", NOW)
    with pytest.raises(SaslError, match=reason):
        machine.answer(final.encode(), NOW)


def test_a_proof_of_another_length_closes_the_connection() -> None:
    """As upstream's broker does."""
    machine = server()
    machine.answer(b"n,,n=alice,r=C", NOW)
    with pytest.raises(WireError, match="a proof of 3 bytes"):
        machine.answer(b"c=biws,r=CN,p=AAAA", NOW)


def test_what_is_made_up_looks_as_it_is_told_to() -> None:
    decoy = Decoy(b"secret", 9000, 50, b"xyz")
    machine = ScramServer(SCRAM_SHA_256, lambda _: None, "N", decoy)
    _, salt, iterations = machine.answer(b"n,,n=nobody,r=C", NOW).split(b",")
    assert iterations == b"i=9000"
    made_up = b64decode(salt.removeprefix(b"s="))
    assert len(made_up) == 50
    assert set(made_up) == set(b"xyz")
