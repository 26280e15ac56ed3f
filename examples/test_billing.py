# SPDX-License-Identifier: Apache-2.0
"""A consumer tested against a real broker: `pytest examples/test_billing.py`.

The fixtures come with Kohort: a broker for all tests, a topic and a group for each.
"""

import pytest
from billing import Billing
from confluent_kafka import KafkaException

pytestmark = pytest.mark.kohort_topic(partitions=2)


@pytest.fixture
def billing(kohort_broker, kohort_topic, kohort_group):
    """Makes consumers that are closed after the test."""
    made = []

    def make(**options):
        made.append(Billing(kohort_broker.bootstrap, kohort_group, kohort_topic, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


def order(customer, amount=1):
    return {"customer": customer, "amount": amount}


def until(done, *consumers):
    """Let the consumers work in turn until something holds."""
    for _ in range(500):
        if done():
            return
        for one in consumers:
            one.step()
    pytest.fail("it is not done")


def all_committed(broker, topic, group):
    return lambda: sum(broker.groups[group].committed().values()) == len(broker.read(topic))


def test_orders_are_added_up(kohort_broker, kohort_topic, kohort_group, billing):
    kohort_broker.produce(kohort_topic, order("ada", 3), order("ben", 4), order("ada", 5))
    one = billing()
    until(all_committed(kohort_broker, kohort_topic, kohort_group), one)

    assert one.totals == {"ada": 8, "ben": 4}


def test_a_poison_record_stops_nobody(kohort_broker, kohort_topic, kohort_group, billing):
    aside = kohort_broker.create_topic(f"{kohort_topic}.aside")
    kohort_broker.produce(kohort_topic, order("ada"), "no order", order("ada"))
    one = billing(set_aside=aside)
    until(all_committed(kohort_broker, kohort_topic, kohort_group), one)

    assert one.totals == {"ada": 2}
    assert [record.text for record in kohort_broker.read(aside)] == ["no order"]


def test_a_rebalance_in_the_middle_of_a_batch(kohort_broker, kohort_topic, kohort_group, billing):
    """What the first has done it commits before it gives the partition away."""
    for partition in (0, 1):
        kohort_broker.produce(kohort_topic, *[order("ada")] * 5, partition=partition)
    first = billing(name="first")
    while first.totals["ada"] < 10:
        first.take()
    assert kohort_broker.groups[kohort_group].committed() == {}

    second = billing(name="second")
    group = kohort_broker.groups[kohort_group]
    until(lambda: group.is_now("Stable", members=2), first, second)
    for partition in (0, 1):
        kohort_broker.produce(kohort_topic, order("ben"), partition=partition)
    until(all_committed(kohort_broker, kohort_topic, kohort_group), first, second)

    assert first.totals + second.totals == {"ada": 10, "ben": 2}, "nothing is done twice"
    assert second.totals == {"ben": 1}
    assert len(group.history()[-1].owners) == 2


def test_a_restart_of_the_broker(kohort_broker, kohort_topic, kohort_group, billing):
    kohort_broker.produce(kohort_topic, order("ada"))
    one = billing()
    until(lambda: one.totals["ada"] == 1, one)
    kohort_broker.restart()
    kohort_broker.produce(kohort_topic, order("ben"))
    until(all_committed(kohort_broker, kohort_topic, kohort_group), one)

    assert one.totals == {"ada": 1, "ben": 1}


def test_a_zombie_commits_nothing(kohort_broker, kohort_topic, kohort_group, billing):
    """A member that has been silent for too long is out, whatever it believes."""
    kohort_broker.produce(kohort_topic, order("ada"))
    zombie = billing(name="zombie")
    while not zombie.totals:
        zombie.take()
    with kohort_broker.faults.close("ConsumerGroupHeartbeat", times=None, client_id="zombie"):
        kohort_broker.clock.advance(46)
        kohort_broker.groups[kohort_group].wait("Empty")
        other = billing(name="other")
        until(lambda: other.totals["ada"] == 1, other)
        with pytest.raises(KafkaException):
            zombie.commit()

    commits = kohort_broker.groups[kohort_group].commits()
    assert [one.offset for one in commits] == [1]


def test_a_commit_whose_answer_is_lost(kohort_broker, kohort_topic, kohort_group, billing):
    kohort_broker.produce(kohort_topic, order("ada"))
    one = billing()
    lost = kohort_broker.faults.close("OffsetCommit", handled=True, group=kohort_group)
    until(lambda: one.totals["ada"] == 1, one)

    assert lost.hits == 1
    assert sum(kohort_broker.groups[kohort_group].wait_committed(kohort_topic).values()) == 1


def test_the_lag(kohort_broker, kohort_topic, kohort_group, billing):
    kohort_broker.produce(kohort_topic, *[order("ada")] * 5)
    one = billing()
    while not one.take(most=3):
        pass
    one.commit()

    group = kohort_broker.groups[kohort_group]
    assert group.wait_committed(kohort_topic, 3)
    assert group.lag() == {(kohort_topic, 0): 2, (kohort_topic, 1): 0}
