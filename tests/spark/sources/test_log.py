# SPDX-License-Identifier: Apache-2.0
"""A log that is not as one would like it: torn, damaged, cleaned, rolled and cut meanwhile."""

import os
import pickle
from datetime import UTC, datetime

import msgspec
import pytest
from tests.spark.sources.logs import FIRST, Writer, log_source, read, read_range
from tests.storage.starts import begin_at

from kohort.pipeline.columns.record_positions import raw
from kohort.pipeline.sources.folders import find
from kohort.pipeline.sources.log_position import WHOLE_LOG, Position, SourceError
from kohort.spark.sources import folder_feed as feeds
from kohort.spark.sources.log import LogSource
from kohort.wire.batch import build


def test_a_torn_tail_is_the_end(tmp_path):
    writer = Writer(tmp_path)
    writer.append("a", "b", times=3)
    whole = writer.files()[0].read_bytes()
    writer.append("c", times=1)
    torn = writer.files()[0].read_bytes()

    for size in range(len(whole), len(torn)):
        writer.files()[0].write_bytes(torn[:size])
        plan = log_source(tmp_path).plan({})
        assert plan.ranges == {0: (0, 6)}
        assert [key for _, _, key in read(log_source(tmp_path), plan)] == ["a", "b"] * 3


def test_a_tail_of_zeros_or_of_a_wrong_crc_is_no_end(tmp_path):
    writer = Writer(tmp_path)
    writer.append("a", times=3)
    path = writer.files()[0]
    whole = path.read_bytes()
    size = len(whole) // 3

    path.write_bytes(whole + bytes(5000))
    assert log_source(tmp_path).plan({}).ranges == {0: (0, 3)}
    path.write_bytes(whole[:-1] + b"\xff")
    assert log_source(tmp_path).plan({}).ranges == {0: (0, 2)}
    path.write_bytes(whole[: 2 * size] + whole[2 * size : 2 * size + 61] + bytes(size - 61))
    assert log_source(tmp_path).plan({}).ranges == {0: (0, 2)}


@pytest.mark.parametrize("what", ["crc", "length", "magic", "hole"])
def test_damage_in_the_middle_is_a_row_and_moves_no_neighbour(tmp_path, what):
    """Also in the last segment: good batches stand behind it, so it is no torn tail."""
    writer = Writer(tmp_path)
    writer.append("a", "b", times=5)
    path = writer.files()[0]
    data = bytearray(path.read_bytes())
    size = len(data) // 5
    at = 2 * size
    if what == "crc":
        data[at + size - 3] ^= 1
    elif what == "length":
        data[at + 8 : at + 12] = (1 << 30).to_bytes(4)
    elif what == "magic":
        data[at + 16] = 9
    else:
        data[at + 20 : at + 60] = bytes(40)
    path.write_bytes(data)
    one = log_source(tmp_path)

    found = read(one)
    good = [offset for _, offset, key in found if key in {"a", "b"}]
    errors = [(offset, key) for _, offset, key in found if key not in {"a", "b"}]
    assert good == [0, 1, 2, 3, 6, 7, 8, 9]
    assert [offset for offset, _ in errors] == [4]
    assert one.plan({}).ranges == {0: (0, 10)}
    assert read_range(one, 6, 10) == [row for row in found if row[1] >= 6]
    assert read_range(one, 0, 4) == [row for row in found if row[1] < 4]


@pytest.mark.parametrize("crc", ["right", "wrong"])
@pytest.mark.parametrize(("base", "at"), [(260, 4), (6, 4), (1, 4), (2, 4), (260, 0)])
def test_an_offset_out_of_order_hides_nothing_else(tmp_path, monkeypatch, base, at, crc):
    """No checksum covers the base offset of a batch."""
    monkeypatch.setattr(feeds, "PIECE_BYTES", 600)
    writer = Writer(tmp_path)
    writer.append("a", "b", times=20)
    path = writer.files()[0]
    data = bytearray(path.read_bytes())
    place = len(data) // 20 * (at // 2)
    data[place : place + 8] = base.to_bytes(8)
    data[place + 20] ^= crc == "wrong"
    path.write_bytes(data)

    found = read(log_source(tmp_path))

    assert [offset for _, offset, key in found if key in {"a", "b"}] == [
        offset for offset in range(40) if offset not in {at, at + 1}
    ]
    (error,) = [key for _, _, key in found if key not in {"a", "b"}]
    told = f"batch has offsets {base} to {base + 1}, out of order with the batches around it"
    assert error == told if crc == "right" else "crc" in error


