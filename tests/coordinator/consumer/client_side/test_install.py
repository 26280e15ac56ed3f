# SPDX-License-Identifier: Apache-2.0
"""What becomes of an assignment that a member has computed."""

import pytest
from tests.coordinator.assigning import Assigner, group_of, offer, part, settle, share
from tests.coordinator.consumers import kinds
from tests.coordinator.desk import Desk, topic_id, topics

from kohort.coordinator.consumer.target import Attachment, Target
from kohort.errors import ErrorCode
from kohort.sim.checkers.replay import differences
from kohort.wire.messages.offset_commit import OffsetCommitRequest

ORDERS = topic_id("orders")


def pair(desk, **fields):
    """Two members of a group at rest, and the second is asked since it has new metadata."""
    one, two = Assigner(desk, "a", **fields).join(), Assigner(desk, "b", **fields).join()
    settle(one, two)
    two.beat(client_assignors=[offer(reason=3)])
    assert two.asked
    return one, two


def replayed(desk):
    """A desk that has read the log of another one; both know the same."""
    other = desk.beside()
    assert list(differences(desk.shard, other.shard)) == []
    return other


def test_it_is_durable_and_reconciled_as_any_other():
    """K848-016, K848-060, K848-063, K848-124."""
    desk = Desk()
    one, two = pair(desk)
    desk.written()
    two.compute(part("a", {"orders": [0]}, b"for a", 0), part("b", {"orders": [1, 2, 3]}))
    assert kinds(desk.written()) == ["target", "target", "target epoch"]
    for group in (group_of(desk), group_of(replayed(desk))):
        assert group.targets == {
            "a": Target({ORDERS: (0,)}, Attachment(0, 0, b"for a", "x")),
            "b": Target({ORDERS: (1, 2, 3)}, Attachment(assignor="x")),
        }
        assert (group.group_epoch, group.target_epoch) == (4, 4)
    settle(one, two)
    assert (one.owned, two.owned) == ({"orders": [0]}, {"orders": [1, 2, 3]})
    assert (one.attachment.metadata_bytes, one.attachment.assignor_name) == (b"for a", "x")


def test_how_it_came_about_is_kept():
    """K848-073, K848-124."""
    desk = Desk()
    _, two = pair(desk)
    desk.wait(1234)
    two.compute(*share(two.prepare()))
    for group in (group_of(desk), group_of(replayed(desk))):
        made_by = group.made_by
        assert (made_by.assignor, made_by.member_id) == ("x", "b")
        assert (made_by.reason, made_by.error, made_by.took_ms, made_by.why) == (3, 0, 1234, "")


def test_only_what_has_changed_is_written():
    desk = Desk()
    one, two = pair(desk)
    prepared = two.prepare()
    desk.written()
    before = {
        member.member_id: {
            "orders": [index for part in member.topic_partitions for index in part.partitions]
        }
        for member in prepared.members
    }
    assert two.install(4, part("a", before["a"]), part("b", before["b"], b"new")).error_code == 0
    assert kinds(desk.written()) == ["target", "target epoch"]
    settle(one, two)
    assert two.attachment.metadata_bytes == b"new"


def test_who_is_not_named_gets_nothing():
    """K848-062."""
    desk = Desk()
    one, two = pair(desk)
    two.compute(part("b", {"orders": [3]}))
    settle(one, two)
    assert (one.owned, two.owned) == ({}, {"orders": [3]})


@pytest.mark.parametrize("error", [1, -1, 127, -128])
def test_an_error_reaches_everybody_and_nobody_loses_anything(error):
    """K848-017, K848-019, K848-067."""
    desk = Desk()
    one, two = pair(desk)
    owned = [one.owned, two.owned]
    prepared = two.prepare()
    assert two.install(prepared.group_epoch, part("z", {"x": [0]}), error=error).error_code == 0
    settle(one, two)
    assert [one.owned, two.owned] == owned
    assert [one.attachment.error, two.attachment.error] == [error, error]
    group = group_of(replayed(desk))
    failed = Attachment(error, assignor="x")
    assert {member.attachment for member in group.members.values()} == {failed}
    assert group.made_by.error == error
    assert desk.shard.counters.computations_failed == 1


def test_metadata_stays_with_partitions_after_an_error():
    """K848-067, K848-071."""
    desk = Desk()
    one = Assigner(desk, "a").join()
    one.compute(part("a", {"orders": [0]}, b"kept", 0)).beat()
    one.beat(client_assignors=[offer(reason=1)])
    one.install(one.prepare().group_epoch, error=5)
    one.beat()
    told = one.attachment
    assert (told.error, told.metadata_bytes, one.owned) == (5, b"kept", {"orders": [0]})
    one.beat(client_assignors=[offer(reason=2)])
    one.compute(part("a", {"orders": [0]}, b"kept", 0)).beat()
    assert (one.attachment.error, one.attachment.metadata_bytes) == (0, b"kept")


