# SPDX-License-Identifier: Apache-2.0
"""A classic group with members becomes a consumer group."""

import pytest
from tests.coordinator.classics import QUICK, commit, heartbeat, join, leave, newcomer, sync
from tests.coordinator.consumers import Consumer, beat, given, kinds
from tests.coordinator.desk import Desk, topics
from tests.coordinator.mixed import Classic, assigned, classic_group, owners, subscribed, together
from tests.coordinator.test_causes import of_epochs

from kohort.coordinator.classic import timers as classic_timers
from kohort.coordinator.consumer import timers
from kohort.errors import ErrorCode
from kohort.records.causes import Cause
from kohort.terms import GroupState, GroupType
from kohort.wire.messages.list_groups import ListGroupsRequest

ALL = {"orders": [0, 1, 2, 3]}


def upgraded(**fields):
    """A classic group of one, a consumer's answer, and the records of that step."""
    desk = Desk(**QUICK)
    (classic,) = classic_group(desk, 1, **fields)
    desk.written()
    answer = beat(desk, "new", 0)
    return desk, classic, answer


def refusal(desk):
    answer = beat(desk, "new", 0)
    assert answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert desk.shard.groups.classic("g") is not None
    before = "Cannot upgrade classic group g to consumer group because "
    assert answer.error_message.startswith(before)
    return answer.error_message.removeprefix(before)


def given_to(desk, assignment, metadata=None, protocol_type="consumer"):
    """A classic group of one whose leader has given itself these bytes."""
    protocols = {"range": subscribed() if metadata is None else metadata}
    member, _ = newcomer(desk, protocols=protocols, protocol_type=protocol_type)
    sync(desk, member, 1, {member: assignment}, protocol_type=protocol_type)
    return member


def test_the_first_consumer_converts_the_group():
    """K848-116, K848-117: what the generation was is the epoch, and everybody keeps what it had;
    then the joining member makes the next one.
    """
    desk, classic, answer = upgraded()
    assert (answer.error_code, answer.member_epoch, given(answer)) == (0, 2, {})
    group = desk.shard.groups.consumer("g")
    assert (group.group_epoch, group.target_epoch) == (2, 2)
    member = group.members[classic.id]
    assert (member.epoch, member.previous_epoch, member.classic is not None) == (1, 1, True)
    assert list(member.assigned.values()) == [dict.fromkeys(range(4), 1)]


def test_the_records_are_those_of_upstream_and_one_batch():
    desk, *_ = upgraded()
    assert kinds(desk.written()) == [
        *("-classic", "member", "epoch", "target", "target epoch", "current"),
        *("member", "epoch", "target", "target", "target epoch", "current"),
    ]
    *_, last = desk._batches.read(desk._batches.start, 1 << 30)
    assert int.from_bytes(last[57:61]) == 12


def test_a_restart_brings_back_what_the_step_has_made():
    desk, *_ = upgraded()
    before = vars_of(desk)
    desk.restart()
    assert vars_of(desk) == before


def vars_of(desk):
    group = desk.shard.groups.consumer("g")
    names = ("group_epoch", "target_epoch", "members", "targets", "held", "metadata_hash")
    return [getattr(group, name) for name in names]


def test_the_log_says_why():
    desk, *_ = upgraded()
    why, *_ = of_epochs(desk)
    assert [one.cause for one in why] == [Cause.MIGRATION, Cause.JOIN]


@pytest.mark.parametrize(
    ("policy", "converts"),
    [("disabled", False), ("upgrade", True), ("downgrade", False), ("bidirectional", True)],
)
def test_the_policy_decides(policy, converts):
    """K848-117."""
    desk = Desk(**QUICK, group_consumer_migration_policy=policy)
    classic_group(desk, 1)
    if converts:
        assert beat(desk, "new", 0).error_code == 0
    else:
        assert refusal(desk) == "online upgrade is disabled."


def test_a_group_of_another_protocol_type_is_no_consumer_group():
    desk = Desk(**QUICK)
    given_to(desk, b"", protocol_type="connect")
    assert refusal(desk) == "the group does not use the consumer embedded protocol."


def test_a_group_above_the_limit_of_consumer_groups_stays_classic():
    desk = Desk(**QUICK, group_consumer_max_size=1)
    classic_group(desk, 2)
    assert refusal(desk) == "the group size exceeds the consumer group maximum size."


