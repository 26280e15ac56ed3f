# SPDX-License-Identifier: Apache-2.0
"""From a log to a machine: the functions that apply a live step replay the records, too."""

from collections.abc import Iterator

from kohort.machines.effects import Producer
from kohort.machines.machine import Machine
from kohort.storage.log import Log
from kohort.wire import batch

READ_LIMIT_BYTES = 1 << 62


def load(log: Log, machine: Machine) -> Iterator[int]:
    """Replay a log into a machine, batch by batch; each step tells how many records it took.

    Raises Broken for a log that is damaged, and WireError for a record whose version is not known:
    half a partition is worse than none.
    """
    decode, replay = machine.decode, machine.replay
    for data in log.read(log.start, READ_LIMIT_BYTES):
        header = batch.header_at(data)
        producer = None
        if header.is_transactional:
            producer = Producer(header.producer_id, header.producer_epoch)
        if header.is_control:
            for _, _, key, _ in batch.entries(data):
                ended = Producer(header.producer_id, header.producer_epoch)
                machine.replay_marker(ended, commit=batch.marker_commits(key))
        else:
            for offset, _, key, value in batch.entries(data):
                if key is not None:
                    replay(decode(key, value), offset, producer)
        yield header.count
