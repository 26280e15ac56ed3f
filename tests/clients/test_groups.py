# SPDX-License-Identifier: Apache-2.0
"""Stock clients that know nothing of us consume as groups, under both protocols."""

import pytest
from tests.clients.member_processes import (
    KINDS,
    assert_nothing_committed_is_read_again,
    create_topic,
    numbers_read,
    produce,
    settled,
)
from tests.waiting import SOON_S, eventually

pytestmark = [pytest.mark.clients, pytest.mark.timeout(900)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_group_grows_and_shrinks(kind, broker, crew):
    """Four members come one after the other, one leaves, one is killed; every record is seen.

    Holds K848-003, K848-167, K848-169.
    """
    create_topic(broker.bootstrap, "orders", 6)
    produce(broker.bootstrap, "orders", range(500))
    members = []
    for _ in range(4):
        members.append(crew.join(kind, broker.bootstrap, "orders", "g"))
        settled(members, 6)
    produce(broker.bootstrap, "orders", range(500, 1000))
    eventually(lambda: len(numbers_read(crew.members)) == 1000, "1,000 records are read")

    members.pop(1).leave()
    settled(members, 6)
    members.pop(1).kill()
    settled(members, 6)
    produce(broker.bootstrap, "orders", range(1000, 1500))
    eventually(lambda: len(numbers_read(crew.members)) == 1500, "1,500 records are read")

    assert set(numbers_read(crew.members)) == set(range(1500))
    assert_nothing_committed_is_read_again(crew.members)


@pytest.mark.parametrize("kind", KINDS)
def test_a_group_goes_on_where_it_was(kind, broker, crew):
    """Commit, leave, come back: only what is new is read, by this group; all of it by another."""
    create_topic(broker.bootstrap, "orders", 3)
    produce(broker.bootstrap, "orders", range(300))
    first = crew.join(kind, broker.bootstrap, "orders", "g")
    eventually(lambda: len(numbers_read([first])) == 300, "300 records are read")
    eventually(lambda: committed_end(first) == 300, "300 records are committed")
    first.leave()

    produce(broker.bootstrap, "orders", range(300, 400))
    second = crew.join(kind, broker.bootstrap, "orders", "g")
    other = crew.join(kind, broker.bootstrap, "orders", "another-group")
    eventually(lambda: len(numbers_read([second])) == 100, "the new records are read")
    eventually(lambda: len(numbers_read([other])) == 400, "the other group reads everything")

    assert set(numbers_read([second])) == set(range(300, 400))


def committed_end(member) -> int:
    """How many records of all partitions lie below what the member has committed."""
    ends = {}
    for note in member.notes("committed"):
        # librdkafka tells a negative offset of a partition with nothing new to commit.
        ends.update({partition: offset for partition, offset in note if offset >= 0})
    return sum(ends.values())


@pytest.mark.parametrize("kind", KINDS)
def test_a_group_outlives_the_broker(kind, broker, crew):
    """The broker is killed while a group of two consumes, and started again
    on the same directory.
    """
    create_topic(broker.bootstrap, "orders", 4)
    produce(broker.bootstrap, "orders", range(400))
    members = [crew.join(kind, broker.bootstrap, "orders", "g") for _ in range(2)]
    settled(members, 4)
    eventually(lambda: len(numbers_read(members)) == 400, "400 records are read")

    broker.kill()
    broker.restart()
    produce(broker.bootstrap, "orders", range(400, 800))
    eventually(lambda: len(numbers_read(members)) == 800, "800 records are read")

    assert set(numbers_read(members)) == set(range(800))
    assert_nothing_committed_is_read_again(members)


@pytest.mark.parametrize("kind", ["confluent-consumer", "kafka-python", "kohort-consumer"])
def test_a_group_over_three_nodes(kind, cluster, crew):
    """Partition leaders and coordinators on different nodes: clients see a true cluster."""
    create_topic(cluster.bootstrap, "orders", 6)
    produce(cluster.bootstrap, "orders", range(600))
    groups = {}
    for number in range(3):
        name = f"group-{number}"
        groups[name] = [crew.join(kind, cluster.bootstrap, "orders", name) for _ in range(2)]
    for members in groups.values():
        settled(members, 6)
    for name, members in groups.items():
        eventually(
            lambda members=members: len(numbers_read(members)) == 600, f"{name} reads everything"
        )


@pytest.mark.parametrize(
    "kind", ["confluent-consumer", "confluent-classic", "aiokafka", "kohort-consumer"]
)
def test_a_hundred_thousand_records(kind, broker, crew):
    create_topic(broker.bootstrap, "orders", 6)
    produce(broker.bootstrap, "orders", range(100_000))
    members = [crew.join(kind, broker.bootstrap, "orders", "g") for _ in range(2)]
    eventually(lambda: len(numbers_read(members)) == 100_000, "every record is read", 3 * SOON_S)
