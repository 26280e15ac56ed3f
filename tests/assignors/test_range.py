# SPDX-License-Identifier: Apache-2.0
"""Range beside a naive one."""

from hypothesis import given
from hypothesis import strategies as st
from tests.assignors.drawn import groups

from kohort.assignors import ASSIGNORS


def naive_range(members, partitions):
    static = sorted(
        (m for m in members if members[m].instance_id is not None),
        key=lambda m: utf16(members[m].instance_id),
    )
    dynamic = sorted((m for m in members if members[m].instance_id is None), key=utf16)
    plan = {member: {} for member in members}
    for topic, count in partitions.items():
        readers = [member for member in [*static, *dynamic] if topic in members[member].topics]
        owners = []
        for rank, member in enumerate(readers):
            owners += [member] * (count // len(readers) + (rank < count % len(readers)))
        for partition, member in enumerate(owners):
            plan[member][topic] = (*plan[member].get(topic, ()), partition)
    return plan


def utf16(text):
    data = text.encode("utf-16-be")
    return [data[at] << 8 | data[at + 1] for at in range(0, len(data), 2)]


@given(group=groups(), shuffled=st.randoms(use_true_random=False))
def test_range_is_the_naive_one_in_any_order(group, shuffled):
    """K848-052."""
    members, partitions = group
    expected = naive_range(members, partitions)
    assert ASSIGNORS["range"](members, partitions) == expected
    turned = list(members.items())
    shuffled.shuffle(turned)
    assert ASSIGNORS["range"](dict(turned), partitions) == expected


@given(count=st.integers(0, 20), group=groups(equal=True))
def test_range_lines_topics_of_equal_size_up(count, group):
    """K848-052."""
    members, partitions = group
    plan = ASSIGNORS["range"](members, dict.fromkeys(partitions, count))
    for mine in plan.values():
        assert len(set(mine.values())) <= 1
        assert len(mine) in {0, len(partitions)}