def test_metadata_comes_with_the_epoch_of_its_partitions():
    """K848-071."""
    desk = Desk()
    one, two = pair(desk)
    one.beat()
    before = one.epoch
    two.compute(part("a", {"orders": [0]}, b"new a"), part("b", {"orders": [1, 2, 3]}, b"new b"))
    keeps = one.owned["orders"]
    one.beat()  # it has to give something up, and is at its epoch still
    assert (one.epoch, one.owned["orders"]) == (before, [index for index in keeps if index == 0])
    assert one.attachment.metadata_bytes == b""
    one.beat()
    assert (one.epoch, one.attachment.metadata_bytes) == (before + 1, b"new a")


WRONG = {
    "unknown member": [part("z", {"orders": [0]})],
    "unknown topic": [part("a", {"nowhere": [0]})],
    "not subscribed": [part("a", {"payments": [0]})],
    "no such partition": [part("a", {"orders": [4]})],
    "twice to one": [part("a", {"orders": [0, 0]})],
    "twice to two": [part("a", {"orders": [0]}), part("b", {"orders": [0]})],
    "a member twice": [part("a", {}), part("a", {})],
    "a version that nobody reads": [part("a", {}, b"m", 7)],
    "ten megabytes": [part("a", {"orders": [0]}, bytes(10_000_000))],
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_one_changes_nothing_and_may_be_put_right(what):
    """K848-062, K848-159."""
    desk = Desk()
    one, two = pair(desk)
    prepared = two.prepare()
    written = len(desk.log)
    answer = two.install(prepared.group_epoch, *WRONG[what])
    assert (answer.error_code, len(desk.log)) == (ErrorCode.INVALID_ASSIGNMENT, written)
    assert answer.error_message
    assert desk.shard.counters.computations_invalid == 1
    assert two.beat().asked
    assert two.install(prepared.group_epoch, *share(prepared)).error_code == 0
    settle(one, two)


def test_what_was_not_prepared_is_refused():
    """K848-148, K848-159."""
    desk = Desk()
    _, two = pair(desk)
    answer = two.install(4, part("a", {}))
    assert answer.error_code == ErrorCode.STALE_MEMBER_EPOCH
    assert answer.error_message == "member b has prepared nothing, request says epoch 4"
    two.prepare()
    for epoch in (3, 5, 0, -1):
        assert two.install(epoch, part("a", {})).error_code == ErrorCode.STALE_MEMBER_EPOCH


def test_it_counts_although_the_group_has_moved_on():
    """K848-066."""
    desk = Desk()
    one, two = pair(desk)
    prepared = two.prepare()
    three = Assigner(desk, "c").join()
    assert not three.asked
    gone = part("a", {"orders": [0]}), part("b", {"orders": [1]})
    assert two.install(prepared.group_epoch, *gone).error_code == 0
    group = group_of(desk)
    assert (group.group_epoch, group.target_epoch) == (5, 4)
    assert "c" not in group.targets
    assert three.beat().asked
    settle(one, two, three)


def test_who_has_left_since_then_is_left_out():
    """K848-066."""
    desk = Desk()
    one, two = pair(desk)
    prepared = two.prepare()
    one.beat()
    one.take_leave()
    assert two.install(prepared.group_epoch, *share(prepared)).error_code == 0
    assert list(group_of(desk).targets) == ["b"]
    replayed(desk)
    settle(two)


def test_an_answer_that_comes_twice_is_taken_once():
    """K848-068."""
    desk = Desk()
    _, two = pair(desk)
    prepared = two.prepare()
    assert two.install(prepared.group_epoch, *share(prepared)).error_code == 0
    written = len(desk.log)
    answer = two.install(prepared.group_epoch, *share(prepared))
    assert (answer.error_code, len(desk.log)) == (ErrorCode.UNKNOWN_MEMBER_ID, written)


def test_commits_go_on_while_somebody_computes():
    """K848-064."""
    desk = Desk(known=topics(orders=1))
    one, two = pair(desk)
    two.prepare()
    for member in (one, two):
        request = OffsetCommitRequest(
            group_id="g", member_id=member.id, generation_id_or_member_epoch=member.epoch, topics=[]
        )
        assert desk.told(request, 9).topics == []
        assert member.beat().epoch == 3


def test_a_hundred_members_and_ten_thousand_partitions():
    desk = Desk(known=topics(orders=10_000))
    first = Assigner(desk, "m-0").join()
    members = [first, *(Assigner(desk, f"m-{number}").join() for number in range(1, 100))]
    assert first.beat().asked
    prepared = first.prepare()
    assert len(prepared.members) == 100
    assert first.install(prepared.group_epoch, *share(prepared)).error_code == 0
    group = group_of(desk)
    assert sum(len(one.partitions[ORDERS]) for one in group.targets.values()) == 10_000
    assert len(group.targets) == len(members)
