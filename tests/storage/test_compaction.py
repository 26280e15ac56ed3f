# SPDX-License-Identifier: Apache-2.0
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import golden_logs
from tests.storage.contract import ALL
from tests.storage.starts import begin_at

from kohort.errors import StorageError
from kohort.sim.disk import MachineCrash, SimulatedFiles
from kohort.storage.compaction import CleaningRules, compact, dirty_ratio
from kohort.storage.files import DiskFiles, make_durable_directory
from kohort.storage.log import LogConfig
from kohort.storage.segments import SegmentLog
from kohort.wire import batch as batches

FOLDER = "/data/topic-0"
DAY = 24 * 60 * 60 * 1000


def opened(disk, segment_bytes=400):
    make_durable_directory(disk, FOLDER)
    return SegmentLog(FOLDER, disk, LogConfig(segment_bytes, index_interval_bytes=100))


def put(log, *pairs, timestamp=1000, producer=-1, transactional=False, headers=()):
    """Append pairs of one-letter texts; a value of None is a tombstone."""
    records = [
        batches.Record(at, timestamp, key.encode(), value and value.encode(), list(headers))
        for at, (key, value) in enumerate(pairs)
    ]
    data = batches.build_records(
        records,
        producer_id=producer,
        producer_epoch=0 if producer >= 0 else -1,
        base_sequence=0 if producer >= 0 else -1,
        attributes=batches.TRANSACTIONAL if transactional else 0,
    )
    log.append(data, len(pairs))


def end_transaction(log, producer, *, commit, timestamp=1000):
    marker = batches.build_marker(
        commit=commit,
        timestamp=timestamp,
        producer_id=producer,
        producer_epoch=0,
        coordinator_epoch=0,
    )
    log.append(marker, 1)


def clean(log, disk, now=2000, **rules):
    return sum(compact(log, disk, CleaningRules(now=now, **rules)))


def replayed(log):
    """What a reader knows at the end: transactions count from their marker on, as for a group."""
    known = {}
    pending = {}
    for data in log.read(0, ALL):
        header = batches.header_at(data)
        for offset, _, key, value in batches.entries(data):
            if header.is_control:
                if batches.marker_commits(key):
                    for name, (at, blob) in pending.pop(header.producer_id, {}).items():
                        if known.get(name, (-1, None))[0] < at:
                            known[name] = (at, blob)
                else:
                    pending.pop(header.producer_id, None)
            elif header.is_transactional:
                pending.setdefault(header.producer_id, {})[key] = (offset, value)
            else:
                known[key] = (offset, value)
    live = {key: value for key, (_, value) in known.items() if not (key is None or value is None)}
    return live, pending


def offsets(log):
    return [offset for data in log.read(0, ALL) for offset, *_ in batches.entries(data)]


@pytest.fixture
def disk():
    return SimulatedFiles()


def test_the_last_value_of_each_key_stays(disk):
    log = opened(disk)
    put(log, ("a", "1"), ("b", "1"), ("c", "1"))
    put(log, ("a", "2"), ("d", "1"))
    log.roll()
    put(log, ("b", "2"))
    log.roll()
    put(log, ("c", "2"))
    before = replayed(log)
    clean(log, disk)
    assert offsets(log) == [2, 3, 4, 5, 6]  # c is superseded in the open segment only
    assert replayed(log) == replayed(opened(disk)) == before
    assert log.end == 7


def test_offsets_and_times_of_what_is_left_are_as_they_were(disk):
    log = opened(disk)
    records = [
        batches.Record(0, 50, b"a", b"old"),
        batches.Record(1, 20, b"b", b"kept", [("h", None)]),
        batches.Record(2, 70, b"c", b"kept"),
        batches.Record(3, 90, b"a", b"new"),
    ]
    log.append(batches.build_records(records, producer_id=7, base_sequence=40), 4)
    log.roll()
    clean(log, disk)
    data = log.fetch(0, ALL)
    header = batches.header_at(data)
    assert list(batches.records(data)) == records[1:]
    assert (header.base_offset, header.last_offset, header.count) == (0, 3, 3)
    assert (header.producer_id, header.base_sequence, header.last_sequence) == (7, 40, 43)
    assert (header.base_timestamp, header.max_timestamp) == (20, 90)
    assert log.find_timestamp(60) == (70, 2)


@pytest.mark.parametrize("codec", [0, 1, 2, 3, 4])
def test_compressed_batches_stay_compressed(disk, codec):
    log = opened(disk)
    pairs = [(b"a", b"1"), (b"b", b"1"), (b"a", b"2")]
    log.append(batches.build(pairs, 5, compression=codec), 3)
    log.roll()
    clean(log, disk)
    data = log.fetch(0, ALL)
    assert batches.header_at(data).compression == codec
    assert batches.entries(data) == [(1, 5, b"b", b"1"), (2, 5, b"a", b"2")]