def test_the_joining_member_must_find_room_too():
    desk = Desk(**QUICK, group_consumer_max_size=1)
    classic_group(desk, 1)
    answer = beat(desk, "new", 0)
    assert answer.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert desk.shard.groups.classic("g").state is GroupState.STABLE


@pytest.mark.parametrize(
    ("metadata", "assignment"),
    [
        (b"", b""),
        (b"\0\1\0\0\0\1", b""),
        (b"\xff\xff" + subscribed()[2:], b""),
        (subscribed(), b"\0"),
        (subscribed(), assigned(ALL)[:-3]),
        (subscribed(), b"\x80" + assigned(ALL)[1:]),
    ],
)
def test_bytes_that_lie_refuse_the_upgrade(metadata, assignment):
    desk = Desk(**QUICK)
    given_to(desk, assignment, metadata)
    assert refusal(desk) == "the embedded consumer protocol is malformed."


def test_user_data_of_an_assignor_would_be_lost():
    """That of a subscription is kept with the member."""
    desk = Desk(**QUICK)
    given_to(desk, assigned(ALL, user_data=b"custom"))
    assert refusal(desk).startswith("an unsupported custom assignor is in use.")
    other = Desk(**QUICK)
    said = subscribed(user_data=b"mine")
    member = given_to(other, assigned(ALL), said)
    assert beat(other, "new", 0).error_code == 0
    kept = other.shard.groups.consumer("g").members[member].classic
    assert [one.metadata for one in kept.supported_protocols] == [said]


@pytest.mark.parametrize("name", ["sticky", "cooperative-sticky"])
def test_user_data_that_a_leader_hands_back_is_no_assignor_of_somebodys_own(name):
    """The leader of librdkafka does that for its sticky assignors, and upstream refuses it."""
    desk = Desk(**QUICK)
    member, _ = newcomer(desk, protocols={name: subscribed(user_data=b"mine")})
    handed_back = assigned(ALL, user_data=b"mine")
    sync(desk, member, 1, {member: handed_back}, protocol_name=name)
    assert beat(desk, "new", 0).error_code == 0


def test_an_empty_assignment_is_fine():
    desk = Desk(**QUICK)
    member = given_to(desk, b"")
    assert beat(desk, "new", 0).error_code == 0
    assert desk.shard.groups.consumer("g").members[member].assigned == {}


def test_what_does_not_exist_is_left_out_and_nothing_has_two_owners():
    """A leader may say anything."""
    desk = Desk(**QUICK)
    first, _ = newcomer(desk, protocols={"range": subscribed()})
    second, _ = newcomer(desk, protocols={"range": subscribed()})
    again = join(desk, first, protocols={"range": subscribed()})
    assert again.answer.generation_id == 2
    lies = assigned({"orders": [3, 0, 0, 9, -1], "nowhere": [0]})
    sync(desk, again.answer.leader, 2, {first: lies, second: lies})
    assert beat(desk, "new", 0).error_code == 0
    members = desk.shard.groups.consumer("g").members
    had = [
        sorted(index for held in one.assigned.values() for index in held)
        for one in members.values()
    ]
    assert sorted(had) == [[], [0, 3], [1]]  # the new member has what nobody has


def test_parked_joins_are_told_to_join_again_and_their_members_stay():
    desk = Desk(**QUICK)
    (leader,) = classic_group(desk, 1)
    late, parked = newcomer(desk, protocols={"range": subscribed()})
    assert parked.answer is None
    assert beat(desk, "new", 0).error_code == 0
    assert parked.answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert set(desk.shard.groups.consumer("g").members) == {leader.id, late, "new"}


def test_a_parked_static_member_is_told_the_id_that_it_has_in_the_group():
    """K848-118: it joined without one, and would come back as a stranger."""
    desk = Desk(**QUICK)
    classic_group(desk, 1)
    parked = join(desk, protocols={"range": subscribed()}, group_instance_id="i")
    assert beat(desk, "new", 0).error_code == 0
    members = desk.shard.groups.consumer("g").members
    assert parked.answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert parked.answer.member_id == next(one.id for one in members.values() if one.instance_id)


def test_a_rebalance_that_was_under_way_is_made_up_for():
    """K848-116: the member that goes over reads what it read before, so it does not raise the epoch
    by itself, and what the other one had would be nobody's.
    """
    desk = Desk(**QUICK)
    first, second = classic_group(desk, 2)
    leave(desk, second.id)
    assert desk.shard.groups.classic("g").state is GroupState.PREPARING_REBALANCE
    back = Consumer(desk, first.id).join()
    assert back.beat().owned == ALL


