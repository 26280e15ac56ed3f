# SPDX-License-Identifier: Apache-2.0
"""A topic in MACHINE_FACTORIES gets a driver for each of its partitions; other topics are logs and
no more.
"""

import pytest
from tests.runtime.counter import Add, Ask, Counter
from tests.server.desk import Desk

from kohort.errors import Broken
from kohort.machines.effects import Call, Client
from kohort.server import cluster
from kohort.server.catalog import OFFSETS_TOPIC
from kohort.server.coordinators.coordinator_partitions import MACHINE_FACTORIES

COUNTS = "counts"


class Token:
    def __init__(self):
        self.told = None

    def answer(self, response):
        self.told = response

    def fail(self, error):
        self.told = f"failed: {error}"


@pytest.fixture
def desk(monkeypatch):
    """A cluster that hosts one more topic, which counts."""
    hosted = {**MACHINE_FACTORIES, COUNTS: lambda *_: Counter()}
    monkeypatch.setattr(cluster, "MACHINE_FACTORIES", hosted)
    desk = Desk(offsets_topic_num_partitions="2")
    desk.create(COUNTS, partitions=3)
    desk.create("orders")
    return desk


def drivers_of(desk, name):
    return desk.cluster._drivers.get(name)


def asked(desk, driver, *adds):
    call = Call(Token(), Ask(*adds), 0, Client("app", "/127.0.0.1"))
    desk.cluster.submit(driver, call)
    return call.token


def test_every_partition_of_a_hosted_topic_has_a_driver(desk):
    assert list(desk.cluster.drivers) == list(drivers_of(desk, OFFSETS_TOPIC)) == [0, 1]
    assert list(drivers_of(desk, COUNTS)) == [0, 1, 2]
    assert drivers_of(desk, "orders") is None


def test_a_hosted_machine_answers_once_its_log_is_durable(desk):
    driver = drivers_of(desk, COUNTS)[1]
    partition = desk.cluster.partition(COUNTS, 1)

    token = asked(desk, driver, Add("apples", 3))
    desk.settle(sync=False)
    before = token.told, partition.high_watermark, partition.log.end
    desk.settle()

    assert before == (None, 0, 1)
    assert (token.told, partition.high_watermark) == ({}, 1)
    assert driver.machine.counts == {"apples": 3}
    assert [one.log.end for one in desk.cluster.drivers.values()] == [0, 0]


def test_a_sync_that_fails_refuses_the_calls_that_wait_for_it(desk):
    token = asked(desk, drivers_of(desk, COUNTS)[0], Add("apples", 3))
    desk.settle(sync=False)

    (one,) = desk.cluster.begin_sync()
    desk.cluster.end_sync(one, Broken("EIO"))

    assert token.told == "failed: EIO"
    assert one.partition is desk.cluster.partition(COUNTS, 0)
    assert one.partition.failed
