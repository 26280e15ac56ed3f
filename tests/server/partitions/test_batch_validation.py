# SPDX-License-Identifier: Apache-2.0
"""What is looked at before a batch is written: codes are what Apache Kafka 4.3.1 has answered, but
87 and 76 where it fails with -1.
"""

import gzip
from struct import Struct

import google_crc32c
import pytest

from kohort.config import BrokerConfig, TopicConfig
from kohort.errors import ApiError, ErrorCode
from kohort.server.partitions import batch_validation
from kohort.server.partitions.batch_validation import RefusedRecordsError
from kohort.wire.batch import build, records
from kohort.wire.compression import compress

NOW = 1_700_000_000_000
CODECS = [0, 1, 2, 3, 4]
RECORD = bytes.fromhex("10 00 00 00 02 6b 02 76 00")  # k=v
SECOND = bytes.fromhex("10 00 00 02 02 6b 02 76 00")
INVALID = ErrorCode.INVALID_RECORD

_PREFIX = Struct(">qiibI")
_COVERED = Struct(">hiqqqhii")


def sealed(body, count, *, last=None, codec=0, flags=0, base=0, magic=2, time=NOW, producer=None):
    """A batch that says whatever it is told to say, with a right crc."""
    body = (
        gzip.compress(body, 1, mtime=0) if codec == 1 else compress(codec, body) if codec else body
    )
    delta = count - 1 if last is None else last
    covered = _COVERED.pack(codec | flags, delta, time, time, *(producer or (-1, -1, -1)), count)
    covered += body
    return _PREFIX.pack(base, len(covered) + 9, -1, magic, google_crc32c.value(covered)) + covered


def config(**settings):
    return TopicConfig.of(BrokerConfig(), {k.replace("_", "."): v for k, v in settings.items()})


def code(data, version=9, **settings):
    """What is said of a batch; 0 when nothing is."""
    try:
        batch_validation.check(
            batch_validation.one_batch(data, version), config(**settings), "t-0", NOW
        )
    except ApiError as error:
        return error.code
    return 0


@pytest.mark.parametrize("codec", CODECS)
def test_what_a_producer_sends_passes(codec):
    for count in (1, 2, 100, 3000):
        data = build([(b"k%d" % n, b"v" * (n % 300)) for n in range(count)], NOW, compression=codec)
        assert code(data) == 0
    assert code(build([(None, None)], NOW, compression=codec)) == 0


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", INVALID),
        (bytes(5), INVALID),
        (bytes(20), ErrorCode.CORRUPT_MESSAGE),
        (bytes(61), ErrorCode.CORRUPT_MESSAGE),
        (sealed(RECORD, 1, magic=0), INVALID),
        (sealed(RECORD, 1, magic=1), INVALID),
        (sealed(RECORD, 1, magic=3), ErrorCode.CORRUPT_MESSAGE),
        (sealed(RECORD, 1, magic=-1), ErrorCode.CORRUPT_MESSAGE),
        (sealed(RECORD, 1)[:-3], INVALID),
        (sealed(RECORD, 1)[:30], INVALID),
        (sealed(RECORD, 1) * 2, INVALID),
        (sealed(RECORD, 1) + bytes(12), ErrorCode.CORRUPT_MESSAGE),
        (bytes(8) + (18).to_bytes(4) + bytes(4) + b"\2" + bytes(13), ErrorCode.CORRUPT_MESSAGE),
        (sealed(RECORD, 1)[:-1] + b"x", ErrorCode.CORRUPT_MESSAGE),
        (sealed(RECORD, 1, base=7), INVALID),
        (sealed(RECORD, 1, base=-1), INVALID),
        (sealed(RECORD, 1, flags=32), INVALID),
        (sealed(RECORD, 1, producer=(5, 0, -1)), INVALID),
        (sealed(RECORD, 1, producer=(5, -1, 0)), INVALID),
    ],
)
def test_batches_that_are_none(data, expected):
    assert code(data) == expected


def test_a_piece_of_a_further_batch_is_left_out():
    """As upstream: what is not a whole batch is cut off, the one before it counts."""
    whole = sealed(RECORD, 1)
    for piece in (b"xyz", whole[:30]):
        assert batch_validation.one_batch(whole + piece, 9) == whole


