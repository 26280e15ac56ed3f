# SPDX-License-Identifier: Apache-2.0
"""Members that compute, beside members of the classic protocol and on the way from there."""

import pytest
from tests.coordinator.assigning import Assigner, group_of, offer, part, share
from tests.coordinator.classics import QUICK, newcomer, sync
from tests.coordinator.consumers import beat
from tests.coordinator.desk import Desk, topic_id
from tests.coordinator.mixed import Classic, assigned, subscribed

from kohort.coordinator.consumer import embedded
from kohort.coordinator.consumer.target import Attachment
from kohort.errors import ErrorCode
from kohort.records.consumer_protocol import decode_assignment
from kohort.sim.checkers.replay import differences
from kohort.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest

ORDERS = topic_id("orders")


class Custom(Classic):
    """A classic client with an assignor of its own, which has data of its own."""

    def __init__(self, desk, data=b"said by old", **fields):
        super().__init__(desk, "custom", **fields)
        self.data, self.told = data, None

    def join(self):
        self.owned = {}
        metadata = subscribed(*self.topics, user_data=self.data)
        from tests.coordinator.classics import join_request

        request = join_request(self.id, protocols={"custom": metadata}, **self.fields)
        self.joining, self.syncing = self.desk.ask(request, self.version), None
        return self.go_on()

    def _synced(self):
        if self.syncing.answer.error_code == 0 and self.syncing.answer.assignment:
            self.told = decode_assignment(self.syncing.answer.assignment).user_data
        super()._synced()

    def _assignments(self, metadata):
        (member,) = metadata
        return {member: assigned({"orders": [0, 1, 2, 3]}, user_data=b"given by old")}


def old_group(data=b"said by old"):
    desk = Desk(**QUICK)
    one = Custom(desk, data).join()
    for _ in range(3):
        one.beat()
    assert desk.shard.groups.classic("g") is not None
    assert one.told == b"given by old"
    return desk, one


def test_what_the_old_assignor_has_written_is_handed_on_with_version_minus_one():
    """K848-119."""
    desk, old = old_group()
    new = Assigner(desk, "new", offer("custom", -1, 2, version=1, metadata=b"said by new")).join()
    assert new.asked
    prepared = {one.member_id: one for one in new.prepare().members}
    said = prepared[old.id].assignor
    assert (said.metadata_version, said.metadata_bytes) == (-1, b"said by old")
    assert prepared["new"].assignor.metadata_bytes == b"said by new"
    kept = Attachment(0, -1, b"given by old", "custom")
    assert group_of(desk).targets[old.id].attachment == kept
    assert group_of(desk).members[old.id].attachment == kept
    assert list(differences(desk.shard, desk.beside().shard)) == []


def test_the_new_assignor_answers_so_that_the_old_one_understands():
    """K848-119, K848-120: with the version -1, and bytes whose first ones tell the old version."""
    desk, old = old_group()
    new = Assigner(desk, "new", offer("custom", -1, 2)).join()
    new.compute(
        part(old.id, {"orders": [0, 1]}, b"\0\1old style", -1),
        part("new", {"orders": [2, 3]}, b"new style", 2),
    )
    for _ in range(6):
        old.beat()
        new.beat()
    assert (old.told, old.owned) == (b"\0\1old style", {"orders": [0, 1]})
    assert (new.attachment.metadata_bytes, new.owned) == (b"new style", {"orders": [2, 3]})
    assert new.attachment.metadata_version == 2


def test_a_classic_member_stays_with_what_it_has_while_another_member_computes():
    """It would be told to join again as soon as it has joined; then it hears of the result."""
    desk, old = old_group()
    new = Assigner(desk, "new", offer("custom", -1, 2)).join()
    for _ in range(3):
        old.beat()
        new.beat()
        assert new.asked
    assert (old.generation, old.owned) == (1, {"orders": [0, 1, 2, 3]})
    new.compute(*share(new.prepare(), version=-1))
    for _ in range(6):
        old.beat()
        new.beat()
    assert len(old.owned["orders"]) == len(new.owned["orders"]) == 2


def test_what_a_classic_member_says_is_read_when_it_joins_and_not_each_time_that_somebody_asks(
    monkeypatch,
):
    """It may name very many topics: to describe a group of such members took seconds."""
    desk, old = old_group()
    new = Assigner(desk, "new", offer("custom", -1, 2)).join()
    read = []
    subscription = embedded.subscription
    monkeypatch.setattr(
        embedded, "subscription", lambda said: read.append(said) or subscription(said)
    )
    new.compute(*share(new.prepare(), version=-1))
    desk.told(ConsumerGroupDescribeRequest(group_ids=["g"]), 1)
    other = Assigner(desk, "other", offer("custom", -1, 2)).join()
    for _ in range(6):
        new.beat()
        other.beat()
    assert read == []
    old.join()
    assert 0 < len(read) <= 4
    desk.told(ConsumerGroupDescribeRequest(group_ids=["g"]), 1)
    assert len(read) <= 4


