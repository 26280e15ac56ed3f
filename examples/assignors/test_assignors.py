# SPDX-License-Identifier: Apache-2.0
"""The assignors without a broker: a group is a plain value."""

from by_weight import ByWeight
from few_moves import FewMoves
from nearby import by_zone

from kohort import AssignmentTold, GroupMember, GroupToAssign, TopicPartition


def group(topics, **members):
    """Members by id, each a dict of what is special about it."""
    every = frozenset(topics)
    return GroupToAssign(
        {name: GroupMember(name, **{"topics": every, **its}) for name, its in members.items()},
        topics,
    )


def counts(shares):
    return {member: len(getattr(share, "partitions", share)) for member, share in shares.items()}


def partitions(topic, *indexes):
    return frozenset(TopicPartition(topic, index) for index in indexes)


def after(before, shares):
    """The same group, with the assignment that was computed as its present one."""
    members = {
        name: GroupMember(
            name,
            member.topics,
            frozenset(getattr(shares[name], "partitions", shares[name])),
            member.metadata,
            rack=member.rack,
        )
        for name, member in before.members.items()
    }
    return GroupToAssign(members, before.topics)


def test_who_is_twice_as_strong_gets_twice_as_much():
    weighed = group({"t": 9}, big={"metadata": b"2"}, small={"metadata": b"1.0"})
    assert counts(ByWeight(1).assign(weighed)) == {"big": 6, "small": 3}


def test_weights_count_over_all_topics():
    many = {f"t{number}": 1 for number in range(9)}
    weighed = group(many, big={"metadata": b"2"}, small={"metadata": b"1"})
    assert counts(ByWeight(1).assign(weighed)) == {"big": 6, "small": 3}


def test_a_weight_that_is_none_counts_as_one():
    weighed = group({"t": 4}, a={"metadata": b"strong"}, b={"metadata": b"-3"})
    assert counts(ByWeight(1).assign(weighed)) == {"a": 2, "b": 2}


def test_nothing_moves_without_need_by_weight():
    weighed = group({"t": 10}, a={"metadata": b"3"}, b={"metadata": b"2"})
    first = ByWeight(1).assign(weighed)
    assert ByWeight(1).assign(after(weighed, first)) == first


def test_few_partitions_move_at_a_time():
    held = partitions("t", *range(10))
    before = group({"t": 10}, a={"partitions": held}, b={})
    few = FewMoves(2)
    seen = []
    for _ in range(4):
        shares = few.assign(before)
        few.on_assignment(AssignmentTold((), shares["b"].metadata))
        seen.append((len(shares["b"].partitions), few.unbalanced))
        before = after(before, shares)
    assert seen == [(2, True), (4, True), (5, False), (5, False)]


def test_what_nobody_has_is_given_at_once():
    shares = FewMoves(1).assign(group({"t": 6}, a={}, b={}))
    assert counts(shares) == {"a": 3, "b": 3}


def test_few_moves_gives_nobody_what_it_does_not_want():
    only = {"topics": frozenset({"u"})}
    shares = FewMoves(9).assign(
        group({"t": 6, "u": 1}, a={"partitions": partitions("t", *range(6))}, b=only)
    )
    assert counts(shares) == {"a": 6, "b": 1}


def test_partitions_go_to_their_zone():
    spread = group({"t": 4}, east={"rack": "e"}, west={"rack": "w"})
    zones = {
        TopicPartition("t", index): frozenset({"e" if index % 2 else "w"}) for index in range(4)
    }
    shares = by_zone(spread, zones)
    assert {name: frozenset(some) for name, some in shares.items()} == {
        "east": partitions("t", 1, 3),
        "west": partitions("t", 0, 2),
    }
    assert by_zone(after(spread, shares), zones) == shares


def test_being_near_is_no_reason_for_more_than_a_share():
    spread = group({"t": 4}, east={"rack": "e"}, west={"rack": "w"})
    zones = {TopicPartition("t", index): frozenset({"e"}) for index in range(4)}
    assert counts(by_zone(spread, zones)) == {"east": 2, "west": 2}
