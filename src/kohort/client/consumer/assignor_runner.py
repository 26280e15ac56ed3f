# SPDX-License-Identifier: Apache-2.0
"""The member that is asked computes the assignment: prepare, run the assignor, install (KIP-848).

The assignor is the application's code. It may be slow, raise or never end: heartbeats go on, and
the group goes on with the assignment that it has.
"""

import asyncio
import inspect
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from kohort.assignors import ASSIGNORS, Subscription
from kohort.client.consumer.assignor import (
    MOST_METADATA,
    AssignmentTold,
    Assignor,
    GroupMember,
    GroupToAssign,
    Share,
    ShareError,
    faults,
    shares_of,
)
from kohort.client.consumer.coordinator import Coordinator
from kohort.client.consumer.group_offsets import Identity
from kohort.client.members.heartbeat import Offer
from kohort.client.network.cluster import Cluster, Node
from kohort.client.network.environment import in_thread
from kohort.errors import ApiError, ErrorCode, KohortError, api_error
from kohort.terms import MemberId, TopicId, TopicPartition
from kohort.wire.messages.consumer_group_install_assignment import (
    ConsumerGroupInstallAssignmentRequest,
    ConsumerGroupInstallAssignmentResponse,
)
from kohort.wire.messages.consumer_group_install_assignment import Member as Installed
from kohort.wire.messages.consumer_group_install_assignment import TopicPartition as Partitions
from kohort.wire.messages.consumer_group_prepare_assignment import (
    ConsumerGroupPrepareAssignmentRequest,
    ConsumerGroupPrepareAssignmentResponse,
)

logger = logging.getLogger(__name__)

FAILED = 1  # the error of an assignor that has failed
INVALID = 2  # of one that gave what cannot be
CLASSIC = -1  # the version of metadata of classic members


