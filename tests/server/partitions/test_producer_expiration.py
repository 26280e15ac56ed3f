# SPDX-License-Identifier: Apache-2.0
"""How many producers a broker remembers, and for how long."""

import pytest
from tests.server.desk import Desk
from tests.server.transactional import Producing

from kohort.server.partitions import producer_expiration


def writes(desk, *producers, topic="orders"):
    for producer in producers:
        answer = desk.produce(topic, producer_id=producer, producer_epoch=0, base_sequence=0)
        assert answer.error_code == 0


def remembered(desk, topic="orders"):
    producers = desk.cluster.partition(topic, 0).active_producers(desk.now)
    return [producer.producer_id for producer, _ in producers]


@pytest.fixture
def desk():
    desk = Desk(producer_id_expiration_ms="10000")
    desk.create()
    desk.create("small")
    return desk


def test_who_has_been_silent_for_long_is_forgotten(desk):
    writes(desk, 1, 2)
    desk.wait(6000)
    writes(desk, 3)
    answer = desk.produce(producer_id=1, producer_epoch=0, base_sequence=1)
    assert answer.error_code == 0
    desk.wait(6000)
    desk.cluster.housekeep(desk.now)
    assert remembered(desk) == [3, 1]
    assert desk.cluster.producers.count == 2


def test_the_longest_silent_of_the_largest_partition_make_room(desk, monkeypatch):
    monkeypatch.setattr(producer_expiration, "PRODUCERS_MAX", 5)
    writes(desk, 1, 2, topic="small")
    writes(desk, *range(10, 20))
    desk.cluster.housekeep(desk.now)
    assert remembered(desk) == [17, 18, 19]
    assert remembered(desk, "small") == [1, 2]
    assert desk.cluster.producers.count == 5
    (line,) = desk.told.warnings
    assert line.startswith("more than 5 producers have written within producer.id.expiration.ms")
    assert line.endswith("are forgotten, of partitions with more than 3")
    assert desk.produce(producer_id=10, producer_epoch=0, base_sequence=1).error_code == 0


def test_nobody_pays_for_all(desk, monkeypatch):
    """Partitions with as many as others give as many."""
    monkeypatch.setattr(producer_expiration, "PRODUCERS_MAX", 7)
    for topic in ("a", "b", "c"):
        desk.create(topic)
        writes(desk, *range(4), topic=topic)
    desk.cluster.housekeep(desk.now)
    assert [remembered(desk, topic) for topic in ("a", "b", "c")] == [[2, 3]] * 3


def test_those_whose_time_is_over_are_not_told_of(desk, monkeypatch):
    monkeypatch.setattr(producer_expiration, "PRODUCERS_MAX", 5)
    monkeypatch.setattr("kohort.server.partitions.producers._EXPIRED_AT_ONCE", 3)
    writes(desk, *range(12))
    desk.wait(20_000)
    desk.cluster.housekeep(desk.now)
    assert desk.cluster.producers.count <= 5
    assert desk.told.warnings == []


def test_who_has_a_transaction_open_is_not_forgotten(monkeypatch):
    monkeypatch.setattr(producer_expiration, "PRODUCERS_MAX", 1)
    desk = Desk()
    desk.create()
    open_one = Producing(desk)
    open_one.write(b"a")
    writes(desk, 501, 502, 503)
    desk.cluster.housekeep(desk.now)
    assert open_one.id in remembered(desk)
    open_one.write(b"b")
