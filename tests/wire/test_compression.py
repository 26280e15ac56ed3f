# SPDX-License-Identifier: Apache-2.0
import gzip
import zlib
from contextlib import suppress
from struct import pack

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.errors import WireError
from kohort.wire.compression import Compression, compress, decompress

CODECS = [Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD]


@pytest.mark.parametrize("codec", Compression)
@given(data=st.binary(max_size=2000), times=st.sampled_from([1, 50]))
def test_round_trip(codec, data, times):
    assert decompress(codec, compress(codec, data * times)) == data * times


@pytest.mark.parametrize("codec", CODECS)
def test_large_bodies(codec):
    data = b"".join(b"record %d of many, " % number for number in range(20_000))
    packed = compress(codec, data)
    assert len(packed) < len(data)
    assert decompress(codec, packed) == data


def test_the_framing_is_that_of_the_java_client():
    assert compress(Compression.GZIP, b"x" * 100)[:3] == b"\x1f\x8b\x08"
    lz4 = compress(Compression.LZ4, b"x" * 100)
    assert lz4[:4] == b"\x04\x22\x4d\x18"
    assert lz4[4] & 0x20, "Java refuses blocks that depend on each other"
    assert compress(Compression.ZSTD, b"x" * 100)[:4] == b"\x28\xb5\x2f\xfd"
    xerial = compress(Compression.SNAPPY, b"x" * 100)
    assert xerial[:16] == b"\x82SNAPPY\x00" + pack(">ii", 1, 1)
    assert int.from_bytes(xerial[16:20]) == len(xerial) - 20


def test_snappy_reads_what_librdkafka_writes():
    assert decompress(2, bytes(cramjam.snappy.compress_raw(b"bare block"))) == b"bare block"


def test_several_gzip_members_are_one_body():
    assert decompress(1, gzip.compress(b"one ") + gzip.compress(b"two")) == b"one two"


@pytest.mark.parametrize("codec", CODECS)
def test_output_is_bounded(codec):
    bomb = compress(codec, bytes(4_000_000))
    assert len(bomb) < 400_000
    assert decompress(codec, bomb, 4_000_000) == bytes(4_000_000)
    with pytest.raises(WireError):
        decompress(codec, bomb, 3_999_999)
    with pytest.raises(WireError):
        decompress(codec, bomb, 10)


def test_a_snappy_block_is_refused_for_the_length_it_claims():
    claim = b"\xff\xff\xff\xff\x0f" + b"abc"
    with pytest.raises(WireError, match="claims 4294967295 bytes"):
        decompress(2, claim)
    with pytest.raises(WireError, match="claims"):
        decompress(2, b"\x82SNAPPY\x00" + pack(">iii", 1, 1, len(claim)) + claim)


@pytest.mark.parametrize("codec", CODECS)
def test_truncation_at_each_byte_is_refused(codec):
    data = b"".join(b"%d" % number for number in range(300))
    packed = compress(codec, data)
    for length in range(len(packed)):
        try:
            assert decompress(codec, packed[:length]) == b""
        except WireError:
            continue
        assert (codec, length) == (Compression.SNAPPY, 16)


@pytest.mark.parametrize("codec", CODECS)
@given(data=st.binary(max_size=200))
def test_junk_is_refused_or_read_but_never_anything_else(codec, data):
    with suppress(WireError):
        assert len(decompress(codec, data, 10_000)) <= 10_000


@pytest.mark.parametrize("size", [-1, 0, 4, 2**31 - 1])
def test_xerial_block_lengths_are_checked(size):
    with pytest.raises(WireError, match="snappy"):
        decompress(2, b"\x82SNAPPY\x00" + pack(">iii", 1, 1, size) + b"abc")


def test_unknown_codecs_are_refused():
    for codec in (5, 6, 7):
        with pytest.raises(WireError, match=f"compression type is {codec}"):
            decompress(codec, zlib.compress(b""))
