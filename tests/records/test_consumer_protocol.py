# SPDX-License-Identifier: Apache-2.0
"""What classic consumers hand each other: every version, versions to come, and bytes that lie."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.errors import WireError
from kohort.records.consumer_protocol import (
    MOST_ELEMENTS,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    decode_assignment,
    decode_subscription,
    encode,
)

pytestmark = pytest.mark.usefixtures("each_codec")

FULL = ConsumerProtocolSubscription(
    topics=["orders", "größe"],
    user_data=b"u",
    owned_partitions=[TopicPartition(topic="orders", partitions=[0, 2])],
    generation_id=7,
    rack_id="r1",
)


@pytest.mark.parametrize(
    ("version", "owned", "generation", "rack"),
    [(0, [], -1, None), (1, [0, 2], -1, None), (2, [0, 2], 7, None), (3, [0, 2], 7, "r1")],
)
def test_each_version_adds_a_field(version, owned, generation, rack):
    read = decode_subscription(encode(FULL, version))
    assert read.topics == ["orders", "größe"]
    assert read.user_data == b"u"
    assert [one.partitions for one in read.owned_partitions] == ([owned] if owned else [])
    assert (read.generation_id, read.rack_id) == (generation, rack)


def test_the_bytes_of_a_subscription():
    raw = encode(ConsumerProtocolSubscription(topics=["t"]), 1)
    assert raw.hex() == "000100000001000174ffffffff00000000"


@pytest.mark.parametrize("version", [3, 4, 9, 32767])
def test_a_version_to_come_is_read_as_the_newest(version):
    raw = version.to_bytes(2, "big") + encode(FULL, 3)[2:] + b"something new"
    assert decode_subscription(raw) == FULL


def test_bytes_behind_the_last_field_are_ignored():
    plain = ConsumerProtocolSubscription(topics=["t"])
    assert decode_subscription(encode(plain, 0) + b"?") == plain
    given_ = ConsumerProtocolAssignment(
        assigned_partitions=[TopicPartition(topic="t", partitions=[1])]
    )
    assert decode_assignment(encode(given_, 0) + b"?") == given_


@pytest.mark.parametrize("decode", [decode_subscription, decode_assignment])
@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"\x00", id="half a version"),
        pytest.param(b"\xff\xff" + bytes(12), id="version -1"),
        pytest.param(b"\x00\x00" + b"\xff" * 4 + bytes(8), id="array of -1"),
        pytest.param(b"\x00\x00" + b"\x7f\xff\xff\xff" + bytes(8), id="array of 2^31-1"),
    ],
)
def test_bytes_that_lie_are_refused(decode, raw):
    with pytest.raises(WireError):
        decode(raw)


@pytest.mark.parametrize("decode", [decode_subscription, decode_assignment])
def test_elements_of_nothing_are_not_read_without_end(decode):
    """Each takes a few bytes, and very much longer to read than other bytes."""
    part = b"\0\0" if decode is decode_subscription else b"\0\0" + bytes(4)
    for count, fits in ((MOST_ELEMENTS, True), (MOST_ELEMENTS + 1, False)):
        raw = bytes(2) + count.to_bytes(4) + part * count + b"\xff\xff\xff\xff"
        with contextlib.nullcontext() if fits else pytest.raises(WireError, match="at most"):
            decode(raw)


@pytest.mark.parametrize("version", range(4))
def test_a_cut_subscription_is_refused(version):
    raw = encode(FULL, version)
    for size in range(len(raw)):
        with pytest.raises(WireError):
            decode_subscription(raw[:size])


@given(st.binary(max_size=80))
def test_noise_is_refused_or_read(noise):
    for decode in (decode_subscription, decode_assignment):
        for raw in (noise, b"\x00\x01\x00\x00\x00\x01" + noise):
            with contextlib.suppress(WireError):
                decode(raw)
