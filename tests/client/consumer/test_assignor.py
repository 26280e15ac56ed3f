# SPDX-License-Identifier: Apache-2.0
"""A group as its assignor sees it, and what is wrong with what an assignor gives."""

from typing import Any

import pytest

from kohort.client.consumer import Consumer
from kohort.client.consumer.assignor import (
    AssignmentTold,
    Assignor,
    GroupMember,
    GroupToAssign,
    Share,
    faults,
    shares_of,
)
from kohort.terms import TopicPartition


def place(topic: str, index: int) -> TopicPartition:
    return TopicPartition(topic, index)


def group() -> GroupToAssign:
    members = [
        GroupMember("b", frozenset({"t"}), frozenset({place("t", 1), place("t", 9)})),
        GroupMember("a", frozenset({"t", "u"}), frozenset({place("t", 0), place("gone", 0)})),
    ]
    return GroupToAssign({one.member_id: one for one in members}, {"t": 3, "u": 1})


def test_what_a_group_is_asked() -> None:
    assert group().partitions_of("t") == [("t", 0), ("t", 1), ("t", 2)]
    assert [one.member_id for one in group().readers_of("t")] == ["a", "b"]
    assert [one.member_id for one in group().readers_of("u")] == ["a"]
    assert group().owners() == {("t", 0): "a", ("t", 1): "b"}  # of what still exists


def test_shares_may_be_plain_partitions() -> None:
    assert shares_of({"a": [("t", 0)], "b": Share((), b"x")}) == {  # type: ignore[list-item]
        "a": Share((place("t", 0),)),
        "b": Share((), b"x"),
    }


def test_partitions_of_a_share_may_be_pairs() -> None:
    given = {"a": Share([("t", 0)], b"x"), "b": iter([("t", 1)])}  # type: ignore[list-item,dict-item]
    shares = shares_of(given)  # type: ignore[arg-type]
    assert shares == {"a": Share((place("t", 0),), b"x"), "b": Share((place("t", 1),))}
    assert faults(group(), shares) == []


def test_what_an_iterator_of_the_application_raises_is_its_own() -> None:
    with pytest.raises(ZeroDivisionError):
        shares_of({"a": (place("t", 1 // divisor) for divisor in [0])})


class Mine(Assignor):
    name = "mine"


class Nameless(Assignor):
    pass


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ([Mine], "assignors has <class '.*Mine'>, expected an instance of an Assignor"),
        (Mine(), "assignors is <.*Mine object.*>, expected a list of them"),
        ("mine", "assignors is 'mine', expected a list of them"),
        (5, "assignors is 5, expected a list of them"),
        (["mine"], "assignors has 'mine', expected an instance of an Assignor"),
        ([Nameless()], "assignor Nameless has the name '', expected a text"),
        ([Mine(), Mine()], "assignors has 'mine' more than once, expected different names"),
    ],
)
def test_what_is_no_assignor_is_named(given: Any, text: str) -> None:
    with pytest.raises((TypeError, ValueError), match=text):
        Consumer("orders", group_id="billing", assignors=given)


def test_a_good_assignment_has_no_faults() -> None:
    assert faults(group(), {"a": Share((place("t", 0), place("u", 0)))}) == []


def test_every_fault_is_a_sentence() -> None:
    shares = {
        "a": Share((place("t", 0), place("t", 3), place("t", 0), place("v", 0))),
        "b": Share((place("t", 0), place("u", 0), place("t", -1))),
        "c": Share((place("t", 1),)),
    }
    assert faults(group(), shares) == [
        "a gets t:3, which does not exist",
        "a and a both get t:0",
        "a gets v:0, and does not want this topic",
        "b and a both get t:0",
        "b gets u:0, and does not want this topic",
        "b gets t:-1, which does not exist",
        "c is no member of the group",
    ]


def test_only_assign_has_to_be_written() -> None:
    assignor = Assignor()
    assert assignor.metadata() == b""
    assignor.on_assignment(AssignmentTold(()))
    with pytest.raises(NotImplementedError):
        assignor.assign(group())
