# SPDX-License-Identifier: Apache-2.0
"""Segments of real brokers, and what is left over, damaged or of another time."""

from itertools import groupby

import google_crc32c
import pyarrow as pa
import pytest
from tests import golden_logs
from tests.spark.rows import golden, partition_of, topic_of

from kohort.pipeline.columns.batches import BODY_BYTES, UNFOLDED_BYTES
from kohort.pipeline.columns.record_positions import raw, sliced
from kohort.pipeline.columns.segments import parse
from kohort.pipeline.columns.slow_path import SHOWN_BYTES, as_batch, unusual_rows
from kohort.pipeline.schemas import RAW
from kohort.wire import batch
from kohort.wire.batch import Record

FIRST = 1_700_000_000_000
ONE = batch.build([(b"k", b"v"), (b"l", None)], 1_700_000_000_000, base_offset=10)
TWO = batch.build([(b"m", b"w")], 1_700_000_000_000, base_offset=12)


HEX = ("key_hex", "value_hex")


def shown(rows):
    return rows.select(["offset", "key", "value"]).to_pylist()


def errors(parsed):
    return [one for one in parsed.rows.column("error").to_pylist() if one is not None]


@pytest.mark.parametrize("name", golden_logs.NAMES)
def test_every_record_of_a_real_log_is_a_row(name):
    lines = [line for line in golden_logs.dump(name) if line["kind"] == "record"]
    for topic, found in groupby(sorted(lines, key=topic_of), key=topic_of):
        rows = golden(name, topic)
        assert rows.schema == RAW.arrow
        times = rows.column("timestamp").cast(pa.int64()).to_pylist()
        told = {
            (row["partition"], row["offset"]): (row["key"], row["value"], time, row["control"])
            for row, time in zip(rows.drop_columns(["timestamp"]).to_pylist(), times, strict=True)
        }
        assert told == {
            (partition_of(line), line["offset"]): (
                *(None if line[one] is None else bytes.fromhex(line[one]) for one in HEX),
                line["timestamp"] * 1000,
                line.get("control") is not None,
            )
            for line in found
        }


def test_a_row_tells_of_the_batch_that_it_stands_in():
    """The slow reader tells the same. A damaged batch tells nothing."""
    first = batch.build([(b"k", b"v"), (b"l", None)], FIRST, base_offset=10, leader_epoch=3)
    second = batch.build([(b"m", b"w")], FIRST, base_offset=12, leader_epoch=4)
    bad = second[:-1] + b"\x07"
    names = ["offset", "partition_leader_epoch", "base_offset", "attributes"]

    found = parse(first + second, 0).rows.select(names).to_pylist()

    assert [list(row.values()) for row in found] == [[10, 3, 10, 0], [11, 3, 10, 0], [12, 4, 12, 0]]
    assert as_batch(unusual_rows(first, 0)).select(names).to_pylist() == found[:2]
    damaged = parse(bad, 0).rows.select(names).to_pylist()
    assert damaged == [dict.fromkeys(names) | {"offset": 12}]


HEADERS = [("kohort.cause", b"leave"), ("\udcff", None)]
AS_TOLD = [{"key": "kohort.cause", "value": b"leave"}, {"key": "\ufffd", "value": None}]


def test_headers_are_told_where_there_are_some():
    """The slow reader tells the same."""
    records = [Record(1, FIRST, b"k", b"v", HEADERS), Record(2, FIRST, b"l", None)]
    data = batch.build_records(records)
    wanted = [{"headers": AS_TOLD}, {"headers": None}]
    assert parse(data, 0).rows.select(["headers"]).to_pylist() == wanted
    assert as_batch(unusual_rows(data, 0)).select(["headers"]).to_pylist() == wanted


