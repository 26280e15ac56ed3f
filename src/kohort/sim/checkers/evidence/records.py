# SPDX-License-Identifier: Apache-2.0
"""Evidence in partitions: records, and where a partition begins."""

from collections.abc import Iterator

from kohort.sim.checkers.evidence.exchange import Exchange
from kohort.sim.checkers.evidence.transactions import enrolled
from kohort.sim.checkers.synced_disk import TRANSACTIONS, SyncedDisk
from kohort.wire import batch as batches


def produce(disk: SyncedDisk, exchange: Exchange) -> Iterator[str]:
    for topic in exchange.answer.responses:
        name = topic.name or exchange.name_of(topic.topic_id)
        for part in topic.partition_responses:
            if part.error_code or name is None:
                continue
            folder = f"{name}-{part.index}"
            disk.look(folder)
            end = disk.ends.get(folder, 0)
            if end <= part.base_offset:
                yield (
                    f"offset {part.base_offset} of {folder} is acknowledged, on the disk it ends"
                    f" at {end}"
                )
    if exchange.request.transactional_id:
        yield from _enrolled_by_produce(disk, exchange)


def _enrolled_by_produce(disk: SyncedDisk, exchange: Exchange) -> Iterator[str]:
    """A record of a transaction is acknowledged once a marker is certain to come behind it."""
    done = {
        (topic.name or topic.topic_id, part.index)
        for topic in exchange.answer.responses
        for part in topic.partition_responses
        if not part.error_code
    }
    disk.look(TRANSACTIONS)
    for topic in exchange.request.topic_data:
        name = topic.name or exchange.name_of(topic.topic_id)
        for part in topic.partition_data:
            if (topic.name or topic.topic_id, part.index) in done and name is not None:
                header = batches.header_at(part.records)
                yield from enrolled(
                    disk, exchange.request.transactional_id, header.producer_id,
                    header.producer_epoch, (name, part.index), "a record",
                )  # fmt: skip


def delete_records(disk: SyncedDisk, exchange: Exchange) -> Iterator[str]:
    for topic in exchange.answer.topics:
        for part in topic.partitions:
            folder = f"{topic.name}-{part.partition_index}"
            if not part.error_code and disk.start(folder) < part.low_watermark:
                yield (
                    f"{folder} begins at {part.low_watermark}, on the disk it begins at"
                    f" {disk.start(folder)}"
                )
