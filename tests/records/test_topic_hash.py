# SPDX-License-Identifier: Apache-2.0
"""Upstream's hash of topics, by values from a log that it wrote."""

import pytest

from kohort.records.topic_hash import hash_of_group, hash_of_topic
from kohort.terms import uuid_bytes

K1 = uuid_bytes("F5yzAvqoTZ2SaGt81r4xuA")
K2 = uuid_bytes("DTMis4gtQ9qMeN7NtAAqDA")


def test_the_values_of_a_real_log():
    one = hash_of_topic(K1, "k1", 6)
    two = hash_of_topic(K2, "k2", 4)
    assert one == 8529447869244796622
    assert hash_of_group([("k1", one)]) == -6182734336012761854
    assert hash_of_group([("k1", one), ("k2", two)]) == 9083303357909016981
    assert hash_of_group([("k2", two), ("k1", one)]) == 9083303357909016981


def test_no_topic_is_zero():
    assert hash_of_group([]) == 0


@pytest.mark.parametrize(
    "other",
    [
        (K2, "k1", 6),
        (K1, "k2", 6),
        (K1, "k1", 7),
        (K1, "k1", 6, {0: ["r1"]}),
        (K1, "k1", 6, {1: ["r1"]}),
        (K1, "k1", 6, {0: ["r1", "r2"]}),
    ],
)
def test_whatever_may_matter_matters(other):
    assert hash_of_topic(*other) != hash_of_topic(K1, "k1", 6)
    assert hash_of_topic(*other) == hash_of_topic(*other)


def test_the_order_of_racks_does_not_matter():
    assert hash_of_topic(K1, "k1", 1, {0: ["b", "a"]}) == hash_of_topic(
        K1, "k1", 1, {0: ["a", "b"]}
    )
    assert hash_of_topic(K1, "k1", 1, {0: ["ab"]}) != hash_of_topic(K1, "k1", 1, {0: ["a", "b"]})


def test_names_are_sorted_as_java_sorts_them():
    ones = [("\uffe6", 1), ("\U0001f600", 2), ("z", 3)]
    assert hash_of_group(ones) == hash_of_group(list(reversed(ones)))
    assert hash_of_group(ones) == hash_of_group([("a", 3), ("b", 2), ("c", 1)])
