# SPDX-License-Identifier: Apache-2.0
"""Bugs in how a log is taken over and written, as somebody might make them by mistake."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack

from kohort.errors import ErrorCode
from kohort.machines.effects import Producer
from kohort.remote.claim import Claim, ClaimResult, Read, Write
from kohort.remote.tenure import Duty, Tenure
from kohort.remote.writer import Gap, PartitionWriter
from kohort.sim.injected_bugs.replace_attribute import InjectedBug, replace_attribute
from kohort.sim.remote.nodes import MARGIN_MS, SESSION_MS
from kohort.sim.remote.owner import Owner
from kohort.terms import Millis, Offset
from kohort.wire.batch import BatchHeader


def read_before_claim() -> Iterator[None]:
    """The log is read first, and claimed behind that."""

    def initialised(self: Claim, producer: Producer) -> None:
        self._producer = producer
        self.request = Read(None)

    def read(self: Claim, _headers: Iterable[BatchHeader], following: Offset) -> None:
        self._next = following
        self.request = Write(self._batch(self._producer))

    def written(self: Claim, _code: ErrorCode, base_offset: int) -> None:
        self.result = ClaimResult(self._producer, 1, Offset(base_offset + 1))

    with ExitStack() as stack:
        for function in (initialised, read, written):
            stack.enter_context(replace_attribute(Claim, function.__name__, function))
        yield


def no_fence() -> Iterator[None]:
    """Other producer ids that stand in the log are not fenced."""

    def read(self: Claim, _headers: Iterable[BatchHeader], following: Offset) -> None:
        self._next = following
        self._go_on()

    with replace_attribute(Claim, "read", read):
        yield


def no_keep_alive() -> Iterator[None]:
    """An owner without anything to write is forgotten by the partition."""
    due = Tenure.due

    def renewal(self: Tenure, now: Millis) -> Duty | None:
        self.wrote(now)
        return due(self, now)

    with replace_attribute(Tenure, "due", renewal):
        yield


def no_renewal() -> Iterator[None]:
    """An owner that lasts is forgotten by the transaction coordinator."""
    due = Tenure.due

    def keep_alive(self: Tenure, now: Millis) -> Duty | None:
        self.renewed(now)
        return due(self, now)

    with replace_attribute(Tenure, "due", keep_alive):
        yield


def no_lease() -> Iterator[None]:
    """A writer does not ask whether it has a lease."""
    to_send = PartitionWriter.to_send

    def always(self: PartitionWriter, _now: Millis) -> list[bytes]:
        return to_send(self, Millis(-1))

    with replace_attribute(PartitionWriter, "to_send", always):
        yield


def lease_from_arrival() -> Iterator[None]:
    """A lease is counted from when the answer arrives."""

    def leased_until(_sent_at: Millis, heard_at: Millis) -> Millis:
        return Millis(heard_at + SESSION_MS - MARGIN_MS)

    with replace_attribute(Owner, "leased_until", staticmethod(leased_until)):
        yield


def resent_backwards() -> Iterator[None]:
    """What has no answer is sent again in another order."""
    disconnected = PartitionWriter.disconnected

    def backwards(self: PartitionWriter) -> None:
        disconnected(self)
        self._in_flight.reverse()

    with replace_attribute(PartitionWriter, "disconnected", backwards):
        yield


def answer_when_sent() -> Iterator[None]:
    """A batch counts as written when it is sent."""
    to_send = PartitionWriter.to_send

    def hasty(self: PartitionWriter, now: Millis) -> list[bytes]:
        sent = to_send(self, now)
        if self._in_flight:
            self.acknowledged = self._in_flight[-1].end
        return sent

    with replace_attribute(PartitionWriter, "to_send", hasty):
        yield


def any_gap() -> Iterator[None]:
    """A batch that stands elsewhere than predicted counts all the same."""

    def filled(self: PartitionWriter, _headers: Iterable[BatchHeader]) -> None:
        gap = self.gap or Gap(self._base, self._base)
        self.gap = None
        self._base = gap.end
        self._take_answers()

    with replace_attribute(PartitionWriter, "gap_read", filled):
        yield


def crowded_start() -> Iterator[None]:
    """The first batch of a producer that the partition does not know is followed by others."""
    renewed = PartitionWriter.renewed

    def known(self: PartitionWriter, producer: Producer) -> None:
        renewed(self, producer)
        self._is_known = True

    with replace_attribute(PartitionWriter, "renewed", known):
        yield


TAKEOVER_BUGS: dict[str, InjectedBug] = {
    "read before claim": read_before_claim,
    "no fence": no_fence,
    "no keep-alive": no_keep_alive,
    "no renewal": no_renewal,
    "no lease": no_lease,
    "lease from arrival": lease_from_arrival,
    "resent backwards": resent_backwards,
    "answer when sent": answer_when_sent,
    "any gap": any_gap,
    "crowded start": crowded_start,
}
