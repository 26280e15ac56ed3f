# SPDX-License-Identifier: Apache-2.0
"""Groups, commits and records that no foreign frame names, and what must be true of them."""

from typing import Any

from tests.server.desk import Desk

from kohort.records.consumer_protocol import ConsumerProtocolSubscription
from kohort.wire import batch
from kohort.wire.codec import encode
from kohort.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kohort.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from kohort.wire.messages.describe_groups import DescribeGroupsRequest
from kohort.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kohort.wire.messages.heartbeat import HeartbeatRequest
from kohort.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kohort.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kohort.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from kohort.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

MARK = "honest-1f6b0c"
TOPIC = f"{MARK}-topic"
MODERN, CLASSIC = f"{MARK}-consumer-group", f"{MARK}-classic-group"
MEMBERS = (f"{MARK}-first-member", f"{MARK}-second-member")
PARTITIONS = 4
SILENCE_MS = 10_000
"""How long the honest members may be silent, at most: a fraction of their sessions."""


class Honest:
    """Two members of each protocol on connections of their own. `ask` fails when they are not
    served, or when anything has changed that is theirs alone.
    """

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.values: list[bytes] = []
        self.committed = 0
        desk.another()  # the second classic member joins while the first one waits
        desk.create(TOPIC, PARTITIONS)
        self.epoch = 0
        self.generation = 0
        self.classic: list[str] = []
        self._join_consumer_group()
        self._join_classic_group()
        self.ask()

    def on(self, desk: Desk) -> "Honest":
        """The same clients after a restart."""
        self.desk = desk
        desk.another()
        return self

    def ask(self) -> None:
        self._beat()
        self._commit()
        self._look()

    def _beat(self) -> None:
        for member in MEMBERS:
            answer = self._heartbeat(member, self.epoch)
            assert answer.error_code == 0, answer
            assert (answer.member_epoch, answer.assignment) == (self.epoch, None), answer
        for member in self.classic:
            request = HeartbeatRequest(
                group_id=CLASSIC, generation_id=self.generation, member_id=member
            )
            answer = self.desk.ask(request, 4)
            assert answer.error_code == 0, answer

    def _commit(self) -> None:
        self.committed += 1
        for group, epoch, member in (
            (MODERN, self.epoch, MEMBERS[0]),
            (CLASSIC, self.generation, self.classic[0]),
        ):
            place = OffsetCommitRequestPartition(
                partition_index=0, committed_offset=self.committed, committed_metadata=MARK
            )
            request = OffsetCommitRequest(
                group_id=group,
                generation_id_or_member_epoch=epoch,
                member_id=member,
                topics=[OffsetCommitRequestTopic(name=TOPIC, partitions=[place])],
            )
            answer = self.desk.ask(request, 9)
            assert answer.topics[0].partitions[0].error_code == 0, (group, answer)

    def _look(self) -> None:
        """What a stranger sees of the groups, the commits and the records."""
        wanted = [OffsetFetchRequestGroup(group_id=one, topics=None) for one in (MODERN, CLASSIC)]
        for group in self.desk.ask(OffsetFetchRequest(groups=wanted), 8).groups:
            assert group.error_code == 0, group
            found = [
                (t.name, p.partition_index, p.committed_offset, p.metadata)
                for t in group.topics
                for p in t.partitions
            ]
            assert found == [(TOPIC, 0, self.committed, MARK)], (group.group_id, found)
        (described,) = self.desk.ask(ConsumerGroupDescribeRequest(group_ids=[MODERN]), 1).groups
        assert described.error_code == 0, described
        assert (described.group_state, described.group_epoch) == ("Stable", self.epoch), described
        assert sorted(one.member_id for one in described.members) == sorted(MEMBERS), described
        (described,) = self.desk.ask(DescribeGroupsRequest(groups=[CLASSIC]), 5).groups
        assert (described.error_code, described.group_state) == (0, "Stable"), described
        members = sorted((one.member_id, one.member_assignment) for one in described.members)
        assert members == sorted((one, one.encode()) for one in self.classic), described
        value = b"%s %d" % (MARK.encode(), len(self.values))
        assert self.desk.produce(TOPIC, value=value).error_code == 0
        self.values.append(value)

    def read(self) -> None:
        """All records are there, and no others."""
        found: list[bytes] = []
        while True:
            place = FetchPartition(
                partition=0, fetch_offset=len(found), partition_max_bytes=1 << 20
            )
            request = FetchRequest(
                max_wait_ms=0,
                min_bytes=0,
                max_bytes=1 << 20,
                topics=[FetchTopic(topic=TOPIC, partitions=[place])],
            )
            answer = self.desk.ask(request, 12).responses[0].partitions[0]
            assert answer.error_code == 0, answer
            if not answer.records:
                break
            for at, _ in batch.walk(answer.records):
                found += [one.value for one in batch.records(answer.records, at)]
        assert found == self.values, f"{len(found)} records of {len(self.values)}"

    def _heartbeat(
        self, member: str, epoch: int, owned: list[TopicPartitions] | None = None
    ) -> Any:
        request = ConsumerGroupHeartbeatRequest(
            group_id=MODERN,
            member_id=member,
            member_epoch=epoch,
            rebalance_timeout_ms=60_000 if owned is not None else -1,
            subscribed_topic_names=[TOPIC] if owned is not None else None,
            topic_partitions=owned,
        )
        return self.desk.ask(request, 1)

    def _join_consumer_group(self) -> None:
        epochs = dict.fromkeys(MEMBERS, 0)
        owned: dict[str, list[TopicPartitions]] = {one: [] for one in MEMBERS}
        for _ in range(6):
            for member in MEMBERS:
                answer = self._heartbeat(member, epochs[member], owned[member])
                assert answer.error_code == 0, answer
                epochs[member] = answer.member_epoch
                if answer.assignment is not None:
                    owned[member] = [
                        TopicPartitions(topic_id=one.topic_id, partitions=one.partitions)
                        for one in answer.assignment.topic_partitions
                    ]
        (self.epoch,) = set(epochs.values())
        assert [len(one[0].partitions) for one in owned.values()] == [2, 2], owned

    def _join_classic_group(self) -> None:
        metadata = encode(ConsumerProtocolSubscription(topics=[TOPIC]), 0)
        protocol = JoinGroupRequestProtocol(name="range", metadata=b"\0\0" + metadata)

        def request(member: str) -> JoinGroupRequest:
            return JoinGroupRequest(
                group_id=CLASSIC,
                session_timeout_ms=45_000,
                rebalance_timeout_ms=60_000,
                member_id=member,
                protocol_type="consumer",
                protocols=[protocol],
            )

        nodes = (0, len(self.desk.clients) - 1)
        named = [self.desk.ask(request(""), 9, node=node).member_id for node in nodes]
        joins = [
            self.desk.send(request(member), 9, node=node)
            for member, node in zip(named, nodes, strict=True)
        ]
        self.desk.settle()
        self.desk.wait(10_000)
        assert all(one.answer and one.answer.error_code == 0 for one in joins), joins
        self.generation = joins[0].answer.generation_id
        leader = joins[0].answer.leader
        syncs = []
        for member, node in zip(named, nodes, strict=True):
            given = [
                SyncGroupRequestAssignment(member_id=one, assignment=one.encode()) for one in named
            ]
            sync = SyncGroupRequest(
                group_id=CLASSIC,
                generation_id=self.generation,
                member_id=member,
                protocol_type="consumer",
                protocol_name="range",
                assignments=given if member == leader else [],
            )
            syncs.append(self.desk.send(sync, 5, node=node))
        self.desk.settle()
        assert [one.answer.error_code for one in syncs] == [0, 0], syncs
        self.classic = named
