# SPDX-License-Identifier: Apache-2.0
"""Bugs in how a broker answers, and in how it ends."""

import asyncio
from collections.abc import Iterator
from typing import Any

from kohort.server import broker
from kohort.server.network import connection
from kohort.server.partitions import durability
from kohort.sim.injected_bugs.replace_attribute import replace_attribute


def reply_before_sync() -> Iterator[None]:
    """What is written counts as durable."""
    begin = durability.Durability.__init__

    def unsynced(self: durability.Durability, *, synced: bool) -> None:
        del synced
        begin(self, synced=False)

    with replace_attribute(durability.Durability, "__init__", unsynced):
        yield


def overtake() -> Iterator[None]:
    """An answer that is ready leaves before an earlier one of its connection that is not."""
    output = connection.Connection.output

    def ready_first(self: connection.Connection) -> list[bytes]:
        in_order = sorted(self.slots, key=lambda slot: slot.parts is None)
        self.slots.clear()
        self.slots += in_order
        return output(self)

    with replace_attribute(connection.Connection, "output", ready_first):
        yield


def keep_bytes() -> Iterator[None]:
    """Of large answers a part is never given back."""
    output = connection.Connection.output

    def too_little(self: connection.Connection) -> list[bytes]:
        counted = self._answers
        before = counted.used
        parts = output(self)
        counted.used += max(before - counted.used - 400, 0)
        return parts

    with replace_attribute(connection.Connection, "output", too_little):
        yield


def endless_stop() -> Iterator[None]:
    """The broker never ends when it is told to."""

    async def endless(_self: Any) -> None:
        await asyncio.get_running_loop().create_future()

    with replace_attribute(broker.Broker, "stop", endless):
        yield
