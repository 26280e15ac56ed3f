# SPDX-License-Identifier: Apache-2.0
"""Whatever comes and goes leaves nothing in the memory of a broker: topics, producers, members and
groups of both protocols, transactional ids. A part that remembers each by its name is found here.
"""

import gc
from collections import Counter
from types import FunctionType, MethodType, ModuleType

from tests.observer import RecordingObserver
from tests.server.desk import Desk

from kohort.server.metrics.durations import Durations, Turns
from kohort.sim.disk import SimulatedFiles
from kohort.storage.segment import Segment
from kohort.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kohort.wire.messages.delete_groups import DeleteGroupsRequest
from kohort.wire.messages.delete_topics import DeleteTopicsRequest
from kohort.wire.messages.end_txn import EndTxnRequest
from kohort.wire.messages.init_producer_id import InitProducerIdRequest
from kohort.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kohort.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kohort.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

SETTINGS = {
    "group_initial_rebalance_delay_ms": "0",
    "transactional_id_expiration_ms": "1000",
    "transaction_remove_expired_transaction_cleanup_interval_ms": "1000",
}
BOUNDED = (Durations, Turns)
BY_THE_LOG = (SimulatedFiles, Segment, RecordingObserver)  # what is written, and an index of that
LEFT_OUT = (*BOUNDED, *BY_THE_LOG)
WARM, ROUNDS = 20, 40


def held(*roots):
    """What these hold, however far down, by type; functions and classes hold the whole program."""
    seen, todo, found = set(), list(roots), Counter()
    while todo:
        one = todo.pop()
        if id(one) in seen or isinstance(one, (type, ModuleType, FunctionType, *LEFT_OUT)):
            continue
        seen.add(id(one))
        found[type(one).__qualname__] += 1
        if isinstance(one, MethodType):
            todo.append(one.__self__)
        else:
            todo += gc.get_referents(one)
    return found


def come_and_go(desk, number):
    """One of everything, each with a name that nobody has had."""
    name = f"passing-{number}"
    desk.create(name, partitions=3)
    producer = desk.ask(InitProducerIdRequest(transactional_id=None), 4)
    desk.produce(name, 1, producer_id=producer.producer_id, producer_epoch=0, base_sequence=0)
    writer = desk.ask(InitProducerIdRequest(transactional_id=name), 4)
    ended = EndTxnRequest(
        transactional_id=name, producer_id=writer.producer_id, producer_epoch=0, committed=False
    )
    desk.ask(ended, 4)
    commit_and_leave(desk, name)
    join_and_leave(desk, f"classic-{name}")
    desk.ask(DeleteGroupsRequest(groups_names=[name, f"classic-{name}"]), 2)
    (deleted,) = desk.ask(DeleteTopicsRequest(topic_names=[name], timeout_ms=1000), 5).responses
    assert deleted.error_code == 0
    desk.wait(3000)


def commit_and_leave(desk, name):
    join = ConsumerGroupHeartbeatRequest(
        group_id=name,
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=[name],
        topic_partitions=[],
    )
    joined = desk.ask(join, 1)
    assert joined.error_code == 0
    again = ConsumerGroupHeartbeatRequest(
        group_id=name, member_id="m", member_epoch=joined.member_epoch
    )
    desk.ask(again, 1)
    place = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topics = [OffsetCommitRequestTopic(name=name, partitions=[place])]
    committing = OffsetCommitRequest(
        group_id=name,
        member_id="m",
        generation_id_or_member_epoch=joined.member_epoch,
        topics=topics,
    )
    assert desk.ask(committing, 9).topics[0].partitions[0].error_code == 0
    leave = ConsumerGroupHeartbeatRequest(group_id=name, member_id="m", member_epoch=-1)
    assert desk.ask(leave, 1).error_code == 0


def join_and_leave(desk, name):
    join = JoinGroupRequest(
        group_id=name,
        session_timeout_ms=45_000,
        rebalance_timeout_ms=45_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    join.member_id = desk.ask(join, 5).member_id
    joined = desk.ask(join, 5)
    assert joined.error_code == 0
    members = [MemberIdentity(member_id=joined.member_id)]
    assert desk.ask(LeaveGroupRequest(group_id=name, members=members), 5).error_code == 0


def test_what_comes_and_goes_leaves_nothing():
    desk = Desk(files=SimulatedFiles(), **SETTINGS)
    for number in range(WARM):
        come_and_go(desk, number)
    before = measured(desk)
    for number in range(WARM, WARM + ROUNDS):
        come_and_go(desk, number)
    more = measured(desk) - before
    assert not {name: count for name, count in more.items() if count > ROUNDS // 4}


def measured(desk):
    desk.cluster.placement._known.clear()  # where ids live: a bounded number of them
    for dispatcher in desk.dispatchers:
        known = dispatcher._heartbeat_cache._known
        for _ in range(len(known)):
            known._pass_next(lacks_room=False)  # as it does when others come
    gc.collect()
    return held(desk.cluster, *desk.dispatchers)
