# SPDX-License-Identifier: Apache-2.0
"""Bugs in how transactions are kept apart, ended and read."""

from collections.abc import Iterator
from typing import Any

from kohort.machines.effects import Call, Producer
from kohort.server.partitions.partition_transactions import PartitionTransactions
from kohort.sim.injected_bugs.replace_attribute import replace_attribute
from kohort.storage.log import StoredLog
from kohort.terms import Offset
from kohort.transactions import machine
from kohort.transactions.messages import Enrol
from kohort.wire.batch import BatchHeader


def marker_offset() -> Iterator[None]:
    """A marker that is read from the log counts as where its transaction began."""
    take = PartitionTransactions._take  # noqa: SLF001

    def at_the_marker(self: PartitionTransactions, header: BatchHeader, log: StoredLog) -> None:
        if header.is_control and header.producer_id in self._open:
            self._open[header.producer_id] = Offset(header.base_offset)
        take(self, header, log)

    with replace_attribute(PartitionTransactions, "_take", at_the_marker):
        yield


def fenced_producer() -> Iterator[None]:
    """Which epoch a producer has is not looked at when it adds partitions."""
    enrol = machine.CALLS[Enrol]

    def whoever(state: Any, call: Any, now: Any) -> Any:
        known = state.transactions.get(call.request.transactional_id)
        if known is not None:
            producer = Producer(known.producer_id, known.epoch)
            request = call.request._replace(producer=producer)
            call = Call(call.token, request, call.version, call.client)
        return enrol(state, call, now)

    machine.CALLS[Enrol] = whoever
    try:
        yield
    finally:
        machine.CALLS[Enrol] = enrol


def past_open() -> Iterator[None]:
    """Readers of committed records are not stopped where a transaction is open."""

    def everything(_self: PartitionTransactions, high_watermark: Offset) -> Offset:
        return high_watermark

    with replace_attribute(PartitionTransactions, "stable", everything):
        yield