def test_a_record_whose_headers_cannot_be_read_is_still_a_record():
    data = batch.build_records([Record(1, FIRST, b"k", b"v", HEADERS)])
    at = data.index(b"kohort.cause") - 1  # the length of the name, behind the count
    body = data[:at] + bytes([data[at] | 0x40]) + data[at + 1 :]
    crc = google_crc32c.value(body[21:]).to_bytes(4)
    bad = body[:17] + crc + body[21:]
    for rows in (parse(bad, 0).rows, as_batch(unusual_rows(bad, 0))):
        assert rows.select(["key", "headers", "error"]).to_pylist() == [
            {"key": b"k", "headers": None, "error": None}
        ]


def test_a_torn_tail_is_left_over_until_there_is_no_more():
    for cut in range(1, len(TWO)):
        parsed = parse(ONE + TWO[:cut], 0)
        assert (parsed.rows.num_rows, parsed.used, parsed.next_offset) == (2, len(ONE), 12)
        assert parsed.last == (10, batch.header_at(ONE).crc)
    last = parse(ONE + TWO[:-1], 0, final=True)
    assert last.used == len(ONE) + len(TWO) - 1
    assert shown(last.rows)[-1] == {"offset": 12, "key": None, "value": TWO[:-1]}
    (error,) = errors(last)
    assert error.endswith(f"are no whole batch: it says that it is {len(TWO)} bytes long")


def test_zeros_at_the_end_are_the_end():
    for zeros in (1, 61, 500):
        parsed = parse(ONE + bytes(zeros), 0, final=True)
        assert (parsed.rows.num_rows, parsed.used) == (2, len(ONE))


def test_nothing_is_nothing():
    parsed = parse(b"", 0, start=7)
    assert parsed[1:] == (0, 7, None)
    assert (parsed.rows.num_rows, parsed.rows.schema) == (0, RAW.arrow)


def test_a_batch_with_another_crc_is_one_row_and_its_neighbours_stay():
    bad = ONE[:-1] + b"\x07"
    parsed = parse(bad + TWO, 0)
    assert shown(parsed.rows) == [
        {"offset": 10, "key": None, "value": bad},
        {"offset": 12, "key": b"m", "value": b"w"},
    ]
    assert "has crc" in errors(parsed)[0]
    assert parse(bad, 0).next_offset == 12
    assert parse(bad, 0).last is None


def test_a_base_offset_that_goes_back_is_not_believed():
    bad = batch.stamp(ONE[:-1] + b"\x07", 3, 0)
    parsed = parse(TWO + bad, 0)
    assert parsed.rows.column("offset").to_pylist() == [12, 13]


def test_a_lying_length_takes_the_rest():
    lying = TWO[:8] + (20).to_bytes(4) + TWO[12:]
    parsed = parse(ONE + lying + ONE, 0)
    assert (parsed.rows.num_rows, parsed.used) == (2, len(ONE))
    parsed = parse(ONE + lying + ONE, 0, final=True)
    assert shown(parsed.rows)[2] == {"offset": 12, "key": None, "value": lying + ONE}
    rest = parse(lying + b"\x01" * 2 * SHOWN_BYTES, 0, final=True)
    assert len(rest.rows.column("value")[0].as_py()) == SHOWN_BYTES
    assert f"the first {SHOWN_BYTES} are kept" in errors(rest)[0]


def test_messages_of_before_2017_are_told_so():
    old = (10).to_bytes(8) + (22).to_bytes(4) + bytes(4) + b"\x01" + bytes(17)
    parsed = parse(old + TWO + old, 0)
    assert parsed.rows.column("offset").to_pylist() == [10, 12, 13]
    assert errors(parsed) == ["batch has magic 1, expected 2"] * 2


def test_what_unfolds_to_too_much_is_damage():
    big = batch.build([(b"k", bytes(200 << 20))], 5, compression=4)
    parsed = parse(big + TWO, 0)
    assert parsed.rows.num_rows == 2
    assert "bytes when unpacked" in errors(parsed)[0]


