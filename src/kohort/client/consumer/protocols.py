# SPDX-License-Identifier: Apache-2.0
"""The two protocols of groups behind one face: a machine each, and what it needs from the cluster.

Partitions are `raw` as the machine names them, by topic id in KIP-848 and by name in the classic
protocol; the consumer names them by topic name.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple, Protocol, Self

from kohort import expressions
from kohort.client.consumer.group_offsets import Identity
from kohort.client.consumer.settings import ConsumerSettings
from kohort.client.members.classic_membership import (
    VERSIONS,
    ClassicMemberConfig,
    ClassicMembership,
    ClassicStage,
)
from kohort.client.members.events import Event
from kohort.client.members.heartbeat import MemberConfig, Offer
from kohort.client.members.membership import Membership
from kohort.client.members.retry_backoff import RetryBackoff
from kohort.client.network.connection import Need
from kohort.client.network.environment import environment
from kohort.client.network.metadata import Metadata
from kohort.client.topic_partitions import check_topic
from kohort.errors import ApiError, ErrorCode
from kohort.terms import GroupId, MemberId, Millis, TopicId, TopicPartition
from kohort.wire.messages.join_group import JoinGroupRequest

HEARTBEAT = Need(1, "a member with an id of its own", "KIP-1082, Apache Kafka 4.0")
_MISSING = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
_GRACE_MS = 5000  # the answer to a join may take a rebalance, and its way

Events = list[Event[Any]]


class TopicSubscription(NamedTuple):
    """Topics by name, ascending, and an expression that names of topics match as a whole.

    In a KIP-848 group the broker matches (RE2, both together); in a classic group the client does.
    """

    names: tuple[str, ...] = ()
    pattern: str = ""

    @classmethod
    def of(cls, topics: Iterable[str], pattern: str | None) -> Self:
        """What an application asks for. Raises TypeError and ValueError where it is nothing that a
        broker could match.
        """
        names: list[Any] = list(topics)
        for name in names:
            if isinstance(name, Mapping):  # not shown, as it may hold a password
                raise TypeError(
                    "topics has a mapping, expected a text for each: settings go to "
                    "bootstrap_servers=, as Consumer('orders', bootstrap_servers=settings)"
                )
            if isinstance(name, list | tuple | set | frozenset):
                raise TypeError(
                    f"topics has {name!r}, expected a text for each, as ('orders', 'payments')"
                )
            if not isinstance(name, str):
                raise TypeError(f"topics has {name!r}, expected a text for each")
            check_topic("topics", name)
        if not names and not pattern:
            raise ValueError("nothing to subscribe to, expected a topic or a pattern")
        if pattern is not None and not isinstance(pattern, str):
            raise TypeError(
                f"pattern is {pattern!r}, expected its text: brokers read expressions of RE2"
            )
        if pattern and expressions.unavailable_or_none() is None:
            try:
                expressions.check(pattern)
            except expressions.InvalidExpression as error:
                raise ValueError(f"pattern {pattern!r} is none of RE2: {error}") from None
        return cls(tuple(sorted(set(names))), pattern or "")

    def __str__(self) -> str:
        parts = [*self.names, *([f"/{self.pattern}/"] if self.pattern else [])]
        return ", ".join(parts)


class GroupProtocol(Protocol):
    """A membership, and how to tell it things of the consumer."""

    machine: Any
    wanted: TopicSubscription

    def want(self, now: Millis) -> Events:
        """What is subscribed to has changed."""

    def released(self, raw: Collection[Any], now: Millis) -> Events:
        """The consumer has let go of these."""

    async def named(self, raw: Collection[Any], deadline: float) -> dict[Any, TopicPartition]:
        """Those that have a name already. Raises ApiError."""

    def topic_ids(
        self, named: Mapping[Any, TopicPartition]
    ) -> dict[TopicPartition, TopicId] | None:
        """Which topics the group means by these; None where it knows them by name."""

    async def look_again(self, now: Millis, deadline: float) -> Events:
        """Topics may have come, grown or gone. Raises ApiError."""

    def topic_changed(self, name: str, partitions: int, now: Millis) -> Events:
        """The cluster has said that a topic has so many partitions."""

    def missing(self) -> Collection[str]:
        """Topics that are not there, and that the member has to look for on behalf of others."""

    def identity(self) -> Identity | None:
        """Who commits now; None while a commit would be refused."""

    def need(self, request: Any) -> Need | None:
        """The oldest version that a request may have."""

    def at_most(self, request: Any) -> int:
        """The newest version that a request is written for."""

    def patience_ms(self, request: Any) -> int:
        """How long its answer may take; 0 for as long as any other."""


class ModernProtocol:
    """KIP-848. The member id is drawn here, for good."""

    def __init__(
        self,
        settings: ConsumerSettings,
        metadata: Metadata,
        wanted: TopicSubscription,
        backoff: RetryBackoff,
        offers: Callable[[], tuple[Offer, ...] | None],
    ) -> None:
        self._settings = settings
        self._metadata = metadata
        self._offers = offers
        self.wanted = wanted
        self.machine = Membership(
            GroupId(settings.group_id or ""),
            MemberId(str(environment().new_uuid())),
            self._config(),
            backoff,
            instance_id=settings.group_instance_id,
            session_ms=settings.group_consumer_session_timeout_ms,
        )

    def _config(self) -> MemberConfig:
        return MemberConfig(
            names=self.wanted.names,
            regex=self.wanted.pattern,
            rebalance_timeout_ms=self._settings.max_poll_interval_ms,
            server_assignor=self._settings.group_remote_assignor,
            rack=self._settings.client_rack,
            offers=self._offers(),
        )

    def want(self, _now: Millis) -> Events:
        self.machine.want(self._config())
        return []

    def released(self, raw: Collection[Any], _now: Millis) -> Events:
        return self.machine.released(frozenset(raw))

    async def named(self, raw: Collection[Any], deadline: float) -> dict[Any, TopicPartition]:
        topics = await self._metadata.by_ids({partition.topic_id for partition in raw}, deadline)
        found = {}
        for partition in raw:
            topic = topics[partition.topic_id]
            if not isinstance(topic, ApiError):
                found[partition] = TopicPartition(topic.name, partition.partition)
        return found

    def topic_ids(
        self, named: Mapping[Any, TopicPartition]
    ) -> dict[TopicPartition, TopicId] | None:
        return {name: partition.topic_id for partition, name in named.items()}

    async def look_again(self, _now: Millis, _deadline: float) -> Events:
        return []  # the broker does

    def topic_changed(self, _name: str, _partitions: int, _now: Millis) -> Events:
        return []

    def missing(self) -> Collection[str]:
        return ()

    def identity(self) -> Identity | None:
        who = self.machine.commits_as
        if who is None:
            return None
        return Identity(*who, self._settings.group_instance_id, is_modern=True)

    def need(self, _request: Any) -> Need | None:
        return HEARTBEAT

    def at_most(self, _request: Any) -> int:
        return HEARTBEAT.version

    def patience_ms(self, _request: Any) -> int:
        return 0


class ClassicProtocol:
    """JoinGroup and SyncGroup. An expression is matched here, and a leader watches its topics."""

    def __init__(
        self,
        settings: ConsumerSettings,
        metadata: Metadata,
        wanted: TopicSubscription,
        backoff: RetryBackoff,
    ) -> None:
        self._settings = settings
        self._metadata = metadata
        self.wanted = wanted
        self._matched: tuple[str, ...] = ()
        self._matched_by = ""
        self._counted: dict[str, int] = {}  # as the leader last knew
        self.machine = ClassicMembership(
            GroupId(settings.group_id or ""),
            self._config(),
            backoff,
            instance_id=settings.group_instance_id,
        )

    def _config(self) -> ClassicMemberConfig:
        settings = self._settings
        matched = self._matched if self._matched_by == self.wanted.pattern else ()
        return ClassicMemberConfig(
            topics=tuple(sorted({*self.wanted.names, *matched})),
            protocols=settings.partition_assignment_strategy,
            session_timeout_ms=settings.session_timeout_ms,
            rebalance_timeout_ms=settings.max_poll_interval_ms,
            heartbeat_interval_ms=settings.heartbeat_interval_ms,
            rack=settings.client_rack,
        )

    def want(self, now: Millis) -> Events:
        return self.machine.want(self._config(), now)

    def released(self, raw: Collection[Any], now: Millis) -> Events:
        return self.machine.released(frozenset(raw), now)

    async def named(self, raw: Collection[Any], _deadline: float) -> dict[Any, TopicPartition]:
        return {partition: partition for partition in raw}

    def topic_ids(
        self, _named: Mapping[Any, TopicPartition]
    ) -> dict[TopicPartition, TopicId] | None:
        return None

    async def look_again(self, now: Millis, deadline: float) -> Events:
        events: Events = []
        pattern = self.wanted.pattern
        if pattern:
            topics = await self._metadata.all_topics(deadline)
            self._matched_by = pattern
            self._matched = tuple(
                name
                for name, topic in topics.items()
                if not topic.is_internal and expressions.matches(pattern, name)
            )
            events += self.want(now)
        if self.machine.leads and self.machine.stage is ClassicStage.MEMBER:
            before = self._counted
            found = await self.count(tuple(before), deadline)
            # One that has come or grown goes through `topic_changed`, which hears of each count.
            if any(before[name] and not found[name] for name in before):
                events += self.machine.join_again(now)
        return events

    def topic_changed(self, name: str, partitions: int, now: Millis) -> Events:
        """A leader has the group rebalance; while it counts, what it counts comes into this one."""
        stage, counted = self.machine.stage, self._counted.get(name, partitions)
        if not self.machine.leads or stage is ClassicStage.ASSIGNING or counted == partitions:
            return []
        self._counted = {**self._counted, name: partitions}
        return self.machine.join_again(now)

    def missing(self) -> Collection[str]:
        if not self.machine.leads:
            return ()
        return [name for name, partitions in self._counted.items() if not partitions]

    async def count(self, topics: Collection[str], deadline: float) -> dict[str, int]:
        """How many partitions each topic has, for the leader: 0 for one that does not exist.

        Raises ApiError while one is not known: its partitions would go to nobody.
        """
        for name in topics:  # a group without a member for a new partition waits for long
            self._metadata.outdated(name)
        found = await self._metadata.topics(topics, deadline)
        for topic in found.values():
            if isinstance(topic, ApiError) and topic.code.retriable and topic.code is not _MISSING:
                raise topic
        self._counted = {
            name: 0 if isinstance(topic, ApiError) else len(topic.partitions)
            for name, topic in found.items()
        }
        return self._counted

    def identity(self) -> Identity | None:
        who = self.machine.commits_as
        return None if who is None else Identity(*who, self._settings.group_instance_id)

    def need(self, _request: Any) -> Need | None:
        return None

    def at_most(self, request: Any) -> int:
        return VERSIONS[type(request)]

    def patience_ms(self, request: Any) -> int:
        if isinstance(request, JoinGroupRequest):
            return self._settings.max_poll_interval_ms + _GRACE_MS
        return 0
