# SPDX-License-Identifier: Apache-2.0
"""What a leader reads and gives, and that a cooperative one moves nothing that somebody has."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.client.members.classic_assigning import (
    PROTOCOLS,
    assign,
    assignment_of,
    partitions_by_topic,
    read_assignment,
    subscriptions,
    topics_of,
)
from kohort.errors import WireError
from kohort.records.consumer_protocol import ConsumerProtocolSubscription, encode
from kohort.terms import MemberId, TopicPartition
from kohort.wire.messages.join_group import JoinGroupResponseMember

EAGER, COOPERATIVE = PROTOCOLS["range"], PROTOCOLS["cooperative-sticky"]
Owned = dict[str, list[int]]


def wants(*topics: str, owned: Owned | None = None, since: int = 1) -> ConsumerProtocolSubscription:
    places = [TopicPartition(name, one) for name, ones in (owned or {}).items() for one in ones]
    return ConsumerProtocolSubscription(
        topics=list(topics), owned_partitions=partitions_by_topic(places), generation_id=since
    )


def plan(
    protocol: object, partitions: dict[str, int], **members: ConsumerProtocolSubscription
) -> dict[str, list[str]]:
    wanted = {MemberId(name): one for name, one in members.items()}
    mine = assign(protocol, wanted, partitions)  # type: ignore[arg-type]
    return {name: sorted(map(str, places)) for name, places in mine.items()}


def test_each_topic_is_given_to_those_who_want_it() -> None:
    assert plan(EAGER, {"t": 3, "u": 1}, a=wants("t"), b=wants("t", "u")) == {
        "a": ["t:0", "t:1"],
        "b": ["t:2", "u:0"],
    }


def test_a_topic_that_nobody_knows_has_nothing_to_give() -> None:
    assert plan(EAGER, {"t": 1}, a=wants("t", "v"), b=wants()) == {"a": ["t:0"], "b": []}
    assert topics_of({MemberId("a"): wants("u", "t"), MemberId("b"): wants("t")}) == ("t", "u")


def test_a_partition_that_moves_is_given_to_nobody_at_first() -> None:
    """KIP-429: its owner gives it up, and the next generation gives it away."""
    first = plan(COOPERATIVE, {"t": 4}, a=wants("t", owned={"t": [0, 1, 2, 3]}), b=wants("t"))
    assert len(first["a"]) == 2
    assert first["b"] == []
    kept = [int(one[2:]) for one in first["a"]]
    second = plan(COOPERATIVE, {"t": 4}, a=wants("t", owned={"t": kept}), b=wants("t"))
    assert second["a"] == first["a"]
    assert len(second["b"]) == 2


def test_of_two_claims_the_newer_one_stands_and_the_older_one_is_heard() -> None:
    """Who claims by an old generation has it still, and has to give it up."""
    old, new = wants("t", owned={"t": [0]}, since=3), wants("t", owned={"t": [0]}, since=4)
    assert plan(COOPERATIVE, {"t": 1}, a=old, b=new) == {"a": [], "b": ["t:0"]}
    assert plan(COOPERATIVE, {"t": 1}, a=new, b=old) == {"a": ["t:0"], "b": []}


def test_claims_of_what_there_is_not_count_for_nothing() -> None:
    odd = wants("t", owned={"t": [-1, 0, 5], "gone": [0]})
    assert plan(COOPERATIVE, {"t": 1}, a=odd, b=wants()) == {"a": ["t:0"], "b": []}


def test_bytes_that_say_nothing_want_nothing() -> None:
    members = [
        JoinGroupResponseMember(member_id="a", metadata=b"\0"),
        JoinGroupResponseMember(member_id="b", metadata=encode(wants("t"))),
    ]
    assert {name: one.topics for name, one in subscriptions(members).items()} == {
        "a": [],
        "b": ["t"],
    }


def test_an_assignment_comes_back_as_it_was_given() -> None:
    places = frozenset({TopicPartition("t", 1), TopicPartition("t", 0), TopicPartition("u", 7)})
    assert read_assignment(assignment_of(places)) == places
    assert read_assignment(assignment_of([TopicPartition("t", -1)])) == frozenset()
    assert read_assignment(b"") == frozenset()
    with pytest.raises(WireError):
        read_assignment(b"\0\1\xff")


claims = st.fixed_dictionaries({"t": st.lists(st.integers(0, 3)), "u": st.lists(st.integers(0, 2))})
members = st.dictionaries(
    st.sampled_from(["a", "b", "c", "d"]),
    st.tuples(st.sets(st.sampled_from(["t", "u"])), claims, st.integers(-1, 3)),
    min_size=1,
)


@given(members)
def test_nobody_is_given_what_somebody_else_has(
    those: dict[str, tuple[set[str], Owned, int]],
) -> None:
    """And no partition is given twice, whatever anybody claims."""
    wanted = {
        MemberId(name): wants(*sorted(topics), owned=owned, since=since)
        for name, (topics, owned, since) in those.items()
    }
    mine = assign(COOPERATIVE, wanted, {"t": 4, "u": 3})
    every = [place for places in mine.values() for place in places]
    assert len(every) == len(set(every))
    for name, places in mine.items():
        for place in places:
            claiming = [
                other for other in those if place.partition in those[other][1].get(place.topic, ())
            ]
            assert not claiming or name in claiming
