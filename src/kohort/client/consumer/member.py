# SPDX-License-Identifier: Apache-2.0
"""A member of a group with a clock and sockets: it sends what its machine says, and tells it the
answers.

It has two tasks. One talks to the coordinator, so heartbeats never wait for the application. The
other acts on the answers, one event after the other, in their order.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, Protocol

from kohort.client.consumer.assignor import AssignmentTold
from kohort.client.consumer.group_offsets import Identity
from kohort.client.consumer.protocols import ClassicProtocol, Events, GroupProtocol
from kohort.client.members.events import (
    AssignmentMetadata,
    ComputeWanted,
    CoordinatorWanted,
    GroupLeft,
    HangUp,
    MembershipFailed,
    PartitionsAssigned,
    PartitionsLost,
    PartitionsRevoked,
    RequestRefused,
    TopicsWanted,
)
from kohort.client.members.request_state import ELSEWHERE
from kohort.client.network.cluster import Cluster, Node
from kohort.errors import (
    ApiError,
    AuthenticationError,
    ErrorCode,
    KohortError,
    UnsupportedVersionError,
    WireError,
)
from kohort.terms import MemberId, Millis, TopicId, TopicPartition

logger = logging.getLogger(__name__)

_FOR_GOOD = frozenset(
    {
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.INVALID_GROUP_ID,
        ErrorCode.UNSUPPORTED_VERSION,
    }
)
_NOT_YET = frozenset({*ELSEWHERE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS})


class PartitionOwner(Protocol):
    """Whose partitions they are. No call raises; each is over before the next event, but for
    `unwanted`, which is called while another one goes on: no record of these is handed out any
    more.
    """

    async def assigned(
        self,
        partitions: Collection[TopicPartition],
        ids: Mapping[TopicPartition, TopicId] | None = None,
        *,
        returned: Collection[TopicPartition] = (),
    ) -> None: ...

    async def revoked(
        self, partitions: Collection[TopicPartition], still_ours: Callable[[], bool]
    ) -> None: ...

    async def lost(self, partitions: Collection[TopicPartition], error: ApiError) -> None: ...

    def unwanted(self, partitions: Collection[TopicPartition], *, lost: bool) -> None: ...

    def accepted(self) -> None: ...


class AssignmentComputer(Protocol):
    """What computes assignments, where the coordinator asks this member to."""

    def reached(self, coordinator: Node) -> None: ...

    def on_compute_request(self) -> None: ...

    def notify_assignment(self, assignment: AssignmentTold) -> None: ...


class Member:
    """`join` begins, and `close` ends it. `outside` is set while it is in no group.

    `cluster` is for this member alone: the answer to a join holds back what follows on its
    connection. `on_refusal` is told what the coordinator refuses, and whether it is for good.
    """

    def __init__(
        self,
        group_id: str,
        protocol: GroupProtocol,
        cluster: Cluster,
        owner: PartitionOwner,
        computer: AssignmentComputer,
        *,
        on_refusal: Callable[[KohortError, bool], None],
        timeout_s: float,
    ) -> None:
        self.protocol = protocol
        self.outside = asyncio.Event()
        self.outside.set()
        self._group_id = group_id
        self._cluster = cluster
        self._owner = owner
        self._computer = computer
        self._on_refusal = on_refusal
        self._timeout_s = timeout_s
        self._node: Node | None = None
        self._away_since: float | None = None
        self._news = asyncio.Event()
        self._events: asyncio.Queue[Any] = asyncio.Queue()
        self._named: dict[Any, TopicPartition] = {}  # what the consumer was given
        self._request: asyncio.Task[None] | None = None
        self._tasks: dict[asyncio.Task[None], None] = {}  # ended in the order of their begin

    def start(self) -> None:
        """Begin to talk; nothing is said before `join`."""
        self._spawn(self._talk())
        self._spawn(self._act())

    # What the consumer wants

    def join(self) -> None:
        """Ask to be taken in."""
        self.outside.clear()
        self._take(self.protocol.machine.join())

    def leave(self, *, for_good: bool = False) -> None:
        """Give everything back and leave; `outside` is set at the end."""
        self._take(self.protocol.machine.leave(self._now(), for_good=for_good))

    def want(self) -> None:
        """The subscription has changed."""
        self._take(self.protocol.want(self._now()))

    def refused_as(self, who: Identity, error: ApiError) -> None:
        """Somebody who spoke as this member was refused."""
        machine = self.protocol.machine
        self._take(machine.refused_as(MemberId(who.member_id), who.epoch, error, self._now()))

    def ask_soon(self) -> None:
        """Have the coordinator asked at once."""
        self.protocol.machine.ask_soon(self._now())
        self._news.set()

    def check_silence(self) -> None:
        """Lose what others may have by now. Whoever was frozen knows it before any answer does."""
        events = self.protocol.machine.expire(self._now())
        if events:
            self._take(events)

    def topic_changed(self, name: str, partitions: int) -> None:
        """The cluster has said how many partitions a topic has."""
        self._take(self.protocol.topic_changed(name, partitions, self._now()))

    async def look_again(self) -> None:
        """Look for topics that have come, gone or grown. Raises ApiError."""
        deadline = asyncio.get_running_loop().time() + self._timeout_s
        self._take(await self.protocol.look_again(self._now(), deadline))

    async def close(self) -> None:
        """End all tasks and connections. One that has not left is removed after its session."""
        tasks = [*self._tasks, *([self._request] if self._request else [])]
        for task in tasks:
            task.cancel()
        try:
            await asyncio.gather(*tasks, return_exceptions=True)
        finally:
            await self._cluster.close()

    # Talking

    def _now(self) -> Millis:
        return Millis(int(asyncio.get_running_loop().time() * 1000))

    def _take(self, events: Events) -> None:
        """Do at once what concerns the connection, and the rest one after the other."""
        for event in events:
            match event:
                case CoordinatorWanted():
                    self._spawn(self._find())
                case TopicsWanted(topics):
                    self._spawn(self._count(topics))
                case ComputeWanted():
                    self._computer.on_compute_request()
                case HangUp():
                    self._spawn(self._hang_up(self._request))
                case MembershipFailed() | GroupLeft():
                    self._events.put_nowait(event)
                    self.outside.set()
                case _:
                    if isinstance(event, PartitionsRevoked | PartitionsLost):
                        partitions = self._names_of(event.partitions)
                        self._owner.unwanted(partitions, lost=isinstance(event, PartitionsLost))
                    self._events.put_nowait(event)
        self._news.set()

    async def _talk(self) -> None:
        """Send whatever is due, until the task is ended."""
        machine = self.protocol.machine
        while True:
            self._news.clear()
            self.check_silence()
            asked = machine.next(self._now())
            if asked is not None:
                self._request = asyncio.create_task(self._ask(asked.number, asked.request))
            wake_at = machine.wake_at()
            pause_s = None if wake_at is None else max(0, wake_at - self._now()) / 1000
            try:
                async with asyncio.timeout(pause_s):
                    await self._news.wait()
            except TimeoutError:
                continue

    async def _ask(self, number: int, request: Any) -> None:
        machine = self.protocol.machine
        loop = asyncio.get_running_loop()
        patience_ms = self.protocol.patience_ms(request)
        deadline = loop.time() + (patience_ms / 1000 if patience_ms else self._timeout_s)
        node = self._node
        assert node is not None  # the machine says nothing before its coordinator is found
        try:
            answer = await self._cluster.ask(
                node,
                request,
                deadline=deadline,
                need=self.protocol.need(request),
                at_most=self.protocol.at_most(request),
            )
            events = machine.received(number, answer, self._now())
        except UnsupportedVersionError as error:
            refusal = ApiError(ErrorCode.UNSUPPORTED_VERSION, str(error))
            refusal.__cause__ = error  # the broker was not asked: it does not offer the request
            self._take(machine.refuse(refusal))
        except AuthenticationError as error:
            self._take(machine.refuse(error))
        except (ApiError, WireError) as error:
            logger.info("group %s: %s", self._group_id, error)
            self._is_away(str(node), error)
            self._take(machine.connection_lost(self._now()))
        except Exception:  # a fault of ours must not leave the member without heartbeats
            logger.exception("group %s: no answer to %s", self._group_id, request.name)
            self._take(machine.connection_lost(self._now()))
        else:
            if answer.error_code not in _NOT_YET:
                self._is_back(node)
            if not answer.error_code:
                self._owner.accepted()
            self._take(events)

    def _is_away(self, who: str, why: object) -> None:
        """Log it once, whatever is tried until the coordinator is back."""
        if self._away_since is None:
            self._away_since = asyncio.get_running_loop().time()
            logger.warning("group %s: its coordinator, %s, is away: %s", self._group_id, who, why)

    def _is_back(self, node: Node) -> None:
        if self._away_since is not None:
            away_s = asyncio.get_running_loop().time() - self._away_since
            self._away_since = None
            logger.warning(
                "group %s: its coordinator is back after %.1f s: %s", self._group_id, away_s, node
            )

    async def _find(self) -> None:
        """Look the coordinator up, until it is found."""
        loop = asyncio.get_running_loop()
        tried = 0
        while True:
            found: Node | KohortError
            try:
                by_group = await self._cluster.coordinators(
                    [self._group_id], loop.time() + self._timeout_s
                )
                found = by_group[self._group_id]
            except (ApiError, WireError, UnsupportedVersionError) as error:
                found = error
            if isinstance(found, Node):
                self._node = found
                self._computer.reached(found)
                self.protocol.machine.coordinator_found()
                self._news.set()
                return
            for_good = isinstance(found, ApiError) and found.code in _FOR_GOOD
            if isinstance(found, AuthenticationError) or for_good:
                self._take(self.protocol.machine.refuse(found))
                return
            if tried == 1:  # a cluster that has just begun needs a moment to make one
                self._is_away("which nobody names", found)
            await self._cluster.pause(min(tried, 16), loop.time() + 3600)
            tried += 1

    async def _hang_up(self, request: asyncio.Task[None] | None) -> None:
        if request is not None:
            request.cancel()
        await self._cluster.hang_up()
        self._news.set()

    # Acting

    async def _act(self) -> None:
        """Act on the answers, in their order."""
        while True:
            event = await self._events.get()
            try:
                await self._follow(event)
            except Exception:
                logger.exception("group %s: nothing came of %s", self._group_id, event)

    async def _follow(self, event: Any) -> None:
        match event:
            case PartitionsAssigned(raw, returned):
                await self._assigned(raw, returned)
            case PartitionsRevoked(raw):
                names = self._names_of(raw)
                await self._let_go(
                    raw, self._owner.revoked(names, lambda: self.protocol.identity() is not None)
                )
            case PartitionsLost(raw, error):
                await self._let_go(raw, self._owner.lost(self._names_of(raw), error))
            case AssignmentMetadata(raw, version, metadata, failure, assignor):
                places = tuple(self._names_of(raw))
                told = AssignmentTold(places, metadata, version, failure, assignor)
                self._computer.notify_assignment(told)
            case RequestRefused(error):
                self._on_refusal(error, False)
            case MembershipFailed(error):
                self._on_refusal(error, True)
            case GroupLeft():
                pass

    async def _assigned(self, raw: Collection[Any], returned: Collection[Any]) -> None:
        """Hand over the partitions whose topics have names, each as soon as it has one: a new topic
        may not be visible at once.
        """
        tried = 0
        left = set(raw)
        while left:
            left &= self.protocol.machine.consumable  # the rest was taken away meanwhile
            deadline = asyncio.get_running_loop().time() + self._timeout_s
            try:
                named = await self.protocol.named(left, deadline)
            except (ApiError, WireError) as error:
                logger.info("group %s: names of topics: %s", self._group_id, error)
                named = {}
            named = {
                partition: name
                for partition, name in named.items()
                if partition in self.protocol.machine.consumable
            }
            if named:
                self._named.update(named)
                ids = self.protocol.topic_ids(named)
                again = [named[partition] for partition in returned if partition in named]
                await self._owner.assigned(sorted(named.values()), ids, returned=again)
                left -= named.keys()
            elif left:
                await self._cluster.pause(min(tried, 16), deadline + 3600)
                tried += 1

    async def _count(self, topics: Collection[str]) -> None:
        """The leader of a classic group must know how many partitions there are."""
        assert isinstance(self.protocol, ClassicProtocol)
        tried = 0
        while not self.outside.is_set():
            deadline = asyncio.get_running_loop().time() + self._timeout_s
            try:
                counted = await self.protocol.count(topics, deadline)
            except (ApiError, WireError) as error:
                logger.info("group %s: partitions of topics: %s", self._group_id, error)
                await self._cluster.pause(min(tried, 16), deadline)
                tried += 1
            else:
                self._take(self.protocol.machine.topics_known(counted))
                return

    def _names_of(self, raw: Collection[Any]) -> list[TopicPartition]:
        return sorted(self._named[partition] for partition in raw if partition in self._named)

    async def _let_go(self, raw: Collection[Any], farewell: Awaitable[None]) -> None:
        """The group waits for the release, whatever happens to the rest."""
        try:
            await farewell
        except Exception:
            logger.exception("group %s: while partitions were given up", self._group_id)
        for partition in raw:
            self._named.pop(partition, None)
        self._take(self.protocol.released(raw, self._now()))

    def _spawn(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)
