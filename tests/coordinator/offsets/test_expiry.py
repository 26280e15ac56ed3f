# SPDX-License-Identifier: Apache-2.0
"""Offsets expire, and groups go with the last of them (KIP-211).

What counts is the kind of the group, its state, and what it reads.
"""

import pytest
from tests.coordinator.classics import (
    QUICK,
    SUBSCRIBED,
    commit,
    heartbeat,
    join,
    leave,
    newcomer,
    stable,
    sync,
)
from tests.coordinator.committed import FIRST, NOTHING, G, fetched
from tests.coordinator.consumers import beat
from tests.coordinator.desk import START, Desk, topic_id

from kohort.coordinator.offsets import expiry
from kohort.coordinator.share_and_streams import ShareOrStreamsGroup
from kohort.errors import ErrorCode
from kohort.machines.effects import Producer
from kohort.records.codec import Record
from kohort.records.schemas import GroupMetadataKey, OffsetCommitKey, OffsetCommitValue
from kohort.terms import GroupId, GroupState, GroupType

MINUTE = 60_000
CHECK = 10_000
SHORT = QUICK | {"offsets_retention_minutes": 1, "offsets_retention_check_interval_ms": CHECK}
OTHER = ("payments", 0)


def desk_of(**settings):
    return Desk(**SHORT | settings)


