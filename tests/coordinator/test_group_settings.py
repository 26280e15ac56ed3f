# SPDX-License-Identifier: Apache-2.0
"""Settings of single groups: what is taken, whom it concerns, and how long it is kept."""

import pytest
from tests.coordinator.classics import commit, join
from tests.coordinator.committed import FIRST
from tests.coordinator.consumers import beat
from tests.coordinator.desk import Desk

from kohort.coordinator.group_settings import (
    AlterGroupSettings,
    DescribeGroupSettings,
    ListConfiguredGroups,
)
from kohort.errors import ApiError, ErrorCode
from kohort.records.codec import Record
from kohort.records.schemas import GroupSetting, GroupSettingsKey, GroupSettingsValue
from kohort.terms import GroupId
from kohort.wire.messages.delete_groups import DeleteGroupsRequest

SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
INTERVAL = "consumer.assignment.interval.ms"
G = GroupId("g")


def alter(desk, group_id="g", *, replaces=False, validate_only=False, **changes):
    """The error's text, empty for none. Names have underscores for dots."""
    named = [(name.replace("_", "."), text) for name, text in changes.items()]
    message = AlterGroupSettings(GroupId(group_id), named, replaces, validate_only)
    answer = desk.told(message, 1)
    if answer.error is not None:
        assert answer.error.code == ErrorCode.INVALID_CONFIG
        return answer.error.message
    return ""


def texts(desk, group_id="g"):
    answer = desk.told(DescribeGroupSettings(GroupId(group_id)), 1)
    assert answer.error is None
    return answer.texts


def delete(desk, group_id="g"):
    (result,) = desk.told(DeleteGroupsRequest(groups_names=[group_id]), 2).results
    return result.error_code


def test_what_is_set_is_told_and_kept_over_a_restart():
    """K848-127, K848-128, K848-131. There need not be a group."""
    desk = Desk()
    assert texts(desk) == {}
    assert (
        alter(desk, consumer_session_timeout_ms=" 50000 ", share_isolation_level="read_committed")
        == ""
    )
    expected = {SESSION: "50000", "share.isolation.level": "read_committed"}
    assert texts(desk) == expected
    assert desk.told(ListConfiguredGroups(), 1).group_ids == ["g"]
    assert len(desk.shard.groups) == 0
    desk.restart()
    assert texts(desk) == expected
    assert not desk.told_lines.warnings
    assert alter(desk, consumer_session_timeout_ms=None, share_isolation_level=None) == ""
    assert desk.log[-1] == Record(GroupSettingsKey(group_id="g"), None)
    desk.restart()
    assert texts(desk) == {}
    assert desk.told(ListConfiguredGroups(), 1).group_ids == []


def test_a_change_is_whole_or_not_at_all():
    desk = Desk()
    assert alter(desk, consumer_session_timeout_ms="50000", consumer_heartbeat_interval_ms="1")
    assert texts(desk) == {}
    assert alter(desk, consumer_session_timeout_ms="50000", validate_only=True) == ""
    assert (texts(desk), desk.log) == ({}, [])
    assert alter(desk, no_such_key=None) == ""
    assert desk.log == [], "nothing has changed"


def test_settings_can_be_replaced_as_a_whole():
    """AlterConfigs takes back what it does not name."""
    desk = Desk()
    alter(desk, consumer_session_timeout_ms="50000", consumer_heartbeat_interval_ms="6000")
    assert alter(desk, consumer_heartbeat_interval_ms="7000", replaces=True) == ""
    assert texts(desk) == {HEARTBEAT: "7000"}
    assert alter(desk, replaces=True) == ""
    assert texts(desk) == {}


def test_what_contradicts_is_refused():
    desk = Desk(
        group_consumer_min_session_timeout_ms=10_000,
        group_consumer_max_heartbeat_interval_ms=20_000,
    )
    refusal = f"{SESSION} must be greater than {HEARTBEAT}"
    changed = {"consumer_session_timeout_ms": "10000", "consumer_heartbeat_interval_ms": "10000"}
    assert alter(desk, **changed) == refusal
    assert alter(desk, consumer_heartbeat_interval_ms="15000") == ""
    assert alter(desk, consumer_session_timeout_ms="15000") == refusal
    assert alter(desk, consumer_session_timeout_ms="15001") == ""
    assert alter(desk, consumer_session_timeout_ms=None) == ""


def test_the_next_answer_and_session_of_a_member_follow():
    """K848-127. Also for a member at rest, whose answers are remembered."""
    desk = Desk(group_consumer_min_session_timeout_ms=6000)
    answer = beat(desk, "m", 0)
    assert answer.heartbeat_interval_ms == 5000
    epoch = answer.member_epoch
    assert beat(desk, "m", epoch).heartbeat_interval_ms == 5000
    alter(desk, consumer_heartbeat_interval_ms="6500", consumer_session_timeout_ms="7000")
    assert beat(desk, "m", epoch).heartbeat_interval_ms == 6500
    desk.wait(6999)
    assert beat(desk, "m", epoch).error_code == 0
    desk.wait(7000)
    assert beat(desk, "m", epoch).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert any("consumer.session.timeout.ms=7000" in line for line in desk.told_lines.lines)