class AssignorRunner:
    """`assignors` are the member's own, the preferred one first.

    `identity` says who the member is, at the moment of each request. `ask_soon` has the coordinator
    asked: by an installed assignment, or a refused one, what it said last is not true any more.
    With the `fallback` "uniform" a member whose assignor fails computes as a broker would; with
    "none" everybody keeps what it has.
    """

    def __init__(
        self,
        assignors: Sequence[Assignor],
        cluster: Cluster,
        group_id: str,
        identity: Callable[[], Identity | None],
        *,
        timeout_s: float,
        fallback: str = "none",
    ) -> None:
        self.reason = 0
        self._assignors = {assignor.name: assignor for assignor in assignors}
        self._cluster = cluster
        self._coordinator = Coordinator(cluster, group_id)
        self._group_id = group_id
        self._identity = identity
        self.ask_soon: Callable[[], None] = lambda: None
        self._timeout_s = timeout_s
        self._fallback = fallback
        self._task: asyncio.Task[None] | None = None
        self._checked: asyncio.Task[None] | None = None
        self._last: Assignor | None = assignors[0] if assignors else None

    @property
    def has_assignors(self) -> bool:
        """Whether this member could compute an assignment."""
        return bool(self._assignors)

    def offers(self) -> tuple[Offer, ...] | None:
        """What the member says of its assignors. Raises what their `metadata` raises, and
        ValueError for more than a broker would read.
        """
        if not self._assignors:
            return None
        found = []
        for name, assignor in self._assignors.items():
            metadata: object = assignor.metadata()
            if not isinstance(metadata, bytes):
                raise TypeError(f"the metadata of assignor {name} are {metadata!r}, expected bytes")
            if len(metadata) > MOST_METADATA:
                raise ValueError(
                    f"the metadata of assignor {name} have {len(metadata)} bytes, expected "
                    f"{MOST_METADATA} at most"
                )
            version = assignor.maximum_version
            offer = Offer(name, assignor.minimum_version, version, self.reason, version, metadata)
            found.append(offer)
        return tuple(found)

    def on_compute_request(self) -> None:
        """The coordinator asks for an assignment; it repeats that while one is computed."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._compute())

    def reached(self, coordinator: Node) -> None:
        """Say once whether this coordinator lets members compute at all."""
        if self._assignors and self._checked is None:
            self._checked = asyncio.create_task(self._check(coordinator))

    def notify_assignment(self, assignment: AssignmentTold) -> None:
        """Tell the assignor what its group has got. What it raises is logged.

        A broker that does not name it is taken to mean the one that was asked last.
        """
        if assignment.error:
            logger.warning(
                "group %s: assignor %s has failed (%d) at the member that computes: all keep what "
                "they had, here %d partitions, and new partitions are read by nobody",
                *(self._group_id, assignment.assignor or "of the members", assignment.error),
                len(assignment.partitions),
            )
        named = self._assignors.get(assignment.assignor)
        assignor = self._last if named is None and not assignment.assignor else named
        if assignor is not None:
            try:
                assignor.on_assignment(assignment)
            except Exception:
                logger.exception("group %s: on_assignment", self._group_id)

    async def close(self) -> None:
        """Stop. A thread that computes is left alone, and nobody waits for what comes of it."""
        for task in (self._task, self._checked):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    async def _check(self, coordinator: Node) -> None:
        deadline = asyncio.get_running_loop().time() + self._timeout_s
        try:
            connection = await self._cluster.connection(coordinator.address, deadline)
        except KohortError:
            self._checked = None  # the next coordinator may tell
            return
        if not connection.offers(ConsumerGroupPrepareAssignmentRequest):
            logger.warning(
                "group %s: %s has no client-side assignors: %s will not be asked, and the "
                "assignors of the broker count",
                *(self._group_id, coordinator, ", ".join(self._assignors)),
            )

    # One assignment

    async def _compute(self) -> None:
        deadline = asyncio.get_running_loop().time() + self._timeout_s
        try:
            prepared = await self._prepare(deadline)
            group, ids = _group(prepared)
            members, error = await self._run(prepared.assignor_name, group, ids, deadline)
            if error and self._fallback == "uniform":
                members, error = _uniform(group, ids), 0
                logger.warning("group %s: computed by uniform in its place", self._group_id)
            await self._install(prepared.group_epoch, members, error)
        except KohortError as lost:  # it is another's turn by now, or it will be asked for again
            logger.info("group %s: no assignment came of ours: %s", self._group_id, lost)
        except Exception:
            logger.exception("group %s: no assignment came of ours", self._group_id)
        self.ask_soon()

    async def _run(
        self, name: str, group: GroupToAssign, ids: Mapping[str, TopicId], deadline: float
    ) -> tuple[list[Installed], int]:
        """What the assignor gives, or why it gives nothing. Whatever it does, there is an answer:
        without one the coordinator would ask again and again.
        """
        assignor = self._assignors.get(name)
        if assignor is None:
            logger.warning(
                "group %s: asked for assignor %s, which is not ours", self._group_id, name
            )
            return [], FAILED
        self._last = assignor
        try:
            async with asyncio.timeout_at(deadline):
                if inspect.iscoroutinefunction(assignor.assign):
                    given = await assignor.assign(group)
                else:
                    given = await in_thread(partial(assignor.assign, group), "assignor")
                    if inspect.isawaitable(given):
                        given = await given
            shares = shares_of(given)
            wrong = faults(group, shares)
            members = [
                _installed(group.members[member_id], share, group.version, ids)
                for member_id, share in shares.items()
                if not wrong
            ]
        except TimeoutError:
            logger.warning(
                "group %s: assignor %s was not done after %g s",
                self._group_id,
                name,
                self._timeout_s,
            )
            return [], FAILED
        except ShareError as error:  # a traceback would end in code of ours
            logger.error("group %s: assignor %s: %s", self._group_id, name, error)  # noqa: TRY400
            return [], FAILED
        except Exception:
            logger.exception("group %s: assignor %s", self._group_id, name)
            return [], FAILED
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            logger.exception(
                "group %s: assignor %s waited for what was cancelled", self._group_id, name
            )
            return [], FAILED
        if wrong:
            logger.error("group %s: assignor %s: %s", self._group_id, name, "; ".join(wrong[:20]))
            return [], INVALID
        return members, 0

    async def _prepare(self, deadline: float) -> ConsumerGroupPrepareAssignmentResponse:
        async def attempt(node: Node) -> ConsumerGroupPrepareAssignmentResponse:
            who = self._who()
            request = ConsumerGroupPrepareAssignmentRequest(
                group_id=self._group_id, member_id=who.member_id, member_epoch=who.epoch
            )
            answer: ConsumerGroupPrepareAssignmentResponse = await self._cluster.ask(
                node, request, deadline=deadline
            )
            if answer.error_code:
                raise api_error(answer.error_code, answer.error_message)
            return answer

        return await self._coordinator.settle(attempt, deadline)

    async def _install(self, group_epoch: int, members: list[Installed], error: int) -> None:
        """The time of the assignor is over perhaps; the way of what it gave has its own."""
        deadline = asyncio.get_running_loop().time() + self._timeout_s

        async def attempt(node: Node) -> ConsumerGroupInstallAssignmentResponse:
            who = self._who()
            request = ConsumerGroupInstallAssignmentRequest(
                group_id=self._group_id,
                member_id=who.member_id,
                member_epoch=who.epoch,
                group_epoch=group_epoch,
                error=error,
                members=members,
            )
            answer: ConsumerGroupInstallAssignmentResponse = await self._cluster.ask(
                node, request, deadline=deadline
            )
            if answer.error_code:
                raise api_error(answer.error_code, answer.error_message)
            return answer

        try:
            # An epoch that has passed is no reason to wait: it has to be prepared anew.
            await self._coordinator.settle(attempt, deadline, passing=frozenset())
        except ApiError as refusal:
            if refusal.code is not ErrorCode.INVALID_ASSIGNMENT or error:
                raise
            logger.warning("group %s: %s", self._group_id, refusal)
            await self._install(group_epoch, [], INVALID)

    def _who(self) -> Identity:
        who = self._identity()
        if who is None:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, "the consumer is no member at the moment")
        return who


def _group(
    prepared: ConsumerGroupPrepareAssignmentResponse,
) -> tuple[GroupToAssign, dict[str, TopicId]]:
    """The group by names of topics, and the ids of these."""
    names = {TopicId(topic.topic_id): topic.topic_name for topic in prepared.topics}
    members = {
        member.member_id: GroupMember(
            member_id=member.member_id,
            topics=frozenset(
                names[TopicId(topic)] for topic in member.subscribed_topic_ids if topic in names
            ),
            partitions=frozenset(
                TopicPartition(names[TopicId(topic.topic_id)], index)
                for topic in member.topic_partitions
                if topic.topic_id in names
                for index in topic.partitions
            ),
            metadata=member.assignor.metadata_bytes,
            metadata_version=member.assignor.metadata_version,
            reason=member.assignor.reason,
            instance_id=member.instance_id,
            rack=member.rack_id,
        )
        for member in prepared.members
    }
    topics = {topic.topic_name: topic.num_partitions for topic in prepared.topics}
    group = GroupToAssign(members, topics, prepared.metadata_version)
    return group, {name: topic_id for topic_id, name in names.items()}


def _uniform(group: GroupToAssign, ids: Mapping[str, TopicId]) -> list[Installed]:
    """What the broker's assignor of that name would give."""
    sizes = {ids[topic]: count for topic, count in group.topics.items()}
    subscriptions = {}
    for member_id, member in group.members.items():
        had: dict[TopicId, list[int]] = {}
        for partition in sorted(member.partitions):
            if partition.partition < group.topics.get(partition.topic, 0):
                had.setdefault(ids[partition.topic], []).append(partition.partition)
        subscriptions[MemberId(member_id)] = Subscription(
            topics=tuple(ids[topic] for topic in sorted(member.topics & group.topics.keys())),
            previous={topic: tuple(indexes) for topic, indexes in had.items()},
            alike=len({each.topics for each in group.members.values()}) == 1,
        )
    names = {topic_id: name for name, topic_id in ids.items()}
    return [
        _installed(
            group.members[member_id],
            Share([TopicPartition(names[topic], index) for topic in mine for index in mine[topic]]),
            group.version,
            ids,
        )
        for member_id, mine in ASSIGNORS["uniform"](subscriptions, sizes).items()
    ]


def _installed(
    member: GroupMember, share: Share, version: int, ids: Mapping[str, TopicId]
) -> Installed:
    """One member's part. What a classic member is told has the version -1."""
    topics: dict[TopicId, list[int]] = {}
    for partition in sorted(share.partitions):
        topics.setdefault(ids[partition.topic], []).append(partition.partition)
    return Installed(
        member_id=member.member_id,
        partitions=[
            Partitions(topic_id=topic_id, partitions=indexes)
            for topic_id, indexes in topics.items()
        ],
        metadata_version=CLASSIC if member.metadata_version == CLASSIC else version,
        metadata_bytes=bytes(memoryview(share.metadata)),  # a text is none
    )
