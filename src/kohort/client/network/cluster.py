# SPDX-License-Identifier: Apache-2.0
"""A cluster as its clients see it: bootstrap addresses, brokers, the controller, coordinators.

Connections are opened when they are first needed, and kept. The cluster does not remember leaders
and coordinators: a caller that gets NOT_COORDINATOR asks again, and gets today's answer.
"""

import asyncio
import logging
from asyncio.tasks import sleep  # the kit asks by this class, whatever a test patches
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, TypeAlias, TypeVar

from kohort.client.network.address import Address
from kohort.client.network.connection import Connection, Need
from kohort.client.network.connection_errors import (
    ConnectionFailedError,
    RequestTimeoutError,
    failure_of,
)
from kohort.client.network.credentials import Credentials
from kohort.client.network.environment import environment
from kohort.client.network.happy_eyeballs import PATIENCE_S, Attempt, first_of
from kohort.errors import (
    ApiError,
    AuthenticationError,
    ErrorCode,
    UnsupportedVersionError,
    WireError,
    api_error,
)
from kohort.security.settings import NO_SECURITY, Security
from kohort.terms import TopicId
from kohort.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kohort.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

logger = logging.getLogger(__name__)

Answer = TypeVar("Answer")
Key = TypeVar("Key")
Value = TypeVar("Value")
LookUp: TypeAlias = Callable[[Connection, float], Awaitable[Answer]]

BATCHED_LOOK_UP = 4  # FindCoordinator takes many keys from this version on (KIP-699)
NO_CREATION = 4  # Metadata can be told not to create topics from this version on
OF_GROUP, OF_TRANSACTION = 0, 1  # kinds of keys that have a coordinator
OF_TRANSACTIONS = Need(1, "a look-up for transactions", "KIP-98, Apache Kafka 0.11")
BY_ID = Need(12, "a look-up of topics by id", "KIP-516, Apache Kafka 3.1")


SETUP_S = 10.0  # upstream's socket.connection.setup.timeout.ms


class Node(NamedTuple):
    """A broker, by the id and the address that the cluster gives for it."""

    id: int
    host: str
    port: int
    rack: str | None = None

    @property
    def address(self) -> Address:
        return Address(self.host, self.port)

    def __str__(self) -> str:
        return f"node {self.id} at {self.address}"


class Backoff(NamedTuple):
    """Pauses between attempts: doubled each time up to a bound, with a jitter of a fifth.

    For batches a Producer sets them: retry_backoff_ms and retry_backoff_max_ms, as upstream's
    retry.backoff.ms and retry.backoff.max.ms. For all else that a Producer, Consumer or AdminClient
    asks a cluster for they are constants, the defaults of upstream's reconnect.backoff.ms and
    reconnect.backoff.max.ms, also where upstream has retry.backoff.ms. A member of a group has
    those of `RetryBackoff` in `client/members/retry_backoff.py`.
    """

    first_s: float = 0.05
    most_s: float = 1.0

    def pause_s(self, attempt: int, chance: float) -> float:
        """The pause after attempt 0, 1, 2 …; `chance` is a random number from 0 to 1."""
        return min(self.most_s, self.first_s * float(2 ** min(attempt, 16))) * (0.8 + 0.4 * chance)


