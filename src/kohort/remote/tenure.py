# SPDX-License-Identifier: Apache-2.0
"""What an owner does so that the cluster does not forget it.

A partition forgets a producer id after producer.id.expiration.ms without a batch: a former owner
could write again then. A transaction coordinator forgets a transactional id after
transactional.id.expiration.ms without InitProducerId, however much its owner writes: the next owner
would get another producer id then, and fence nobody.
"""

from enum import Enum
from typing import NamedTuple

from kohort.terms import Millis

_SHARE = 3  # an owner has so many chances before it is forgotten


class Expirations(NamedTuple):
    """Settings of the cluster, in milliseconds; those that are here are Kafka's defaults."""

    producer_id_ms: int = 86_400_000
    transactional_id_ms: int = 604_800_000


class Duty(Enum):
    """What an owner owes."""

    KEEP_ALIVE = "write the claim once more"
    RENEW = "ask for the next epoch"


class Tenure:
    """When an owner has to do something. It begins when the log is claimed."""

    def __init__(self, expirations: Expirations, now: Millis) -> None:
        self._write_ms = expirations.producer_id_ms // _SHARE
        self._renew_ms = expirations.transactional_id_ms // _SHARE
        self._wrote_at = now
        self._renewed_at = now

    def wrote(self, now: Millis) -> None:
        """A batch was acknowledged."""
        self._wrote_at = now

    def renewed(self, now: Millis) -> None:
        """The cluster has given an epoch."""
        self._renewed_at = now

    def due(self, now: Millis) -> Duty | None:
        """What has to be done now. A renewal comes first, since a batch comes with the epoch."""
        if now - self._renewed_at >= self._renew_ms:
            return Duty.RENEW
        if now - self._wrote_at >= self._write_ms:
            return Duty.KEEP_ALIVE
        return None

    def wake_at(self) -> Millis:
        """When something is due next."""
        return Millis(min(self._renewed_at + self._renew_ms, self._wrote_at + self._write_ms))
