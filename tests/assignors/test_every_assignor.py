# SPDX-License-Identifier: Apache-2.0
"""What every row of ASSIGNORS promises, and what its guarantees are beyond that."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.assignors.drawn import TOPICS, groups

from kohort.assignors import ASSIGNORS, AssignorError, Subscription

UNKNOWN = b"\x07" * 16

every_assignor = pytest.mark.parametrize("name", ASSIGNORS)


def loads(plan):
    return {member: sum(map(len, mine.values())) for member, mine in plan.items()}


def pairs(assignment):
    return {(topic, one) for topic, those in assignment.items() for one in those}


def after(members, plan):
    """The same members, with the plan as what they had."""
    return {
        name: Subscription(one.topics, plan[name], one.instance_id, one.rack)
        for name, one in members.items()
    }


@every_assignor
@given(group=groups())
def test_each_partition_goes_to_one_subscriber(name, group):
    """K848-055."""
    members, partitions = group
    plan = ASSIGNORS[name](members, partitions)

    assert list(plan) == list(members)
    dealt = []
    for member, mine in plan.items():
        assert set(mine) <= set(members[member].topics)
        for topic, those in mine.items():
            assert those
            assert type(those) is tuple
            assert those == tuple(sorted(set(those)))
            dealt += [(topic, one) for one in those]
    read = {topic for one in members.values() for topic in one.topics}
    assert sorted(dealt) == sorted(
        (topic, one) for topic in read for one in range(partitions[topic])
    )


@every_assignor
@given(group=groups())
def test_the_input_is_not_changed_and_the_answer_is_the_same(name, group):
    """K848-039."""
    members, partitions = group
    before = {
        member: (one.topics, dict(one.previous), one.instance_id) for member, one in members.items()
    }
    plan = ASSIGNORS[name](members, partitions)
    assert before == {
        member: (one.topics, one.previous, one.instance_id) for member, one in members.items()
    }
    copies = {
        member: Subscription((*one.topics,), dict(one.previous), one.instance_id)
        for member, one in members.items()
    }
    assert ASSIGNORS[name](copies, dict(partitions)) == plan


@every_assignor
@given(group=groups())
def test_a_plan_that_was_carried_out_stands(name, group):
    members, partitions = group
    plan = ASSIGNORS[name](members, partitions)
    assert ASSIGNORS[name](after(members, plan), partitions) == plan


@every_assignor
@given(group=groups(), shuffled=st.randoms(use_true_random=False))
def test_the_order_of_topics_has_no_influence(name, group, shuffled):
    members, partitions = group
    turned = {}
    for member, one in members.items():
        topics = list(one.topics)
        shuffled.shuffle(topics)
        previous = list(one.previous.items())
        shuffled.shuffle(previous)
        turned[member] = Subscription(tuple(topics), dict(previous), one.instance_id)
    plan = ASSIGNORS[name](members, partitions)
    assert ASSIGNORS[name](turned, dict(reversed(partitions.items()))) == plan


@every_assignor
def test_nobody_gets_nothing(name):
    assert ASSIGNORS[name]({}, {TOPICS[0]: 3}) == {}
    assert ASSIGNORS[name]({"A": Subscription(())}, {TOPICS[0]: 3}) == {"A": {}}


@every_assignor
def test_a_topic_that_the_cluster_does_not_have_is_an_error(name):
    members = {"A": Subscription((TOPICS[0],)), "B": Subscription((TOPICS[0], UNKNOWN))}
    with pytest.raises(AssignorError, match="member B subscribes to topic BwcHBwcHBwcHBwcHBwcHBw"):
        ASSIGNORS[name](members, {TOPICS[0]: 3})


@every_assignor
def test_a_topic_that_nobody_reads_is_left_alone(name):
    plan = ASSIGNORS[name]({"A": Subscription((TOPICS[0],))}, {TOPICS[0]: 2, TOPICS[1]: 5})
    assert plan == {"A": {TOPICS[0]: (0, 1)}}


@given(group=groups(equal=True))
def test_uniform_loads_differ_by_at_most_one(group):
    """K848-053."""
    members, partitions = group
    total = sum(partitions.values())
    size = loads(ASSIGNORS["uniform"](members, partitions)).values()
    assert set(size) <= {total // len(members), -(-total // len(members))}
    assert sum(size) == total


@given(group=groups(equal=True))
def test_uniform_keeps_whatever_balance_lets_it_keep(group):
    """Nobody gives up a partition unless it had more than its share."""
    members, partitions = group
    plan = ASSIGNORS["uniform"](members, partitions)
    had = {member: pairs(one.previous) for member, one in members.items()}
    share, extras = divmod(sum(partitions.values()), len(members))
    kept = sum(len(had[member] & pairs(plan[member])) for member in members)
    above = sum(len(those) > share for those in had.values())
    assert kept == sum(min(len(those), share) for those in had.values()) + min(above, extras)


@given(group=groups(equal=True), name=st.text(min_size=4, max_size=4))
def test_uniform_moves_nothing_but_what_a_newcomer_gets(group, name):
    """K848-041, K848-185."""
    members, partitions = group
    assign = ASSIGNORS["uniform"]
    plan = assign(members, partitions)
    one = next(iter(members.values()))
    joined = assign({**after(members, plan), name: Subscription(one.topics)}, partitions)
    for member in members:
        assert pairs(joined[member]) <= pairs(plan[member])


@given(group=groups(equal=True))
def test_uniform_moves_nothing_but_what_a_leaver_had(group):
    """K848-041, K848-185."""
    members, partitions = group
    assign = ASSIGNORS["uniform"]
    plan = assign(members, partitions)
    remaining = after(members, plan)
    remaining.popitem()
    left = assign(remaining, partitions)
    for member in remaining:
        assert pairs(plan[member]) <= pairs(left[member])


@given(group=groups())
def test_uniform_leaves_nobody_to_be_relieved(group):
    """Two readers of one topic differ by at most one, or the larger owns nothing of it.

    Holds K848-054.
    """
    members, partitions = group
    plan = ASSIGNORS["uniform"](members, partitions)
    size = loads(plan)
    for owner, mine in plan.items():
        for topic in mine:
            for member, one in members.items():
                assert topic not in one.topics or size[owner] - size[member] < 2


@given(group=groups())
def test_uniform_rests_when_there_is_nothing_to_gain(group):
    """K848-053: Whatever was balanced and complete stays as it was."""
    members, partitions = group
    settled = after(members, ASSIGNORS["uniform"](members, partitions))
    turned = dict(reversed(settled.items()))
    assert ASSIGNORS["uniform"](turned, partitions) == {
        member: one.previous for member, one in turned.items()
    }
