# SPDX-License-Identifier: Apache-2.0
"""Round robin by table, and that every wanted partition goes to somebody who wants it."""

from hypothesis import given
from hypothesis import strategies as st

from kohort.assignors import Subscription
from kohort.client.members.round_robin import assign
from kohort.terms import MemberId, TopicId

T, U, V = (TopicId(letter * 16) for letter in (b"t", b"u", b"v"))


def plan(members: dict[str, list[TopicId]], partitions: dict[TopicId, int]) -> dict[str, list[str]]:
    wanted = {MemberId(name): Subscription(tuple(topics)) for name, topics in members.items()}
    return {
        name: [f"{chr(topic[0])}{index}" for topic, ones in mine.items() for index in ones]
        for name, mine in assign(wanted, partitions).items()
    }


def test_members_take_turns_over_all_topics() -> None:
    """The example of upstream's documentation."""
    assert plan({"C0": [T, U], "C1": [T, U]}, {T: 3, U: 3}) == {
        "C0": ["t0", "t2", "u1"],
        "C1": ["t1", "u0", "u2"],
    }


def test_who_does_not_want_a_topic_is_passed_over() -> None:
    """The second example of upstream's documentation."""
    assert plan({"C0": [T], "C1": [T, U], "C2": [T, U, V]}, {T: 1, U: 2, V: 3}) == {
        "C0": ["t0"],
        "C1": ["u0"],
        "C2": ["u1", "v0", "v1", "v2"],
    }


def test_nobody_and_nothing() -> None:
    assert plan({}, {T: 3}) == {}
    assert plan({"a": []}, {}) == {"a": []}


@given(
    st.dictionaries(
        st.sampled_from(["a", "b", "c", "d"]), st.lists(st.sampled_from([T, U, V]), unique=True)
    ),
    st.fixed_dictionaries({T: st.integers(0, 5), U: st.integers(0, 5), V: st.integers(0, 5)}),
)
def test_each_partition_has_one_owner_that_wants_it(
    members: dict[str, list[TopicId]], partitions: dict[TopicId, int]
) -> None:
    given_out = [one for mine in plan(members, partitions).values() for one in mine]
    wanted = {topic for topics in members.values() for topic in topics}
    expected = [f"{chr(topic[0])}{index}" for topic in wanted for index in range(partitions[topic])]
    assert sorted(given_out) == sorted(expected)