def test_a_torn_end_of_a_closed_segment_is_damage(tmp_path):
    writer = Writer(tmp_path)
    writer.append("a", times=2)
    writer.roll()
    writer.append("b", times=2)
    first = writer.files()[0]
    first.write_bytes(first.read_bytes()[:-3])

    found = read(log_source(tmp_path))

    assert [row[1] for row in found] == [0, 1, 2, 3]
    assert found[1][2] not in {"a", None}


@pytest.mark.parametrize(
    "segments",
    [
        {0: [0, 1, 2], 4: []},
        {0: [0, 1, 2], 5: [], 8: [8, 9]},
        {0: [], 3: [], 8: [8, 9]},
        {0: [], 3: [], 5: [], 8: [8], 9: [], 12: [], 20: [21], 30: []},
        {0: [0], 2: b"garbage" * 20, 7: [7], 9: b"\x01" * 100},
        {0: [0], 9_223_372_036_854_775_807: []},
    ],
    ids=["the last", "between", "the first two", "many", "damaged ones", "the largest name"],
)
@pytest.mark.timeout(30)
def test_files_without_a_record_are_passed_over(tmp_path, segments):
    """A cleaner leaves them, with holes before and behind."""
    folder = tmp_path / "__consumer_offsets-0"
    folder.mkdir()
    for base, holds in segments.items():
        data = holds
        if not isinstance(holds, bytes):
            data = b"".join(build([(b"a", b"")], FIRST, base_offset=offset) for offset in holds)
        (folder / f"{base:020}.log").write_bytes(data)
    expected = [
        offset for holds in segments.values() if isinstance(holds, list) for offset in holds
    ]

    found = read(log_source(tmp_path))

    assert [offset for _, offset, key in found if key == "a"] == expected


def test_files_are_read_in_pieces_and_a_batch_may_be_larger(tmp_path, monkeypatch):
    monkeypatch.setattr(feeds, "PIECE_BYTES", 300)
    writer = Writer(tmp_path, segment_bytes=1000)
    writer.append("a", "b", times=20)
    writer.append("large", value=bytes(5000))
    writer.append("c", "d", times=20)
    one = log_source(tmp_path)

    found = read(one)

    assert [offset for _, offset, _ in found] == list(range(81))
    assert len(writer.files()) > 4
    for at in (0, 1, 2, 37, 40, 41, 42, 80):
        assert read_range(one, 0, at) + read_range(one, at, 81) == found


def test_large_partitions_are_several_tasks_and_small_ones_share_one(tmp_path):
    from kohort.spark.sources.feed import tasks

    Writer(tmp_path, 0, segment_bytes=10_000).append("a", times=1000)
    for index in range(1, 9):
        Writer(tmp_path, index).append("b", times=3)
    one = log_source(tmp_path)
    weighed = one._feed.weigh(one.plan({}).ranges)

    cut = tasks(weighed, 4, 1)

    assert 3 <= len(cut) <= 6
    assert sum(len(task.value) for task in cut) <= len(cut) + 8
    rows = [
        row
        for task in cut
        for batch in one._feed.read(task.value)
        for row in raw(batch).to_pylist()
    ]
    assert len(rows) == len({(row["partition"], row["offset"]) for row in rows}) == 1024


# ---- what changes between planning and reading


def test_cleaned_meanwhile(tmp_path):
    writer = Writer(tmp_path, segment_bytes=500)
    writer.append("a", "b", times=30)
    writer.append("c")
    one = log_source(tmp_path)
    plan = one.plan({})
    spans = [weighed.span for weighed in one._feed.weigh(plan.ranges)]
    assert len(spans) > 3

    writer.clean()

    found = [
        (row["offset"], row["key"])
        for rows in one._feed.read(spans)
        for row in raw(rows).to_pylist()
    ]
    assert found[-3:] == [(58, b"a"), (59, b"b"), (60, b"c")]
    assert len(found) < 61
    assert len(set(found)) == len(found)
    assert one.changes(plan) == ()


def test_cleaned_while_a_segment_is_being_read(tmp_path, monkeypatch):
    """The old file is read to its end, then the log goes on in the cleaned one."""
    monkeypatch.setattr(feeds, "PIECE_BYTES", 200)
    writer = Writer(tmp_path, segment_bytes=500)
    for number in range(30):
        writer.append("a", f"only-{number}")
    one = log_source(tmp_path)
    reading = one._feed.read([weighed.span for weighed in one._feed.weigh(one.plan({}).ranges)])
    found = raw(next(reading)).to_pylist()

    writer.clean()

    found += [row for rows in reading for row in raw(rows).to_pylist()]
    offsets = [row["offset"] for row in found]
    assert offsets == sorted(set(offsets))
    kept = {row["key"] for row in found}
    assert {f"only-{number}".encode() for number in range(30)} <= kept