def test_records_without_a_key_go(disk):
    log = opened(disk)
    log.append(batches.build([(None, b"x"), (b"a", b"1")], 5), 2)
    log.roll()
    clean(log, disk)
    assert offsets(log) == [1]


def test_nothing_is_rewritten_when_nothing_is_superseded(disk):
    log = opened(disk)
    put(log, ("a", "1"), ("b", "1"))
    log.roll()
    content = disk.files[log.closed[0].path]
    clean(log, disk)
    assert disk.files[log.closed[0].path] is content
    assert not [name for name in disk.names(FOLDER) if "clean" in name or "swap" in name]


def test_the_open_segment_is_left_alone(disk):
    log = opened(disk)
    put(log, ("a", "1"))
    put(log, ("a", "2"))
    assert clean(log, disk) == 0
    assert offsets(log) == [0, 1]


def test_small_leftovers_become_one_segment(disk):
    log = opened(disk)
    for number in range(30):
        put(log, (f"{number % 3}", f"{number}" * 20))
    segments = len(log.closed)
    assert segments > 4
    before = replayed(log)
    clean(log, disk)
    clean(log, disk)
    assert len(log.closed) < segments / 2
    assert replayed(log) == replayed(opened(disk)) == before
    assert log.size_bytes < 1500


def test_dirty_ratio(disk):
    log = opened(disk)
    assert dirty_ratio(log) == 0
    put(log, ("a", "1"))
    assert dirty_ratio(log) == 0
    log.roll()
    assert dirty_ratio(log) == 1
    clean(log, disk)
    assert dirty_ratio(log) == 0
    put(log, ("b", "1"))
    log.roll()
    assert dirty_ratio(log) == pytest.approx(0.5, abs=0.1)


# ---- tombstones


def horizons(log):
    return [batches.header_at(data).delete_horizon for data in log.read(0, ALL)]


def test_a_tombstone_stays_until_its_horizon(disk):
    log = opened(disk)
    put(log, ("a", "1"), ("b", "1"))
    put(log, ("a", None), timestamp=1500)
    log.roll()
    put(log, ("z", "1"))
    log.roll()
    clean(log, disk, now=10_000, delete_retention_ms=100)
    assert offsets(log) == [1, 2, 3]
    assert horizons(log) == [None, 10_100, None]
    assert [time for d in log.read(0, ALL) for _, time, _, _ in batches.entries(d)][1] == 1500
    put(log, ("y", "1"))
    log.roll()
    clean(log, disk, now=10_099, delete_retention_ms=5)
    assert horizons(log)[1] == 10_100  # the first cleaning has fixed it
    clean(log, disk, now=10_100, delete_retention_ms=DAY)
    assert offsets(log) == [1, 3, 4]


def test_a_tombstone_that_a_value_follows_goes_at_once(disk):
    log = opened(disk)
    put(log, ("a", "1"))
    put(log, ("a", None))
    put(log, ("a", "2"))
    log.roll()
    clean(log, disk)
    assert offsets(log) == [2]


# ---- transactions


def test_an_open_transaction_holds_cleaning_back(disk):
    log = opened(disk)
    put(log, ("a", "1"))
    put(log, ("a", "2"))
    log.roll()
    put(log, ("t", "1"), producer=5, transactional=True)
    put(log, ("a", "3"))
    log.roll()
    put(log, ("a", "4"))
    log.roll()
    before = replayed(log)
    clean(log, disk)
    assert offsets(log) == [1, 2, 3, 4]
    assert replayed(log) == before
    end_transaction(log, 5, commit=True)
    log.roll()
    clean(log, disk)
    assert offsets(log) == [2, 4, 5]
    assert replayed(log)[0] == {b"t": b"1", b"a": b"4"}


def test_what_was_aborted_goes_and_supersedes_nothing(disk):
    log = opened(disk)
    put(log, ("a", "1"))
    put(log, ("a", "wrong"), ("b", "wrong"), producer=5, transactional=True)
    end_transaction(log, 5, commit=False)
    put(log, ("x", "1"))
    log.roll()
    before = replayed(log)
    clean(log, disk, producer_expiration_ms=0)
    assert [offset for offset in offsets(log) if offset != 3] == [0, 4]
    assert replayed(log) == before == ({b"a": b"1", b"x": b"1"}, {})


