# SPDX-License-Identifier: Apache-2.0
"""The record codec by itself: versions, the fast way of committed offsets, hostile bytes."""

import contextlib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kohort.errors import WireError
from kohort.records import codec
from kohort.records.codec import (
    OWN_RECORDS,
    RECORDS,
    Record,
    decode,
    encode,
    encode_key,
    encode_value,
    written_version,
)
from kohort.records.schemas import (
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from kohort.wire import codec as wire
from kohort.wire.schema import Primitive, fields_of

pytestmark = pytest.mark.usefixtures("each_codec")

ROWS = (RECORDS | OWN_RECORDS).values()

int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)
text = st.text(max_size=8) | st.sampled_from(["", "x" * 126, "x" * 127, "ß" * 63, "ß" * 64])
topic_ids = st.just(bytes(16)) | st.binary(min_size=16, max_size=16)

keys = st.builds(OffsetCommitKey, group=text, topic=text, partition=int32)
values = st.builds(
    OffsetCommitValue,
    offset=int64,
    leader_epoch=int32,
    metadata=text,
    commit_timestamp=int64,
    topic_id=topic_ids,
)


def of_field(field):
    """Values of a field, from its schema."""
    if isinstance(field.of, Primitive):
        one = {
            "string": st.text(max_size=4),
            "bytes": st.binary(max_size=4),
            "uuid": st.binary(min_size=16, max_size=16),
        }.get(field.of.name)
        if one is None:
            bits = field.of.size * 8
            one = st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    else:
        one = of_class(field.of)
    if field.array:
        one = st.lists(one, max_size=3)
    return st.none() | one if field.nullable.last > 0 else one


def of_class(cls):
    return st.builds(cls, **{field.name: of_field(field) for field in fields_of(cls)})


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.key.__name__)
def test_the_names_are_of_one_record(row):
    assert row.key.__name__.removesuffix("Key") == row.value.__name__.removesuffix("Value")
    assert row.written in row.value.versions


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.key.__name__)
@given(data=st.data())
def test_what_is_written_is_read(row, data):
    key = data.draw(of_class(row.key))
    value = data.draw(st.none() | of_class(row.value))
    written = encode(Record(key, value))
    read = decode(*written)
    assert read.key == key
    assert encode(read) == written
    if value is not None and row.number != 1:  # v1 and v4 of an offset both lack something
        assert read.value == value


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.key.__name__)
@given(data=st.data())
def test_every_version_is_read(row, data):
    key = encode_key(row.key())
    for version in range(row.value.versions.first, row.value.versions.last + 1):
        value = data.draw(of_class(row.value))
        written = encode_value(value, version)
        assert encode_value(decode(key, written).value, version) == written


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.key.__name__)
@given(noise=st.binary(max_size=60))
def test_hostile_bytes_are_refused_or_read(row, noise):
    number = row.number.to_bytes(2, "big")
    for key in (noise, number + noise):
        with contextlib.suppress(WireError):
            decode(key, None)
    good = encode_key(row.key())
    for version in (b"", *(bytes([0, one]) for one in range(6)), b"\xff\xff"):
        with contextlib.suppress(WireError):
            decode(good, version + noise)


@pytest.mark.parametrize("version", [-1, 1, 32767])
def test_a_version_that_is_not_known_is_refused(version):
    key = encode_key(ConsumerGroupMetadataKey(group_id="g"))
    with pytest.raises(WireError, match=f"ConsumerGroupMetadataValue has version {version}, expec"):
        decode(key, version.to_bytes(2, "big", signed=True) + bytes(20))


def test_a_legacy_offset_has_one_version():
    with pytest.raises(WireError, match="LegacyOffsetCommitValue has version 1, expected 0"):
        decode(bytes(10), b"\x00\x01" + bytes(40))


@pytest.mark.parametrize(
    ("value", "version"),
    [
        (OffsetCommitValue(offset=1), 4),
        (OffsetCommitValue(offset=1, topic_id=b"\x01" * 16), 4),
        (OffsetCommitValue(offset=1, expire_timestamp=5, topic_id=b"\x01" * 16), 1),
        (GroupMetadataValue(), 3),
        (ConsumerGroupMetadataValue(), 0),
    ],
)
def test_the_version_that_is_written(value, version):
    assert written_version(value) == version
    assert encode_value(value)[:2] == bytes([0, version])


def test_the_null_of_a_classic_member_is_written():
    """Upstream writes this tag even when there is nothing in it."""
    value = ConsumerGroupMemberMetadataValue(
        instance_id=None,
        rack_id=None,
        client_id="",
        client_host="",
        subscribed_topic_names=[],
        subscribed_topic_regex=None,
        rebalance_timeout_ms=1,
        server_assignor=None,
    )
    _, written = encode(Record(ConsumerGroupMemberMetadataKey(), value))
    assert written.endswith(b"\x00\x00\x00\x01\x00\x01\x00\x01\x00")


def test_bytes_behind_the_last_field_are_ignored():
    record = Record(GroupMetadataKey(group="g"), GroupMetadataValue(protocol=None, leader=None))
    key, value = encode(record)
    assert decode(key + b"?", value + b"?") == record


def test_a_key_without_a_type_is_refused():
    for key in (b"", b"\x00"):
        with pytest.raises(WireError, match="expected 2 bytes or more"):
            decode(key, None)


@given(key=keys, value=values)
@example(OffsetCommitKey(), OffsetCommitValue(topic_id=b"\x01" * 16))
@example(OffsetCommitKey(), OffsetCommitValue(metadata="x" * 126, topic_id=b"\x01" * 16))
def test_the_fast_way_writes_the_same(key, value):
    assert encode(Record(key, None))[0] == encode_key(key)
    assert codec.encode_commit_value(value) == encode_value(value)


@given(key=keys, value=values, version=st.integers(0, 4))
def test_the_fast_way_reads_the_same(key, value, version):
    raw = encode_key(key)
    assert codec.decode_commit_key(raw) == wire.decode(OffsetCommitKey, 0, raw, 2) == key
    written = encode_value(value, version)
    assert codec.decode_commit_value(written) == codec.decode_value(RECORDS[1], written)


def outcome(read, data):
    try:
        return read(data)
    except WireError:
        return WireError


@given(key=keys, value=values, version=st.sampled_from([3, 4]), data=st.data())
def test_the_fast_way_takes_damage_the_same(key, value, version, data):
    """One byte changed, some cut, some added: the same value from both, or WireError from both."""

    def damaged(raw):
        raw = bytearray(raw)
        where = data.draw(st.integers(2, len(raw) - 1))
        raw[where] = data.draw(st.integers(0, 255))
        end = data.draw(st.integers(0, len(raw) + 2))
        return bytes(raw[:end]) + bytes(max(0, end - len(raw)))

    raw = damaged(encode_key(key))
    expected = outcome(lambda raw: wire.decode(OffsetCommitKey, 0, raw, 2), raw)
    assert outcome(codec.decode_commit_key, raw) == expected
    raw = damaged(encode_value(value, version))
    expected = outcome(lambda raw: codec.decode_value(RECORDS[1], raw), raw)
    assert outcome(codec.decode_commit_value, raw) == expected


def test_text_that_is_not_utf8_is_read_as_upstream_reads_it():
    key = b"\x00\x01\x00\x01\xff\x00\x01t\x00\x00\x00\x01"
    assert decode(key, None) == Record(OffsetCommitKey(group="\ufffd", topic="t", partition=1))