@pytest.mark.parametrize("codec", [1, 3, 4], ids=["gzip", "lz4", "zstd"])
def test_a_few_bytes_that_unfold_to_a_value_of_120_mib_are_damage_of_their_batch(codec):
    """A value that no JVM has room for is kept as the few bytes that it came as."""
    big = batch.build([(b"k", bytes(120 << 20))], 5, compression=codec, base_offset=11)

    parsed = parse(ONE + big + TWO, 0)

    rows = parsed.rows.to_pylist()
    assert [row["key"] for row in rows] == [b"k", b"l", None, b"m"]
    assert "bytes when unpacked" in rows[2]["error"]
    assert rows[2]["value"] == big
    assert max(len(row["value"] or b"") for row in rows) < 1 << 20


def test_a_value_that_is_as_large_without_compression_is_damage_too():
    big = batch.build([(b"k", bytes(BODY_BYTES + 1))], 5)

    parsed = parse(big + TWO, 0)

    assert f"expected {BODY_BYTES} at most" in errors(parsed)[0]
    assert parsed.rows.column("key").to_pylist() == [None, b"m"]


@pytest.mark.parametrize("codec", [1, 2, 3, 4], ids=["gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("size", [BODY_BYTES - 1000, BODY_BYTES * 3 // 4, BODY_BYTES * 5 // 8])
@pytest.mark.parametrize("timestamp", [5, 1 << 62], ids=["as usual", "of an unusual time"])
def test_many_batches_that_unfold_are_read_in_turns(codec, size, timestamp):
    """Each is allowed; all of them at once would take all memory."""
    big = batch.build([(b"k", bytes(size))], timestamp, compression=codec)
    data = b"".join(batch.stamp(big, base, 0) for base in range(10))
    found, start = [], 0
    while data:
        parsed = parse(data, 0, start=start, final=True)
        assert sum(len(row["value"]) for row in parsed.rows.to_pylist()) <= UNFOLDED_BYTES
        assert parsed.used > 0
        assert parsed.rows.num_rows == min(UNFOLDED_BYTES // size, 10 - len(found))
        found += parsed.rows.column("offset").to_pylist()
        data, start = data[parsed.used :], parsed.next_offset

    assert found == [*range(10)]


def test_damage_behind_batches_that_take_all_room_is_damage_of_its_batch():
    big = batch.stamp(batch.build([(b"k", bytes(BODY_BYTES - 1000))], 5, compression=4), 0, 0)
    over = batch.build([(b"k", bytes(BODY_BYTES + 1))], 5, compression=4)
    torn = big[: batch.HEADER_SIZE] + bytes(len(big) - batch.HEADER_SIZE)
    torn = batch.stamp(torn[:17] + google_crc32c.value(torn[21:]).to_bytes(4) + torn[21:], 5, 0)
    data = b"".join(batch.stamp(big, base, 0) for base in range(4)) + batch.stamp(over, 4, 0) + torn
    found, start = [], 0
    while data:
        parsed = parse(data, 0, start=start, final=True)
        assert parsed.used > 0
        found += [(row["offset"], row["error"]) for row in parsed.rows.to_pylist()]
        data, start = data[parsed.used :], parsed.next_offset

    assert [offset for offset, _ in found] == [*range(6)]
    assert [error is None for _, error in found] == [True] * 4 + [False] * 2
    assert "bytes when unpacked" in found[4][1]


def test_times_that_no_table_can_hold_are_null():
    records = [Record(0, -1, b"k", b"v"), Record(1, 2**50, b"k", b"v"), Record(2, 5, b"k", b"v")]
    rows = parse(batch.build_records(records), 0).rows
    assert rows.column("timestamp").cast(pa.int64()).to_pylist() == [None, None, 5000]


def test_slices_are_of_a_size_and_lose_nothing():
    (rows,) = parse(b"".join(batch.stamp(ONE, one, 0) for one in range(0, 100, 2)), 0).pieces
    parts = [raw(one) for one in sliced(rows, 30)]
    assert [one.num_rows for one in parts] == [30, 30, 30, 10]
    assert pa.Table.from_batches(parts).equals(pa.Table.from_batches([raw(rows)]))
