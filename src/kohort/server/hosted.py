"""Topics whose partitions belong to a machine: it alone writes their logs, and answers from them.

HOSTED is the list. The cluster gives each partition of these topics a driver when it is opened.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from kohort.config import BrokerConfig
from kohort.coordinator.shard import Shard
from kohort.coordinator.topics import Topics
from kohort.errors import Broken
from kohort.runtime.driver import PartitionDriver
from kohort.server.catalog import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from kohort.server.partitions import Partition
from kohort.server.tokens import Token
from kohort.terms import Offset
from kohort.transactions.machine import Transactor

Driver = PartitionDriver[Shard]
TransactionDriver = PartitionDriver[Transactor]
AnyDriver = PartitionDriver[Any]


class Around(NamedTuple):
    """What a machine is given: the settings, a source of ids, one of producer ids (None while more
    are being reserved), the topics of now, how large a record may be at the time, the token of
    those who carry its messages out, and who is told of producer ids that are in use.
    """

    config: BrokerConfig
    new_uuid: Callable[[], bytes]
    new_producer_id: Callable[[], int | None]
    topics: Topics
    limit_bytes: Callable[[], int]
    outbox: Token
    note_producer_id: Callable[[int], None]


NewMachine = Callable[[Around], Any]
"""Makes a `runtime.machine.Machine` that knows nothing yet."""


def _new_shard(around: Around) -> Shard:
    return Shard(around.config, around.new_uuid, around.topics, record_limit=around.limit_bytes)


def _new_transactor(around: Around) -> Transactor:
    return Transactor(around.config, around.new_producer_id, around.outbox, around.note_producer_id)


HOSTED: Mapping[str, NewMachine] = {
    OFFSETS_TOPIC: _new_shard,
    TRANSACTIONS_TOPIC: _new_transactor,
}


class Hosted:
    """A partition and its driver. Once a part of the log is durable, the driver's replies are
    released and consumers may read it; to them it is an ordinary partition.
    """

    def __init__(
        self, driver: AnyDriver, partition: Partition, submit: Callable[[AnyDriver], None]
    ) -> None:
        self.driver = driver
        self.partition = partition
        self.log = driver.log
        self._submit = submit

    def durable(self, end: Offset) -> None:
        self.partition.durable(end)
        for reply in self.driver.synced(end):
            reply.token.answer(reply.response)

    def lost(self, error: Broken) -> None:
        self.partition.lost(error)
        for reply in self.driver.lost(error):
            reply.token.fail(error)

    def after_sync(self) -> None:
        """The driver goes on in the next turn."""
        self._submit(self.driver)
