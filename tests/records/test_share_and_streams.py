"""What records of share and streams groups say: by the bytes that Kafka has written."""

import pytest

from kohort.errors import WireError
from kohort.records.share_and_streams import Part, foreign_record_or_none

SHARE_GROUP = b"\x00\x0b\x00\x01s"


def test_what_kafka_has_written_is_read() -> None:
    key = bytes.fromhex("0011000d73747265616d732d67726f7570")
    value = bytes.fromhex(
        "0000000000020a574bcce988f15902000400000000011902156e756d2e7374616e6462792e7265706c69636173"
        "02300000"
    )
    said = foreign_record_or_none(key, value)
    assert said is not None
    assert (said.type, said.group_id, said.part) == ("streams", "streams-group", Part.GROUP)
    assert (said.value.epoch, said.value.validated_topology_epoch) == (2, 0)


@pytest.mark.parametrize(
    ("kind", "part", "member_id"),
    [
        (10, Part.MEMBER, "m"),
        (12, Part.TARGET, ""),
        (14, Part.CURRENT, "m"),
        (19, Part.MEMBER, "m"),
        (20, Part.TARGET, ""),
        (22, Part.CURRENT, "m"),
        (23, Part.TOPOLOGY, ""),
    ],
)
def test_each_type_is_about_a_part_of_a_group(kind: int, part: Part, member_id: str) -> None:
    key = kind.to_bytes(2) + b"\x00\x01g" + (b"\x00\x01m" if member_id else b"")
    said = foreign_record_or_none(key, None)
    assert said is not None
    assert (said.group_id, said.part, said.member_id) == ("g", part, member_id)
    assert (said.type, said.value) == ("share" if kind < 16 else "streams", None)


@pytest.mark.parametrize("kind", [9, 13, 15, 16, 18, 21, 24, 99])
def test_other_types_say_nothing_about_the_state(kind: int) -> None:
    assert foreign_record_or_none(kind.to_bytes(2), None) is None


def test_a_key_without_a_group_is_refused() -> None:
    with pytest.raises(WireError):
        foreign_record_or_none(b"\x00\x0b\x00\x05s", None)


@pytest.mark.parametrize("value", [b"", b"\x00\x00\x01", b"\x00\x01\x00\x00\x00\x02"])
def test_a_value_that_cannot_be_read_is_one_nevertheless(value: bytes) -> None:
    said = foreign_record_or_none(SHARE_GROUP, value)
    assert said is not None
    assert (said.value, said.readable) == (value, False)
