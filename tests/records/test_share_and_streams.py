# SPDX-License-Identifier: Apache-2.0
"""What records of share and streams groups say: by the bytes that Kafka has written."""

import pytest

from kohort.errors import WireError
from kohort.records.share_and_streams import RecordPart, share_or_streams_record_or_none

pytestmark = pytest.mark.usefixtures("each_codec")

SHARE_GROUP = b"\x00\x0b\x00\x01s"


def test_what_kafka_has_written_is_read() -> None:
    key = bytes.fromhex("0011000d73747265616d732d67726f7570")
    value = bytes.fromhex(
        "0000000000020a574bcce988f15902000400000000011902156e756d2e7374616e6462792e7265706c69636173"
        "02300000"
    )
    said = share_or_streams_record_or_none(key, value)
    assert said is not None
    assert (said.type, said.group_id, said.part) == ("streams", "streams-group", RecordPart.GROUP)
    assert (said.value.epoch, said.value.validated_topology_epoch) == (2, 0)


@pytest.mark.parametrize(
    ("kind", "part", "member_id"),
    [
        (10, RecordPart.MEMBER, "m"),
        (12, RecordPart.TARGET, ""),
        (14, RecordPart.CURRENT, "m"),
        (19, RecordPart.MEMBER, "m"),
        (20, RecordPart.TARGET, ""),
        (22, RecordPart.CURRENT, "m"),
        (23, RecordPart.TOPOLOGY, ""),
    ],
)
def test_each_type_is_about_a_part_of_a_group(kind: int, part: RecordPart, member_id: str) -> None:
    key = kind.to_bytes(2) + b"\x00\x01g" + (b"\x00\x01m" if member_id else b"")
    said = share_or_streams_record_or_none(key, None)
    assert said is not None
    assert (said.group_id, said.part, said.member_id) == ("g", part, member_id)
    assert (said.type, said.value) == ("share" if kind < 16 else "streams", None)


@pytest.mark.parametrize("kind", [9, 13, 15, 16, 18, 21, 24, 99])
def test_other_types_say_nothing_about_the_state(kind: int) -> None:
    assert share_or_streams_record_or_none(kind.to_bytes(2), None) is None


def test_a_key_without_a_group_is_refused() -> None:
    with pytest.raises(WireError):
        share_or_streams_record_or_none(b"\x00\x0b\x00\x05s", None)


@pytest.mark.parametrize("value", [b"", b"\x00\x00\x01", b"\x00\x01\x00\x00\x00\x02"])
def test_a_value_that_cannot_be_read_is_one_nevertheless(value: bytes) -> None:
    said = share_or_streams_record_or_none(SHARE_GROUP, value)
    assert said is not None
    assert (said.value, said.readable) == (value, False)