class Cluster:
    """Every method takes a deadline on the loop's clock and raises RequestTimeoutError after it.

    `setup_s` is what one server may take to answer a new connection (upstream's
    socket.connection.setup.timeout.ms). `chance` gives the random numbers for jitter: a test passes
    its own. `security` is for all brokers, and ValueError is raised where it makes no sense;
    `credentials` has one that another cluster uses, too.

    AuthenticationError is raised by every method that asks: nothing is tried again for it.
    """

    def __init__(
        self,
        bootstrap: Sequence[Address],
        *,
        client_id: str,
        backoff: Backoff | None = None,
        setup_s: float = SETUP_S,
        chance: Callable[[], float] | None = None,
        security: Security = NO_SECURITY,
        credentials: Credentials | None = None,
    ) -> None:
        if not bootstrap:
            raise ValueError("no bootstrap server is given, expected at least one host:port")
        self.client_id = client_id
        self._bootstrap = tuple(bootstrap)
        self._backoff = backoff or Backoff()
        self._setup_s = setup_s
        self._chance = chance or environment().chance.random
        self._credentials = credentials or Credentials(security)
        self._connections: dict[Address, Connection] = {}
        self._opening: dict[Address, asyncio.Lock] = {}
        self._known: tuple[Address, ...] = ()
        self._loop: asyncio.AbstractEventLoop | None = None  # of all connections
        self._closed = False
        self._silent: set[Address] = set()  # said nothing when last asked: others come first

    @property
    def principal(self) -> str:
        """Who asks, for errors that say who has no right."""
        return self._credentials.principal

    def another(self) -> "Cluster":
        """The same cluster with connections of its own. Both know which servers were silent."""
        other = Cluster(
            self._bootstrap,
            client_id=self.client_id,
            backoff=self._backoff,
            setup_s=self._setup_s,
            chance=self._chance,
            credentials=self._credentials,
        )
        other._silent = self._silent
        return other

    async def close(self) -> None:
        """Close every connection. No other is opened: what is asked then raises ValueError."""
        self._check_loop()
        self._closed = True
        await self.hang_up()

    async def hang_up(self) -> None:
        """Close every connection; who waits for an answer gets an error. Others may be opened."""
        self._check_loop()
        connections = list(self._connections.values())
        self._connections.clear()
        for connection in connections:
            connection.abort()  # all of them, also where the wait below is cancelled
        for connection in connections:
            await connection.close()

    def _check_loop(self) -> None:
        """Connections belong to one event loop: in another one nobody would hear an answer."""
        loop = asyncio.get_running_loop()
        if self._loop is loop:
            return
        if self._connections:
            raise RuntimeError(
                f"client {self.client_id} belongs to the event loop in which it was first used: "
                "close it there, or make one for each loop"
            )
        self._loop, self._opening = loop, {}

    async def pause(self, attempt: int, deadline: float) -> bool:
        """Wait before the next attempt. False, without waiting, when the deadline would pass."""
        pause_s = self._backoff.pause_s(attempt, self._chance())
        if asyncio.get_running_loop().time() + pause_s >= deadline:
            return False
        await sleep(pause_s)
        return True

    async def connection(self, address: Address, deadline: float) -> Connection:
        """The open connection to an address, made when there is none: for which a server has until
        the deadline, and `setup_s` at most.
        """
        self._check_loop()
        connection = self._connections.get(address)
        if connection is not None and connection.is_open:
            return connection
        self._check_open()
        deadline = min(deadline, asyncio.get_running_loop().time() + self._setup_s)
        opening = self._opening.setdefault(address, asyncio.Lock())
        try:
            async with asyncio.timeout_at(deadline):  # who opens it now may have more time
                await opening.acquire()
        except TimeoutError:
            text = f"cannot connect to {address}: no answer in time"
            raise RequestTimeoutError(text, sent=False) from None
        try:
            connection = self._connections.get(address)
            if connection is None or not connection.is_open:
                connection = await Connection.open(
                    address,
                    client_id=self.client_id,
                    deadline=deadline,
                    credentials=self._credentials,
                )
                if self._closed:  # meanwhile
                    await connection.close()
                    self._check_open()
                self._connections[address] = connection
                self._silent.discard(address)
            return connection
        finally:
            opening.release()

    def _check_open(self) -> None:
        if self._closed:
            raise ValueError(f"{self.client_id} is closed, and asks nothing any more")

    async def ask(
        self,
        node: Node,
        request: Any,
        *,
        deadline: float,
        need: Need | None = None,
        at_most: int = 32767,
    ) -> Any:
        """Ask one broker. Raises what `Connection.open` and `Connection.ask` raise."""
        connection = await self.connection(node.address, deadline)
        return await connection.ask(request, deadline=deadline, need=need, at_most=at_most)

    async def any_connection(self, deadline: float) -> Connection:
        """A connection to any broker: to one that answered before, a bootstrap server, a known one.

        Of several that are open it is the one with the fewest requests that wait for an answer: a
        silent broker has one more. A server that says nothing for a second has the next one tried
        beside it. Raises ConnectionFailedError or RequestTimeoutError, with the reason for each
        address.
        """
        self._check_loop()
        opened = self._opened()
        if opened:
            return opened[0]
        addresses = self._addresses()
        attempts = [partial(self.connection, address, deadline) for address in addresses]
        return await self._first_of(attempts, addresses, deadline)

    async def reach(self, deadline: float) -> None:
        """Wait until any broker answers: all may be starting. Raises what `any_connection` does."""
        loop = asyncio.get_running_loop()
        tried = 0
        failure: ApiError | None = None
        while True:
            try:
                await self.any_connection(deadline)
            except (ConnectionFailedError, RequestTimeoutError) as error:
                if tried == 0:
                    logger.warning("no broker answers yet: %s", error.message)
                # An attempt that the deadline cut short says less than the one before it.
                if failure is None or loop.time() < deadline:
                    failure = error
                if not await self.pause(min(tried, 16), deadline):
                    raise failure from None
                tried += 1
            else:
                return

    async def ask_any(self, ask: LookUp[Answer], deadline: float) -> Answer:
        """What any broker answers. When one says nothing for a second, another one is asked, too: a
        connection that has been open for long may lead to one that is frozen.
        """
        loop = asyncio.get_running_loop()
        while True:
            try:
                first = await self.any_connection(deadline)
            except RequestTimeoutError:  # its share is over, and the caller's time is not
                if loop.time() >= deadline:
                    raise
            else:
                break
        others = [address for address in self._addresses() if address != first.address]

        async def ask_at(address: Address) -> Answer:
            before = self._connections.get(address)
            was_open = before is not None and before.is_open
            connection = await self.connection(address, deadline)
            try:
                answer = await ask(connection, deadline)
            except ConnectionFailedError:
                if not was_open:  # a new one that breaks is no accident
                    raise
                # It may have died since its last use.
                answer = await ask(await self.connection(address, deadline), deadline)
            self._silent.discard(address)
            return answer

        addresses = [first.address, *others]
        return await self._first_of(
            [partial(ask_at, address) for address in addresses], addresses, deadline
        )

    async def _first_of(
        self, attempts: Sequence[Attempt[Answer]], addresses: Sequence[Address], deadline: float
    ) -> Answer:
        """Attempts at these addresses, a second apart; within a shorter time, half of it. Raises
        the error of the only one, or one that names them all.
        """
        left_s = deadline - asyncio.get_running_loop().time()
        try:
            return await first_of(
                attempts,
                min(PATIENCE_S, max(0.0, left_s / 2)),
                (
                    *(ConnectionFailedError, RequestTimeoutError, AuthenticationError),
                    *(UnsupportedVersionError, WireError),
                ),
                lambda number: self._silent.add(addresses[number]),
            )
        except ExceptionGroup as group:
            for address, error in zip(addresses, group.exceptions, strict=True):
                if isinstance(error, RequestTimeoutError):
                    self._silent.add(address)
                elif not isinstance(error, ConnectionFailedError):
                    raise error from None  # somebody has answered, and waiting changes nothing
            failure = failure_of(group)
        raise failure

    def _opened(self) -> list[Connection]:
        """The open connections, the best one to ask first."""
        opened = [connection for connection in self._connections.values() if connection.is_open]
        return sorted(opened, key=lambda each: (each.address in self._silent, each.waiting))

    def _addresses(self) -> list[Address]:
        """Everybody who may be asked: those with an open connection first, the silent ones last."""
        opened = {connection.address for connection in self._opened()}
        known = dict.fromkeys((*self._bootstrap, *self._known))
        return sorted(known, key=lambda address: (address in self._silent, address not in opened))

    async def metadata(
        self,
        topics: Iterable[str] | None,
        deadline: float,
        *,
        ids: Iterable[TopicId] = (),
        need: Need | None = None,
        create: bool = False,
    ) -> MetadataResponse:
        """Brokers and topics: None asks for all topics, an empty list for none.

        `ids` asks for topics by id beside those by name (Metadata v12). A topic is created only
        with `create`, and where the broker allows it. A broker below v4 cannot be told not to, and
        is asked for all topics instead: look for the names that you want in the answer.
        """
        named = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
        if named is not None:
            by_id = [MetadataRequestTopic(topic_id=id_, name=None) for id_ in ids]
            named, need = named + by_id, BY_ID if by_id else need

        async def ask(connection: Connection, deadline: float) -> Any:
            old = not connection.offers(MetadataRequest, NO_CREATION)
            wanted = None if named and old and not create else named
            request = MetadataRequest(topics=wanted, allow_auto_topic_creation=create)
            return await connection.ask(request, deadline=deadline, need=need)

        answer: MetadataResponse = await self.ask_any(ask, deadline)
        self._known = tuple(Address(broker.host, broker.port) for broker in answer.brokers)
        return answer

    async def brokers_and(self, topics: Iterable[str] | None, deadline: float) -> MetadataResponse:
        """Topics as `metadata` has them, and the brokers that the cluster has now. A broker that is
        just starting knows none, itself included: it is asked again until it does. Raises
        BROKER_NOT_AVAILABLE.
        """
        named = None if topics is None else list(topics)
        answer = await self.metadata(named, deadline)
        attempt = 0
        while not answer.brokers and await self.pause(attempt, deadline):
            attempt += 1
            with suppress(RequestTimeoutError):  # of the last attempt: what was told says more
                answer = await self.metadata(named, deadline)
        if not answer.brokers:
            text = "the cluster names no brokers, expected at least one"
            raise ApiError(ErrorCode.BROKER_NOT_AVAILABLE, text)
        return answer

    async def nodes(self, deadline: float) -> dict[int, Node]:
        """The brokers that the cluster has now, by id. Raises as `brokers_and`."""
        return nodes_of(await self.brokers_and((), deadline))

    async def controller(self, deadline: float) -> Node:
        """The broker that takes changes of topics."""
        answer = await self.metadata((), deadline)
        nodes = nodes_of(answer)
        if answer.controller_id in nodes:
            return nodes[answer.controller_id]
        raise ApiError(
            ErrorCode.BROKER_NOT_AVAILABLE,
            f"the controller, node {answer.controller_id}, is not among the brokers",
        )

    async def coordinators(
        self, keys: Sequence[str], deadline: float, *, key_type: int = OF_GROUP
    ) -> dict[str, Node | ApiError]:
        """Who coordinates each group, or each transactional id: one request for all of them, or
        one each below v4.
        """

        async def ask(connection: Connection, deadline: float) -> dict[str, Node | ApiError]:
            return await _coordinators(connection, keys, key_type, deadline)

        return await self.ask_any(ask, deadline)


