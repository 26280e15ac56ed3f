# SPDX-License-Identifier: Apache-2.0
"""The cluster of the recorded runs of Kafka's tools: topics, offsets, groups of all kinds.

Any broker takes these requests. The clocks of a broker of ours stand still, so that no session ends
while the runs are played.
"""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from tests.coordinator.classics import join_request, sync_request
from tests.serve.talk import Talk
from tests.waiting import SOON_S

from kohort.java import coordinator_partition, hash_order, id_hash
from kohort.records.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    encode,
)
from kohort.wire.batch import Record, build_records, walk
from kohort.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from kohort.wire.messages.delete_groups import DeleteGroupsRequest
from kohort.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kohort.wire.messages.delete_topics import DeleteTopicsRequest
from kohort.wire.messages.describe_groups import DescribeGroupsRequest
from kohort.wire.messages.find_coordinator import FindCoordinatorRequest
from kohort.wire.messages.join_group import JoinGroupResponse
from kohort.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kohort.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kohort.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

BEGIN_MS = 1_700_000_000_000
SESSION_MS = 1_700_000
LONG = "a-very-long-group-name-that-is-wider-than-any-column-" + "x" * 40
SIMPLE = {("cli-a", 0): (5, 0), ("cli-a", 1): (4, 0), ("cli-b", 0): (2, -1)}
SETTINGS = {
    "group.max.session.timeout.ms": 1_800_000,
    "group.consumer.max.session.timeout.ms": 1_800_000,
    "group.consumer.session.timeout.ms": SESSION_MS,
    "group.consumer.migration.policy": "bidirectional",
    "group.initial.rebalance.delay.ms": 0,
    "offsets.topic.num.partitions": 4,
    "node.id": 1,
}
TOPICS = {"cli-a": 3, "cli-b": 2, "cli-empty": 1, "cli-gone": 1}
_RECORDS = {("cli-a", 0): 10, ("cli-a", 1): 6, ("cli-b", 0): 4}
_NOT_FOUND = 69
_BY_NAME = 9  # of OffsetCommit


def talk(address: tuple[str, int] | str) -> Talk:
    """A client with the name of those of the recordings."""
    return Talk(address, client_id="golden")


def make_offsets_topic(client: Talk) -> None:
    """Have groups coordinated: the first look-up of a broker makes the topic."""
    look_up = FindCoordinatorRequest(coordinator_keys=["cli-simple"], key_type=0)
    _until_done(lambda: client.ask(look_up).coordinators[0].error_code)
    for group in ("cli-simple", "größe", *map(str, range(20))):  # every partition of it
        _until_done(partial(_describe_code, client, group))


def _describe_code(client: Talk, group: str) -> int:
    code: int = client.ask(DescribeGroupsRequest(groups=[group])).groups[0].error_code
    return 0 if code == _NOT_FOUND else code


def _produce_code(client: Talk, request: ProduceRequest) -> int:
    code: int = client.ask(request, 9).responses[0].partition_responses[0].error_code
    return code


def _until_done(ask: Callable[[], int]) -> None:
    """Ask until the code is 0: a broker that has just started needs a moment for each."""
    deadline = time.monotonic() + SOON_S
    while code := ask():
        assert time.monotonic() < deadline, code
        time.sleep(0.2)


