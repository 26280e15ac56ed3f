# SPDX-License-Identifier: Apache-2.0
"""A client that says what it is given to say, byte by byte, to a listener with SASL."""

from collections.abc import Callable, Mapping
from functools import cache
from itertools import count
from typing import Any

from tests.world import START, Client, World

from kohort.security.scram import HASHES, Keys, salted, server_keys
from kohort.security.scram_server import Decoy
from kohort.server.sasl.authentication import Authentication, SaslListener
from kohort.server.sasl.settings import SaslSettings
from kohort.server.scram import ScramCredential

USERS = ("admin", "alice", "bob", "carol", "dora", "erin", "frank")
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
OAUTHBEARER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
PASSWORDS = " ".join(f'user_{user}="{user}-secret"' for user in USERS)
ALL = {
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512,SCRAM-SHA-256,OAUTHBEARER",
    "plain.sasl.jaas.config": f"{PLAIN} required {PASSWORDS};",
    "oauthbearer.sasl.jaas.config": f'{OAUTHBEARER} required unsecuredLoginStringClaim_sub="a";',
}
SALT = b"kohort-salt-0123456789ab"


@cache
def _keys(hash_name: str, password: str, salt: bytes, iterations: int) -> Keys:
    return server_keys(hash_name, salted(hash_name, password, salt, iterations))


class Credentials:
    """What is kept of passwords, by user and mechanism."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], ScramCredential] = {}

    def add(self, user: str, password: str, *, iterations: int = 4096, salt: bytes = SALT) -> None:
        for number, (mechanism, hash_name) in enumerate(HASHES.items(), 1):
            keys = _keys(hash_name, password, salt, iterations)
            kept = ScramCredential(user, number, iterations, salt, *keys)
            self._kept[user, mechanism] = kept

    def remove(self, user: str, mechanism: str | None = None) -> None:
        for key in list(self._kept):
            if key[0] == user and mechanism in (None, key[1]):
                del self._kept[key]

    @staticmethod
    def decoy(_mechanism: str) -> Decoy:
        return Decoy(bytes(32), 4096)

    def look_up(self, user: str, mechanism: str) -> ScramCredential | None:
        return self._kept.get((user, mechanism))


def listener(
    settings: Mapping[str, str],
    credentials: Credentials | None = None,
    new_id: Callable[[], bytes] | None = None,
) -> SaslListener:
    numbers = count(1)
    known = credentials or Credentials()
    draw = new_id or (lambda: next(numbers).to_bytes(16))
    return SaslSettings(settings, known.look_up, known.decoy, draw).listener


class SaslClient(Client):
    """One connection to a listener with SASL. Delays pass when the test has them pass."""

    def __init__(self, world: World, sasl: SaslListener | None) -> None:
        super().__init__(world)
        self.later: list[tuple[int, Callable[[], None]]] = []
        if sasl is not None:
            Authentication(sasl, self.connection, lambda ms, do: self.later.append((ms, do)))

    def say(self, data: bytes) -> list[bytes]:
        """The answers that come at once."""
        self.send(data)
        return self.take()

    def take(self) -> list[bytes]:
        answers, self.answers[:] = list(self.answers), []
        return answers

    def pass_delay(self) -> tuple[int, list[bytes]]:
        """Let the delay of a refusal pass: how long it was, and the answers that come then."""
        ((delay_ms, do),) = self.later
        self.later.clear()
        do()
        self.world.settle()
        if self.connection.finished:
            self.closed = True
            self.connection.close()
        return delay_ms, self.take()


def world(now: int = START, **settings: Any) -> World:
    return World(settings, now=now)
