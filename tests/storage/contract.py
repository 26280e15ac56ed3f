# SPDX-License-Identifier: Apache-2.0
"""What every log must do. A test module inherits `LogContract` and says how to make one."""

from random import Random

import pytest
from tests.storage.starts import begin_at, retain

from kohort.wire import batch as batches

ALL = 1 << 60


def batch(*values, timestamp=1000, size=0):
    """A batch of records without keys."""
    pairs = [(None, value.encode() + b"." * size) for value in values]
    return batches.build(pairs, timestamp)


def values(log, start=None):
    """Offset and value of every record, as read() gives them."""
    found = []
    for data in log.read(log.start if start is None else start, ALL):
        found += [(offset, value.decode()) for offset, _, _, value in batches.entries(data)]
    return found


def filled(log, count, size=0, records=None):
    """A log with `count` batches of one to three records; the batches as they should read."""
    written = []
    for number in range(count):
        names = [f"{number}-{part}" for part in range(records or number % 3 + 1)]
        data = batch(*names, timestamp=1000 + number, size=size)
        written.append(batches.stamp(data, log.end, log.leader_epoch))
        log.append(data, len(names))
    return written


class LogContract:
    @pytest.fixture
    def log(self):
        raise NotImplementedError

    def test_a_new_log_is_empty(self, log):
        assert (log.start, log.end, log.size_bytes, log.max_timestamp) == (0, 0, 0, -1)
        assert list(log.read(0, ALL)) == []
        assert log.fetch(0, ALL) == b""
        assert log.find_timestamp(0) is None
        assert log.sync() == 0

    def test_another_leader_has_another_epoch(self, log):
        epochs = []
        for _ in range(3):
            log.append(batch("a"), 1)
            epochs.append(log.leader_epoch)
            log.next_leader()
        assert epochs == [epochs[0] + number for number in range(3)]
        found = [batches.header_at(data).partition_leader_epoch for data in log.read(0, ALL)]
        assert found == epochs

    def test_a_look_for_room_leaves_nothing(self, log):
        written = filled(log, 3)
        before = (log.end, log.size_bytes)
        log.try_room()
        assert (log.end, log.size_bytes) == before
        written += filled(log, 2)
        assert list(log.read(0, ALL)) == written

    def test_append_gives_offsets(self, log):
        assert log.append(batch("a", "b"), 2) == 2
        assert log.append(batch("c"), 1) == 3
        assert log.end == 3
        assert log.sync() == 3
        assert values(log) == [(0, "a"), (1, "b"), (2, "c")]

    def test_append_stamps_offset_and_epoch(self, log):
        log.append(batch("a"), 1)
        data = batches.stamp(batch("b"), 999, 999)
        log.append(data, 1)
        stamped = log.fetch(1, ALL)
        header = batches.header_at(stamped)
        batches.check(stamped, 0, header)
        assert (header.base_offset, header.partition_leader_epoch) == (1, log.leader_epoch)
        assert stamped[16:] == data[16:]

    def test_read_gives_single_batches_in_order(self, log):
        written = filled(log, 40)
        assert list(log.read(0, ALL)) == written
        assert log.size_bytes == sum(map(len, written))

    def test_read_begins_with_the_batch_that_holds_the_offset(self, log):
        written = filled(log, 40)
        starts = [batches.header_at(data).base_offset for data in written]
        for offset in range(log.end):
            first = max(at for at, start in enumerate(starts) if start <= offset)
            assert list(log.read(offset, ALL)) == written[first:]
        assert list(log.read(log.end, ALL)) == []
        assert list(log.read(log.end + 5, ALL)) == []

    def test_read_stops_behind_its_limit(self, log):
        written = filled(log, 10)
        assert list(log.read(0, 1)) == written[:1]
        assert list(log.read(0, len(written[0]))) == written[:1]
        assert list(log.read(0, len(written[0]) + 1)) == written[:2]
        assert list(log.read(0, 0)) == []

    def test_fetch_gives_whole_batches_up_to_its_limit(self, log):
        written = filled(log, 40, size=30)
        starts = [batches.header_at(data).base_offset for data in written]
        for offset in range(log.end):
            first = max(at for at, start in enumerate(starts) if start <= offset)
            for limit in (0, 1, 200, 1000, ALL):
                data = log.fetch(offset, limit)
                taken = len([at for at, _ in batches.walk(data)])
                assert data == b"".join(written[first : first + taken])
                assert taken == 1 or len(data) <= limit
        assert log.fetch(log.end, ALL) == b""

    def test_fetch_to_fetch_reads_everything(self, log):
        written = filled(log, 60, size=100)
        parts = []
        offset = 0
        while data := log.fetch(offset, 700):
            parts.append(data)
            offset = [header for _, header in batches.walk(data)][-1].last_offset + 1
        assert b"".join(parts) == b"".join(written)
        assert len(parts) > 5

    def test_a_batch_larger_than_the_limit_is_still_given(self, log):
        log.append(batch("small"), 1)
        log.append(batch("large", size=50_000), 1)
        log.append(batch("after"), 1)
        assert len(log.fetch(1, 10)) > 50_000
        assert [value[:5] for _, value in values(log)] == ["small", "large", "after"]

    def test_find_timestamp(self, log):
        for timestamp in (10, 30, 20, 40):
            log.append(batch("x", "y", timestamp=timestamp), 2)
        found = {time: log.find_timestamp(time) for time in (0, 10, 11, 30, 31, 40, 41)}
        assert found == {
            0: (10, 0),
            10: (10, 0),
            11: (30, 2),
            30: (30, 2),
            31: (40, 6),
            40: (40, 6),
            41: None,
        }
        assert log.max_timestamp == 40

    def test_find_timestamp_within_a_batch(self, log):
        records = [batches.Record(at, time, None, b"v") for at, time in enumerate([5, 50, 20])]
        log.append(batches.build_records(records), 3)
        assert log.find_timestamp(6) == (50, 1)
        assert log.find_timestamp(51) is None
        begin_at(log, 2)
        assert log.find_timestamp(6) == (20, 2)

    def test_headers(self, log):
        written = filled(log, 40)  # at 1000, 1001, … 1039
        every = [batches.header_at(data) for data in written]
        assert list(log.headers(0)) == every
        assert list(log.headers(17)) == [one for one in every if one.last_offset >= 17]
        assert list(log.headers(log.end)) == []
        recent = list(log.headers(log.first_since(1035)))
        assert recent == every[-len(recent) :]
        assert 5 <= len(recent) < 40
        assert log.first_since(2000) >= every[-1].base_offset
        begin_at(log, 30)
        assert [one.last_offset >= 30 for one in log.headers(0)].count(False) == 0
        assert log.first_since(0) == 30

    def test_headers_follow_a_log_that_changes_meanwhile(self, log):
        """Whoever reads them in slices sees what is appended, and nothing twice or too early."""
        filled(log, 20)
        reading = log.headers(0)
        seen = [next(reading).base_offset for _ in range(5)]
        begin_at(log, 10)
        filled(log, 20)
        seen += [one.base_offset for one in reading]

        every = [batches.header_at(data).base_offset for data in log.read(0, ALL)]
        assert seen == sorted(set(seen))
        assert seen[-len(every) :] == every
        assert len(every) >= 30

    def test_a_log_begins_later(self, log):
        filled(log, 30)
        before = values(log)
        begin_at(log, 7)
        assert log.start == 7
        left = values(log)
        assert left == [one for one in before if one[0] >= left[0][0]]
        assert left[0][0] <= 7  # the batch that holds the start is read whole
        begin_at(log, 3)
        assert log.start == 7
        begin_at(log, log.end)
        assert log.start == log.end
        assert log.append(batch("next"), 1) == log.end
        assert values(log)[-1] == (log.end - 1, "next")

    def test_retention_by_time(self, log):
        filled(log, 40)  # at 1000, 1001, … 1039
        retain(log, 1039, -1, -1)
        assert log.start == 0
        start = retain(log, 1050, 30, -1)
        assert start == log.start
        times = [batches.header_at(data).max_timestamp for data in log.read(log.start, ALL)]
        assert times[-1] == 1039
        end = log.end
        assert retain(log, 5000, 30, -1) == end
        assert (log.start, log.end) == (end, end)
        assert log.size_bytes == 0
        assert list(log.read(end, ALL)) == []
        assert log.append(batch("next"), 1) == end + 1

    def test_retention_by_size(self, log):
        filled(log, 40)
        size = log.size_bytes
        retain(log, 0, -1, size)
        assert log.start == 0
        retain(log, 0, -1, size // 2)
        assert log.size_bytes >= size // 2
        assert values(log)[-1][1] == "39-0"

    @pytest.mark.parametrize("seed", range(20))
    def test_any_mixture_reads_as_a_list(self, log, seed):
        chance = Random(seed)
        written = []
        for _ in range(chance.randrange(1, 60)):
            count = chance.randrange(1, 4)
            one = batch(*["x"] * count, size=chance.randrange(300))
            written.append(batches.stamp(one, log.end, log.leader_epoch))
            log.append(one, count)
        assert list(log.read(0, ALL)) == written
        for _ in range(50):
            offset = chance.randrange(log.end)
            limit = chance.randrange(2000)
            rest = [one for one in written if batches.header_at(one).last_offset >= offset]
            fetched = log.fetch(offset, limit)
            assert fetched.startswith(rest[0])
            assert b"".join(rest).startswith(fetched)
            assert len(fetched) <= max(limit, len(rest[0]))
