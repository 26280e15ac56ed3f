# SPDX-License-Identifier: Apache-2.0
"""A log without room: who might write is refused and nothing is changed, those who read are served,
and all that waits goes on once there is room.
"""

import errno

import pytest
from tests.server.desk import Desk
from tests.server.full_disk import commit, groups
from tests.server.transactional import Producing

from kohort.errors import ErrorCode
from kohort.runtime.driver import RETRY_MS
from kohort.sim.disk import SimulatedFiles
from kohort.transactions.transaction import TransactionState
from kohort.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kohort.wire.messages.describe_groups import DescribeGroupsRequest
from kohort.wire.messages.end_txn import EndTxnRequest
from kohort.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kohort.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kohort.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

GROUPS = "/data/__consumer_offsets-0"
TRANSACTIONS = "/data/__transaction_state-0"


def desk_on(files, partitions=1, **more):
    return Desk(
        files=files,
        offsets_topic_num_partitions=str(partitions),
        transaction_state_log_num_partitions="1",
        group_initial_rebalance_delay_ms="0",
        **more,
    )


def joined(desk, member_id, instance_id=None):
    protocol = JoinGroupRequestProtocol(name="range", metadata=b"m")
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id=member_id,
        group_instance_id=instance_id,
        protocol_type="consumer",
        protocols=[protocol],
    )
    return desk.ask(request, 5)


def alone(desk, instance_id=None):
    """The one member of a classic group at rest."""
    first = joined(desk, "", instance_id)
    member_id = first.member_id
    answer = first if instance_id else joined(desk, member_id)
    part = SyncGroupRequestAssignment(member_id=member_id, assignment=b"a")
    request = SyncGroupRequest(
        group_id="g",
        generation_id=answer.generation_id,
        member_id=member_id,
        group_instance_id=instance_id,
        protocol_type="consumer",
        protocol_name="range",
        assignments=[part],
    )
    assert desk.ask(request, 5).error_code == 0
    return member_id


def described(desk):
    (group,) = desk.ask(DescribeGroupsRequest(groups=["g"]), 5).groups
    return group.group_state, [member.member_id for member in group.members]


def leave(desk, member_id):
    request = LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id=member_id)])
    return desk.ask(request, 5).error_code


def take_place(desk, _member_id):
    return joined(desk, "", "static").error_code


@pytest.mark.parametrize(
    ("instance_id", "change"), [(None, leave), ("static", take_place)], ids=["leave", "static"]
)
def test_a_change_of_a_classic_group_that_is_refused_has_changed_nothing(instance_id, change):
    files = SimulatedFiles()
    desk = desk_on(files)
    desk.create("t")
    member_id = alone(desk, instance_id)
    files.room_bytes = 0
    assert commit(desk, "other") == ErrorCode.NOT_COORDINATOR
    desk.wait(0)
    assert change(desk, member_id) == ErrorCode.NOT_COORDINATOR
    assert described(desk) == ("Stable", [member_id])
    files.room_bytes = None
    desk.wait(RETRY_MS)
    assert described(desk) == ("Stable", [member_id])
    assert change(desk, member_id) == 0
    assert described(desk) == described(desk_on(files.after_crash(), now=desk.now))


def test_sessions_stand_still_where_heartbeats_are_refused():
    files = SimulatedFiles()
    desk = desk_on(files)
    desk.create("t")
    member_id = alone(desk)
    files.room_bytes = 0
    assert commit(desk, "other") == ErrorCode.NOT_COORDINATOR
    desk.wait(60_000)
    assert described(desk) == ("Stable", [member_id])
    files.room_bytes = None
    desk.wait(RETRY_MS)
    desk.wait(8000)
    assert described(desk) == ("Stable", [member_id])
    desk.wait(4000)
    assert described(desk) == ("Empty", [])


def ended(desk, producer):
    request = EndTxnRequest(
        transactional_id=producer.name,
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        committed=True,
    )
    return desk.ask(request, 5).error_code


def state_of(desk, producer):
    return desk.cluster.transaction_coordinators[0].machine.transactions[producer.name].state


@pytest.fixture
def transactions():
    """A desk, an open transaction, and another producer."""
    desk = desk_on(SimulatedFiles())
    desk.create("orders")
    one, other = Producing(desk, "one"), Producing(desk, "other")
    one.write(b"v")
    return desk, one, other


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC])
@pytest.mark.parametrize("markers_fail", [False, True])
def test_a_decided_transaction_is_completed(transactions, code, markers_fail):
    """Its markers come back while nothing can be written of them."""
    desk, one, other = transactions
    desk.files.faults["write", "/data/orders-0"] = code
    ended(desk, one)
    desk.files.faults["write", TRANSACTIONS] = code
    assert other.init() != 0
    if not markers_fail:
        del desk.files.faults["write", "/data/orders-0"]
    desk.wait(0)
    desk.wait(3 * RETRY_MS)
    assert state_of(desk, one) is TransactionState.PREPARE_COMMIT
    desk.files.faults.clear()
    desk.wait(2 * RETRY_MS)
    assert state_of(desk, one) is TransactionState.COMPLETE_COMMIT
    assert one.init() == 0


def test_the_transaction_of_a_producer_that_has_gone_is_ended_in_time(transactions):
    desk, one, other = transactions
    desk.files.faults["write", TRANSACTIONS] = errno.EIO
    assert other.init() != 0
    desk.wait(0)
    assert ended(desk, one) == ErrorCode.NOT_COORDINATOR
    assert state_of(desk, one) is TransactionState.ONGOING
    desk.files.faults.clear()
    desk.wait(RETRY_MS)
    assert state_of(desk, one) is TransactionState.ONGOING
    desk.wait(61_000)
    assert state_of(desk, one) is TransactionState.COMPLETE_ABORT


@pytest.mark.parametrize("restarted", [False, True])
def test_a_start_that_has_to_write_serves_those_who_read(restarted):
    """The offsets of a topic that has been made anew are to be deleted."""
    files = SimulatedFiles()
    desk = desk_on(files, 2)
    names = {f"g{number}" for number in range(6)}
    for topic in ("t", "u"):
        desk.create(topic)
        assert {commit(desk, name, topic) for name in names} == {0}
    files.faults["write", GROUPS] = errno.ENOSPC
    request = DeleteTopicsRequest(timeout_ms=1000, topics=[DeleteTopicState(name="t")])
    assert desk.ask(request, 6).responses[0].error_code == 0
    desk.wait(0)
    desk.create("t")
    if restarted:
        files = files.after_crash()
        files.faults["write", GROUPS] = errno.ENOSPC
        desk = desk_on(files, 2, now=desk.now)
    seen = []
    for _ in range(8):
        desk.wait(400)
        seen.append(groups(desk))
    whole, loading = (0, names), (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, set())
    assert all(one in (whole, loading) for one in seen), seen
    assert seen[-1] == (0, names)
    files.faults.clear()
    desk.wait(RETRY_MS)
    desk.wait(0)
    after = desk_on(files.after_crash(), 2, now=desk.now)
    for one in (desk, after):
        committed = one.cluster.drivers[0].machine.offsets.committed.values()
        assert all("t" not in topics for topics in committed)
    assert {commit(desk, name) for name in names} == {0}
