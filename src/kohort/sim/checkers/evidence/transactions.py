# SPDX-License-Identifier: Apache-2.0
"""Evidence of transactions: in their own logs, in those of groups, and in partitions."""

from collections.abc import Iterator

from kohort.records.schemas import OffsetCommitKey
from kohort.records.transactions import TransactionLogKey
from kohort.sim.checkers.evidence.exchange import Exchange
from kohort.sim.checkers.evidence.groups import committed
from kohort.sim.checkers.synced_disk import GROUPS, TRANSACTIONS, SyncedDisk
from kohort.transactions.transaction import TransactionState

OFFSETS_TOPIC = GROUPS.rstrip("-")
STATES = tuple(TransactionState)


def enrolled(
    disk: SyncedDisk,
    name: str,
    producer_id: int,
    epoch: int,
    place: tuple[str, int | None],
    what: str,
) -> Iterator[str]:
    """Alarm unless a transaction has had a partition of this topic, any one for None."""
    for record in reversed(disk.history(TransactionLogKey, name)):
        value = record.value
        if value is None or value.producer_id != producer_id or value.producer_epoch != epoch:
            continue
        for topic in value.transaction_partitions or ():
            if topic.topic == place[0] and (place[1] is None or place[1] in topic.partition_ids):
                return
    yield (
        f"{what} of {name}, producer {producer_id} at epoch {epoch}, is acknowledged, on the disk"
        f" its transaction has no partition {place}"
    )


def txn_offset_commit(disk: SyncedDisk, exchange: Exchange) -> Iterator[str]:
    request = exchange.request
    producer = request.producer_id, request.producer_epoch
    disk.look(GROUPS)
    disk.look(TRANSACTIONS)
    for topic, index, offsets in committed(exchange):
        found = disk.history(OffsetCommitKey, request.group_id, topic, index)
        if not any(
            record.value
            and record.value.offset in offsets
            and (record.producer_id, record.producer_epoch) == producer
            for record in found
        ):
            yield (
                f"{request.transactional_id} is acknowledged at {offsets} of {topic}-{index} for"
                f" {request.group_id}, on the disk it is not"
            )
        yield from enrolled(
            disk, request.transactional_id, *producer, (OFFSETS_TOPIC, None), "an offset"
        )


def init_producer_id(disk: SyncedDisk, exchange: Exchange) -> Iterator[str]:
    answer, name = exchange.answer, exchange.request.transactional_id
    if answer.error_code:
        return
    disk.look_at_catalog()
    reserved = disk.in_a_catalog(
        exchange.since, lambda catalog: catalog.get("next_producer_id", 0) > answer.producer_id
    )
    if not reserved and exchange.request.producer_id < 0:  # else a client may have invented it
        yield f"producer id {answer.producer_id} is given out, on the disk it is free"
    if name is None:
        return
    disk.look(TRANSACTIONS)
    if not any(
        record.value is not None
        and (record.value.producer_id, record.value.producer_epoch)
        == (answer.producer_id, answer.producer_epoch)
        for record in disk.history(TransactionLogKey, name)
    ):
        yield (
            f"{name} is given epoch {answer.producer_epoch} of producer {answer.producer_id}, on"
            " the disk it is not"
        )


def end_txn(disk: SyncedDisk, exchange: Exchange) -> Iterator[str]:
    request = exchange.request
    if exchange.answer.error_code:
        return
    disk.look(TRANSACTIONS)
    for record in reversed(disk.history(TransactionLogKey, request.transactional_id)):
        value = record.value
        if value is None:
            continue
        state = STATES[value.transaction_status]
        ended = state not in (TransactionState.EMPTY, TransactionState.ONGOING)
        its = request.producer_id in (value.producer_id, value.previous_producer_id)
        later = value.producer_epoch >= request.producer_epoch
        so = its and ended and state.commits == request.committed
        if so and (later or value.producer_id != request.producer_id):
            return
    yield (
        f"the end of {request.transactional_id}, producer {request.producer_id} at epoch"
        f" {request.producer_epoch}, is acknowledged (commit: {request.committed}), on the disk it"
        " is not"
    )


def add_partitions(disk: SyncedDisk, exchange: Exchange) -> Iterator[str]:
    request, answer = exchange.request, exchange.answer
    if answer.error_code:
        return
    disk.look(TRANSACTIONS)
    producer = request.v3_and_below_producer_id, request.v3_and_below_producer_epoch
    answers = [(request.v3_and_below_transactional_id, producer, topic)
               for topic in answer.results_by_topic_v3_and_below]  # fmt: skip
    asked = {
        transaction.transactional_id: (transaction.producer_id, transaction.producer_epoch)
        for transaction in request.transactions
        if not transaction.verify_only
    }
    for result in answer.results_by_transaction:
        if result.transactional_id in asked:
            answers += [
                (result.transactional_id, asked[result.transactional_id], topic)
                for topic in result.topic_results
            ]
    for name, whose, topic in answers:
        for part in topic.results_by_partition:
            if not part.partition_error_code:
                place = topic.name, part.partition_index
                yield from enrolled(disk, name, *whose, place, "a partition")


def add_offsets(disk: SyncedDisk, exchange: Exchange) -> Iterator[str]:
    request = exchange.request
    if not exchange.answer.error_code:
        disk.look(TRANSACTIONS)
        yield from enrolled(
            disk, request.transactional_id, request.producer_id, request.producer_epoch,
            (OFFSETS_TOPIC, None), "a group",
        )  # fmt: skip


def write_markers(disk: SyncedDisk, exchange: Exchange) -> Iterator[str]:
    commits = {
        marker.producer_id: (marker.producer_epoch, marker.transaction_result)
        for marker in exchange.request.markers
    }
    for marker in exchange.answer.markers:
        for topic in marker.topics:
            for part in topic.partitions:
                if part.error_code or topic.name == OFFSETS_TOPIC:
                    continue
                folder = f"{topic.name}-{part.partition_index}"
                disk.look(folder)
                wanted = marker.producer_id, *commits[marker.producer_id]
                if wanted not in disk.markers[folder]:
                    yield f"the marker {wanted} of {folder} is acknowledged, not on the disk"
