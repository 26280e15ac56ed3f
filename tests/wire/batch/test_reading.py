# SPDX-License-Identifier: Apache-2.0
"""Records of batches: what is read, and what hostile bytes may not do."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import golden_logs
from tests.wire.batch.by_hand import BY_HAND

from kohort.errors import WireError
from kohort.wire import batch as batches
from kohort.wire.batch import Record


def test_header_names_that_are_not_text_survive():
    record = Record(0, 1, b"k", b"v", [("caf\udce9", b"")])
    data = batches.build_records([record])
    assert b"caf\xe9" in data
    assert next(iter(batches.records(data))) == record


def test_an_emptied_batch_keeps_its_offsets():
    data = batches.build_records([], base_offset=10, last_offset=14, producer_id=2, attributes=4)
    header = batches.header_at(data)
    assert (header.base_offset, header.last_offset, header.count) == (10, 14, 0)
    assert batches.entries(data) == []
    assert list(batches.records(data)) == []


@pytest.mark.parametrize("key", [None, b"", b"\x00\x00\x00", b"\x00\x00\x00\x02"])
def test_keys_that_are_no_marker(key):
    with pytest.raises(WireError, match="control record"):
        batches.marker_commits(key)


@pytest.mark.parametrize("value", [None, b"", bytes(5)])
def test_values_that_are_no_marker(value):
    with pytest.raises(WireError, match="control record"):
        batches.marker_coordinator_epoch(value)


def test_reading_in_the_middle_of_a_buffer():
    data = b"xyz" + BY_HAND + b"tail"
    header = batches.header_at(data, 3)
    batches.check(data, 3, header)
    assert batches.entries(data, 3) == [(7, 1000, b"k", b"v")]
    assert [record.key for record in batches.records(data, 3)] == [b"k"]


def test_times_are_those_of_the_records():
    many = [Record(number, 1000 - number, b"k" * number, None) for number in range(0, 300, 3)]
    for codec in range(5):
        data = batches.build_records(many, attributes=codec)
        assert list(batches.times(data)) == [(one.offset, one.timestamp) for one in many]


def test_truncation_at_each_byte_is_refused():
    record = Record(3, 5, b"key", b"value", [("name", b"item"), ("null", None)])
    data = batches.build_records([record, Record(4, 5, None, None)])
    for length in range(len(data)):
        readers = (
            batches.header_at,
            batches.entries,
            lambda cut: list(batches.records(cut)),
            lambda cut: list(batches.times(cut)),
        )
        for read in readers:
            with pytest.raises(WireError):
                read(data[:length])


@pytest.mark.parametrize("count", [0, 2, 2**31 - 1])
def test_the_count_of_records_is_checked(count):
    changed = bytearray(BY_HAND)
    struct.pack_into(">i", changed, 57, count)
    with pytest.raises(WireError):
        batches.entries(bytes(changed))
    with pytest.raises(WireError):
        list(batches.records(bytes(changed)))


@pytest.mark.parametrize(
    "body",
    [
        "0e000000026b027600",  # record too short for its fields
        "12000000026b027600",  # record longer than the batch
        "0f000000026b027600",  # record of negative length
        "10000000fe6b027600",  # key longer than the record
        "10000000026b7e7600",  # value longer than the record
        "10000000026b027602",  # a header that is not there
        "10000000026b0276ff",  # a count of headers that does not end
        "10000004026b027600",  # an offset outside of the batch
        "10000001026b027600",  # a negative offset
        "ffffffffffffffffffffff01",  # a varint without end
        "0000000000000000",
    ],
)
def test_damaged_records_are_refused_by_the_full_reader(body):
    data = _with_body(bytes.fromhex(body))
    with pytest.raises(WireError):
        list(batches.records(data))


@given(st.binary(max_size=40), st.integers(0, 5))
def test_junk_in_the_body_gives_records_or_an_error(body, count):
    data = _with_body(body, count)
    try:
        found = batches.entries(data)
    except WireError:
        found = None
    try:
        full = [(r.offset, r.timestamp, r.key, r.value) for r in batches.records(data)]
    except WireError:
        return
    if found is not None:  # the fast reader skips headers, damaged ones too
        assert full == found


def _with_body(body: bytes, count: int = 1) -> bytes:
    head = bytearray(BY_HAND[:61])
    struct.pack_into(">i", head, 8, 49 + len(body))
    struct.pack_into(">i", head, 57, count)
    return bytes(head) + body


@pytest.mark.parametrize("name", golden_logs.NAMES)
def test_real_logs_read_as_the_dump_tool_reads_them(name, tmp_path):
    folder = golden_logs.unpack(name, tmp_path)
    lines = golden_logs.dump(name)
    files = dict.fromkeys(line["file"] for line in lines)
    ours = [line for file in files for line in _read(folder, file)]
    assert ours == [_told(line) for line in lines]


def _read(folder, file):
    data = (folder / file).read_bytes()
    for at, header in batches.walk(data):
        batches.check(data, at, header)
        yield (
            *("batch", file, at, header.base_offset, header.last_offset, header.count),
            *(header.base_sequence, header.producer_id, header.producer_epoch),
            *(header.is_transactional, header.is_control, header.delete_horizon),
            *(header.partition_leader_epoch, header.length, header.compression, header.crc),
            *(header.is_append_time, header.max_timestamp),
        )
        full = list(batches.records(data, at))
        assert batches.entries(data, at) == [(r.offset, r.timestamp, r.key, r.value) for r in full]
        for record in full:
            found = [[key, None if item is None else item.hex()] for key, item in record.headers]
            key, value = (
                None if blob is None else blob.hex() for blob in (record.key, record.value)
            )
            yield ("record", file, at, record.offset, record.timestamp, key, value, found)


def _told(line):
    if line["kind"] == "record":
        return (
            *("record", line["file"], line["batch"], line["offset"], line["timestamp"]),
            *(line["key_hex"], line["value_hex"], line.get("headers", [])),
        )
    codecs = ["none", "gzip", "snappy", "lz4", "zstd"]
    return (
        *("batch", line["file"], line["position"], line["baseOffset"], line["lastOffset"]),
        *(line["count"], line["baseSequence"], line["producerId"], line["producerEpoch"]),
        *(line["isTransactional"], line["isControl"], line["deleteHorizonMs"]),
        *(line["partitionLeaderEpoch"], line["size"], codecs.index(line["compresscodec"])),
        *(line["crc"], line["timestampType"] == "LogAppendTime", line["maxTimestamp"]),
    )