def test_a_member_that_never_delivers_does_not_keep_classic_members_joining():
    desk, old = old_group()
    new = Assigner(desk, "new", offer("custom", -1, 2), rebalance_timeout_ms=20_000).join()
    for _ in range(30):
        desk.wait(1000)
        old.beat()
        new.beat()
    assert len(old.owned["orders"]) == len(new.owned["orders"]) == 2


def test_a_classic_member_cannot_be_given_what_it_does_not_read():
    """K848-119."""
    desk, old = old_group()
    new = Assigner(desk, "new", offer("custom", -1, 2)).join()
    prepared = new.prepare()
    answer = new.install(prepared.group_epoch, part(old.id, {}, b"new style", 2))
    assert answer.error_code == ErrorCode.INVALID_ASSIGNMENT
    assert "reads metadata of versions -1 to -1, not 2" in answer.error_message


def test_who_does_not_read_what_the_old_assignor_writes_is_refused():
    """K848-121."""
    desk, _ = old_group()
    answer = beat(desk, "new", 0, client_assignors=[offer("custom", 0, 2)])
    assert answer.error_code == ErrorCode.UNSUPPORTED_ASSIGNOR
    assert "versions 0 to 2" in answer.error_message
    assert desk.shard.groups.classic("g") is not None


def test_who_has_another_assignor_is_refused_as_in_kafka():
    desk, _ = old_group()
    answer = beat(desk, "new", 0, client_assignors=[offer("other")])
    assert answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert "unsupported custom assignor" in answer.error_message


@pytest.mark.parametrize(("low", "accepted"), [(0, False), (-1, True)])
def test_data_in_subscriptions_alone_counts_too(low, accepted):
    """K848-121: the leader has given no data, and the member says some."""
    desk = Desk(**QUICK)
    member, _ = newcomer(desk, protocols={"custom": subscribed(user_data=b"some")})
    sync(desk, member, 1, {member: assigned({"orders": [0]})})
    answer = beat(desk, "new", 0, client_assignors=[offer("custom", low, 2)])
    expected = ErrorCode.COMPUTE_ASSIGNMENT if accepted else ErrorCode.UNSUPPORTED_ASSIGNOR
    assert answer.error_code == expected


def test_without_data_any_version_will_do():
    """K848-121."""
    desk = Desk(**QUICK)
    member, _ = newcomer(desk, protocols={"custom": subscribed()})
    sync(desk, member, 1, {member: assigned({"orders": [0]})})
    new = Assigner(desk, "new", offer("custom", 3, 5)).join()
    assert new.asked
    told = {one.member_id: one.assignor for one in new.prepare().members}
    assert (told[member].metadata_version, told[member].metadata_bytes) == (-1, b"")
    new.compute(part(member, {"orders": [0, 1]}), part("new", {"orders": [2, 3]}, b"m", 4))


def test_a_classic_member_without_the_assignor_makes_the_broker_compute():
    """K848-042, K848-047."""
    desk = Desk(**QUICK)
    old = Classic(desk, "range").join()
    for _ in range(3):
        old.beat()
    new = Assigner(desk, "new", offer("x")).join()
    assert not new.asked
    for _ in range(6):
        old.beat()
        new.beat()
    assert len(old.owned["orders"]) == len(new.owned["orders"]) == 2
    beat(desk, "third", 0, client_assignors=[offer("x")])
    assert group_of(desk).made_by.why == "no assignor is offered by all members"


def test_the_last_computed_assignment_goes_along_on_the_way_back():
    """K848-119: the member that computed goes over to the classic protocol."""
    desk, old = old_group()
    new = Assigner(desk, "new", offer("custom", -1, 2)).join()
    new.compute(part(old.id, {"orders": [0, 1, 2, 3]}, b"for old", -1), part("new", {}))
    for _ in range(6):
        old.beat()
        new.beat()
    assert old.told == b"for old"
    new.take_leave()
    for _ in range(6):
        old.beat()
    assert desk.shard.groups.classic("g") is not None
    assert old.owned == {"orders": [0, 1, 2, 3]}


def test_a_classic_member_in_the_place_of_one_that_computes():
    """K848-058: a static member comes back by the classic protocol, and is not asked."""
    desk = Desk(**QUICK)
    one = Assigner(desk, "a", instance_id="i").join()
    two = Assigner(desk, "b").join()
    one.compute(*share(one.prepare()))
    beat(desk, "a", -2, instance_id="i")
    back = Classic(desk, "range", group_instance_id="i").join()
    for _ in range(8):
        back.beat()
        two.beat()
    assert not two.asked
    assert group_of(desk).offering == 1
    assert len(two.owned["orders"]) == 2
