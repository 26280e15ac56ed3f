# SPDX-License-Identifier: Apache-2.0
"""What is kept for those who list groups, and when it goes."""

from random import Random

from tests.coordinator.classics import QUICK, commit, heartbeat, leave, newcomer, stable
from tests.coordinator.desk import START, Desk
from tests.python_calls import python_calls

from kohort.coordinator.classic.group import ClassicGroup
from kohort.coordinator.groups import MOST_GONE, Groups
from kohort.coordinator.listing import EVERYTHING, MOST_FILTERS, ShardListings
from kohort.coordinator.listing import listed as listed_group
from kohort.terms import GroupId, GroupState
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


def test_groups_that_change_between_two_listings_are_listed_as_a_walk_finds_them():
    """Groups come, go, come back, and change; now and then somebody lists them."""
    random = Random(5)
    groups, listings = Groups(), ShardListings()
    for _ in range(3000):
        group_id = GroupId(f"g-{random.randrange(30)}")
        group = groups.classic(group_id)
        deed = random.randrange(5)
        if deed == 0:
            groups.remove(group_id)
        elif group is None or deed == 1:
            groups.add(ClassicGroup(group_id, START))
        else:
            group.state = random.choice(list(GroupState)[:3])
            group.changed()
        if not random.randrange(7):
            states = random.choice([EVERYTHING, {"empty"}, {"empty", "stable"}])
            found = listings.of(groups, frozenset(states), EVERYTHING)
            walk = [listed_group(one) for one in groups]
            if states:
                walk = [one for one in walk if one.group_state.lower() in states]
                assert sorted(walk, key=by_id) == sorted(found, key=by_id)
            else:
                assert found == walk


def by_id(group):
    return group.group_id


def test_a_listing_goes_only_when_a_group_in_it_is_listed_otherwise():
    desk = Desk(**QUICK)
    stable(desk)
    commit(desk, {("orders", 0): 1}, group_id="other")
    empty, all_states = listed(desk, "Empty"), listed(desk)

    newcomer(desk)
    assert listed(desk, "Empty") is empty
    assert listed(desk) is not all_states

    rebalancing = listed(desk, "PreparingRebalance")
    newcomer(desk)  # the group is changed and listed as before
    assert listed(desk, "PreparingRebalance") is rebalancing


def test_a_rare_state_costs_no_walk():
    """Calls do not grow with the number of groups of other states, also while these change."""
    groups, listings = Groups(), ShardListings()
    groups.add(rare := ClassicGroup(GroupId("rare"), START))
    rare.state = GroupState.STABLE

    def cost() -> int:
        assert len(listings.of(groups, frozenset({"stable"}), EVERYTHING)) == 1
        changed = next(iter(groups))
        changed.changed()
        return python_calls(lambda: listings.of(groups, frozenset({"stable"}), EVERYTHING))

    few = cost()
    for number in range(2000):
        groups.add(ClassicGroup(GroupId(f"g-{number}"), START))
    assert cost() <= few


def test_changes_that_nobody_asks_for_are_bounded():
    groups = Groups()
    for number in range(3 * MOST_GONE):
        group_id = GroupId(f"g-{number}")
        groups.add(ClassicGroup(group_id, START))
        groups.remove(group_id)
    assert len(groups.changes) <= MOST_GONE
    listings = ShardListings()
    groups.add(ClassicGroup(GroupId("g"), START))
    assert [one.group_id for one in listings.of(groups, EVERYTHING, EVERYTHING)] == ["g"]
    for number in range(3 * MOST_GONE):
        groups.remove(GroupId("g"))
        groups.remove(GroupId(f"h-{number}"))
        groups.add(ClassicGroup(GroupId(f"h-{number + 1}"), START))
    assert len(groups.changes) <= MOST_GONE + 1
    last = [f"h-{3 * MOST_GONE}"]
    assert [one.group_id for one in listings.of(groups, EVERYTHING, EVERYTHING)] == last
