# SPDX-License-Identifier: Apache-2.0
"""WriteTxnMarkers: a tool ends what nobody else does."""

import pytest
from tests.server.desk import Desk
from tests.server.transactional import Producing, committed, seen

from kohort.errors import ErrorCode
from kohort.sim.disk import SimulatedFiles
from kohort.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)


def write(desk, one, *places, commit=False, epoch=None, coordinator=0):
    """The codes, in order."""
    marker = WritableTxnMarker(
        producer_id=one.id,
        producer_epoch=one.epoch if epoch is None else epoch,
        transaction_result=commit,
        topics=[
            WritableTxnMarkerTopic(name=topic, partition_indexes=[index]) for topic, index in places
        ],
        coordinator_epoch=coordinator,
    )
    (answer,) = desk.ask(WriteTxnMarkersRequest(markers=[marker]), 2).markers
    assert answer.producer_id == one.id
    return [topic.partitions[0].error_code for topic in answer.topics]


@pytest.mark.parametrize("commit", [True, False])
def test_a_marker_ends_a_transaction_where_it_is_written(commit):
    desk = Desk()
    desk.create(partitions=2)
    one = Producing(desk)
    one.write(b"a")
    one.write(b"b", partition=1)
    one.commit_offsets(5)
    shard = desk.cluster.placement.shard_of("g")
    codes = write(
        desk,
        one,
        ("orders", 0),
        ("nowhere", 0),
        ("orders", 9),
        ("__consumer_offsets", shard),
        ("__transaction_state", 0),
        commit=commit,
    )

    missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert codes == [0, missing, missing, 0, missing]
    assert seen(desk) == ([b"a"] if commit else [])
    assert seen(desk, partition=1) == []
    assert committed(desk) == (5 if commit else -1)
    assert desk.ask(WriteTxnMarkersRequest(markers=[]), 1).markers == []


def test_a_marker_of_an_older_epoch_is_refused():
    desk = Desk()
    desk.create()
    one = Producing(desk)
    one.write(b"a")
    one.end()
    one.write(b"b")

    assert write(desk, one, ("orders", 0), epoch=0) == [ErrorCode.INVALID_PRODUCER_EPOCH]
    assert seen(desk) == [b"a"]


@pytest.mark.parametrize("restart", [False, True])
def test_a_marker_of_an_older_coordinator_is_refused(restart):
    """In the log of a topic as in that of groups, which alone is written by its machine."""
    files = SimulatedFiles()
    desk = Desk(files=files)
    desk.create()
    one = Producing(desk)
    places = ("orders", 0), ("__consumer_offsets", desk.cluster.placement.shard_of("g"))
    one.write(b"a")
    one.commit_offsets(5)
    assert write(desk, one, *places, coordinator=3) == [0, 0]
    if restart:
        desk = Desk(files=files.after_crash())
    older = ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert write(desk, one, *places, coordinator=2) == [older, older]
    assert write(desk, one, *places, coordinator=3) == [0, 0]
    assert write(desk, one, *places, coordinator=4) == [0, 0]
