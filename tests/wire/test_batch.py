import struct
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import golden_logs

from kohort.errors import WireError
from kohort.wire import batch as batches
from kohort.wire.batch import Record

# One record (key "k", value "v", no headers), by hand: what the header says and what follows it.
BY_HAND = bytes.fromhex(
    "0000000000000007"  # base offset 7
    "0000003a"  # 58 bytes follow
    "00000002"  # leader epoch 2
    "02"  # magic
    "54783d9f"  # crc32c of what follows
    "0000"  # attributes
    "00000000"  # last offset delta
    "00000000000003e8"  # base timestamp 1000
    "00000000000003e8"  # max timestamp
    "ffffffffffffffff"  # producer id -1
    "ffff"  # producer epoch -1
    "00000000"  # base sequence 0
    "00000001"  # one record
    "1000000002"  # 8 bytes, no attributes, same time and offset, key of one byte
    "6b"
    "0276"  # value
    "00"  # no headers
)

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


def test_header():
    header = batches.header_at(BY_HAND)
    assert header.length == len(BY_HAND) == 70
    assert (header.base_offset, header.last_offset, header.count) == (7, 7, 1)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (-1, -1, 0)
    assert (header.base_timestamp, header.max_timestamp) == (1000, 1000)
    assert (header.partition_leader_epoch, header.magic, header.attributes) == (2, 2, 0)
    assert not header.is_control
    assert not header.is_transactional
    assert not header.is_append_time
    assert header.delete_horizon is None
    assert header.compression == 0
    assert header.last_sequence == 0


def test_last_sequence_wraps():
    data = batches.build([(b"a", b""), (b"b", b"")], 1, producer_id=1, base_sequence=2**31 - 1)
    assert batches.header_at(data).last_sequence == 0
    assert batches.header_at(batches.build([(b"a", b"")], 1, base_sequence=-1)).last_sequence == -1


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


def test_stamp_keeps_the_crc_true():
    data = batches.stamp(BY_HAND, 2**40, 77)
    header = batches.header_at(data)
    batches.check(data, 0, header)
    assert (header.base_offset, header.partition_leader_epoch) == (2**40, 77)
    assert data[16:] == BY_HAND[16:]


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


@pytest.mark.parametrize("key", [None, b"", b"\x00\x00\x00", b"\x00\x00\x00\x02"])
def test_keys_that_are_no_marker(key):
    with pytest.raises(WireError, match="control record"):
        batches.marker_commits(key)


def test_walk():
    two = BY_HAND + batches.build([(None, None)], 1)
    assert [at for at, _ in batches.walk(two)] == [0, 70]
    assert list(batches.walk(b"")) == []
    with pytest.raises(WireError, match="cut"):
        list(batches.walk(two[:-1]))


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


# ---- hostile bytes


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


def test_a_header_alone_can_be_looked_at():
    assert batches.peek(BY_HAND[:61]).length == 70
    with pytest.raises(WireError, match="60 bytes"):
        batches.peek(BY_HAND[:60])


def test_every_changed_bit_behind_the_crc_is_noticed():
    header = batches.header_at(BY_HAND)
    for at in range(17, len(BY_HAND)):
        changed = bytearray(BY_HAND)
        changed[at] ^= 1
        with pytest.raises(WireError, match="crc"):
            batches.check(bytes(changed), 0, header if at > 20 else batches.peek(bytes(changed)))


@pytest.mark.parametrize(
    ("at", "form", "value", "text"),
    [
        (8, ">i", 48, "60 bytes"),
        (8, ">i", -1, "11 bytes"),
        (8, ">i", 2**31 - 1, "cut"),
        (16, ">b", 1, "magic 1"),
        (16, ">b", 3, "magic 3"),
        (0, ">q", -1, "below 0"),
        (23, ">i", -1, "below 0"),
        (57, ">i", -1, "below 0"),
    ],
)
def test_fields_of_the_header_are_checked(at, form, value, text):
    changed = bytearray(BY_HAND)
    struct.pack_into(form, changed, at, value)
    with pytest.raises(WireError, match=text):
        batches.header_at(bytes(changed))


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


# ---- what a real broker wrote


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
