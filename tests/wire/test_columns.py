# SPDX-License-Identifier: Apache-2.0
"""Columns are the elements of an array to everybody, and their bytes are those of the elements."""

from array import array

import pytest

from kohort.wire.codec import decode, encode
from kohort.wire.columns import Columns
from kohort.wire.messages.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)

pytestmark = pytest.mark.usefixtures("each_codec")

OFFSETS = Columns(
    OffsetFetchResponsePartitions, ([0, 1, 5], array("q", [7, 1 << 40, -1]), array("i", [3, -1, 0]))
)
ELEMENTS = [
    OffsetFetchResponsePartitions(
        partition_index=index, committed_offset=offset, committed_leader_epoch=epoch
    )
    for index, offset, epoch in ((0, 7, 3), (1, 1 << 40, -1), (5, -1, 0))
]


def answer(partitions):
    topic = OffsetFetchResponseTopics(name="t", partitions=partitions)
    return OffsetFetchResponse(groups=[OffsetFetchResponseGroup(group_id="g", topics=[topic])])


def test_they_are_their_elements():
    assert [*OFFSETS] == ELEMENTS
    assert OFFSETS == ELEMENTS
    assert Columns(OFFSETS.of, OFFSETS.values) == OFFSETS
    assert len(OFFSETS) == 3
    assert (OFFSETS[0], OFFSETS[-1], OFFSETS[1:]) == (ELEMENTS[0], ELEMENTS[2], ELEMENTS[1:])
    assert OFFSETS + ELEMENTS == ELEMENTS * 2
    more = list(ELEMENTS)
    more += OFFSETS
    assert more == ELEMENTS * 2
    assert ELEMENTS[:2] != OFFSETS
    assert OFFSETS != 3


@pytest.mark.parametrize("version", [8, 9, 10])
@pytest.mark.parametrize("width", [1, 2, 3])
def test_their_bytes_are_those_of_the_elements(version, width):
    columns = Columns(OFFSETS.of, OFFSETS.values[:width])
    data = encode(answer(columns), version)
    assert data == encode(answer([*columns]), version)
    assert decode(OffsetFetchResponse, version, data).groups[0].topics[0].partitions == [*columns]


def test_columns_of_different_lengths_are_no_elements():
    with pytest.raises(ValueError, match="shorter"):
        encode(answer(Columns(OFFSETS.of, ([1, 2], array("q", [1])))), 8)


def test_no_columns_are_no_elements():
    assert encode(answer(Columns(OFFSETS.of, ([],))), 8) == encode(answer([]), 8)
