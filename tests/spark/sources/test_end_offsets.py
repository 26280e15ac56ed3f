# SPDX-License-Identifier: Apache-2.0
"""Where partitions end: read from their folders, and asked from a broker."""

import asyncio
import os
import time
from collections import defaultdict
from itertools import pairwise

import pyarrow as pa
import pytest
from tests import golden_logs

from kohort.client.admin import AdminClient, NewTopic
from kohort.pipeline.schemas import END_OFFSETS
from kohort.pipeline.sources import sampling, user_topics
from kohort.pipeline.sources.log_position import SourceError
from kohort.pipeline.sources.samples import Sample, last_seen
from kohort.pipeline.sources.sampling import downsample
from kohort.spark.engine import small_runs
from kohort.spark.engine.frames import struct_of
from kohort.spark.sources import end_offsets
from kohort.testing import Broker
from kohort.wire.batch import build


def ends(table):
    """Partition -> its samples as (milliseconds, end offset)."""
    found = defaultdict(list)
    for row in table.to_pylist():
        at_ms = round(row["sampled_at"].timestamp() * 1000)
        found[f"{row['topic']}-{row['topic_partition']}"].append((at_ms, row["end_offset"]))
    return dict(found)


def told(name):
    """The same out of what Kafka's own tool reads: the newest timestamp so far at each batch."""
    found = defaultdict(list)
    for line in golden_logs.dump(name):
        if line["kind"] == "batch":
            samples = found[line["file"].partition("/")[0]]
            newest = max([line["maxTimestamp"], *(at for at, _ in samples[-1:])])
            samples.append((newest, line["lastOffset"] + 1))
    return {
        place: list({at: (at, end) for at, end in samples}.values())
        for place, samples in found.items()
    }


def partition(directory, *batches, name="orders-0", base=0):
    """A folder with one segment: batches as (first offset, how many records, their time)."""
    folder = directory / name
    folder.mkdir(exist_ok=True)
    data = b"".join(
        build([(None, b"x")] * count, at, base_offset=first) for first, count, at in batches
    )
    path = folder / f"{base:020d}.log"
    path.write_bytes(data)
    return path


def test_a_partition_is_found_where_the_group_log_is(tmp_path):
    """A directory for each broker, a copy of a partition in each; or the group log's own folder."""
    for broker, records in (("b1", 2), ("b2", 5)):
        (tmp_path / broker).mkdir()
        partition(tmp_path / broker, (0, records, 10))
        partition(tmp_path / broker, (0, 1, 10), name="__consumer_offsets-0")

    assert ends(sampling.sample_folders(str(tmp_path))) == {"orders-0": [(10, 5)]}
    own = tmp_path / "b1" / "__consumer_offsets-0"
    assert ends(sampling.sample_folders(f"file:{own}/")) == {"orders-0": [(10, 2)]}


@pytest.mark.parametrize("name", ["user", "user-compacted"])
def test_every_batch_of_a_real_log_is_a_sample(name, tmp_path):
    folder = golden_logs.unpack(name, tmp_path)
    before = sorted((path, path.stat().st_mtime_ns) for path in folder.rglob("*"))

    table = sampling.sample_folders(str(folder))

    assert table.schema == END_OFFSETS.arrow
    assert ends(table) == told(name)
    assert set(table.column("origin").to_pylist()) == {"log"}
    assert None not in table.column("topic_id").to_pylist()
    assert sorted((path, path.stat().st_mtime_ns) for path in folder.rglob("*")) == before


def test_internal_topics_are_none_of_it(tmp_path):
    assert sampling.sample_folders(str(golden_logs.unpack("1-written", tmp_path))) is None
    assert end_offsets.from_folders(None, str(tmp_path)) is None


def test_a_later_read_goes_on_where_the_last_one_stopped(tmp_path):
    partition(tmp_path, (0, 2, 30), (2, 1, 20))
    first = sampling.sample_folders(str(tmp_path))
    seen = last_seen(first)
    partition(tmp_path, (3, 1, 25), (4, 2, 50), base=3)

    again = sampling.sample_folders(str(tmp_path), seen)

    assert ends(first) == {"orders-0": [(30, 3)]}
    assert ends(again) == {"orders-0": [(30, 4), (50, 6)]}
    seen = last_seen(pa.concat_tables([first, again]))
    assert [*seen.values()] == [(50, 6)]
    assert sampling.sample_folders(str(tmp_path), seen).num_rows == 0
    (tmp_path / "orders-0" / "partition.metadata").write_text(
        "version: 0\ntopic_id: iYG3PZ_oS3aF60JMUzAt0Q"
    )
    assert ends(sampling.sample_folders(str(tmp_path), seen)) == {"orders-0": [(30, 4), (50, 6)]}, (
        "another topic of that name is read from its start"
    )


