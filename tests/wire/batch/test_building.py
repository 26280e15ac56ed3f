# SPDX-License-Identifier: Apache-2.0
"""Batches to the byte, also those of a real broker."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import golden_logs
from tests.wire.batch.by_hand import BY_HAND

from kohort.wire import batch as batches
from kohort.wire.batch import Record

blobs = st.none() | st.binary(max_size=200)

headers = st.lists(st.tuples(st.text(max_size=10), blobs), max_size=3)


@st.composite
def record_lists(draw):
    offset = draw(st.integers(0, 2**40))
    found = []
    for _ in range(draw(st.integers(1, 8))):
        timestamp = draw(st.integers(-1, 2**45))
        found.append(Record(offset, timestamp, draw(blobs), draw(blobs), draw(headers)))
        offset += draw(st.integers(1, 300))
    return found


def test_build_gives_the_bytes_of_the_format():
    assert batches.build([(b"k", b"v")], 1000, base_offset=7, leader_epoch=2) == BY_HAND
    assert batches.entries(BY_HAND) == [(7, 1000, b"k", b"v")]


@given(
    st.lists(st.tuples(blobs, blobs), min_size=1, max_size=100), st.sampled_from([0, 1, 2, 3, 4])
)
def test_what_is_built_is_read(pairs, compression):
    data = batches.build(pairs, 99, base_offset=5, compression=compression, producer_id=3)
    header = batches.header_at(data)
    batches.check(data, 0, header)
    assert header.count == header.last_offset_delta + 1 == len(pairs)
    assert batches.entries(data) == [(5 + at, 99, *pair) for at, pair in enumerate(pairs)]


def test_every_width_of_varint():
    sizes = [0, 63, 64, 2047, 2048, 8191, 8192, 1_100_000]
    pairs = [(b"k" * size, b"v" * size) for size in sizes]
    data = batches.build(pairs, 1)
    assert [(key, value) for _, _, key, value in batches.entries(data)] == pairs
    many = batches.build([(b"", None)] * 10_000, 1)
    assert [offset for offset, *_ in batches.entries(many)] == list(range(10_000))


@given(record_lists(), st.sampled_from([0, 1, 2, 3, 4]))
def test_records_with_all_they_carry(records, codec):
    data = batches.build_records(records, attributes=codec, producer_id=4, base_sequence=9)
    assert list(batches.records(data)) == records
    assert batches.entries(data) == [(r.offset, r.timestamp, r.key, r.value) for r in records]
    header = batches.header_at(data)
    batches.check(data, 0, header)
    assert header.last_offset == records[-1].offset
    assert header.max_timestamp == max(record.timestamp for record in records)


def test_append_time_is_the_time_of_all_records():
    records = [Record(0, 5, b"a", b""), Record(1, 7, b"b", b"")]
    data = batches.with_append_time(batches.build_records(records), 123)
    header = batches.header_at(data)
    batches.check(data, 0, header)
    assert header.is_append_time
    assert header.max_timestamp == 123
    assert [time for _, time, _, _ in batches.entries(data)] == [123, 123]
    assert [record.timestamp for record in batches.records(data)] == [123, 123]


@pytest.mark.parametrize("commit", [True, False])
def test_markers(commit):
    data = batches.build_marker(
        commit=commit, timestamp=5, producer_id=9, producer_epoch=1, coordinator_epoch=3
    )
    header = batches.header_at(data)
    assert header.is_control
    assert header.is_transactional
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (9, 1, -1)
    ((_, _, key, value),) = batches.entries(data)
    assert batches.marker_commits(key) is commit
    assert value == b"\x00\x00\x00\x00\x00\x03"


@pytest.mark.parametrize("name", golden_logs.NAMES)
def test_real_batches_are_built_to_the_byte(name, tmp_path):
    """All that no compressor of another make has had its hands in."""
    folder = golden_logs.unpack(name, tmp_path)
    built = 0
    for path in sorted(folder.glob("*/*.log")):
        data = path.read_bytes()
        for at, header in batches.walk(data):
            whole = data[at : at + header.length]
            if header.compression or header.is_append_time:
                continue
            again = batches.build_records(
                list(batches.records(data, at)),
                base_offset=header.base_offset,
                last_offset=header.last_offset,
                producer_id=header.producer_id,
                producer_epoch=header.producer_epoch,
                base_sequence=header.base_sequence,
                attributes=header.attributes,
                base_timestamp=header.base_timestamp,
                max_timestamp=header.max_timestamp,
                leader_epoch=header.partition_leader_epoch,
            )
            assert again == whole
            built += 1
    assert built or name.startswith("codec-")


@pytest.mark.parametrize("name", ["1-written", "2-compacted", "4-killed"])
def test_batches_of_a_real_coordinator_are_built_to_the_byte(name, tmp_path):
    """By the function that our coordinator writes with, where nothing was cleaned away."""
    folder = golden_logs.unpack(name, tmp_path)
    built = 0
    for path in sorted(folder.glob("__consumer_offsets-*/*.log")):
        data = path.read_bytes()
        for at, header in batches.walk(data):
            found = batches.entries(data, at)
            offsets = [
                header.base_offset - 1,
                *(entry[0] for entry in found),
                header.last_offset + 1,
            ]
            if header.delete_horizon is not None or any(b - a > 1 for a, b in pairwise(offsets)):
                continue
            again = batches.build(
                [(key, value) for _, _, key, value in found],
                header.max_timestamp,
                base_offset=header.base_offset,
                producer_id=header.producer_id,
                producer_epoch=header.producer_epoch,
                base_sequence=header.base_sequence,
                transactional=header.is_transactional,
                control=header.is_control,
                leader_epoch=header.partition_leader_epoch,
            )
            assert again == data[at : at + header.length]
            built += 1
    assert built > 20
