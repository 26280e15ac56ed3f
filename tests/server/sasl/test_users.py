# SPDX-License-Identifier: Apache-2.0
"""The users of SCRAM, and what those that are not there are asked for (SEC-41)."""

from types import SimpleNamespace
from typing import Any

from kohort.security.scram_server import Decoy
from kohort.server.sasl.users import ScramUsers
from kohort.server.scram import ScramCredential

SHA_256, SHA_512 = "SCRAM-SHA-256", "SCRAM-SHA-512"
HEX, JAVA = b"0123456789abcdef", b"0123456789abcdefghijklmnopqrstuvwxyz"


def kept(*known: tuple[str, int, int, bytes]) -> dict[tuple[str, int], ScramCredential]:
    return {
        (user, number): ScramCredential(user, number, iterations, salt, b"stored", b"server")
        for user, number, iterations, salt in known
    }


def users(catalog: Any) -> ScramUsers:
    return ScramUsers(lambda: catalog, b"of this run")


def test_a_user_is_looked_up_by_mechanism() -> None:
    found = users(SimpleNamespace(credentials=kept(("a", 1, 4096, b"s"))))
    assert found.look_up("a", SHA_256) is not None
    assert found.look_up("a", SHA_512) is None
    assert found.look_up("b", SHA_256) is None


def test_without_users_a_decoy_looks_like_what_our_tools_make() -> None:
    catalog = SimpleNamespace(credentials={}, decoy_secret=b"")
    assert users(catalog).decoy(SHA_256) == Decoy(b"of this run", 8192, 24, HEX)


def test_a_decoy_looks_like_most_of_the_users_of_its_mechanism() -> None:
    catalog = SimpleNamespace(
        credentials=kept(
            ("a", 1, 4096, b"java-salt"),
            ("b", 1, 9000, b"0javasaltxyz"),
            ("c", 1, 9000, b"1javasaltxyz"),
            ("d", 1, 9000, b"0123456789ab"),
            ("a", 2, 5000, b"\xff"),
        ),
        decoy_secret=b"kept",
    )
    found = users(catalog)
    assert found.decoy(SHA_256) == Decoy(b"kept", 9000, 12, JAVA)
    assert found.decoy(SHA_512) == Decoy(b"kept", 5000, 1, bytes(range(256)))
    assert found.decoy(SHA_256) is found.decoy(SHA_256)
    catalog.credentials = kept(("a", 1, 4096, b"abc"))
    assert found.decoy(SHA_256) == Decoy(b"kept", 4096, 3, HEX)


def test_all_listeners_have_the_same_decoys_and_so_has_the_next_start() -> None:
    catalog = SimpleNamespace(credentials=kept(("a", 1, 4096, b"abc")), decoy_secret=b"kept")
    one, after = users(catalog), ScramUsers(lambda: catalog, b"of another run")
    assert one.decoy(SHA_256) == after.decoy(SHA_256)