@pytest.mark.parametrize(
    "batches",
    [
        [(0, 2, 30), (2, 1, 40)],  # it is shorter
        [(0, 4, 15), (4, 8, 40)],  # no batch ends where the other ended
        [(0, 10, 30), (10, 1, 40)],  # what is there is younger
    ],
)
def test_another_topic_of_that_name_is_read_from_its_start_without_an_id(batches, tmp_path):
    partition(tmp_path, (0, 5, 10), (5, 5, 20))
    seen = last_seen(sampling.sample_folders(str(tmp_path)))
    assert seen == {("orders", 0, None): (20, 10)}
    partition(tmp_path, *batches)

    again = sampling.sample_folders(str(tmp_path), seen)

    assert ends(again) == {"orders-0": [(at, first + count) for first, count, at in batches]}


def test_a_topic_that_was_made_anew_is_read_once_whatever_its_times(tmp_path):
    """Its records are older than the newest of the one before; both ids are known."""
    rows = []
    for topic_id, at in (("iYG3PZ_oS3aF60JMUzAt0Q", 500), ("jYG3PZ_oS3aF60JMUzAt0Q", 20)):
        partition(tmp_path, (0, 2, at), (2, 1, at + 5))
        (tmp_path / "orders-0" / "partition.metadata").write_text(
            f"version: 0\ntopic_id: {topic_id}"
        )
        seen = last_seen(pa.concat_tables(rows)) if rows else {}
        rows.append(sampling.sample_folders(str(tmp_path), seen))
        assert ends(rows[-1]) == {"orders-0": [(at, 2), (at + 5, 3)]}

    seen = last_seen(pa.concat_tables(rows))

    assert sorted(seen.values()) == [(25, 3), (505, 3)]
    assert sampling.sample_folders(str(tmp_path), seen).num_rows == 0


@pytest.mark.parametrize(("base", "left"), [(10, []), (0, [(0, 5, 10)]), (5, [(5, 5, 20)])])
def test_a_log_from_which_old_records_were_removed_is_no_other(base, left, tmp_path):
    path = partition(tmp_path, (0, 5, 10), (5, 5, 20))
    seen = last_seen(sampling.sample_folders(str(tmp_path)))
    path.unlink()
    partition(tmp_path, *left, (12, 1, 30), base=base)

    assert ends(sampling.sample_folders(str(tmp_path), seen)) == {"orders-0": [(30, 13)]}


def test_a_partition_without_records_ends_where_its_file_begins(tmp_path):
    path = partition(tmp_path, base=5000)
    os.utime(path, (1_700_000_000.5, 1_700_000_000.5))

    table = sampling.sample_folders(str(tmp_path))

    assert ends(table) == {"orders-0": [(1_700_000_000_500, 5000)]}
    assert table.column("log_start_offset").to_pylist() == [5000]


@pytest.mark.parametrize("tail", [b"\0" * 4096, b"\xff" * 200, build([(None, b"x")], 30)[:-1]])
def test_a_torn_or_preallocated_tail_ends_the_walk(tail, tmp_path):
    path = partition(tmp_path, (0, 1, 10), (1, 1, 20))
    path.write_bytes(path.read_bytes() + tail)

    assert ends(sampling.sample_folders(str(tmp_path))) == {"orders-0": [(10, 1), (20, 2)]}


def test_a_timestamp_beyond_all_calendars_is_none(tmp_path):
    partition(tmp_path, (0, 1, 10), (1, 1, 1 << 60), (2, 1, 20))

    assert ends(sampling.sample_folders(str(tmp_path))) == {"orders-0": [(10, 2), (20, 3)]}


def now_ms(minutes=0):
    return int((time.time() + 60 * minutes) * 1000)


