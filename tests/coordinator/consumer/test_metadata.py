# SPDX-License-Identifier: Apache-2.0
"""What a change of topics means to the groups that read them."""

from tests.coordinator.consumers import settled
from tests.coordinator.desk import Desk, topics

from kohort.coordinator.consumer import metadata
from kohort.machines.topics import Topic, Topics


def test_the_same_topics_change_nothing() -> None:
    desk = Desk()
    settled(desk, "a")
    desk.written()
    desk.topics_changed(topics(orders=4, payments=2))
    assert desk.written() == []
    assert not desk.shard.groups.consumer("g").metadata_stale


def test_changes_of_topics() -> None:
    before = Topics([Topic(b"1" * 16, "same", 1), Topic(b"2" * 16, "gone", 1)])
    after = Topics([Topic(b"1" * 16, "same", 1), Topic(b"3" * 16, "new", 1)])
    assert metadata.changes(before, after) == (["new", "gone"], ["gone"])
    renewed = Topics([Topic(b"9" * 16, "same", 1), Topic(b"2" * 16, "gone", 5)])
    assert metadata.changes(before, renewed) == (["same", "gone"], ["same"])
    assert metadata.changes(before, before) == ([], [])


def test_racks_of_replicas_count() -> None:
    def hashed(*racks: tuple[str, ...]) -> int:
        return metadata.hash_of(["t"], Topics([Topic(b"1" * 16, "t", 2, racks)]))

    assert hashed() == hashed((), ())
    assert len({hashed(), hashed(("a",), ("b",)), hashed(("b",), ("a",)), hashed(("a",), ())}) == 4


def test_names_of_topics_that_do_not_exist_count_for_nothing_however_many_they_are() -> None:
    known = Topics([Topic(name.encode() * 16, name, 2) for name in "tu"])
    few, many = {"t": 1, "u": 1}, dict.fromkeys(map(str, range(1000)), 1)
    expected = metadata.hash_of(["t", "u"], known)
    for names in (few, many | few, few | many):
        assert metadata.hash_of(names.keys(), known) == expected
    assert metadata.hash_of(many.keys(), known) == metadata.hash_of((), known) == 0