def test_a_static_member_that_takes_over_in_a_rebalance_makes_up_for_it():
    """K848-116."""
    desk = Desk(**QUICK)
    first, second = classic_group(desk, 1, group_instance_id="i")[0], Classic(desk).join()
    together(desk, first, second)
    leave(desk, second.id)
    assert desk.shard.groups.classic("g").state is GroupState.PREPARING_REBALANCE
    back = Consumer(desk, "new", instance_id="i").join()
    assert back.beat().owned == ALL


def test_parked_syncs_are_told_to_join_again():
    """The leader has not assigned yet, so the joining member gets its share at once."""
    desk = Desk(**QUICK)
    first, _ = newcomer(desk, protocols={"range": subscribed()})
    second, _ = newcomer(desk, protocols={"range": subscribed()})
    join(desk, first, protocols={"range": subscribed()})
    group = desk.shard.groups.classic("g")
    follower = next(one for one in (first, second) if one != group.leader)
    parked = sync(desk, follower, 2)
    assert parked.answer is None
    answer = beat(desk, "new", 0)
    assert parked.answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert (answer.member_epoch, len(given(answer)["orders"])) == (3, 1)
    late = sync(desk, group.leader, 2, {first: assigned(ALL)})
    assert late.answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS


def test_what_a_cooperative_member_goes_on_reading_is_not_given_away():
    """Its assignment was voided by a rebalance that another one followed; it reads on meanwhile."""
    desk = Desk(**QUICK)
    (first,) = classic_group(desk, 1, eager=False)
    second = Classic(desk, eager=False).join()
    first.beat()
    second.beat()
    assert desk.shard.groups.classic("g").state is GroupState.COMPLETING_REBALANCE
    leave(desk, second.id)
    assert desk.shard.groups.classic("g").members[first.id].assignment == b""
    assert first.owned
    new = Consumer(desk, "new").join()
    owners([first, new])
    together(desk, first, new)


def test_what_a_cooperative_member_is_about_to_give_up_is_not_given_away():
    """KIP-429 and K848-118: it reads on until it has let go, and joins again to say so. The group
    at rest does not show that; what it said when it joined does.
    """
    desk = Desk(**QUICK)
    first, _ = newcomer(desk, protocols={"range": subscribed()})
    sync(desk, first, 1, {first: assigned(ALL)})
    second, _ = newcomer(desk, protocols={"range": subscribed()})
    join(desk, first, protocols={"range": subscribed(owned=ALL)})
    group = desk.shard.groups.classic("g")
    mine = {"orders": [0, 1]}
    sync(desk, group.leader, 2, {first: assigned(mine), second: b""})
    sync(desk, second if group.leader == first else first, 2)
    assert group.state is GroupState.STABLE
    answer = beat(desk, "new", 0)
    assert given(answer) == {}
    upgraded_group = desk.shard.groups.consumer("g")
    member = upgraded_group.members[first]
    assert list(member.revoking.values()) == [dict.fromkeys([2, 3], 2)]
    assert given(beat(desk, "new", answer.member_epoch)) is None
    assert heartbeat(desk, first, 2) == ErrorCode.REBALANCE_IN_PROGRESS
    join(desk, first, protocols={"range": subscribed(owned=mine)})
    got = given(beat(desk, "new", answer.member_epoch))
    assert set(got["orders"]) <= {2, 3}
    assert got["orders"]


def test_a_group_in_its_initial_delay_is_upgraded_to_the_first_epoch():
    desk = Desk()
    member, parked = newcomer(desk, protocols={"range": subscribed()})
    assert beat(desk, "new", 0).member_epoch == 2
    assert parked.answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert desk.shard.groups.consumer("g").members[member].epoch == 1
    desk.wait(4_000)
    assert desk.shard.groups.consumer("g") is not None


def test_deadlines_of_the_classic_group_end_and_sessions_go_on():
    desk, classic, _ = upgraded(session_timeout_ms=10_000)
    kinds_of = {key[0] for key in desk.shard.deadlines._deadlines if "g" in key}
    assert classic_timers.SESSION not in kinds_of
    key = (timers.SESSION, "g", classic.id)
    assert desk.shard.deadlines.at(key) == desk.now + 10_000
    desk.wait(10_001)
    assert list(desk.shard.groups.consumer("g").members) == ["new"]


