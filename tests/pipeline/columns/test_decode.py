# SPDX-License-Identifier: Apache-2.0
"""Records of real brokers as typed rows."""

from collections import Counter

import pytest
from tests import golden_logs
from tests.spark.rows import golden, partition_of, raw, topic_of

from kohort.pipeline.columns.decode import OFFSET_COMMITS, decode, offset_commits
from kohort.pipeline.columns.record_positions import ArrowRows
from kohort.pipeline.schemas import DECODED, KINDS
from kohort.records.codec import Record
from kohort.records.schemas import OffsetCommitKey, OffsetCommitValue

NAMES = [name for name in golden_logs.NAMES if not name.startswith("user")]
FUTURE = "OffsetCommitValue has version 99, expected 0-4"


def type_of(line):
    return int(line["key_hex"][:4], 16)


def kind_of(line):
    if line.get("control") is not None:
        return "transaction_marker"
    if type_of(line) not in KINDS:
        return "other_record"
    if line["value_hex"] is None:
        return "tombstone"
    return "quarantine" if line["value_hex"].startswith("0063") else KINDS[type_of(line)]


@pytest.mark.parametrize("name", NAMES)
def test_every_record_has_the_kind_and_fields_that_the_dump_has(name):
    decoded = decode(ArrowRows(golden(name)))
    assert decoded.schema == DECODED.arrow
    lines = {
        (partition_of(line), line["offset"]): line
        for line in golden_logs.dump(name)
        if line["kind"] == "record" and topic_of(line) == "__consumer_offsets"
    }
    rows = decoded.to_pylist()
    assert Counter(row["kind"] for row in rows) == Counter(map(kind_of, lines.values()))
    for row in rows:
        line = lines[row["partition"], row["offset"]]
        assert row["kind"] == kind_of(line)
        if row["kind"] not in {"transaction_marker", "other_record", "quarantine"}:
            key = line["key"]
            assert row["type"] == type_of(line)
            assert row["group_id"] == key.get("group", key.get("groupId"))
            assert (row["topic"], row["topic_partition"]) == (
                key.get("topic"),
                key.get("partition"),
            )
            assert row["member_id"] == key.get("memberId")
        if row["kind"] in {KINDS[0], KINDS[1]}:
            value = line["value"]
            assert row["committed_offset"] == value["offset"]
            assert row["metadata"] == value["metadata"]
            assert row["value_version"] == line["version"]
            assert row["leader_epoch"] == value.get("leaderEpoch", -1)
    commits = offset_commits(ArrowRows(golden(name)))
    assert commits.schema == OFFSET_COMMITS
    kinds = [row for row in rows if row["kind"] in {KINDS[0], KINDS[1]}]
    assert commits.to_pylist() == [{one: row[one] for one in OFFSET_COMMITS.names} for row in kinds]


def test_markers_say_what_became_of_the_transaction():
    rows = decode(ArrowRows(golden("1-written"))).to_pylist()
    lines = golden_logs.dump("1-written")
    wanted = Counter(
        line["control"]["endTxnMarker"] == "COMMIT"
        for line in lines
        if line.get("control") and topic_of(line) == "__consumer_offsets"
    )
    markers = [row["commits"] for row in rows if row["kind"] == "transaction_marker"]
    assert Counter(markers) == wanted
    assert {row["commits"] for row in rows if row["kind"] != "transaction_marker"} == {None}


def test_an_unknown_version_is_in_quarantine_with_its_key():
    rows = [
        row
        for row in decode(ArrowRows(golden("legacy"))).to_pylist()
        if row["kind"] == "quarantine"
    ]
    assert [row["error"] for row in rows] == [FUTURE]
    assert [row["value_version"] for row in rows] == [99]
    assert rows[0]["group_id"] == "bad-3"


def test_text_that_is_not_utf8_is_in_quarantine():
    key = OffsetCommitKey(group="g", topic="t", partition=1)
    value = OffsetCommitValue(offset=5, metadata="ß", commit_timestamp=7, topic_id=b"i" * 16)
    rows = raw([Record(key, value)] * 3)
    sound = decode(ArrowRows(rows))
    assert sound.column("kind").to_pylist() == [KINDS[1]] * 3
    assert sound.column("metadata").to_pylist() == ["ß"] * 3
    entries = [(one["offset"], one["key"], one["value"]) for one in rows.to_pylist()]
    entries[1] = (1, entries[1][1], entries[1][2].replace("ß".encode(), b"\xc3("))
    decoded = decode(ArrowRows(raw(entries)))
    assert decoded.column("kind").to_pylist() == [KINDS[1], "quarantine", KINDS[1]]
    assert (
        decoded.column("error")[1]
        .as_py()
        .startswith("OffsetCommitValue v4 has text that is not UTF-8")
    )
    assert decoded.column("group_id").to_pylist() == ["g"] * 3


def test_a_group_that_is_not_ours_has_its_id():
    key = (11).to_bytes(2) + (5).to_bytes(2) + b"share"
    rows = decode(
        ArrowRows(raw([(0, key, b"\0\0"), (1, key[:4], b"\0\0"), (2, key, None)]))
    ).to_pylist()
    assert {row["kind"] for row in rows} == {"other_record"}
    assert [row["group_id"] for row in rows] == ["share", None, "share"]
