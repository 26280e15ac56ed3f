# SPDX-License-Identifier: Apache-2.0
"""Coordinators move between nodes while stock clients consume and write on: nothing is lost."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.clients.member_processes import (
    KINDS,
    assert_nothing_committed_is_read_again,
    create_topic,
    numbers_read,
    produce,
    settled,
)
from tests.clients.transactional_workers import (
    NUMBERS,
    WORKERS,
    Reader,
    Shift,
    assert_each_number_is_written_on_once,
    reach,
)
from tests.clients.transactional_workers import produce as produce_numbers
from tests.waiting import eventually

pytestmark = [pytest.mark.clients, pytest.mark.timeout(900)]


def member_ids(group):
    return sorted(one.member_id for one in group.describe().members)


@pytest.mark.parametrize("kind", KINDS)
def test_a_group_keeps_its_members_and_offsets_wherever_it_goes(kind, cluster, crew):
    """Moved by hand; its node stopped, killed, and away for a while with nobody in its place."""
    create_topic(cluster.bootstrap, "orders", 6)
    group = cluster.groups["g"]
    members = [crew.join(kind, cluster.bootstrap, "orders", "g") for _ in range(2)]
    settled(members, 6)
    group.wait("Stable", members=2)
    before = member_ids(group)
    produced = 0

    def go_on():
        nonlocal produced
        produce(cluster.bootstrap, "orders", range(produced, produced + 200))
        produced += 200
        eventually(
            lambda: len(numbers_read(crew.members)) == produced, f"{produced} records are read"
        )
        settled(members, 6)

    go_on()
    for _ in range(2):
        group.move()
        go_on()
    with ThreadPoolExecutor(1) as pool:
        moving = pool.submit(lambda: [group.move() for _ in range(100)])
        for _ in range(5):
            go_on()
        moving.result()
    assert member_ids(group) == before, "nobody had to join again"
    assert_nothing_committed_is_read_again(crew.members)
    node = cluster.node(group.coordinator())
    node.stop()
    go_on()
    node.start()
    node = cluster.node(group.coordinator())
    node.kill()
    go_on()
    node.start()
    node = cluster.node(group.coordinator())
    node.stop(takeover=False)
    node.start()
    go_on()
    eventually(lambda: sum(group.committed().values()) == produced, "all of it is committed")

    assert set(numbers_read(crew.members)) == set(range(produced))
    if member_ids(group) == before:  # who was expelled while a node was away reads until it hears
        assert_nothing_committed_is_read_again(crew.members)


@pytest.mark.parametrize("kind", WORKERS)
def test_a_transactional_worker_goes_on_wherever_its_coordinators_go(kind, cluster, tmp_path):
    """Every number is written on once, although its group, its transactions and the leaders of the
    partitions get other nodes in the middle of it.

    librdkafka 2.16 never sends the offsets of a transaction when the node that has coordinated the
    group is gone from the metadata (the broker's thread says "Handle is terminating" without end).
    So its workers are killed as a node stops, in the middle of whatever they do.
    """
    create_topic(cluster.bootstrap, "in", 2)
    create_topic(cluster.bootstrap, "out", 2)
    produce_numbers(cluster.bootstrap)
    reader = Reader(cluster.bootstrap)
    group = cluster.groups["workers"]
    with Shift(kind, cluster.bootstrap, tmp_path) as shift:
        reach(shift, reader, NUMBERS // 8)
        group.move()
        reach(shift, reader, NUMBERS // 6)
        for partition in range(4):
            cluster.move_leader("__transaction_state", partition)
        reach(shift, reader, NUMBERS // 4)
        for partition in (0, 1):
            cluster.move_leader("out", partition)
            cluster.move_leader("in", partition)
        reach(shift, reader, NUMBERS // 3)
        for index in range(3):
            cluster.node(index).stop()
            if kind.startswith("confluent"):
                shift.kill()
            reach(shift, reader, NUMBERS * (4 + index) // 10)
            cluster.node(index).start()
        cluster.node(group.coordinator()).kill()
        if kind.startswith("confluent"):
            shift.kill()
        reach(shift, reader, NUMBERS)
    assert_each_number_is_written_on_once(reader)
