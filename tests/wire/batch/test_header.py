# SPDX-License-Identifier: Apache-2.0
"""The header of a batch: looked at, checked, walked by, stamped."""

import struct

import pytest
from tests.wire.batch.by_hand import BY_HAND

from kohort.errors import WireError
from kohort.wire import batch as batches


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


def test_stamp_keeps_the_crc_true():
    data = batches.stamp(BY_HAND, 2**40, 77)
    header = batches.header_at(data)
    batches.check(data, 0, header)
    assert (header.base_offset, header.partition_leader_epoch) == (2**40, 77)
    assert data[16:] == BY_HAND[16:]


def test_walk():
    two = BY_HAND + batches.build([(None, None)], 1)
    assert [at for at, _ in batches.walk(two)] == [0, 70]
    assert list(batches.walk(b"")) == []
    with pytest.raises(WireError, match="cut"):
        list(batches.walk(two[:-1]))


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