@pytest.mark.parametrize("version", [3, 6])
def test_zstd_came_with_version_7(version):
    data = sealed(RECORD, 1, codec=4)
    assert code(data, version) == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert code(data, 7) == 0
    assert code(sealed(RECORD, 1, codec=3), version) == 0


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize(
    ("body", "count", "last"),
    [
        pytest.param(RECORD, 2, 1, id="fewer records than said"),
        pytest.param(RECORD + SECOND, 1, 0, id="more records than said"),
        pytest.param(b"", 2**31 - 1, 2**31 - 2, id="two billion records in no bytes"),
        pytest.param(b"", 0, 0, id="no records"),
        pytest.param(RECORD, 1, 5, id="offsets that nobody has"),
        pytest.param(RECORD, -1, -2, id="less than none"),
        pytest.param(RECORD + b"more", 1, 0, id="bytes behind the records"),
        pytest.param(RECORD + SECOND[:-2], 2, 1, id="a record that is cut"),
        pytest.param(RECORD + RECORD, 2, 1, id="one offset twice"),
        pytest.param(SECOND, 1, 0, id="an offset that is not there"),
        pytest.param(b"\xff" * 40, 5, 4, id="forty bytes of anything"),
        pytest.param(bytes(40), 5, 4, id="records without anything"),
        pytest.param(b"\x10" + RECORD[1:-1] + b"\2", 1, 0, id="a header that is not there"),
        pytest.param(b"\x10" + RECORD[1:-1] + b"\1", 1, 0, id="less headers than none"),
        pytest.param(b"\x10\0\0\0\x02\x6b\x08v\0", 1, 0, id="a value beyond its record"),
    ],
)
def test_contents_that_are_not_what_the_batch_says(codec, body, count, last):
    assert code(sealed(body, count, last=last, codec=codec)) == INVALID


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
@pytest.mark.parametrize("fill", [0, 255])
def test_what_cannot_be_unpacked(codec, fill):
    assert code(sealed(bytes([fill]) * 40, 5, flags=codec)) == INVALID
    assert code(sealed(b"", 1, flags=codec)) == INVALID


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_a_codec_that_nobody_knows(codec):
    assert code(sealed(RECORD, 1, flags=codec)) == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


@pytest.mark.parametrize("codec", CODECS)
def test_a_batch_is_looked_through_to_its_end(codec):
    """Not only its first records: one byte less in the last one, and one byte more behind it."""
    good = build([(b"k", b"v" * 50)] * 500, NOW)[61:]
    assert code(sealed(good, 500, codec=codec)) == 0
    assert code(sealed(good[:-1], 500, codec=codec)) == INVALID
    assert code(sealed(good + b"x", 500, codec=codec)) == INVALID
    assert code(sealed(good, 499, codec=codec)) == INVALID
    assert code(sealed(good, 501, codec=codec)) == INVALID


def test_what_unfolds_beyond_all_bounds_is_not_unfolded():
    body = build([(b"k", bytes(40_000_000))], NOW)[61:]
    assert code(sealed(body, 1, codec=4)) == 0
    assert code(sealed(body, 1, codec=1)) == 0


def refusal(data, **settings):
    with pytest.raises(RefusedRecordsError) as caught:
        batch_validation.check(data, config(**settings), "t-0", NOW)
    return caught.value


def test_records_without_a_key_are_named():
    """KIP-467: of a batch for a compacted topic the producer learns which records are bad."""
    data = build([(b"k", b"v"), (None, b"v"), (b"k", b"v"), (None, b"v")], NOW)
    refused = refusal(data, cleanup_policy="compact")
    assert refused.code == INVALID
    assert [place for place, _ in refused.records] == [1, 3]
    assert "key" in refused.records[0][1]
    assert code(data, cleanup_policy="delete") == 0


def test_records_out_of_time_are_named():
    data = build([(b"k", b"v")] * 3, NOW + 3_600_001)
    refused = refusal(data)
    assert refused.code == ErrorCode.INVALID_TIMESTAMP
    assert [place for place, _ in refused.records] == [0, 1, 2]
    assert next(iter(records(data))).timestamp == NOW + 3_600_001


def test_the_largest_batch():
    data = build([(b"k", b"v" * 100)], NOW)
    assert code(data, max_message_bytes="100") == ErrorCode.MESSAGE_TOO_LARGE
