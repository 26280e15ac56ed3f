# SPDX-License-Identifier: Apache-2.0
"""How a compacted log of a live cluster is cut into tasks."""

import pytest
from tests.spark.sources.commits import create, produce
from tests.spark.sources.test_topic import cluster

from kohort.spark.sources import record_estimate
from kohort.spark.sources.feed import Span, tasks
from kohort.spark.sources.record_estimate import estimate, places, weighted_spans
from kohort.storage.compaction import CleaningRules, compact
from kohort.storage.files import DiskFiles
from kohort.storage.log import LogConfig
from kohort.storage.segments import SegmentLog
from kohort.testing import Broker
from kohort.wire.batch import build


def batches(*places, count=1):
    return b"".join(build([(b"k", b"v")] * count, 0, base_offset=base) for base in places)


def test_places_are_ever_wider_apart_before_the_end():
    assert places(0, 200_000) == []
    assert places(0, 200_001) == [0, 100_001]
    assert places(7, 1_000_000) == [7, 600_000, 800_000, 900_000]
    assert len(places(0, 10_000_000_000)) == 17


def test_an_estimate_goes_by_the_first_batches():
    assert estimate(b"", 100, 200) == 100  # nothing is known
    assert estimate(batches(*range(100, 110)), 100, 200) == 100
    assert estimate(batches(*range(100, 200, 10)), 100, 1001) == 99
    assert estimate(batches(*range(95, 155, 10), count=10), 100, 200) == 100
    assert estimate(batches(700, 705, 710), 100, 200) == 0
    assert estimate(batches(700, 701, 702), 100, 1000) == 300  # a hole, and then full
    assert estimate(batches(599), 100, 1100) == 2  # as far as one batch can tell
    assert estimate(batches(1000, 10), 100, 1100) == 1000  # no checksum covers where they begin
    assert estimate(batches(100, 101)[:-1], 100, 200) == 100


def test_spans_have_as_many_records_each(monkeypatch):
    monkeypatch.setattr(record_estimate, "SPAN_RECORDS", 100)

    assert [one.span for one in weighted_spans(3, 0, 150)] == [Span(3, 0, 75), Span(3, 75, 150)]
    looks = [(0, batches(0, 1000)), (10_000, batches(10_000, 10_001))]
    found = list(weighted_spans(3, 0, 10_200, looks))
    assert found[0] == (Span(3, 0, 10_000), 19)
    assert [one.weight for one in found[1:]] == [100, 100]
    assert [one.span.start for one in found[1:]] == [one.span.end for one in found[:-1]]
    assert found[-1].span.end == 10_200


@pytest.fixture
def small(monkeypatch):
    """A span is short."""
    monkeypatch.setattr(record_estimate, "SPAN_RECORDS", 100)


KEYS = [f"k{number % 10}" for number in range(6000)]


def judge(live):
    """Of 6000 offsets and more a few hundred records at most are left before the last 600."""
    plan = live.plan({})
    (start, end) = plan.ranges[0]
    assert end - start >= 6600
    found = live._feed.weigh(plan.ranges)

    by_offsets = tasks([*weighted_spans(0, start, end)], None, 200)
    by_records = tasks(found, None, 200)

    assert [one.span.start for one in found] == [start, *(one.span.end for one in found[:-1])]
    assert found[-1].span.end == end
    assert len(by_offsets) > 20
    assert len(by_records) < 8
    rows = [
        offset
        for task in by_records
        for batch in live._feed.read(task.value)
        for offset in batch.column("offset").to_pylist()
    ]
    assert rows == sorted(set(rows))
    assert set(range(end - 600, end)) <= set(rows)
    assert sum(one.weight for one in found) <= 2 * len(rows)


@pytest.mark.clients
def test_a_compacted_log_has_few_tasks(small):
    with Broker(process=True) as broker:
        create(broker.bootstrap, "letters", 1, **{"cleanup.policy": "compact"})
        produce(broker.bootstrap, "letters", KEYS, **{"batch.num.messages": 10})
        broker.stop()
        log = SegmentLog(str(broker.data_dir / "letters-0"), DiskFiles(), LogConfig(1 << 20))
        log.roll()
        list(compact(log, DiskFiles(), CleaningRules(now=0)))
        log.close()
        broker.start()
        produce(broker.bootstrap, "letters", map(str, range(600)), **{"batch.num.messages": 10})

        judge(cluster(broker, "letters"))