def make_topics(client: Talk) -> None:
    """The records of a partition are a second apart; the first two of cli-a-1 are gone."""
    for name, partitions in TOPICS.items():
        client.create_topic(name, partitions)
    while not _ids_stand_as_recorded(client):  # which is a matter of chance
        for name in ("cli-a", "cli-b"):
            client.ask(DeleteTopicsRequest(topic_names=[name], timeout_ms=5000), 5)
            client.create_topic(name, TOPICS[name])
    for (topic, index), count in _RECORDS.items():
        records = [
            Record(offset, BEGIN_MS + offset * 1000, None, b"%d" % offset)
            for offset in range(count)
        ]
        data = [PartitionProduceData(index=index, records=build_records(records))]
        request = ProduceRequest(
            acks=-1,
            timeout_ms=5000,
            topic_data=[TopicProduceData(name=topic, partition_data=data)],
        )
        _until_done(partial(_produce_code, client, request))
    cut = DeleteRecordsTopic(
        name="cli-a", partitions=[DeleteRecordsPartition(partition_index=1, offset=2)]
    )
    request = DeleteRecordsRequest(topics=[cut], timeout_ms=5000)
    _until_done(lambda: client.ask(request).topics[0].partitions[0].error_code)


def _ids_stand_as_recorded(client: Talk) -> bool:
    """Whether a table of topic ids has cli-b first: the member that comes first keeps its
    partitions, and gives up what is left of the other topic.
    """
    found = client.metadata("cli-a", "cli-b").topics
    ids = {topic.name: topic.topic_id for topic in found}
    return hash_order((ids["cli-a"], ids["cli-b"]), id_hash)[0] == ids["cli-b"]


def make_groups(client: Talk) -> None:
    """All groups but those of kinds that we have no members of."""
    _make_classic_groups(client)
    _make_consumer_groups(client)
    commit_simple(client)
    commit(client, "cli-beyond", {("cli-a", 0): 1000})
    commit(client, LONG, {("cli-a", 0): 3})
    commit(client, "größe", {("cli-a", 0): 3})
    commit(client, "cli-deleted-topic", {("cli-gone", 0): 1, ("cli-b", 1): 0})
    client.ask(DeleteTopicsRequest(topic_names=["cli-gone"], timeout_ms=5000), 5)


def append_other_groups(data: Path) -> None:
    """Write a share and a streams group with a member each into the log of a stopped broker, as
    another broker would have: we have no members of their kinds.
    """
    for group, member_kind, group_kind in (("cli-share", 10, 11), ("cli-streams", 19, 17)):
        index = coordinator_partition(group, int(SETTINGS["offsets.topic.num.partitions"]))
        file = data / f"__consumer_offsets-{index}" / "00000000000000000000.log"
        written = file.read_bytes()
        end = max((header.last_offset + 1 for _, header in walk(written)), default=0)
        records = [
            Record(end, BEGIN_MS, _key(member_kind, group, "member-1"), b"\0\0what it says"),
            Record(end + 1, BEGIN_MS, _key(group_kind, group), bytes(5) + b"\1" + bytes(9)),
        ]
        file.write_bytes(written + build_records(records, leader_epoch=0))
    (data / ".kafka_cleanshutdown").unlink()  # it says where each log ends


def _key(kind: int, *names: str) -> bytes:
    return kind.to_bytes(2) + b"".join(len(name).to_bytes(2) + name.encode() for name in names)


def commit_simple(client: Talk) -> None:
    """The offsets of the group cli-simple, which runs change, and no others."""
    client.ask(DeleteGroupsRequest(groups_names=["cli-simple"]))
    commit(client, "cli-simple", SIMPLE)


def let_time_pass(client: Talk) -> None:
    """What had happened when the later runs were recorded: the member that never synced is gone,
    and so is the one that gave nothing up.
    """
    found = client.ask(DescribeGroupsRequest(groups=["cli-completing"]))
    leave(client, "cli-completing", found.groups[0].members[0].member_id)
    client.ask(DeleteGroupsRequest(groups_names=["cli-completing"]))
    beat(client, "cli-reconciling", "member-1", -1)


