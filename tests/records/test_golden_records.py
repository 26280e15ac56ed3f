# SPDX-License-Identifier: Apache-2.0
"""Every record that brokers of Kafka 4.3.1 wrote or could read (tests/data/records.jsonl.gz).

The lines are what upstream's own dump tool says of a record, and its bytes.
"""

import gzip
import json
from base64 import b64decode
from collections import Counter
from pathlib import Path

import pytest

from kohort.errors import WireError
from kohort.records.codec import RECORDS, Record, Unknown, decode, encode, encode_key, encode_value
from kohort.records.consumer_protocol import decode_assignment, decode_subscription
from kohort.terms import uuid_text
from kohort.wire.schema import Primitive, fields_of

pytestmark = pytest.mark.usefixtures("each_codec")

DATA = Path(__file__).parents[1] / "data" / "records.jsonl.gz"
LINES = [json.loads(line) for line in gzip.decompress(DATA.read_bytes()).splitlines()]
FUTURE = "000100056261642d3300066f726465727300000001"  # its value has version 99


def read(line):
    value = line["value_hex"]
    return bytes.fromhex(line["key_hex"]), None if value is None else bytes.fromhex(value)


KNOWN = [line for line in LINES if line["type"] in RECORDS]
FOREIGN = [line for line in LINES if line["type"] not in RECORDS and line["key_hex"] != FUTURE]


def camel(name):
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def shown(value, field, *, array=None):
    """A value as the dump tool shows it."""
    if value is None:
        return None
    if field.array if array is None else array:
        return [shown(one, field, array=False) for one in value]
    if isinstance(field.of, Primitive):
        return uuid_text(value) if field.of.name == "uuid" else value
    return as_dict(value)


def as_dict(message):
    return {
        camel(field.name): shown(getattr(message, field.name), field)
        for field in fields_of(type(message))
    }


def agree(ours, theirs):
    """Every field that the tool shows is ours; what only we show is a default."""
    if isinstance(theirs, dict):
        for name, value in theirs.items():
            if isinstance(ours[name], bytes):
                agree_on_bytes(ours[name], value)
            else:
                agree(ours[name], value)
        assert all(
            ours[name] in (None, -1, 0, [], "A" * 22) for name in ours.keys() - theirs.keys()
        )
    elif isinstance(theirs, list):
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            agree(one, other)
    else:
        assert ours == theirs


def agree_on_bytes(ours, theirs):
    """The tool looks into what consumers hand each other, and shows other bytes as base64."""
    if isinstance(theirs, str):
        assert ours == b64decode(theirs)
        return
    payload = decode_subscription(ours) if "topics" in theirs else decode_assignment(ours)
    agree(as_dict(payload), theirs)


def test_the_corpus_is_whole():
    assert len(LINES) == len(KNOWN) + len(FOREIGN) + 1
    assert Counter(line["type"] for line in KNOWN).keys() == RECORDS.keys()
    assert Counter(line["type"] for line in FOREIGN).keys() >= {None, 10, 11, 12, 17, 19, 23}


@pytest.mark.parametrize("number", RECORDS)
def test_records_say_what_the_tool_says_and_are_written_as_they_were(number):
    """K848-006, K848-122, K848-123."""
    for line in KNOWN:
        if line["type"] != number:
            continue
        key, value = read(line)
        record = decode(key, value)
        assert type(record) is Record
        assert type(record.key) is RECORDS[number].key
        assert as_dict(record.key) == line["key"]
        assert encode(record)[0] == encode_key(record.key) == key
        if record.value is None:
            assert (value, line["value"]) == (None, None)
            continue
        assert type(record.value) is RECORDS[number].value
        agree(as_dict(record.value), line["value"])
        assert encode_value(record.value, line["version"]) == value
        if line["log"] != "legacy":
            assert encode(record)[1] == value


def test_records_of_other_types_are_kept():
    """K848-122."""
    for line in FOREIGN:
        key, value = read(line)
        assert decode(key, value) == Unknown(int.from_bytes(key[:2], "big"), key, value)


def test_a_value_of_an_unknown_version_is_refused():
    (line,) = (line for line in LINES if line["key_hex"] == FUTURE)
    with pytest.raises(WireError, match="OffsetCommitValue has version 99, expected 0-4"):
        decode(*read(line))


def test_no_record_is_read_from_less_than_all_of_it():
    """Each key and value, cut at every byte: refused, or read as the same without what is cut."""
    for line in {(line["type"], line["version"]): line for line in KNOWN}.values():
        key, value = read(line)
        for size in range(len(key)):
            with pytest.raises(WireError):
                decode(key[:size], value)
        for size in range(len(value or b"")):
            with pytest.raises(WireError):
                decode(key, value[:size])
