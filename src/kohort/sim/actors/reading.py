# SPDX-License-Identifier: Apache-2.0
"""One Fetch of one partition, and its records: all of them, or those that are committed."""

from typing import NamedTuple

from kohort.errors import WireError
from kohort.sim.actors.actor import Actor
from kohort.sim.facts import PartitionId
from kohort.wire import batch as batches
from kohort.wire.batch import (
    BatchHeader,
    check,  # its own name: a broker without the check has no blind clients
)
from kohort.wire.messages.fetch import (
    AbortedTransaction,
    FetchPartition,
    FetchRequest,
    FetchTopic,
)

READ_COMMITTED = 1


class FetchResult(NamedTuple):
    """What a Fetch brings: an error code, or records by offset, the offset behind them, and the end
    of the log. Who reads committed records may be stopped before that end.
    """

    code: int
    values: dict[int, bytes]
    next_offset: int
    end: int = -1


async def fetch(
    actor: Actor,
    place: PartitionId,
    node: int,
    offset: int,
    *,
    wait_ms: int = 0,
    limit: int = 100_000,
    committed: bool = False,
) -> FetchResult | None:
    """Records from an offset on; None when there is no answer."""
    part = FetchPartition(partition=place[1], fetch_offset=offset, partition_max_bytes=limit)
    request = FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=1 if wait_ms else 0,
        isolation_level=READ_COMMITTED if committed else 0,
        topics=[FetchTopic(topic_id=place[0], partitions=[part])],
    )
    answer = await actor.ask(request, 13, node=node, patience_ms=wait_ms + 8000)
    if answer is None or not (answer.error_code or answer.responses):
        return None
    if answer.error_code:
        return FetchResult(answer.error_code, {}, offset)
    found = answer.responses[0].partitions[0]
    if found.error_code:
        return FetchResult(found.error_code, {}, offset)
    values: dict[int, bytes] = {}
    dropped = _AbortedBatches(found.aborted_transactions or [])
    records = found.records or b""
    try:
        for at, header in batches.walk(records):
            check(records, at, header)
            data = records[at : at + header.length]
            if not dropped.has(header, data):
                for record in batches.records(data):
                    if record.offset >= offset:
                        values[record.offset] = record.value or b""
            offset = header.last_offset + 1
    except WireError as error:
        actor.alarm(f"gets damaged records of {place[0].hex()[:8]}-{place[1]}: {error}")
    return FetchResult(0, values, offset, found.high_watermark)


class _AbortedBatches:
    """Which batches a client leaves out: markers, and what the answer says was aborted."""

    def __init__(self, aborted: list[AbortedTransaction]) -> None:
        self._coming = sorted(aborted, key=lambda entry: entry.first_offset, reverse=True)
        self._inside: set[int] = set()  # producers within an aborted transaction

    def has(self, header: BatchHeader, data: bytes) -> bool:
        """Whether this batch is one, the next one of the answer."""
        while self._coming and self._coming[-1].first_offset <= header.last_offset:
            self._inside.add(self._coming.pop().producer_id)
        if not header.is_control:
            return header.is_transactional and header.producer_id in self._inside
        if not all(batches.marker_commits(key) for _, _, key, _ in batches.entries(data)):
            self._inside.discard(header.producer_id)
        return True
