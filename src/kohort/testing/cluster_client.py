# SPDX-License-Identifier: Apache-2.0
"""What a test asks its broker by the protocol: topics, records, groups. Any broker can answer.

Its requests carry a client id of their own, which no fault of a test touches.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from random import Random
from typing import Literal

from kohort.client.accumulator.partitioning import partition_of
from kohort.client.admin import groups, listings, offsets, topics
from kohort.client.admin.group_views import GroupDescription, MemberDescription
from kohort.client.admin.request_rounds import settle
from kohort.client.admin.scram_credentials import Change, alter_credentials
from kohort.client.admin.security_views import ScramUpsertion
from kohort.client.admin.topic_views import NewTopic
from kohort.client.network.cluster import Cluster, Node
from kohort.client.settings import addresses_of
from kohort.client.topic_reader import TopicReader, offsets_of
from kohort.client.topic_writer import append
from kohort.errors import (
    ApiError,
    ErrorCode,
    KohortError,
    UnsupportedVersionError,
    api_error,
)
from kohort.java import coordinator_partition
from kohort.records import codec
from kohort.security.settings import NO_SECURITY, Security
from kohort.terms import GroupType, TopicId, TopicPartition
from kohort.testing.fault_injector import OWN_CLIENT_ID
from kohort.testing.history import GroupRecord, group_of
from kohort.testing.records import Record, from_consumer, from_wire
from kohort.transactions.transaction import TransactionState
from kohort.wire.batch import build_records
from kohort.wire.batch.reading import Record as WireRecord
from kohort.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kohort.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from kohort.wire.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from kohort.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)

Isolation = Literal["read_committed", "read_uncommitted"]
ANSWER_S = 30.0
DECIDED_S = 2.0
DECIDED_LOOK_S = 0.002
DECIDED = (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)
OFFSETS_TOPIC = "__consumer_offsets"
FETCH_BYTES = 8 << 20
BATCH_BYTES = 512 << 10  # below max.message.bytes by default
_RECORD_BYTES = 40  # of a record beside its contents, at most
COMMIT_BY_NAME = 9  # the last version of OffsetCommit that names topics
_LEAVES = -1  # the epoch of a member that leaves (KIP-848)
_GONE = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND})


class ClusterClient:
    """Asks one cluster. Every method raises ApiError for a refusal."""

    def __init__(self, bootstrap: str, security: Security = NO_SECURITY) -> None:
        # Chance of its own: a test that has seeded `random` gets the numbers that it expects.
        chance = Random().random  # noqa: S311  (jitter)
        self._cluster = Cluster(
            addresses_of(bootstrap), client_id=OWN_CLIENT_ID, chance=chance, security=security
        )

    async def close(self) -> None:
        await self._cluster.close()

    async def create_topic(
        self, name: str, partitions: int, replication_factor: int, configs: Mapping[str, str]
    ) -> None:
        new = NewTopic(name, partitions, replication_factor, configs)
        (
            await topics.create_topics(
                self._cluster, [new], validate_only=False, deadline=_deadline()
            )
        ).all()

    async def create_users(self, users: Mapping[str, str], mechanism: str) -> None:
        """Let users log in by a mechanism of SCRAM, with these passwords."""
        changes: dict[str, Change] = {
            user: ScramUpsertion(user, password, mechanism) for user, password in users.items()
        }
        (await alter_credentials(self._cluster, changes, deadline=_deadline())).all()

    async def delete_topic(self, name: str) -> None:
        (await topics.delete_topics(self._cluster, [name], deadline=_deadline())).all()

    async def topic_names(self) -> list[str]:
        found = await topics.list_topics(self._cluster, internal=False, deadline=_deadline())
        return [topic.name for topic in found]

    async def topic_ids(self) -> dict[TopicId, str]:
        found = await topics.list_topics(self._cluster, internal=False, deadline=_deadline())
        return {
            TopicId(topic.topic_id): topic.name for topic in found if topic.topic_id is not None
        }

    async def produce(
        self, topic: str, entries: Sequence[WireRecord], partition: int | None
    ) -> list[Record]:
        """Append records; those with a key go where Java's producer would put them, others to the
        first partition. Returns them as they stand, in the order given. Many become several
        batches, and a failure leaves those that were written before.
        """
        shares: dict[TopicPartition, list[WireRecord]] = {}
        count = 1 if partition is not None else len(await self._partitions(topic))
        for entry in entries:
            index = partition
            if index is None:
                index = 0 if entry.key is None else partition_of(entry.key, count)
            shares.setdefault(TopicPartition(topic, index), []).append(entry)
        written = {}
        rounds = zip_longest(*(_batches(share) for share in shares.values()), fillvalue=())
        for batches in rounds:
            waiting = {place: batch for place, batch in zip(shares, batches, strict=True) if batch}
            data = {place: build_records(batch) for place, batch in waiting.items()}
            first = (await append(self._cluster, data, _deadline())).all()
            for place, batch in waiting.items():
                for entry in batch:
                    entry.offset += first[place]
                    written[id(entry)] = from_wire(topic, place.partition, entry)
        return [written[id(entry)] for entry in entries]

    async def ends(
        self, places: Iterable[TopicPartition], when: str, *, committed: bool = False
    ) -> dict[TopicPartition, int]:
        """The offsets behind the last record, or of the first one: "latest" or "earliest".
        `committed` leaves out what is behind the first open transaction.
        """
        return await offsets_of(self._cluster, places, when, _deadline(), read_committed=committed)

    async def topic_ends(self, topic: str) -> dict[TopicPartition, int]:
        return await self.ends(await self._partitions(topic), "latest")

    async def read(
        self,
        topic: str,
        partition: int | None,
        isolation_level: Isolation = "read_uncommitted",
        *,
        begin: int = 0,
    ) -> list[Record]:
        """All records that a topic, or a partition of it, has now, partition by partition. With
        "read_committed" those of aborted and open transactions are left out. `begin` is the least
        offset.
        """
        committed = isolation_level == "read_committed"
        if committed:
            await self._end_decided()
        places = (
            await self._partitions(topic)
            if partition is None
            else [TopicPartition(topic, partition)]
        )
        begins = await self.ends(places, "earliest")
        ends = await self.ends(places, "latest", committed=committed)
        reader = TopicReader(
            self._cluster,
            {place: max(begins[place], begin) for place in places},
            read_committed=committed,
            partition_bytes=FETCH_BYTES,
        )
        found: dict[TopicPartition, list[Record]] = {place: [] for place in places}
        while unread := [place for place in places if reader.places[place] < ends[place]]:
            before = dict(reader.places)
            for record in await reader.read(wait_ms=0, deadline=_deadline(), of=unread):
                place = TopicPartition(record.topic, record.partition)
                if record.offset < ends[place]:
                    found[place].append(from_consumer(record))
            if reader.notes:
                raise KohortError(reader.notes[0])
            if reader.places == before:
                where = unread[0]
                raise KohortError(
                    f"nothing is read of {where} at offset {before[where]}, expected records up to "
                    f"{ends[where]}"
                )
        return [record for place in places for record in found[place]]

    async def _end_decided(self) -> None:
        """Wait a while for the transactions that are decided to end in all their partitions. A
        coordinator acknowledges a commit when it is decided, so a test that looks at once would see
        nothing of it now and then.
        """
        deadline = _now() + DECIDED_S
        nodes = list((await self._cluster.nodes(_deadline())).values())
        while nodes and _now() < deadline:
            ending = await asyncio.gather(*(self._is_ending(node, deadline) for node in nodes))
            nodes = [node for node, some in zip(nodes, ending, strict=True) if some]
            if nodes:
                await asyncio.sleep(DECIDED_LOOK_S)

    async def _is_ending(self, node: Node, deadline: float) -> bool:
        """Whether markers of decided transactions are on their way from this node."""
        states = [state.value for state in DECIDED]
        request = ListTransactionsRequest(state_filters=states, producer_id_filters=[])
        try:
            answer: ListTransactionsResponse = await self._cluster.ask(
                node, request, deadline=deadline
            )
        except (ApiError, UnsupportedVersionError):  # what is read tells it if no broker is there
            return False
        return bool(answer.transaction_states)

    async def _partitions(self, topic: str) -> list[TopicPartition]:
        found = await topics.describe_topics(self._cluster, [topic], deadline=_deadline())
        return [TopicPartition(topic, partition.partition) for partition in found[topic].partitions]

    async def partitions_of(self, names: Sequence[str]) -> list[TopicPartition]:
        """The partitions of those topics that there are."""
        there = set(await self.topic_names()) if names else set()
        return [place for name in names if name in there for place in await self._partitions(name)]

    async def group_names(self) -> tuple[list[str], dict[int | TopicPartition, ApiError]]:
        """The groups that there are, and whose groups are missing among them, with the reason; see
        `Listings`.
        """
        found = await listings.list_groups(
            self._cluster, states=None, types=None, deadline=_deadline()
        )
        return [group.group_id for group in found], dict(found.errors)

    async def shard_of(self, group: str) -> TopicPartition:
        """The partition that holds the log of a group."""
        partitions = await self._partitions(OFFSETS_TOPIC)
        return partitions[coordinator_partition(group, len(partitions))]

    async def describe(self, group: str) -> GroupDescription | None:
        """A group with its members; None when there is none."""
        outcome = await groups.describe_groups(self._cluster, [group], deadline=_deadline())
        if group in outcome.failed and outcome.failed[group].code is ErrorCode.GROUP_ID_NOT_FOUND:
            return None
        return outcome[group]

    async def committed(self, group: str) -> dict[TopicPartition, int]:
        await self._end_decided()
        found = await offsets.list_group_offsets(
            self._cluster, {group: None}, require_stable=False, deadline=_deadline()
        )
        committed = {}
        for place, offset in found[group].items():
            if isinstance(offset, ApiError):
                raise offset
            if offset is not None:
                committed[place] = offset.offset
        return committed

    async def commit(self, group: str, place: TopicPartition, offset: int) -> None:
        """Commit from outside the group, as tools do that reset it."""
        known = await self._partitions(place.topic)
        if place not in known:
            raise ApiError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"topic {place.topic} has no partition {place.partition}, expected 0 to "
                f"{len(known) - 1}",
            )

        async def ask(
            node: Node, keys: Sequence[str], deadline: float
        ) -> dict[str, ApiError | None]:
            wanted = OffsetCommitRequestPartition(
                partition_index=place.partition, committed_offset=offset, committed_metadata=""
            )
            request = OffsetCommitRequest(
                group_id=group,
                member_id="",
                topics=[OffsetCommitRequestTopic(name=place.topic, partitions=[wanted])],
            )
            answer: OffsetCommitResponse = await self._cluster.ask(
                node, request, deadline=deadline, at_most=COMMIT_BY_NAME
            )
            code = answer.topics[0].partitions[0].error_code
            return dict.fromkeys(keys, api_error(code) if code else None)

        outcome = await settle(
            self._cluster, [group], self._cluster.coordinators, ask, deadline=_deadline()
        )
        error = outcome[group]
        if isinstance(error, ApiError):
            raise error

    async def group_records(self, group: str) -> list[GroupRecord]:
        """Everything that the log still holds about a group, in order."""
        found = []
        for record in await self._group_log(group):
            decoded = codec.decode(record.key or b"", record.value)
            if group_of(decoded.key) == group:
                found.append(
                    GroupRecord(
                        record.offset,
                        record.timestamp_ms,
                        decoded.key,
                        decoded.value,
                        record.headers,
                    )
                )
        return found

    async def groups_since(self, ends: Mapping[int, int]) -> list[str]:
        """The groups of which something was written since their log ended there, by partition."""
        found: dict[str, None] = {}
        for place, end in (await self.topic_ends(OFFSETS_TOPIC)).items():
            before = ends.get(place.partition, 0)
            if end > before:
                for record in await self.read(OFFSETS_TOPIC, place.partition, begin=before):
                    group = group_of(codec.decode(record.key or b"", record.value).key)
                    found.update({group: None} if group is not None else {})
        return list(found)

    async def _group_log(self, group: str) -> list[Record]:
        shard = await self.shard_of(group)
        return await self.read(OFFSETS_TOPIC, shard.partition)

    async def delete_group(self, group: str) -> None:
        (await groups.delete_groups(self._cluster, [group], deadline=_deadline())).all()

    async def remove_members(self, group: str, client_id: str | None) -> int:
        """Take members out of a group, as if each had left; how many they were, without those who
        have gone by themselves meanwhile.
        """
        described = await self.describe(group)
        if described is None:
            return 0
        leaving = {
            member.member_id: member
            for member in described.members
            if client_id in (None, member.client_id)
        }

        async def locate(ids: Sequence[str], deadline: float) -> dict[str, Node | ApiError]:
            found = await self._cluster.coordinators([group], deadline)
            return dict.fromkeys(ids, found[group])

        async def ask(node: Node, ids: Sequence[str], deadline: float) -> dict[str, int | ApiError]:
            members = [leaving[id_] for id_ in ids]
            if described.type is GroupType.CLASSIC:
                return await self._leave_classic(node, group, members, deadline)
            return await self._leave(node, group, members, deadline)

        outcome = await settle(self._cluster, leaving, locate, ask, deadline=_deadline())
        count = 0
        for result in outcome.values():
            if isinstance(result, ApiError):
                if result.code not in _GONE:
                    raise result
            else:
                count += result
        return count

    async def _leave_classic(
        self, node: Node, group: str, members: Sequence[MemberDescription], deadline: float
    ) -> dict[str, int | ApiError]:
        wanted = [
            MemberIdentity(member_id=member.member_id, group_instance_id=member.instance_id)
            for member in members
        ]
        request = LeaveGroupRequest(group_id=group, members=wanted)
        answer: LeaveGroupResponse = await self._cluster.ask(node, request, deadline=deadline)
        codes = dict.fromkeys((member.member_id for member in members), answer.error_code)
        if not answer.error_code:
            codes.update((member.member_id, member.error_code) for member in answer.members)
        return {name: api_error(code) if code else 1 for name, code in codes.items()}

    async def _leave(
        self, node: Node, group: str, members: Sequence[MemberDescription], deadline: float
    ) -> dict[str, int | ApiError]:
        outcome: dict[str, int | ApiError] = {}
        for member in members:
            leave = ConsumerGroupHeartbeatRequest(
                group_id=group, member_id=member.member_id, member_epoch=_LEAVES
            )
            answer: ConsumerGroupHeartbeatResponse = await self._cluster.ask(
                node, leave, deadline=deadline
            )
            code = answer.error_code
            outcome[member.member_id] = api_error(code, answer.error_message) if code else 1
        return outcome


def _now() -> float:
    return asyncio.get_running_loop().time()


def _deadline() -> float:
    return _now() + ANSWER_S


def _batches(records: Sequence[WireRecord]) -> Iterator[list[WireRecord]]:
    """Records in batches that any topic takes by default, each counted from offset 0."""
    batch: list[WireRecord] = []
    size = 0
    for record in records:
        own = _RECORD_BYTES + len(record.key or b"") + len(record.value or b"")
        own += sum(
            2 * _RECORD_BYTES + len(name) + len(value or b"") for name, value in record.headers
        )
        if batch and size + own > BATCH_BYTES:
            yield batch
            batch, size = [], 0
        record.offset = len(batch)
        batch.append(record)
        size += own
    yield batch
