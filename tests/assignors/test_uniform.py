# SPDX-License-Identifier: Apache-2.0
"""Uniform where hash order shows: what a running Apache Kafka 4.3.1 has answered."""

from kohort.assignors import ASSIGNORS, Subscription

TOPIC = bytes(15) + b"\x01"


def test_what_a_member_keeps_comes_first_in_a_hash_set_of_numbers():
    """Fourteen numbers are a table of 32, in which 32 stands before 29."""
    before = {"a": range(15), "b": range(15, 29), "c": range(29, 43), "d": ()}
    members = {
        name: Subscription((TOPIC,), {TOPIC: tuple(those)} if those else {})
        for name, those in before.items()
    }
    plan = ASSIGNORS["uniform"](members, {TOPIC: 43})
    assert {name: mine[TOPIC] for name, mine in plan.items()} == {
        "a": tuple(range(11)),
        "b": tuple(range(15, 26)),
        "c": tuple(range(32, 43)),
        "d": (11, 12, 13, 14, 26, 27, 28, 29, 30, 31),
    }


def test_topics_are_dealt_in_the_order_of_a_hash_set_of_ids():
    """The id of the second one is larger, and its hash falls into the first bucket."""
    one, two = bytes(15) + b"\x0f", bytes(15) + b"\x10"
    members = {name: Subscription((one, two), {}) for name in "ab"}
    plan = ASSIGNORS["uniform"](members, {one: 1, two: 1})
    assert plan == {"a": {two: (0,)}, "b": {one: (0,)}}


def test_a_subscription_to_a_topic_that_is_not_there_makes_a_difference():
    """Upstream compares the names that members subscribe to, and those that nobody has count."""
    ids = [bytes(15) + bytes([number]) for number in (1, 2, 3)]
    counts = dict(zip(ids, (3, 2, 1), strict=True))
    first = {topic: tuple(range(count)) for topic, count in counts.items()}

    def plan(*, alike):
        members = {
            "a": Subscription(tuple(ids), first, alike=alike),
            "b": Subscription(tuple(ids), {}, alike=alike),
        }
        return ASSIGNORS["uniform"](members, counts)

    assert plan(alike=True)["a"] == {ids[0]: (0, 1, 2)}
    assert sum(map(len, plan(alike=False)["a"].values())) == 3
    assert plan(alike=False)["a"] != plan(alike=True)["a"]