async def _coordinators(
    connection: Connection, keys: Sequence[str], key_type: int, deadline: float
) -> dict[str, Node | ApiError]:
    is_group = key_type == OF_GROUP
    thing, need = ("group", None) if is_group else ("transactional id", OF_TRANSACTIONS)
    if connection.offers(FindCoordinatorRequest, BATCHED_LOOK_UP):
        request = FindCoordinatorRequest(coordinator_keys=list(keys), key_type=key_type)
        answer: FindCoordinatorResponse = await connection.ask(request, deadline=deadline)
        found: dict[str, Node | ApiError] = {
            found.key: _node(
                found.error_code, found.error_message, found.node_id, found.host, found.port
            )
            for found in answer.coordinators
        }
        return answered(thing, keys, found)

    async def look_up(key: str) -> Node | ApiError:
        request = FindCoordinatorRequest(key=key, key_type=key_type)
        try:
            answer: FindCoordinatorResponse = await connection.ask(
                request, deadline=deadline, need=need, at_most=BATCHED_LOOK_UP - 1
            )
        except WireError as error:  # an answer of its own, which is not that of the others
            return ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error))
        return _node(
            answer.error_code, answer.error_message, answer.node_id, answer.host, answer.port
        )

    return dict(zip(keys, await asyncio.gather(*map(look_up, keys)), strict=True))


def nodes_of(metadata: MetadataResponse) -> dict[int, Node]:
    """The brokers in a metadata answer, by id."""
    return {
        broker.node_id: Node(broker.node_id, broker.host, broker.port, broker.rack)
        for broker in metadata.brokers
    }


class MissingEntryError(ApiError):
    """A broker's answer has no entry for something that was asked for."""


def unanswered(thing: str, name: object) -> ApiError:
    """The error for something that was asked for and is missing in the broker's answer."""
    text = f"the broker's answer lacks {thing} {name}"
    return MissingEntryError(ErrorCode.UNKNOWN_SERVER_ERROR, text)


def answered(
    thing: str, keys: Iterable[Key], found: Mapping[Key, Value]
) -> dict[Key, Value | ApiError]:
    """What an answer has for each key, and that error for one that it lacks."""
    return {key: found[key] if key in found else unanswered(thing, key) for key in keys}


def _node(code: int, message: str | None, node_id: int, host: str, port: int) -> Node | ApiError:
    return api_error(code, message) if code else Node(node_id, host, port)
