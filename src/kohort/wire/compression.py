# SPDX-License-Identifier: Apache-2.0
"""The four codecs a record batch may name in its attribute bits, with bounded output.

A few hostile bytes can unfold into gigabytes: nothing here holds more than the caller's limit.
"""

from enum import IntEnum
from struct import Struct

import cramjam

from kohort.errors import WireError

OUTPUT_LIMIT = 128 * 1024 * 1024  # a batch is 1 MiB by default: room for 128 to 1


class Compression(IntEnum):
    """Bits 0-2 of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class TooLargeError(WireError):
    """The content may be valid, but unfolds to more than the caller allows."""


_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
_XERIAL_BLOCK = 32 * 1024
_INT32 = Struct(">i")
_FRAMED = {
    Compression.GZIP: cramjam.gzip,
    Compression.LZ4: cramjam.lz4,
    Compression.ZSTD: cramjam.zstd,
}


def compress(codec: int, data: bytes) -> bytes:
    """The body of a batch in the framing that the Java client writes."""
    if codec == Compression.NONE:
        return data
    if codec == Compression.SNAPPY:
        return _compress_xerial(data)
    if codec == Compression.LZ4:
        # Java refuses frames whose blocks depend on each other.
        compressor = cramjam.lz4.Compressor(block_linked=False, content_checksum=False)
        compressor.compress(data)
        return bytes(compressor.finish())
    framed = _FRAMED.get(Compression(codec))
    assert framed is not None
    return bytes(framed.compress(data))


def decompress(codec: int, data: bytes, limit: int = OUTPUT_LIMIT) -> bytes:
    """The plain body of a batch. Raises WireError for damage and for more than `limit` bytes."""
    return bytes(unpacked(codec, data, limit))


def unpacked(codec: int, data: bytes, limit: int = OUTPUT_LIMIT) -> bytes | bytearray:
    """The same without a copy, and mutable: for callers that only read a large body."""
    if codec == Compression.NONE:
        return data
    if codec == Compression.SNAPPY:
        return _decompress_snappy(data, limit)
    framed = _FRAMED.get(codec)  # type: ignore[call-overload]  # an IntEnum key is found by its int
    if framed is None:
        raise WireError(f"compression type is {codec}, expected 0 to 4")
    return _decompress_framed(framed, Compression(codec).name.lower(), data, limit)


def _decompress_framed(module: object, name: str, data: bytes, limit: int) -> bytearray:
    """Grow the output until it holds everything: frames need not tell their size."""
    if not data:
        raise WireError(f"{name}: the compressed part of the batch is empty")
    size = min(limit, max(1024, 8 * len(data)))
    while True:
        output = bytearray(size)
        try:
            length = module.decompress_into(data, output)  # type: ignore[attr-defined]
        except (cramjam.DecompressionError, OSError) as error:
            # cramjam tells "the output is too small" from "the input is damaged" by its text only.
            if "write whole buffer" not in str(error):
                raise WireError(f"{name}: {error}") from error
            if size >= limit:
                raise TooLargeError(f"{name}: more than {limit} bytes when unpacked") from error
            size = min(limit, 4 * size)
            del output  # before a larger one is made
            continue
        del output[length:]
        return output


def _compress_xerial(data: bytes) -> bytes:
    parts = [_XERIAL_HEADER]
    for start in range(0, len(data), _XERIAL_BLOCK):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + _XERIAL_BLOCK]))
        parts.append(_INT32.pack(len(block)))
        parts.append(block)
    return b"".join(parts)


def _decompress_snappy(data: bytes, limit: int) -> bytearray:
    """Every block says how long it becomes: room is made once, for what all of them say."""
    blocks = _snappy_blocks(data)
    lengths = []
    left = limit
    try:
        for block in blocks:
            length = cramjam.snappy.decompress_raw_len(block)
            if length > left:
                raise TooLargeError(
                    f"snappy: a block claims {length} bytes, {left} are left of the limit"
                )
            left -= length
            lengths.append(length)
        output = bytearray(limit - left)
        at = 0
        with memoryview(output) as room:
            for block, length in zip(blocks, lengths, strict=True):
                cramjam.snappy.decompress_raw_into(block, room[at : at + length])
                at += length
    except (cramjam.DecompressionError, OSError) as error:
        raise WireError(f"snappy: {error}") from error
    return output


def _snappy_blocks(data: bytes) -> list[bytes]:
    """Java frames snappy in blocks (xerial); librdkafka and others may write one bare block."""
    if not data.startswith(_XERIAL_MAGIC):
        return [data]
    blocks = []
    position = len(_XERIAL_HEADER)
    if len(data) < position:
        raise WireError(f"snappy: framing header is cut at {len(data)} bytes, expected {position}")
    while position < len(data):
        if len(data) - position < 4:
            raise WireError(f"snappy: block length is cut at byte {position}")
        (size,) = _INT32.unpack_from(data, position)
        position += 4
        if not 0 < size <= len(data) - position:
            raise WireError(f"snappy: block of {size} bytes, but {len(data) - position} are left")
        blocks.append(data[position : position + size])
        position += size
    return blocks
