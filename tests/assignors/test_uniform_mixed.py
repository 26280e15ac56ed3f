# SPDX-License-Identifier: Apache-2.0
"""Subscriptions that differ: levels are those of dealing one partition at a time."""

from hypothesis import given
from hypothesis import strategies as st

from kohort.assignors import Subscription
from kohort.assignors.subscriptions import by_subscription
from kohort.assignors.uniform_mixed import MAX_PASSES, Balancer, assign_mixed

T1, T2 = b"\x01" * 16, b"\x02" * 16


@given(
    first=st.lists(st.integers(0, 6), min_size=1, max_size=5),
    second=st.lists(st.integers(0, 6), min_size=1, max_size=5),
    free=st.integers(1, 40),
)
def test_filling_a_topic_is_dealing_one_by_one(first, second, free):
    """Two subscriptions read T1; the loads that they begin with are partitions of T2."""
    members = {f"a{i}": Subscription((T1,)) for i in range(len(first))}
    members |= {f"b{i}": Subscription((T1, T2)) for i in range(len(second))}
    leveller = Balancer(members, by_subscription(members, {T1: free, T2: 0}), {T1: free, T2: 0})
    for member, load in zip(members, [*first, *second], strict=True):
        leveller.loads[member] = load
        equals = leveller.equals[leveller.of[member]]
        equals.remove(member, 0)
        equals.add(member, load)

    leveller.fill([(leveller.topics[T1], tuple(range(free)))])

    naive = [*first, *second]
    for _ in range(free):
        naive[naive.index(min(naive))] += 1
    assert sorted(leveller.loads.values()) == sorted(naive)
    owned = leveller.topics[T1].owners
    for member, load in zip(members, [*first, *second], strict=True):
        assert leveller.loads[member] == load + len(owned.get(member, ()))
        equals = leveller.equals[leveller.of[member]]
        assert member in equals.by_load[leveller.loads[member]]
    assert sorted(one for those in owned.values() for one in those) == list(range(free))


def test_whoever_was_lowest_when_the_topic_was_begun_is_served_first():
    """C has nothing, A and B have one: C takes both partitions, though it is level after one."""
    members = {
        "A": Subscription((T1, T2), {T1: (0,)}),
        "B": Subscription((T1, T2), {T1: (1,)}),
        "C": Subscription((T2,)),
    }
    plan = assign_mixed(members, by_subscription(members, {T1: 2, T2: 2}), {T1: 2, T2: 2})
    assert plan == {"A": {T1: (0,)}, "B": {T1: (1,)}, "C": {T2: (0, 1)}}


def test_the_last_partitions_of_the_most_loaded_move():
    members = {
        "A": Subscription((T1,), {T1: (0, 1, 2, 3, 4, 5)}),
        "B": Subscription((T1, T2)),
    }
    plan = assign_mixed(members, by_subscription(members, {T1: 6, T2: 1}), {T1: 6, T2: 1})
    assert plan == {"A": {T1: (0, 1, 2, 3)}, "B": {T1: (4, 5), T2: (0,)}}


def test_a_long_chain_is_left_nearly_even():
    """Load flows one neighbour per pass; after MAX_PASSES the rest is left, as upstream does."""
    chain = [bytes([i]) * 16 for i in range(3 * MAX_PASSES)]
    members = {
        f"m{i:03}": Subscription((left, right))
        for i, (left, right) in enumerate(zip(chain[1:], chain, strict=False))
    }
    last = list(members)[-1]
    members[last].previous[chain[-1]] = tuple(range(200))
    partitions = dict.fromkeys(chain, 1) | {chain[-1]: 200}
    plan = assign_mixed(members, by_subscription(members, partitions), partitions)
    assert (
        sum(len(those) for mine in plan.values() for those in mine.values()) == 200 + len(chain) - 1
    )