def _make_classic_groups(client: Talk) -> None:
    with_two_members(client)
    own = {"group_instance_id": "instance-1"}
    member_id, generation = one_member(client, "cli-static", {"cli-b": [0, 1]}, **own)
    places = {("cli-b", 0): 1}
    commit(client, "cli-static", places, member_id=member_id, epoch=generation, **own)
    join(client, "cli-completing", protocols=protocols("cli-a"))
    member_id, generation = one_member(client, "cli-empty-classic", {"cli-a": [0, 1, 2]})
    places = {("cli-a", 0): 3, ("cli-a", 1): 4, ("cli-a", 2): 0}
    commit(client, "cli-empty-classic", places, member_id=member_id, epoch=generation)
    leave(client, "cli-empty-classic", member_id)
    joined = join(client, "cli-connect", protocol_type="connect", protocols={"default": b"connect"})
    client.ask(
        sync_request(
            joined.member_id,
            joined.generation_id,
            {joined.member_id: b"work"},
            group_id="cli-connect",
            protocol_type="connect",
            protocol_name="default",
        )
    )


def with_two_members(client: Talk) -> None:
    """The group cli-classic: of two topics one member reads the first half."""
    with talk(client.address) as first, talk(client.address) as second:
        both = protocols("cli-a", "cli-b")
        one = join(first, "cli-classic", protocols=both)
        _sync(first, "cli-classic", one, {one.member_id: {}})
        newcomer = second.ask(_join("cli-classic", protocols=both)).member_id
        second.send(_join("cli-classic", newcomer, protocols=both))
        again = first.ask(_join("cli-classic", one.member_id, protocols=both))
        second.answer()
        halves = {
            one.member_id: {"cli-a": [0, 1], "cli-b": [0]},
            newcomer: {"cli-a": [2], "cli-b": [1]},
        }
        _sync(first, "cli-classic", again, halves)
        second.ask(sync_request(newcomer, again.generation_id, group_id="cli-classic"))
        places = {("cli-a", 0): 7, ("cli-a", 1): 6, ("cli-b", 0): 4}
        ids = {"member_id": one.member_id, "epoch": again.generation_id}
        commit(first, "cli-classic", places, **ids)


def _make_consumer_groups(client: Talk) -> None:
    group = "cli-consumer"
    both = ["cli-a", "cli-b"]
    first = beat(client, group, "member-1", 0, subscribed_topic_names=both)
    second = {"subscribed_topic_names": both, "instance_id": "instance-2", "rack_id": "rack-2"}
    second = beat(client, group, "member-2", 0, **second)
    settle(client, group, {"member-1": first, "member-2": second}, 3)
    commit(client, group, {("cli-a", 0): (5, 0)}, member_id="member-1", epoch=3)

    group = "cli-reconciling"
    first = beat(client, group, "member-1", 0, subscribed_topic_names=["cli-a"])
    beat(client, group, "member-1", first.member_epoch, topic_partitions=owned(first))
    beat(client, group, "member-2", 0, subscribed_topic_names=["cli-a"])

    group = "cli-empty-consumer"
    first = beat(client, group, "member-1", 0, subscribed_topic_names=["cli-a"])
    places = {("cli-a", 0): 2}
    commit(client, group, places, member_id="member-1", epoch=first.member_epoch)
    beat(client, group, "member-1", -1)

    beat(client, "cli-regex", "member-1", 0, subscribed_topic_regex="cli-.*")

    one_member(client, "cli-mixed", {"cli-a": [0, 1, 2]})
    beat(client, "cli-mixed", "member-new", 0, subscribed_topic_names=["cli-a"])


def settle(client: Talk, group: str, answers: dict[str, Any], epoch: int) -> None:
    """Heartbeats of members that do as they are told, until all are at this epoch."""
    owns = {member: owned(answer) for member, answer in answers.items()}
    deadline = time.monotonic() + SOON_S
    while {answer.member_epoch for answer in answers.values()} != {epoch} or any(
        answer.assignment is not None for answer in answers.values()
    ):
        assert time.monotonic() < deadline, answers
        for member, answer in answers.items():
            found = beat(client, group, member, answer.member_epoch, topic_partitions=owns[member])
            answers[member] = found
            if found.assignment is not None:
                owns[member] = owned(found)


