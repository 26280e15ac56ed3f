# SPDX-License-Identifier: Apache-2.0
"""A stream becomes the same frames however it is cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.errors import WireError
from kohort.wire.frames import (
    FrameReader,
    FrameSizeError,
    RequestHeader,
    decode_request_header,
    encode_request,
    encode_response,
    peek,
)

pytestmark = pytest.mark.usefixtures("each_codec")


@given(st.lists(st.binary(max_size=30), max_size=6), st.lists(st.integers(1, 9), min_size=1))
def test_any_chunking_gives_the_same_frames(frames, cuts):
    stream = b"".join(len(one).to_bytes(4, "big") + one for one in frames)
    reader, found, position, turn = FrameReader(100), [], 0, 0

    while position < len(stream):
        step = cuts[turn % len(cuts)]
        found += reader.feed(stream[position : position + step])
        position, turn = position + step, turn + 1

    assert found == frames
    assert not reader.rest


@pytest.mark.parametrize("size", [-1, 101, 2**31 - 1, -(2**31)])
def test_a_size_out_of_bounds_is_refused_before_anything_is_kept(size):
    reader = FrameReader(100)

    with pytest.raises(WireError, match="expected 0 to 100"):
        reader.feed(size.to_bytes(4, "big", signed=True) + b"x" * 50)
    assert not reader.rest


def test_whole_frames_in_front_of_a_bad_size_are_given_first():
    reader = FrameReader(100)

    assert reader.feed(b"\0\0\0\1a" + b"\xff" * 30) == [b"a"]
    with pytest.raises(WireError):
        reader.feed(b"")


@pytest.mark.parametrize("flexible", [False, True])
@pytest.mark.parametrize("client_id", [None, "", "größe"])
def test_request_headers(flexible, client_id):
    header = RequestHeader(
        request_api_key=3, request_api_version=1, correlation_id=7, client_id=client_id
    )

    frame = encode_request(header, b"body", flexible=flexible)[4:]
    decoded, start = decode_request_header(frame, flexible=flexible)

    assert decoded == header
    assert frame[start:] == b"body"
    assert peek(frame) == (3, 1, 7)


def test_response_headers():
    assert encode_response(5, b"ab", flexible=False) == b"\0\0\0\6\0\0\0\5ab"
    assert encode_response(5, b"ab", flexible=True) == b"\0\0\0\7\0\0\0\5\0ab"


def test_a_request_without_even_a_header_is_refused():
    with pytest.raises(WireError, match="expected at least 8"):
        peek(b"\0\0\0")


@pytest.mark.parametrize(
    ("start", "protocol"),
    [
        (b"\x15\x03\x03\x00", "TLS"),  # an alert
        (b"\x16\x03\x01\x02", "TLS"),  # a handshake
        (b"\x17\x03\x03\x40", "TLS"),
        (b"HTTP", "HTTP"),
        (b"GET ", "HTTP"),
        (b"PRI ", "HTTP"),  # of version 2
        (b"SSH-", ""),
        (b"\x16\x04\x00\x00", ""),
        (b"\xff\xff\xff\xff", ""),
    ],
)
def test_a_size_that_is_the_start_of_another_protocol_names_it(start, protocol):
    with pytest.raises(FrameSizeError) as caught:
        FrameReader(1 << 20).feed(start)
    assert caught.value.protocol == protocol