def test_a_change_is_told_also_where_there_is_no_group_yet():
    desk = Desk()
    alter(desk, consumer_session_timeout_ms="50000")
    assert desk.told_lines.lines == ["group g: consumer.session.timeout.ms=50000"]


@pytest.mark.parametrize("restarted", [False, True])
def test_a_group_that_comes_later_has_them(restarted):
    """K848-131."""
    desk = Desk()
    alter(desk, consumer_heartbeat_interval_ms="6500")
    if restarted:
        desk.restart()
    assert beat(desk, "m", 0).heartbeat_interval_ms == 6500
    assert beat(desk, "m", 0, group_id="h").heartbeat_interval_ms == 5000
    desk.restart()
    assert beat(desk, "m", 0).heartbeat_interval_ms == 6500


def test_the_interval_between_assignments_is_the_groups():
    desk = Desk()
    alter(desk, consumer_assignment_interval_ms="1000")
    first = beat(desk, "m", 0)
    second = beat(desk, "n", 0)
    assert second.member_epoch == first.member_epoch, "no new target yet"
    desk.wait(1000)
    assert beat(desk, "n", second.member_epoch).member_epoch == first.member_epoch + 1


def test_they_go_with_their_group_when_it_is_deleted():
    """K848-129."""
    desk = Desk()
    alter(desk, consumer_heartbeat_interval_ms="6500")
    assert delete(desk) == ErrorCode.GROUP_ID_NOT_FOUND
    assert texts(desk) == {HEARTBEAT: "6500"}, "there was no group to delete"
    commit(desk, {FIRST: 1})
    assert delete(desk) == 0
    assert texts(desk) == {}
    desk.restart()
    assert texts(desk) == {}


def test_they_go_with_their_group_when_it_expires():
    """K848-129. One that has no group stays."""
    desk = Desk(offsets_retention_minutes=1, offsets_retention_check_interval_ms=1000)
    alter(desk, consumer_heartbeat_interval_ms="6500")
    alter(desk, "none", consumer_heartbeat_interval_ms="6500")
    commit(desk, {FIRST: 1})
    desk.wait(61_000)
    assert desk.told(ListConfiguredGroups(), 1).group_ids == ["none"]
    desk.restart()
    assert desk.told(ListConfiguredGroups(), 1).group_ids == ["none"]


def test_an_empty_group_that_changes_its_type_keeps_them():
    """K848-129."""
    desk = Desk()
    alter(desk, consumer_heartbeat_interval_ms="6500")
    beat(desk, "m", 0)
    beat(desk, "m", -1)
    join(desk)
    assert desk.shard.groups.classic(G) is not None
    assert texts(desk) == {HEARTBEAT: "6500"}
    assert beat(desk, "n", 0).heartbeat_interval_ms == 6500


def test_narrower_bounds_of_a_later_start_hold_and_are_told():
    desk = Desk()
    alter(desk, consumer_session_timeout_ms="60000", consumer_heartbeat_interval_ms="15000")
    alter(desk, "h", consumer_assignment_interval_ms="15000")
    later = desk.beside(
        group_consumer_min_session_timeout_ms=6000,
        group_consumer_session_timeout_ms=10_000,
        group_consumer_max_session_timeout_ms=10_000,
        group_consumer_max_assignment_interval_ms=500,
    )
    settings = later.shard.settings_of(G)
    assert settings.session_timeout_ms == 10_000
    assert settings.heartbeat_interval_ms == 9999, "there is time for a heartbeat in a session"
    assert later.shard.settings_of(GroupId("h")).assignment_interval_ms == 500
    assert texts(later) == {SESSION: "60000", HEARTBEAT: "15000"}
    first, second, third = later.told_lines.warnings
    assert "group g has consumer.session.timeout.ms=60000, which is kept within the bounds" in first
    assert "group g: consumer.session.timeout.ms must be greater" in second
    assert "group h has consumer.assignment.interval.ms=15000" in third


def test_what_a_later_broker_has_stored_is_told_and_left_aside():
    desk = Desk()
    stored = {HEARTBEAT: "often", "consumer.colour": "blue"}
    value = GroupSettingsValue(
        settings=[GroupSetting(name=name, value=text) for name, text in stored.items()]
    )
    desk.write(Record(GroupSettingsKey(group_id="g"), value), live=False)
    desk.restart()
    assert texts(desk) == stored
    assert desk.shard.settings_of(G).heartbeat_interval_ms == 5000
    assert [line.partition(":")[0] for line in desk.told_lines.warnings] == [
        "group g has consumer.heartbeat.interval.ms=often, which is kept within the bounds",
        "group g has consumer.colour=blue, which has no effect",
    ]
    assert alter(desk, consumer_session_timeout_ms="50000") == "", "others can still be changed"


def test_a_refusal_says_why():
    error = ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "not yet")
    for message in (
        DescribeGroupSettings(G),
        AlterGroupSettings(G, []),
        ListConfiguredGroups(),
    ):
        assert message.refused(error).error is error
