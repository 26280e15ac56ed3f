"""From a log to a shard: every record is replayed, by the same functions that apply a live step."""

from collections.abc import Iterator

from kohort.coordinator.shard import Shard
from kohort.records.codec import decode
from kohort.storage.log import Log
from kohort.wire import batch

READ_LIMIT_BYTES = 1 << 62


def load(log: Log, shard: Shard) -> Iterator[int]:
    """Replay a log into a shard, batch by batch; each step tells how many records it took.

    Raises WireError for a record whose version is not known: half a partition is worse than none.
    """
    for data in log.read(log.start, READ_LIMIT_BYTES):
        header = batch.header_at(data)
        if header.is_control:
            for _, _, key, _ in batch.entries(data):
                shard.replay_marker(header.producer_id, commit=batch.marker_commits(key))
        else:
            producer_id = header.producer_id if header.is_transactional else -1
            for offset, _, key, value in batch.entries(data):
                if key is not None:
                    shard.replay(decode(key, value), producer_id=producer_id, offset=offset)
        yield header.count