def test_a_finished_cleaning_that_has_not_its_name_yet(tmp_path):
    """Between two steps of the broker the cleaned file is all there is of several segments."""
    writer = Writer(tmp_path, segment_bytes=500)
    writer.append("a", "b", times=20)
    writer.append("c")
    one = log_source(tmp_path)
    plan = one.plan({})
    first, *covered, _ = writer.files()
    merged = b"".join(path.read_bytes() for path in [first, *covered])
    first.with_suffix(".log.swap").write_bytes(merged)
    for path in covered:
        path.unlink()

    assert [offset for _, offset, _ in read(one, plan)] == list(range(41))


def test_rolled_meanwhile(tmp_path):
    writer = Writer(tmp_path)
    writer.append("a", times=5)
    one = log_source(tmp_path)
    plan = one.plan({})

    writer.roll()
    writer.append("b", times=5)

    assert [offset for _, offset, _ in read(one, plan)] == [0, 1, 2, 3, 4]
    following = one.plan(plan.positions)
    assert (following.ranges, following.cut, following.notes) == ({0: (5, 10)}, {}, ())


def test_removed_meanwhile_and_told(tmp_path):
    writer = Writer(tmp_path, segment_bytes=500)
    writer.append("a", "b", times=30)
    one = log_source(tmp_path)
    plan = one.plan({})
    for path in writer.files()[:2]:
        path.unlink()
    start = int(writer.files()[0].stem)

    found = read(one, plan)

    assert [offset for _, offset, _ in found] == list(range(start, 60))
    (note,) = one.changes(plan)
    assert f"offsets 0 to {start - 1} of partition 0" in note.text
    early = one.plan({0: Position(2)})
    assert early.ranges == {0: (start, 60)}
    assert [note.text for note in early.notes] == [
        f"offsets 2 to {start - 1} of partition 0 were removed before they were read"
    ]


def test_the_start_that_a_broker_has_noted(tmp_path):
    writer = Writer(tmp_path)
    writer.append("a", times=10)
    begin_at(writer.log, 4)

    one = log_source(tmp_path)

    assert one.plan({}).ranges == {0: (4, 10)}
    assert [offset for _, offset, _ in read(one)] == [4, 5, 6, 7, 8, 9]


# ---- a tail that is cut, and offsets that are used again


def test_a_cut_tail_is_found_when_its_offsets_are_used_again(tmp_path):
    writer = Writer(tmp_path)
    one = log_source(tmp_path)
    writer.append("a", times=10)
    first = one.plan({})
    writer.append("b", times=10)
    second = one.plan(first.positions)
    assert second.positions[0].older
    writer.cut(15)
    writer.append("c", times=10)

    third = one.plan(second.positions)

    assert third.cut == {0: 10}  # the newest of the known batches that still stands ends there
    assert third.ranges == {0: (10, 25)}
    assert "cut at or behind offset 10" in third.notes[0].text
    assert [key for _, _, key in read(one, third)] == ["b"] * 5 + ["c"] * 10
    assert one.plan(third.positions).cut == {}


def test_a_tail_that_was_cut_and_not_yet_written_again(tmp_path):
    writer = Writer(tmp_path)
    one = log_source(tmp_path)
    writer.append("a", times=10)
    first = one.plan({})
    writer.cut(7)

    second = one.plan(first.positions)
    assert (second.cut, second.ranges) == ({0: 0}, {0: (0, 7)})
    assert one.plan({0: Position(10)}).cut == {0: 7}  # without a fingerprint, as far as is known
    writer.append("b", times=3)
    third = one.plan(second.positions)
    assert (third.cut, third.ranges) == ({}, {0: (7, 10)})


def test_a_cut_of_the_tail_does_not_go_back_to_the_start(tmp_path):
    writer = Writer(tmp_path)
    one = log_source(tmp_path)
    writer.append(*"abcdefghij", times=300)
    plan = one.plan({})
    writer.cut(2900)
    writer.append("z", times=200)

    again = one.plan(plan.positions)

    assert again.cut == {0: 2000}
    assert again.ranges == {0: (2000, 3100)}


def test_a_tail_that_is_cut_between_planning_and_reading(tmp_path):
    """What was planned is not there: the next plan reads what stands in its place."""
    writer = Writer(tmp_path)
    one = log_source(tmp_path)
    writer.append("a", times=10)
    plan = one.plan({})
    writer.cut(5)
    assert len(read(one, plan)) == 5

    writer.append("b", times=8)

    again = one.plan(plan.positions)
    assert (again.cut, again.ranges) == ({0: 0}, {0: (0, 13)})