def owned(answer: Any) -> list[TopicPartitions]:
    """What an answer assigns, as the next heartbeat says it."""
    return [
        TopicPartitions(topic_id=one.topic_id, partitions=list(one.partitions))
        for one in answer.assignment.topic_partitions
    ]


def beat(client: Talk, group: str, member: str, epoch: int, **fields: Any) -> Any:
    if epoch == 0:
        fields = {"rebalance_timeout_ms": 600_000, "topic_partitions": [], **fields}
    answer = client.ask(
        ConsumerGroupHeartbeatRequest(
            group_id=group, member_id=member, member_epoch=epoch, **fields
        )
    )
    assert answer.error_code == 0, answer
    return answer


def protocols(*topics: str) -> dict[str, bytes]:
    subscription = ConsumerProtocolSubscription(topics=list(topics), owned_partitions=[])
    return {"range": encode(subscription)}


def _join(group: str, member_id: str = "", **fields: Any) -> Any:
    times = {"session_timeout_ms": SESSION_MS, "rebalance_timeout_ms": SESSION_MS}
    return join_request(member_id, group, **times, **fields)


def join(client: Talk, group: str, **fields: Any) -> JoinGroupResponse:
    """Join as the only member."""
    answer = client.ask(_join(group, **fields))
    if answer.error_code:  # 79: it joins with the id that it was given
        answer = client.ask(_join(group, answer.member_id, **fields))
    assert answer.error_code == 0, answer
    return answer


def _sync(client: Talk, group: str, joined: Any, shares: dict[str, dict[str, list[int]]]) -> None:
    assignments = {
        member: encode(
            ConsumerProtocolAssignment(
                assigned_partitions=[
                    TopicPartition(topic=topic, partitions=indexes)
                    for topic, indexes in share.items()
                ]
            )
        )
        for member, share in shares.items()
    }
    answer = client.ask(
        sync_request(joined.member_id, joined.generation_id, assignments, group_id=group)
    )
    assert answer.error_code == 0, answer


def one_member(
    client: Talk, group: str, share: dict[str, list[int]], **fields: Any
) -> tuple[str, int]:
    """A group at rest with one member, who has this."""
    joined = join(client, group, protocols=protocols(*share), **fields)
    answer = client.ask(
        sync_request(
            joined.member_id,
            joined.generation_id,
            {
                joined.member_id: encode(
                    ConsumerProtocolAssignment(
                        assigned_partitions=[
                            TopicPartition(topic=topic, partitions=indexes)
                            for topic, indexes in share.items()
                        ]
                    )
                )
            },
            group_id=group,
            **fields,
        )
    )
    assert answer.error_code == 0, answer
    return joined.member_id, joined.generation_id


def leave(client: Talk, group: str, member_id: str) -> None:
    client.ask(LeaveGroupRequest(group_id=group, members=[MemberIdentity(member_id=member_id)]))


def commit(
    client: Talk,
    group: str,
    places: dict[tuple[str, int], int | tuple[int, int]],
    *,
    member_id: str = "",
    epoch: int = -1,
    **fields: Any,
) -> None:
    """Offsets, or offsets and the epochs of leaders."""
    topics: dict[str, list[OffsetCommitRequestPartition]] = {}
    for (topic, index), given in places.items():
        offset, leader_epoch = given if isinstance(given, tuple) else (given, -1)
        topics.setdefault(topic, []).append(
            OffsetCommitRequestPartition(
                partition_index=index,
                committed_offset=offset,
                committed_leader_epoch=leader_epoch,
                committed_metadata="",
            )
        )
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=epoch,
        member_id=member_id,
        **fields,
        topics=[
            OffsetCommitRequestTopic(name=name, partitions=each) for name, each in topics.items()
        ],
    )
    answer = client.ask(request, _BY_NAME)
    codes = {one.error_code for topic in answer.topics for one in topic.partitions}
    assert codes == {0}, answer
