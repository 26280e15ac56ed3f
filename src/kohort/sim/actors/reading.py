"""One Fetch of one partition, and its records."""

from typing import NamedTuple

from kohort.errors import WireError
from kohort.sim.actors.actor import Actor
from kohort.sim.facts import Place
from kohort.wire import batch as batches
from kohort.wire.batch import check  # its own name: a broker without the check has no blind clients
from kohort.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic


class Piece(NamedTuple):
    """What a Fetch brings: an error code, or records by offset, the offset behind them, and the end
    of what can be read.
    """

    code: int
    values: dict[int, bytes]
    next_offset: int
    end: int = -1


async def fetch(
    actor: Actor, place: Place, node: int, offset: int, *, wait_ms: int = 0, limit: int = 100_000
) -> Piece | None:
    """Records from an offset on; None when there is no answer."""
    part = FetchPartition(partition=place[1], fetch_offset=offset, partition_max_bytes=limit)
    request = FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=1 if wait_ms else 0,
        topics=[FetchTopic(topic_id=place[0], partitions=[part])],
    )
    answer = await actor.ask(request, 13, node=node, patience_ms=wait_ms + 8000)
    if answer is None or not (answer.error_code or answer.responses):
        return None
    if answer.error_code:
        return Piece(answer.error_code, {}, offset)
    found = answer.responses[0].partitions[0]
    if found.error_code:
        return Piece(found.error_code, {}, offset)
    values: dict[int, bytes] = {}
    records = found.records or b""
    try:
        for at, header in batches.walk(records):
            check(records, at, header)
            for record in batches.records(records[at : at + header.length]):
                if record.offset >= offset:
                    values[record.offset] = record.value or b""
            offset = header.last_offset + 1
    except WireError as error:
        actor.alarm(f"gets damaged records of {place[0].hex()[:8]}-{place[1]}: {error}")
    return Piece(0, values, offset, found.high_watermark)
