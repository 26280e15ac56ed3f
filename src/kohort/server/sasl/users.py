# SPDX-License-Identifier: Apache-2.0
"""The users of SCRAM, as the catalog has them, and decoys that look like most of them."""

from collections import Counter
from collections.abc import Callable, Mapping

from kohort.security.scram import NUMBERS
from kohort.security.scram_server import Decoy
from kohort.server.catalog import Catalog
from kohort.server.scram import ScramCredential

_BYTES = bytes(range(256))
_DIGITS = (  # of salts: those that `kohort users` draws, those of Java, those of anybody
    b"0123456789abcdef",
    b"0123456789abcdefghijklmnopqrstuvwxyz",
    _BYTES,
)


class ScramUsers:
    """All listeners of a broker have the same, so that their decoys do not differ."""

    def __init__(self, catalog: Callable[[], Catalog], secret: bytes) -> None:
        """`secret` is for decoys, until there is a first credential and the catalog has one."""
        self._catalog = catalog
        self._secret = secret
        self._credentials: Mapping[tuple[str, int], ScramCredential] | None = None
        self._decoys: dict[str, Decoy] = {}

    def look_up(self, user: str, mechanism: str) -> ScramCredential | None:
        """The credential of a user; None where he has none."""
        return self._catalog().credentials.get((user, NUMBERS[mechanism]))

    def decoy(self, mechanism: str) -> Decoy:
        """Salts and iterations for users that do not exist, like those of most others."""
        catalog = self._catalog()
        if self._credentials is not catalog.credentials:  # which are replaced, never changed
            self._credentials = catalog.credentials
            secret = catalog.decoy_secret or self._secret
            self._decoys = {
                name: _decoy(secret, number, catalog.credentials)
                for name, number in NUMBERS.items()
            }
        return self._decoys[mechanism]


def _decoy(
    secret: bytes, mechanism: int, credentials: Mapping[tuple[str, int], ScramCredential]
) -> Decoy:
    looks = Counter(
        (known.iterations, len(known.salt), _digits_of(known.salt))
        for known in credentials.values()
        if known.mechanism == mechanism
    )
    if not looks:
        return Decoy(secret)
    return Decoy(secret, *max(looks, key=lambda look: (looks[look], look)))


def _digits_of(salt: bytes) -> bytes:
    return next(digits for digits in _DIGITS if not salt.translate(None, digits))
