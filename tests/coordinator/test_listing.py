"""What is kept for those who list groups, and when it goes."""

from tests.coordinator.classics import QUICK, commit, heartbeat, leave, newcomer, stable
from tests.coordinator.desk import Desk

from kohort.coordinator.listing import MOST_FILTERS
from kohort.wire.messages.list_groups import ListGroupsRequest


def listed(desk: Desk, *states: str):
    return desk.told(ListGroupsRequest(states_filter=list(states)), 5).groups


def test_groups_that_have_not_changed_are_the_same_objects_again():
    desk = Desk(**QUICK)
    (member,) = stable(desk)
    first = listed(desk)

    assert heartbeat(desk, member, 1) == 0
    commit(desk, {("orders", 0): 1}, member_id=member, generation_id_or_member_epoch=1)

    assert listed(desk) is first
    assert listed(desk, "Stable") is listed(desk, " sTABLE")


def test_a_state_a_protocol_type_and_a_new_group_are_seen_at_once():
    desk = Desk(**QUICK)
    assert listed(desk) == []

    commit(desk, {("orders", 0): 1}, group_id="g")
    assert [(group.group_id, group.protocol_type) for group in listed(desk)] == [("g", "")]

    member, _ = newcomer(desk, protocol_type="connect")
    (group,) = listed(desk)
    assert (group.protocol_type, group.group_state) == ("connect", "CompletingRebalance")

    leave(desk, member)
    (group,) = listed(desk)
    assert (group.protocol_type, group.group_state) == ("connect", "Empty")
    assert listed(desk, "Empty") == [group]


def test_few_filters_are_kept():
    desk = Desk(**QUICK)
    stable(desk)
    for number in range(3 * MOST_FILTERS):
        assert listed(desk, f"no state {number}") == []

    assert len(desk.shard.listings._filtered) <= MOST_FILTERS