def test_a_marker_goes_after_its_horizon_when_nothing_of_its_transaction_is_left(disk):
    log = opened(disk)
    put(log, ("a", "1"), producer=5, transactional=True)
    end_transaction(log, 5, commit=True)
    put(log, ("a", "2"), producer=6, transactional=True)
    end_transaction(log, 6, commit=True)
    put(log, ("z", "1"))
    log.roll()
    rules = {"delete_retention_ms": 10, "producer_expiration_ms": 0}
    clean(log, disk, now=2000, **rules)
    assert offsets(log) == [1, 2, 3, 4]
    assert horizons(log) == [2010, None, None, None]
    put(log, ("y", "1"))
    log.roll()
    clean(log, disk, now=2010, **rules)
    assert offsets(log) == [2, 3, 4, 5]
    assert replayed(log)[0] == {b"a": b"2", b"y": b"1", b"z": b"1"}


def test_the_last_batch_of_a_living_producer_stays_empty(disk):
    log = opened(disk)
    put(log, ("a", "1"), ("a", "2"), producer=5)
    put(log, ("a", "3"))
    log.roll()
    clean(log, disk, now=2000)
    headers = [batches.header_at(data) for data in log.read(0, ALL)]
    assert [(one.producer_id, one.count, one.last_sequence) for one in headers] == [
        (5, 0, 1),
        (-1, 1, -1),
    ]
    put(log, ("b", "1"))
    log.roll()
    clean(log, disk, now=2000 + DAY)
    assert [batches.header_at(data).producer_id for data in log.read(0, ALL)] == [-1, -1]


# ---- in slices, and when things go wrong


def test_the_log_may_be_used_between_two_slices(disk):
    log = opened(disk)
    for number in range(30):
        put(log, (f"{number % 3}", f"{number}" * 20))
    reader = log.read(0, ALL)
    first = next(reader)
    for number, _ in enumerate(compact(log, disk, CleaningRules(now=2000))):
        put(log, (f"{number % 3}", f"new {number}"))
    assert [first, *reader]
    live, _ = replayed(log)
    assert all(value.startswith(b"new") for value in live.values())
    assert replayed(opened(disk)) == replayed(log)


def test_what_is_closed_during_a_cleaning_is_not_taken_for_clean(disk):
    """K229-24: else what was deleted meanwhile keeps its room until the next start."""
    log = opened(disk, segment_bytes=100_000)
    for number in range(20):
        put(log, (f"{number}", "x" * 50))
    first = log.end
    log.roll()
    steps = compact(log, disk, CleaningRules(now=2000))
    next(steps)
    for number in range(20):
        put(log, (f"{number}", "y" * 50))
    log.roll()
    list(steps)
    assert log.cleaned_end == first
    assert dirty_ratio(log) > 0.4
    clean(log, disk)
    assert dirty_ratio(log) == 0
    assert log.size_bytes < 20 * 150


def test_retention_may_be_quicker(disk):
    log = opened(disk)
    for number in range(30):
        put(log, (f"{number % 3}", f"{number}" * 20))
    steps = compact(log, disk, CleaningRules(now=2000))
    next(steps)
    begin_at(log, log.active.base_offset)
    assert list(steps)
    assert log.start == log.active.base_offset
    assert len(log.closed) == 0
    assert opened(disk).start == log.start


def test_a_full_disk_leaves_the_log_as_it_was(disk):
    log = opened(disk)
    for number in range(30):
        put(log, (f"{number % 3}", f"{number}" * 20))
    before = list(log.read(0, ALL))
    disk.room_bytes = 50
    with pytest.raises(StorageError, match="No space left"):
        clean(log, disk)
    assert list(log.read(0, ALL)) == before
    assert not [name for name in disk.names(FOLDER) if name.endswith((".cleaned", ".swap"))]
    disk.room_bytes = None
    clean(log, disk)
    assert log.size_bytes < 1500


def test_a_damaged_swap_file_is_not_put_in_place(disk):
    log = opened(disk)
    put(log, ("a", "1"))
    log.roll()
    disk.open(f"{FOLDER}/00000000000000000000.log.swap").write(0, b"junk" * 100)
    again = opened(disk)
    assert offsets(again) == [0]
    assert "it is damaged at byte 0" in again.notices[0]


