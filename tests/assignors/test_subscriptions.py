# SPDX-License-Identifier: Apache-2.0
"""The orders that upstream sorts by, and members of equal subscriptions taken together."""

from kohort.assignors.subscriptions import (
    Subscription,
    by_subscription,
    java_sorted,
    topic_order,
)
from kohort.terms import java_order

LOW, HIGH, NEGATIVE = bytes(15) + b"\x01", b"\x01" + bytes(15), b"\xff" * 16


def test_topics_are_ordered_by_signed_halves():
    low_half = bytes(8) + b"\xff" * 8
    assert sorted([HIGH, LOW, NEGATIVE, low_half], key=topic_order) == [
        NEGATIVE,
        low_half,
        LOW,
        HIGH,
    ]


def test_strings_are_ordered_by_utf16_units():
    assert java_sorted(["b", "a", "B"]) == ["B", "a", "b"]
    assert java_sorted(["\uffe6", "\U0001f600", "z"]) == ["z", "\U0001f600", "\uffe6"]
    assert java_order("\ud800") == b"\xd8\x00"


def test_members_of_equal_subscriptions_are_taken_together():
    members = {
        "A": Subscription((HIGH, LOW)),
        "B": Subscription((LOW,)),
        "C": Subscription((LOW, HIGH)),
        "D": Subscription((LOW, HIGH, LOW)),
    }
    found = by_subscription(members, {LOW: 1, HIGH: 1})
    assert [(one.topics, one.members) for one in found] == [
        ([LOW, HIGH], ["A", "C", "D"]),
        ([LOW], ["B"]),
    ]
