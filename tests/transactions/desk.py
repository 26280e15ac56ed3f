# SPDX-License-Identifier: Apache-2.0
"""A machine of transactions on a log in memory, with a clock and a marker sender that a test
empties.
"""

from itertools import count
from typing import Any

from tests.observer import RecordingObserver

from kohort.config import BrokerConfig
from kohort.machines.effects import Call, Client, Effects, Producer
from kohort.runtime.driver import PartitionDriver
from kohort.storage.memory import MemoryLog
from kohort.terms import Millis, TopicPartition
from kohort.transactions.machine import TransactionCoordinator
from kohort.transactions.messages import Enrol, Markers, MarkersWritten
from kohort.wire.messages.describe_transactions import DescribeTransactionsRequest
from kohort.wire.messages.end_txn import EndTxnRequest
from kohort.wire.messages.init_producer_id import InitProducerIdRequest

START = Millis(1_700_000_000_000)
P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)


class Checked(TransactionCoordinator):
    """A call that says it changes nothing does not."""

    def call(self, call: Call[Any], now: Millis) -> Effects:
        reads = self.reads(call)
        effects = super().call(call, now)
        assert not (reads and effects.records), call.request
        return effects


class Asked:
    """A request that was sent. `answers` gets what came back."""

    def __init__(self) -> None:
        self.answers: list[Any] = []


class Desk:
    """`marker_sender` has the markers that were asked for and not yet written."""

    def __init__(self, **settings: object) -> None:
        names = {name.replace("_", "."): str(value) for name, value in settings.items()}
        self.config = BrokerConfig.of(names)
        self.now = START
        self.ids = count(1000)
        self.reserved = True
        self.noted: list[int] = []
        self.log = MemoryLog()
        self.told = RecordingObserver()
        self.sent: list[Markers] = []
        self.restart()

    def _new_id(self) -> int | None:
        return next(self.ids) if self.reserved else None

    def restart(self) -> None:
        """Forget everything but the log."""
        self.sent.clear()
        self.driver = PartitionDriver(
            self.log,
            lambda: Checked(self.config, self._new_id, self, self.noted.append),
            self.told,
            name="the log",
        )
        self.driver.start_loading()
        self.driver.load_some(self.now)
        self.step()

    def step(self) -> None:
        while True:
            self.driver.turn(self.now)
            for reply in self.driver.synced(self.log.sync()):
                if reply.token is self:
                    self.sent.append(reply.response)
                else:
                    reply.token.answers.append(reply.response)
            wake = self.driver.wake_at()
            if not self.driver.has_more and (wake is None or wake > self.now):
                break
        assert not self.told.errors, self.told.errors

    def tell(self, request: Any, version: int = 0) -> Any:
        asked = Asked()
        self.driver.submit(Call(asked, request, version, Client("app", "/127.0.0.1")))
        self.step()
        (answer,) = asked.answers
        return answer

    def init(
        self,
        name: str = "t",
        *,
        producer: tuple[int, int] = (-1, -1),
        timeout: int = 60_000,
        version: int = 5,
    ) -> Any:
        request = InitProducerIdRequest(
            transactional_id=name,
            transaction_timeout_ms=timeout,
            producer_id=producer[0],
            producer_epoch=producer[1],
        )
        return self.tell(request, version)

    def enrol(self, producer: tuple[int, int], *partitions: TopicPartition, **more: Any) -> Any:
        name = more.pop("name", "t")
        return self.tell(Enrol(name, Producer(*producer), partitions or (P0,), **more))

    def end(
        self, producer: tuple[int, int], *, commit: bool = True, version: int = 4, name: str = "t"
    ) -> Any:
        request = EndTxnRequest(
            transactional_id=name,
            producer_id=producer[0],
            producer_epoch=producer[1],
            committed=commit,
        )
        return self.tell(request, version)

    def written(self, *failed: TopicPartition) -> None:
        """Every marker that was asked for is durable now, but for those that fail."""
        asked, self.sent = self.sent, []
        for one in asked:
            good = tuple(place for place in one.partitions if place not in failed)
            bad = tuple(place for place in one.partitions if place in failed)
            self.tell(MarkersWritten(one.transactional_id, one.ticket, good, bad))

    def wait(self, ms: int) -> None:
        end = self.now + ms
        while (wake := self.driver.wake_at()) is not None and wake <= end:
            self.now = Millis(max(self.now, wake))
            self.step()
        self.now = Millis(end)

    def state(self, name: str = "t") -> str:
        """What DescribeTransactions says of an id; empty for none."""
        request = DescribeTransactionsRequest(transactional_ids=[name])
        (one,) = self.tell(request).transaction_states
        return one.transaction_state

    def known(self, name: str = "t") -> Any:
        return self.driver.machine.transactions.get(name)