def alive(desk, member_id, milliseconds, generation=1):
    """Let time pass while a classic member sends its heartbeats."""
    for _ in range(milliseconds // 5000):
        desk.wait(5000)
        assert heartbeat(desk, member_id, generation) == 0


def stored(desk, group_id="g", partition=FIRST, **fields):
    """A committed offset as some broker has written it, perhaps long ago."""
    value = OffsetCommitValue(
        **{
            "offset": 5,
            "metadata": "",
            "commit_timestamp": desk.now,
            "topic_id": topic_id("orders"),
        }
        | fields
    )
    desk.write(
        Record(OffsetCommitKey(group=group_id, topic=partition[0], partition=partition[1]), value)
    )


def test_a_group_that_only_holds_offsets_loses_each_at_its_time_and_ends_with_the_last():
    """K229-21, K229-27."""
    desk = desk_of()
    commit(desk, {FIRST: 5})
    desk.wait(MINUTE // 2)
    commit(desk, {OTHER: 6})
    desk.written()
    desk.wait(MINUTE // 2 - 1)
    assert set(fetched(desk)) == {FIRST, OTHER}
    desk.wait(CHECK)
    assert set(fetched(desk)) == {OTHER}
    assert desk.written() == [Record(OffsetCommitKey(group="g", topic="orders", partition=0), None)]
    desk.wait(MINUTE // 2)
    assert desk.written() == [
        Record(OffsetCommitKey(group="g", topic="payments", partition=0), None),
        Record(GroupMetadataKey(group="g"), None),
    ]
    assert desk.shard.groups.get(G) is None
    assert not desk.shard.offsets.committed
    assert any("deleted; expired offsets: 1" in line for line in desk.told_lines.lines)


def test_nothing_expires_before_the_check_interval_is_over():
    desk = desk_of(offsets_retention_check_interval_ms=10 * MINUTE)
    commit(desk, {FIRST: 5})
    desk.wait(9 * MINUTE)
    assert set(fetched(desk)) == {FIRST}
    desk.wait(MINUTE)
    assert fetched(desk) == {}


def test_a_pass_can_be_asked_for():
    desk = desk_of(offsets_retention_check_interval_ms=10 * MINUTE)
    """It ends groups with their last offset, and none that had nothing."""
    commit(desk, {FIRST: 5})
    join(desk, group_id="new")
    desk.wait(MINUTE)
    desk.shard.expire_offsets(desk.now)
    desk.wait(0)
    assert fetched(desk) == {}
    assert [group.id for group in desk.shard.groups] == ["new"]
    desk.wait(9 * MINUTE)
    assert [group.id for group in desk.shard.groups] == ["new"]
    desk.wait(MINUTE)
    assert len(desk.shard.groups) == 0


def test_a_classic_group_has_the_whole_retention_from_the_moment_it_is_empty():
    """K229-27. However old its offsets are."""
    desk = desk_of()
    (member,) = stable(desk)
    commit(desk, {FIRST: 5}, member_id=member, generation_id_or_member_epoch=1)
    alive(desk, member, 2 * MINUTE)
    leave(desk, member)
    desk.wait(MINUTE - 1)
    assert set(fetched(desk)) == {FIRST}
    desk.wait(CHECK)
    assert fetched(desk) == {}
    assert desk.shard.groups.get(G) is None


@pytest.mark.parametrize("restarted", [False, True])
def test_a_group_at_rest_keeps_the_offsets_of_what_it_reads_and_loses_others(restarted):
    """K229-26."""
    desk = desk_of()
    (member,) = stable(desk)
    commit(desk, {FIRST: 5, OTHER: 6}, member_id=member, generation_id_or_member_epoch=1)
    if restarted:
        desk.restart()
    alive(desk, member, MINUTE + CHECK)
    assert set(fetched(desk)) == {FIRST}
    assert desk.shard.groups.classic(G).state is GroupState.STABLE


def test_a_consumer_group_keeps_the_offsets_of_what_it_reads_and_loses_others():
    """K229-26."""
    desk = desk_of()
    epoch = beat(desk, "m", 0).member_epoch
    commit(desk, {FIRST: 5, OTHER: 6}, member_id="m", generation_id_or_member_epoch=epoch)
    for _ in range(4):
        desk.wait(20_000)
        beat(desk, "m", epoch)
    assert set(fetched(desk)) == {FIRST}


def test_an_emptied_consumer_group_counts_from_each_commit():
    """K229-27. It may lose its offsets a moment after its last member has left."""
    desk = desk_of()
    epoch = beat(desk, "m", 0).member_epoch
    commit(desk, {FIRST: 5}, member_id="m", generation_id_or_member_epoch=epoch)
    for _ in range(3):
        desk.wait(20_000)
        beat(desk, "m", epoch)
    beat(desk, "m", -1)
    assert set(fetched(desk)) == {FIRST}
    desk.wait(CHECK)
    assert fetched(desk) == {}
    assert desk.shard.groups.get(G) is None
    desk.restart()
    assert len(desk.shard.groups) == 0


def test_the_settings_of_offsets_hold_for_both_types_and_those_of_classic_groups_for_these():
    """K848-132."""
    desk = desk_of(group_max_size=1, offset_metadata_max_bytes=1)
    too_large = ErrorCode.OFFSET_METADATA_TOO_LARGE
    classic, _ = newcomer(desk)
    assert join(desk).answer.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    for member in ("m", "n"):
        assert beat(desk, member, 0, group_id="h").error_code == 0
    leave(desk, classic)
    for member in ("m", "n"):
        beat(desk, member, -1, group_id="h")
    for group_id in ("g", "h"):
        assert commit(desk, {FIRST: 5}, group_id=group_id, metadata="mm") == {FIRST: too_large}
        assert commit(desk, {FIRST: 5}, group_id=group_id, metadata="m") == {FIRST: 0}
    desk.wait(2 * MINUTE)
    assert len(desk.shard.groups) == 0


def test_a_group_under_way_or_of_unknown_topics_loses_nothing():
    desk = desk_of()
    (member,) = stable(desk, protocols={"range": b"\0"})
    commit(desk, {OTHER: 5}, member_id=member, generation_id_or_member_epoch=1)
    alive(desk, member, 2 * MINUTE)
    assert set(fetched(desk)) == {OTHER}
    second, waiting = newcomer(desk, protocols={"range": SUBSCRIBED})
    assert second
    assert waiting.answer is None
    assert desk.shard.groups.classic(G).state is GroupState.PREPARING_REBALANCE
    desk.wait(CHECK)
    assert set(fetched(desk)) == {OTHER}


def test_a_group_of_another_protocol_type_loses_nothing_while_it_has_members():
    desk = desk_of()
    (member,) = stable_of_connect(desk)
    commit(desk, {FIRST: 5}, member_id=member, generation_id_or_member_epoch=1)
    alive(desk, member, 2 * MINUTE)
    assert set(fetched(desk)) == {FIRST}
    leave(desk, member)
    desk.wait(MINUTE + CHECK)
    assert desk.shard.groups.get(G) is None


def stable_of_connect(desk):
    member, joined = newcomer(desk, protocol_type="connect")
    assert joined.answer.generation_id == 1
    assert sync(desk, member, 1, {member: b""}, protocol_type="connect").answer.error_code == 0
    return [member]


def test_an_empty_group_without_offsets_goes_with_the_next_pass():
    """Also one that somebody has only asked to join."""
    desk = desk_of()
    pending = join(desk).answer.member_id
    assert desk.shard.groups.classic(G).state is GroupState.EMPTY
    desk.wait(CHECK)
    assert desk.shard.groups.get(G) is None
    assert join(desk, pending).answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("version", [2, 4])
def test_a_commit_may_name_its_own_retention(version):
    """K229-20. It may be shorter or longer than that of the broker."""
    desk = desk_of()
    commit(desk, {FIRST: 5}, version=version, retention_time_ms=0)
    commit(desk, {OTHER: 6}, version=version, retention_time_ms=2 * MINUTE)
    assert set(fetched(desk)) == {FIRST, OTHER}
    desk.wait(CHECK)
    assert set(fetched(desk)) == {OTHER}
    desk.wait(2 * MINUTE - CHECK - 1)
    assert set(fetched(desk)) == {OTHER}
    desk.restart()
    desk.wait(CHECK)
    assert fetched(desk) == {}


def test_a_time_that_a_commit_has_named_does_not_end_what_is_read():
    """K229-20, K229-26."""
    desk = desk_of()
    (member,) = stable(desk)
    fields = {"member_id": member, "generation_id_or_member_epoch": 1, "retention_time_ms": 0}
    commit(desk, {FIRST: 5, OTHER: 6}, version=4, **fields)
    desk.wait(5000)
    assert heartbeat(desk, member, 1) == 0
    desk.wait(5000)
    assert set(fetched(desk)) == {FIRST}


def test_an_open_transaction_holds_its_offsets_and_its_group():
    """CORE-16998: what a transaction is about to commit has not expired."""
    desk = desk_of()
    producer = Producer(1, 0)
    commit(desk, {FIRST: 5, OTHER: 6})
    value = OffsetCommitValue(
        offset=7, metadata="", commit_timestamp=desk.now, topic_id=topic_id("orders")
    )
    desk.write(
        Record(OffsetCommitKey(group="g", topic="orders", partition=0), value), producer=producer
    )
    desk.wait(2 * MINUTE)
    assert set(fetched(desk)) == {FIRST}
    desk.end_transaction(producer, commit=False)
    desk.wait(CHECK)
    assert desk.shard.groups.get(G) is None


def test_offsets_that_have_lost_their_group_expire_too():
    desk = desk_of()
    stored(desk)
    desk.write(Record(GroupMetadataKey(group="g"), None))
    assert desk.shard.groups.get(G) is None
    desk.wait(MINUTE + CHECK)
    assert not desk.shard.offsets.committed


def test_offsets_from_before_the_start_expire_at_the_first_check():
    desk = desk_of()
    stored(desk, commit_timestamp=START - 2 * MINUTE)
    desk.restart()
    assert set(fetched(desk)) == {FIRST}
    desk.wait(CHECK)
    assert fetched(desk) == {}


def test_a_long_pass_goes_in_slices_and_lets_others_in(monkeypatch):
    """A group of many offsets is cut, and what comes in between is seen."""
    monkeypatch.setattr(expiry, "SLICE_RECORDS", 3)
    desk = desk_of()
    commit(desk, {("orders", partition): 1 for partition in range(8)})
    commit(desk, {FIRST: 1}, group_id="h")
    desk.wait(MINUTE - 1)
    desk.written()
    desk.now += CHECK
    desk.driver.turn(desk.now)
    assert len(desk.written()) == 3
    commit(desk, {("orders", 7): 2})
    desk.wait(1)
    assert fetched(desk) == {("orders", 7): (2, -1, "", 0)}
    assert [str(group.id) for group in desk.shard.groups] == ["g"]


def test_after_a_crash_at_any_record_the_rest_expires():
    """The pass may be cut anywhere: what is left expires later."""
    desk = desk_of()
    commit(desk, {("orders", partition): 1 for partition in range(4)})
    desk.written()
    desk.wait(MINUTE + CHECK)
    ending = desk.written()
    assert len(ending) == 5
    for cut in range(6):
        other = desk_of()
        commit(other, {("orders", partition): 1 for partition in range(4)})
        for record in ending[:cut]:
            other.write(record, live=False)
        other.restart()
        other.wait(MINUTE + CHECK)
        assert len(other.shard.groups) == 0
        assert not other.shard.offsets.committed


def test_an_empty_group_of_another_kind_is_left_to_its_own_coordinator():
    """Its end is not ours to write, and the groups behind it are looked at all the same."""
    desk = desk_of()
    desk.shard.groups.add(ShareOrStreamsGroup(GroupId("share"), GroupType.SHARE))
    desk.shard.event_log.begin(desk.shard.groups)
    stored(desk)
    desk.wait(MINUTE + CHECK)
    assert [group.id for group in desk.shard.groups] == ["share"]
    assert fetched(desk, wanted=[FIRST]) == {FIRST: NOTHING}