@pytest.mark.parametrize("ahead", [59, 60 * 24 * 365 * 900], ids=["an hour", "the year 2926"])
@pytest.mark.parametrize("with_id", [True, False])
def test_a_clock_that_runs_ahead_hides_no_later_batch(ahead, with_id, tmp_path):
    """One record of 59 minutes from now, which a broker takes by default, and a thousand of now."""
    begin = now_ms(-10)
    batches = [(0, 1, now_ms(ahead)), *((at, 1, begin + at) for at in range(1, 1001))]
    partition(tmp_path, *batches)
    if with_id:
        (tmp_path / "orders-0" / "partition.metadata").write_text(
            "version: 0\ntopic_id: iYG3PZ_oS3aF60JMUzAt0Q"
        )

    found = sampling.sample_folders(str(tmp_path))

    assert ends(found)["orders-0"] == [(begin + at, at + 1) for at in range(1, 1001)]
    more = [(1001, 1, now_ms(ahead)), (1002, 5, begin + 2000)]
    partition(tmp_path, *batches, *more)
    again = sampling.sample_folders(str(tmp_path), last_seen(found))
    assert ends(again)["orders-0"] == [(begin + 1000, 1002), (begin + 2000, 1007)]


@pytest.mark.parametrize(
    ("seconds", "stand_for"),
    [
        ([0, 3600, 1, 2, 3], {0: 1, 3600: 2}),  # one batch of a clock that ran ahead
        ([0, 1, 3600, 3610, 2, 3], {0: 1, 1: 1, 3600: 2, 3610: 2}),
        ([0, 3600, 3700, 10, 3710, 20], {0: 1, 3600: 2, 3700: 2, 3710: 2}),
        ([0, 10, 9.5, 20], {0: 1, 10: 1, 20: 1}),  # clocks of two producers that are right
        ([0, 100, 50, 200, 150, 300], {0: 1, 100: 2, 200: 2, 300: 1}),
        ([0, 10, 20, 30], {0: 1, 10: 1, 20: 1, 30: 1}),
    ],
)
def test_times_that_contradict_the_order_of_batches_tell_of_none_exactly(
    seconds, stand_for, tmp_path
):
    """In a past that is long over: one of two clocks was wrong, and nobody knows which."""
    begin = now_ms(-600)
    times = [begin + int(1000 * second) for second in seconds]
    partition(tmp_path, *((number, 1, at) for number, at in enumerate(times)))

    found = sampling.sample_folders(str(tmp_path))

    at = [(ms - begin) // 1000 for ms, _ in ends(found)["orders-0"]]
    assert dict(zip(at, found["samples"].to_pylist(), strict=True)) == stand_for


def test_the_end_is_known_now_although_the_last_batches_have_no_time(tmp_path):
    """Their file tells when it was written, and does not tell of each of them."""
    begin, written = now_ms(-10), now_ms(-5)
    path = partition(tmp_path, (0, 1, begin), (1, 4, now_ms(59)), (5, 4, now_ms(59)))
    os.utime(path, (written / 1000, written / 1000))

    found = sampling.sample_folders(str(tmp_path))

    assert ends(found)["orders-0"] == [(begin, 1), (written, 9)]
    assert found["samples"].to_pylist() == [1, 2]
    assert sampling.sample_folders(str(tmp_path), last_seen(found)).num_rows == 0


def test_the_end_is_no_later_than_the_moment_of_planning(tmp_path):
    """A file that is written all the time has been written since, and a run must know its end."""
    planned = now_ms(-1)
    partition(tmp_path, (0, 7, now_ms(59)))

    found = sampling.sample_folders(str(tmp_path), planned_ms=planned)

    assert ends(found)["orders-0"] == [(planned, 7)]


def test_a_walk_that_ended_in_the_future_goes_on_with_the_times_that_come(tmp_path):
    """As an earlier Kohort has kept it."""
    begin = now_ms(-10)
    partition(tmp_path, (0, 1, now_ms(59)), (1, 1, begin), (2, 1, begin + 1))

    found = sampling.sample_folders(str(tmp_path), {("orders", 0, None): Sample(now_ms(59), 1)})

    assert ends(found)["orders-0"] == [(begin, 2), (begin + 1, 3)]


def test_the_start_is_the_highest_that_anybody_tells(tmp_path):
    for name in ("orders-0", "orders-1", "orders-2"):
        partition(tmp_path, (7, 9, 10), name=name, base=7)
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\norders 1 9\n")
    (tmp_path / "orders-2" / "log-start-offset-checkpoint").write_text("0\n1\norders 2 11\n")
    (tmp_path / "orders-0" / "log-start-offset-checkpoint").write_text("damaged")

    table = sampling.sample_folders(str(tmp_path))

    assert table.column("log_start_offset").to_pylist() == [7, 9, 11]


@pytest.mark.parametrize("most", [1, 2, 10, 100, 10_000])
def test_thinned_samples_are_few_and_keep_both_ends(most):
    samples = [Sample(at * at, at) for at in range(1, 1000)]

    kept = downsample(samples, most)

    assert len(kept) <= most + 1
    assert set(kept) <= set(samples)
    assert kept == sorted(kept)
    assert (kept[0], kept[-1]) == (samples[0], samples[-1])
    assert most < 1000 or kept == samples
    gaps = [later.at_ms - earlier.at_ms for earlier, later in pairwise(kept)]
    assert most == 1 or max(gaps) < 4 * samples[-1].at_ms / most + 2 * 1000


def test_a_broker_is_asked(tmp_path):
    with Broker(in_memory=True) as broker:
        asyncio.run(two_topics(broker.bootstrap))
        table = sampling.sample_cluster(broker.bootstrap)

    rows = table.to_pylist()
    assert table.schema == END_OFFSETS.arrow
    assert [(row["topic"], row["topic_partition"]) for row in rows] == [
        ("a", 0),
        ("b", 0),
        ("b", 1),
    ]
    assert {(row["log_start_offset"], row["end_offset"], row["origin"]) for row in rows} == {
        (0, 0, "cluster")
    }
    assert all(len(row["topic_id"]) == 22 for row in rows)
    with pytest.raises(SourceError, match=r"127.0.0.1:1 cannot be asked: .*refused"):
        sampling.sample_cluster("127.0.0.1:1")


def test_partitions_that_give_no_sample_are_counted(caplog):
    with Broker(nodes=2, in_memory=True) as broker:
        broker.create_topic("t", 4)
        broker.node(1).stop(takeover=False)
        table = sampling.sample_cluster(broker.bootstrap)

    assert table.column("topic_partition").to_pylist() == [0, 2]
    assert "2 of 4 partitions give no sample, such as t:1: LEADER_NOT_AVAILABLE" in caplog.text


async def two_topics(bootstrap):
    async with AdminClient(bootstrap) as admin:
        (await admin.create_topics([NewTopic("a", 1, 1), NewTopic("b", 2, 1)])).all()


def test_executors_read_the_same_rows(spark, tmp_path, monkeypatch):
    folder = str(golden_logs.unpack("user", tmp_path))
    here = end_offsets.from_folders(None, folder)
    assert here.equals(sampling.sample_folders(folder))

    monkeypatch.setattr(small_runs, "DRIVER_WALK_BYTES", 1)
    frame = end_offsets.from_folders(spark, folder)

    assert frame.schema == struct_of(END_OFFSETS)
    order = [(name, "ascending") for name in ("topic", "sampled_at")]
    assert (
        frame.toArrow()
        .sort_by(order)
        .equals(sampling.sample_folders(folder).sort_by(order).cast(frame.toArrow().schema))
    )


def test_what_was_walked_before_does_not_make_a_walk_long(tmp_path):
    first = partition(tmp_path, *((10 * one, 10, one) for one in range(1, 20)))
    last = partition(tmp_path, (200, 1, 50), base=200)
    one, two = (path.stat().st_size for path in (first, last))
    seen = last_seen(sampling.sample_folders(str(tmp_path)))
    found = user_topics.folders(str(tmp_path))

    def shortest(since):
        sizes = (two - 1, two, one + two - 1, one + two)
        return next(size for size in sizes if sampling.is_short(found, since, size, 1))

    assert (shortest({}), shortest(seen)) == (one + two, two)
    assert not sampling.is_short(found, seen, one, 0)


def test_a_topic_that_is_deleted_meanwhile_has_no_samples(tmp_path):
    partition(tmp_path, (0, 2, 1000))
    partition(tmp_path, (0, 2, 1000), name="payments-0")
    found = user_topics.folders(str(tmp_path))
    for file in (tmp_path / "orders-0").iterdir():
        file.unlink()
    (tmp_path / "orders-0").rmdir()

    assert [sampling.sample(one).num_rows for one in found] == [0, 1]
    assert sampling.is_short(found, {}, 1 << 20, 10)
    assert len(user_topics.folders(str(tmp_path))) == 1


def test_a_topic_that_may_not_be_read_hides_no_other(tmp_path, monkeypatch):
    """Root may read everything, so the refusal is made up."""
    partition(tmp_path, (0, 2, 1000))
    partition(tmp_path, (0, 2, 1000), name="payments-0")

    def refused(folder):
        if folder.endswith("orders-0"):
            raise PermissionError(folder)
        return segment_files(folder)

    segment_files = user_topics.segment_files
    monkeypatch.setattr(user_topics, "segment_files", refused)
    assert [one.topic for one in user_topics.folders(str(tmp_path))] == ["payments"]