def test_commits_and_heartbeats_of_the_generation_go_on():
    """K848-116: offsets of before are there, and those of now are taken, of old clients too."""
    desk = Desk(**QUICK)
    (classic,) = classic_group(desk, 1)
    member = {"member_id": classic.id, "generation_id_or_member_epoch": 1}
    assert commit(desk, {("orders", 0): 3}, **member) == {("orders", 0): 0}
    beat(desk, "new", 0)
    assert desk.shard.offsets.holds("g", "orders", 0)
    assert commit(desk, {("orders", 0): 4}, version=8, **member) == {("orders", 0): 0}
    member["generation_id_or_member_epoch"] = 9
    code = ErrorCode.ILLEGAL_GENERATION
    assert commit(desk, {("orders", 0): 4}, version=8, **member) == {("orders", 0): code}
    assert heartbeat(desk, classic.id, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    assert heartbeat(desk, classic.id, 77) == ErrorCode.ILLEGAL_GENERATION


def test_a_member_may_go_over_under_its_own_id():
    """Nobody has to rebalance for that."""
    desk = Desk(**QUICK)
    (classic,) = classic_group(desk, 1)
    answer = beat(desk, classic.id, 0)
    assert (answer.error_code, answer.member_epoch, given(answer)) == (0, 1, ALL)
    group = desk.shard.groups.consumer("g")
    assert (group.state, group.classic_members) == (GroupState.STABLE, 0)
    assert heartbeat(desk, classic.id, 1) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_member_is_taken_over_without_a_rebalance():
    """Its successor of the other protocol has what it had, under the epoch that was the
    generation (K848-107).
    """
    desk = Desk(**QUICK)
    (classic,) = classic_group(desk, 1, group_instance_id="i")
    answer = beat(desk, "new", 0, instance_id="i")
    assert (answer.error_code, answer.member_epoch, given(answer)) == (0, 1, ALL)
    group = desk.shard.groups.consumer("g")
    assert (list(group.members), group.state) == (["new"], GroupState.STABLE)
    code = heartbeat(desk, classic.id, 1, group_instance_id="i")
    assert code == ErrorCode.FENCED_INSTANCE_ID
    desk.restart()
    assert list(desk.shard.groups.consumer("g").members) == ["new"]
    desk.wait(20_000)
    assert list(desk.shard.groups.consumer("g").members) == ["new"]


@pytest.mark.parametrize("eager", [True, False])
def test_a_rolling_upgrade_goes_member_by_member(eager):
    """K848-116, K848-117: in each step every partition is read, by one member at most."""
    desk = Desk(**QUICK, known=topics(orders=8))
    classics = classic_group(desk, 4, eager=eager)
    consumers = []
    while classics:
        old = classics.pop(0)
        leave(desk, old.id)
        consumers.append(Consumer(desk, f"new-{len(consumers)}").join())
        together(desk, *classics, *consumers)
    group = desk.shard.groups.consumer("g")
    assert (group.classic_members, len(group.members)) == (0, 4)


def test_a_conversion_that_one_batch_cannot_hold_is_refused():
    """Half of it in the log would be another group."""
    desk = Desk(**QUICK)
    classic_group(desk, 3)
    desk.driver.limit_bytes = lambda: 700
    answer = beat(desk, "new", 0)
    assert answer.error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert desk.shard.groups.classic("g").state is GroupState.STABLE
    desk.driver.limit_bytes = lambda: 1 << 20
    assert beat(desk, "new", 0).error_code == 0


def test_other_groups_go_on():
    desk = Desk(**QUICK)
    classic_group(desk, 1)
    member = join(desk, group_id="other").answer.member_id
    parked = join(desk, member, group_id="other")
    assert parked.answer.generation_id == 1
    beat(desk, "new", 0)
    other = desk.shard.groups.classic("other")
    assert other.state is GroupState.COMPLETING_REBALANCE
    listed = desk.told(ListGroupsRequest(), 5).groups
    assert {one.group_id: one.group_type for one in listed} == {
        "g": GroupType.CONSUMER,
        "other": GroupType.CLASSIC,
    }


def test_a_conversion_that_goes_on_at_once_is_one_rebalance():
    desk, _, _ = upgraded()
    assert desk.shard.counters.group_epochs == 1
