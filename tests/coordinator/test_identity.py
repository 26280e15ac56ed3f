# SPDX-License-Identifier: Apache-2.0
"""Who holds an identity is that one: the client that comes with an instance id *is* that member,
with what it brings now, in every group and for every request that carries one (KIP-345).
"""

import pytest
from tests.coordinator.classics import commit as classic_commit
from tests.coordinator.classics import heartbeat, join, leave, sync
from tests.coordinator.consumers import beat
from tests.coordinator.desk import Desk
from tests.coordinator.mixed import subscribed

from kohort.errors import ErrorCode
from kohort.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kohort.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

FULL = {"group_max_size": 1, "group_consumer_max_size": 1, "group_initial_rebalance_delay_ms": 0}
STATIC = {"group_instance_id": "i"}
FENCED = ErrorCode.FENCED_INSTANCE_ID
PROTOCOLS = {"range": subscribed()}


def classic(desk):
    """A full classic group at rest; its member id."""
    answer = join(desk, **STATIC, protocols=PROTOCOLS).answer
    sync(desk, answer.member_id, answer.generation_id, {answer.member_id: b""}, **STATIC)
    return answer.member_id, answer.generation_id


def consumer(desk):
    """A full consumer group whose member has gone for a while."""
    beat(desk, "a", 0, instance_id="i")
    beat(desk, "a", -2, instance_id="i")
    return "a", 2


def mixed(desk):
    """A full consumer group whose member speaks the classic protocol."""
    beat(desk, "a", 0, instance_id="i")
    beat(desk, "a", -2, instance_id="i")
    answer = join(desk, **STATIC, protocols=PROTOCOLS).answer
    return answer.member_id, answer.generation_id


GROUPS = {"classic": classic, "consumer": consumer}
every_group = pytest.mark.parametrize("kind", GROUPS)


def by_join(desk, instance_id="i"):
    asked = join(desk, group_instance_id=instance_id, protocols=PROTOCOLS)
    return asked.answer.error_code, asked.answer.member_id


def by_heartbeat(desk, instance_id="i"):
    answer = beat(desk, "successor", 0, instance_id=instance_id)
    return answer.error_code, "successor"


TAKERS = {"JoinGroup": by_join, "ConsumerGroupHeartbeat": by_heartbeat}


@every_group
@pytest.mark.parametrize("way", TAKERS)
def test_a_full_group_takes_back_its_own(kind, way):
    """In the protocol of the group or in the other one, which converts it."""
    desk = Desk(**FULL)
    before, _ = GROUPS[kind](desk)
    code, _ = TAKERS[way](desk, "stranger")
    assert code in (ErrorCode.GROUP_MAX_SIZE_REACHED, ErrorCode.GROUP_ID_NOT_FOUND)
    code, successor = TAKERS[way](desk)
    assert code == ErrorCode.NONE
    group = desk.shard.groups.get("g")
    assert list(group.members) == [successor]
    assert group.instances == {"i": successor}
    assert before != successor
    desk.restart()
    assert list(desk.shard.groups.get("g").members) == [successor]


def txn_commit(desk, member_id, generation):
    request = TxnOffsetCommitRequest(
        transactional_id="t",
        group_id="g",
        producer_id=7,
        producer_epoch=0,
        generation_id=generation,
        member_id=member_id,
        group_instance_id="i",
        topics=[
            TxnOffsetCommitRequestTopic(
                name="orders",
                partitions=[
                    TxnOffsetCommitRequestPartition(
                        partition_index=0, committed_offset=1, committed_metadata=""
                    )
                ],
            )
        ],
    )
    return desk.told(request, 3).topics[0].partitions[0].error_code


def consumer_heartbeat(desk, member_id, epoch):
    request = ConsumerGroupHeartbeatRequest(
        group_id="g", member_id=member_id, member_epoch=epoch, instance_id="i"
    )
    return desk.told(request, 1).error_code


def commit_of(desk, member_id, generation):
    answer = classic_commit(
        desk,
        {("orders", 0): 1},
        member_id=member_id,
        generation_id_or_member_epoch=generation,
        group_instance_id="i",
    )
    return next(iter(answer.values()))


CLAIMS = {
    "JoinGroup": lambda desk, who, at: (
        join(desk, who, **STATIC, protocols=PROTOCOLS).answer.error_code
    ),
    "SyncGroup": lambda desk, who, at: sync(desk, who, at, {}, **STATIC).answer.error_code,
    "Heartbeat": lambda desk, who, at: heartbeat(desk, who, at, **STATIC),
    "LeaveGroup": lambda desk, who, at: leave(desk, (who, "i")).members[0].error_code,
    "OffsetCommit": commit_of,
    "TxnOffsetCommit": txn_commit,
    "ConsumerGroupHeartbeat": consumer_heartbeat,
}
ONLY_IN = {"ConsumerGroupHeartbeat": ("consumer",)}


@pytest.mark.parametrize(
    ("kind", "way"),
    [(kind, way) for kind in GROUPS for way in CLAIMS if kind in ONLY_IN.get(way, GROUPS)],
)
def test_a_stale_holder_is_fenced_by_every_request(kind, way):
    """Also in a full group, which has no place for anybody."""
    desk = Desk(**FULL)
    before, generation = GROUPS[kind](desk)
    taker = by_join if kind == "classic" else by_heartbeat
    code, successor = taker(desk)
    assert code == ErrorCode.NONE
    assert CLAIMS[way](desk, before, generation) == FENCED
    assert list(desk.shard.groups.get("g").members) == [successor], "nothing has changed"


def test_it_brings_other_protocols_in_a_consumer_group_too():
    desk = Desk(**FULL)
    mixed(desk)
    answer = join(desk, **STATIC, protocols={"sticky": subscribed()}).answer
    assert (answer.error_code, answer.protocol_name) == (ErrorCode.NONE, "sticky")


def test_it_takes_its_place_in_the_middle_of_a_rebalance():
    """Its former self may wait for the others; it has a place all the same."""
    desk = Desk(**{**FULL, "group_max_size": 2})
    first = join(desk, group_instance_id="i", protocols=PROTOCOLS).answer
    sync(desk, first.member_id, first.generation_id, {first.member_id: b""}, **STATIC)
    waiting = join(desk, group_instance_id="j", protocols=PROTOCOLS)
    assert waiting.answer is None
    again = join(desk, group_instance_id="i", protocols=PROTOCOLS)
    assert waiting.answer.error_code == again.answer.error_code == ErrorCode.NONE
    assert len(desk.shard.groups.get("g").members) == 2