@pytest.mark.parametrize("power", [False, True])
def test_a_crash_at_every_step_of_a_cleaning(power):
    steps = 0
    crashed = True
    while crashed:
        steps += 1
        disk = SimulatedFiles()
        log = opened(disk)
        for number in range(12):
            put(log, (f"{number % 3}", f"{number}" * 20))
        put(log, ("1", None))
        log.roll()
        put(log, ("last", "1"))
        clean(log, disk, now=1000, delete_retention_ms=1)  # sets the horizon
        put(log, ("2", "x"))
        log.roll()
        log.sync()
        before = replayed(log)
        end = log.end
        disk.crash_at = disk.steps + steps
        try:
            clean(log, disk, now=5000)  # drops the tombstone
            crashed = False
        except MachineCrash:
            pass
        left = disk.after_power_loss() if power else disk.after_crash()
        log = opened(left)
        assert replayed(log) == before
        assert log.end == end
        clean(log, left, now=6000)
        assert replayed(log) == replayed(opened(left)) == before
        assert all(name.endswith((".log", "checkpoint")) for name in left.names(FOLDER))
    assert steps > 8


KEYS = st.sampled_from("abcdef")
VALUES = st.none() | st.sampled_from(["x", "y" * 60, "z"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.lists(st.tuples(KEYS, VALUES), min_size=1, max_size=4)),
        st.tuples(
            st.just("txn"),
            st.tuples(st.integers(1, 3), st.lists(st.tuples(KEYS, VALUES), min_size=1, max_size=3)),
        ),
        st.tuples(st.just("end"), st.tuples(st.integers(1, 3), st.booleans())),
        st.tuples(st.just("roll"), st.none()),
        st.tuples(st.just("clean"), st.integers(0, 3)),
        st.tuples(st.just("reopen"), st.none()),
    ),
    min_size=10,
    max_size=80,
)


@given(STEPS)
def test_replaying_the_cleaned_log_equals_replaying_the_original(steps):
    """K229-13."""
    disk, naive = SimulatedFiles(), SimulatedFiles()
    log, original = opened(disk), opened(naive, 1 << 20)
    now = 1000
    for verb, arguments in steps:
        now += 10
        if verb == "put":
            for one in (log, original):
                put(one, *arguments, timestamp=now)
        elif verb == "txn":
            producer, pairs = arguments
            for one in (log, original):
                put(one, *pairs, timestamp=now, producer=producer, transactional=True)
        elif verb == "end":
            producer, commit = arguments
            for one in (log, original):
                end_transaction(one, producer, commit=commit, timestamp=now)
        elif verb == "roll":
            log.roll()
        elif verb == "reopen":
            log = opened(disk)
        else:
            clean(log, disk, now, delete_retention_ms=30, producer_expiration_ms=arguments * 50)
    assert log.end == original.end
    assert replayed(log) == replayed(original)
    assert replayed(opened(disk)) == replayed(original)


# ---- as Kafka cleans


@pytest.mark.parametrize("index", [0, 2, 3])
def test_cleaned_as_kafka_has_cleaned_the_same_log(index, tmp_path):
    """Byte for byte, but for the last batch: there Kafka had newer records to take into account."""
    name = f"__consumer_offsets-{index}"
    disk = DiskFiles()
    log = SegmentLog(str(golden_logs.unpack("1-written", tmp_path) / name), disk)
    theirs = SegmentLog(str(golden_logs.unpack("2-compacted", tmp_path) / name), disk)
    kept = {batches.header_at(data).base_offset: data for data in theirs.read(0, ALL)}
    horizons_of_it = {batches.header_at(data).delete_horizon for data in kept.values()} - {None}
    first = min(horizons_of_it)  # a second cleaning has set later ones
    log.roll()
    clean(log, disk, now=first - DAY)
    ours = {batches.header_at(data).base_offset: data for data in log.read(0, ALL)}
    assert list(ours) == [offset for offset in kept if offset < log.end]
    differing = [
        offset
        for offset, data in ours.items()
        if data != kept[offset] and batches.header_at(kept[offset]).delete_horizon in {None, first}
    ]
    assert differing == [max(ours)]


def test_the_open_transaction_of_a_real_log_holds_everything_back(tmp_path):
    disk = DiskFiles()
    folder = golden_logs.unpack("1-written", tmp_path)
    log = SegmentLog(str(folder / "__consumer_offsets-1"), disk)
    before = list(log.read(0, ALL))
    log.roll()
    clean(log, disk)
    assert list(log.read(0, ALL)) == before


@pytest.mark.parametrize("name", golden_logs.NAMES)
def test_real_logs_replay_the_same_when_cleaned(name, tmp_path):
    disk = DiskFiles()
    for path in golden_logs.partitions(golden_logs.unpack(name, tmp_path)):
        log = SegmentLog(str(path), disk)
        log.roll()
        before = replayed(log)
        clean(log, disk, now=1_900_000_000_000)
        assert replayed(log) == before
        log.close()