def test_cleaning_is_no_cut(tmp_path):
    writer = Writer(tmp_path, segment_bytes=500)
    writer.append("a", "b", times=30)
    one = log_source(tmp_path)
    plan = one.plan({})
    writer.append("a", "b", times=30)
    writer.clean()

    after = one.plan(plan.positions)

    assert (after.cut, after.notes) == ({}, ())
    assert after.ranges[0][0] == 60


def test_positions_are_those_of_a_plan_and_pass_through_json(tmp_path):
    writer = Writer(tmp_path)
    writer.append("a", "b", times=4)
    one = log_source(tmp_path)
    plan = one.plan({})
    writer.append("a", "b", times=4)
    following = one.plan(plan.positions)

    assert one.positions({0: 8}) == plan.positions
    kept = msgspec.json.encode(following.positions)  # as the manifest does
    assert msgspec.json.decode(kept, type=dict[int, Position]) == following.positions


def test_what_is_remembered_of_a_log_grows_with_its_logarithm():
    position = Position(0)
    for offset in range(1, 5000):
        position = position.moved(Position(offset, (offset - 1, offset)))

    assert position.last == (4998, 4999)
    assert len(position.older) <= 13
    assert [base for base, _ in position.older] == sorted(
        (base for base, _ in position.older), reverse=True
    )


# ---- times


def test_a_plan_between_two_times(tmp_path):
    writer = Writer(tmp_path, segment_bytes=500)
    writer.append("a", "b", times=30)
    one = log_source(tmp_path)
    at = [datetime.fromtimestamp((FIRST + 1000 * n) / 1000, UTC) for n in (20, 40, 1000)]

    assert one.plan({}, from_time=at[0], to_time=at[1]).ranges == {0: (20, 40)}
    assert one.plan({0: Position(30)}, from_time=at[0], to_time=at[1]).ranges == {0: (30, 40)}
    later = one.plan({}, from_time=at[2])
    assert (later.ranges, later.positions) == ({}, {0: Position(60)})
    with pytest.raises(SourceError, match="has no zone"):
        one.plan({}, from_time=at[0].replace(tzinfo=None))


# ---- where a log is


def test_a_directory_for_each_broker_and_one_partition_alone(tmp_path):
    Writer(tmp_path / "node-1", 0).append("a", times=3)
    Writer(tmp_path / "node-2", 0).append("a", times=5)
    Writer(tmp_path / "node-2", 1).append("b", times=2)

    assert log_source(tmp_path).plan({}).ranges == {0: (0, 5), 1: (0, 2)}
    alone = tmp_path / "node-2" / "__consumer_offsets-1"
    assert log_source(alone).plan({}).ranges == {1: (0, 2)}
    assert find(str(alone), "__consumer_offsets").by_partition == {1: str(alone)}


def test_a_feed_goes_to_a_worker(tmp_path):
    Writer(tmp_path).append("a", times=3)
    one = log_source(tmp_path)
    one.plan({})
    one._feed = pickle.loads(pickle.dumps(one._feed))

    assert len(read(one)) == 3


def test_what_is_missing_is_said(tmp_path):
    (tmp_path / "empty").mkdir()
    for path, words in [
        (tmp_path / "none", "there is no directory"),
        (tmp_path / "empty", "has no folder __consumer_offsets-0"),
        ("s3://bucket/log", "is no local path"),
    ]:
        with pytest.raises(SourceError, match=words):
            log_source(path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_no_permission(tmp_path):
    Writer(tmp_path).append("a")
    tmp_path.chmod(0)
    try:
        with pytest.raises(SourceError, match="may not be read"):
            log_source(tmp_path)
    finally:
        tmp_path.chmod(0o755)


@pytest.mark.parametrize(
    ("there", "said"),
    [
        ((0, 2, 4), "2 of at least 5 partitions of __consumer_offsets are not in"),
        ((1,), "1 of at least 2 partitions of __consumer_offsets are not in"),
        ((0, 1, 2), None),
    ],
)
def test_a_directory_that_has_a_part_of_the_log_says_so(there, said, tmp_path):
    """As one of two log.dirs of a broker has."""
    for index in there:
        folder = tmp_path / f"__consumer_offsets-{index}"
        folder.mkdir()
        (folder / f"{0:020d}.log").write_bytes(build([(b"k", b"v")], 10))

    notes = LogSource(str(tmp_path)).plan({}).notes

    assert [note.partition for note in notes] == ([WHOLE_LOG] if said else [])
    assert all(note.text.startswith(f"{said} {tmp_path} (") for note in notes)
    alone = LogSource(str(tmp_path / f"__consumer_offsets-{there[-1]}"))
    assert alone.plan({}).notes == ()
