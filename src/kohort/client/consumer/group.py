# SPDX-License-Identifier: Apache-2.0
"""A consumer's way through its group: in by the protocol that the broker has, out, and in again."""

import asyncio
import logging
from collections.abc import Callable, Collection

from kohort.client.consumer.assignor_runner import AssignorRunner
from kohort.client.consumer.group_offsets import NOBODY, Identity
from kohort.client.consumer.member import Member
from kohort.client.consumer.ownership import Ownership
from kohort.client.consumer.protocols import (
    HEARTBEAT,
    ClassicProtocol,
    GroupProtocol,
    ModernProtocol,
    TopicSubscription,
)
from kohort.client.consumer.settings import ConsumerSettings
from kohort.client.members.retry_backoff import RetryBackoff
from kohort.client.network.cluster import Cluster
from kohort.client.network.denials import explained
from kohort.client.network.environment import environment
from kohort.client.network.metadata import Metadata
from kohort.errors import ApiError, ErrorCode, KohortError, UnsupportedVersionError

logger = logging.getLogger(__name__)


class Group:
    """`wanted` is what the consumer subscribes to, None for nothing."""

    def __init__(
        self,
        settings: ConsumerSettings,
        new_cluster: Callable[[], Cluster],
        metadata: Metadata,
        ownership: Ownership,
        assignor_runner: AssignorRunner,
    ) -> None:
        self.wanted: TopicSubscription | None = None
        self._settings = settings
        self._new_cluster = new_cluster
        self._metadata = metadata
        self._ownership = ownership
        self._assignor_runner = assignor_runner
        assignor_runner.ask_soon = self.ask_soon
        self._member: Member | None = None
        self._is_modern = settings.group_protocol != "classic"
        self._idle_told = False
        self._late = False  # left because the application stayed away
        self._backoff = RetryBackoff(jitter_permille=environment().chance.randrange(-200, 201))
        self._changing: asyncio.Task[None] | None = None

    # Who we are

    def identity(self) -> Identity | None:
        """Who commits: nobody in particular where partitions are chosen by the application."""
        if self._member is None:
            return NOBODY if self.wanted is None else None
        return self._member.protocol.identity()

    # In and out

    def enter(self) -> None:
        """Ask to be taken in, or tell the group of another subscription."""
        if self._member is None:
            self._begin()
        elif self.wanted is not None:
            self._member.protocol.wanted = self.wanted
            self._member.want()
            if self._member.outside.is_set():
                self._join(self._member)
            if not self._is_modern:
                self._look_soon()

    def waits_for(self) -> str:
        """What keeps the consumer from leaving at this moment, for people."""
        if self._ownership.telling is not None:
            return "the rebalance listener"
        if self._ownership.owned:
            return f"the last commit, for {len(self._ownership.owned)} partitions"
        return "the answer of the coordinator"

    async def leave(self, *, for_good: bool) -> None:
        """Give everything back and leave."""
        if self._member is not None and not self._member.outside.is_set():
            self._member.leave(for_good=for_good)
            await self._member.outside.wait()
        await self.close()

    async def close(self) -> None:
        """End without a word."""
        if self._changing is not None:
            self._changing.cancel()
        member, self._member = self._member, None
        try:
            await self._assignor_runner.close()
        finally:
            if member is not None:
                await member.close()

    def on_poll_timeout(self, away_s: float) -> None:
        """The application has stayed away for so long that others should have its partitions."""
        member = self._member
        if member is None or self._late or member.outside.is_set():
            return
        logger.warning(
            "group %s: records were not asked for since %d s, which is more than "
            "max_poll_interval_ms (%d): leaving, until they are",
            *(self._settings.group_id, away_s, self._settings.max_poll_interval_ms),
        )
        self._late = self._ownership.hurry = True
        member.leave()

    def on_poll(self) -> None:
        """The application asks for records: it is back."""
        if self._member is not None:
            self._member.check_silence()
        if self._late and self._member is not None and self._member.outside.is_set():
            self._join(self._member)

    def on_poll_wait(self) -> None:
        """The application goes on waiting for records. Without anything to read it would do so for
        ever, which is said once.
        """
        self.on_poll()
        if self.wanted is None and not self._ownership.owned and not self._idle_told:
            self._idle_told = True
            logger.warning("nothing is read: no topic is subscribed to, and nothing is assigned")

    # What others have heard

    def refused_as(self, who: Identity, error: ApiError) -> None:
        """A request in the name of the member was refused: by its present epoch it is out."""
        if self._member is not None:
            self._member.refused_as(who, error)

    def ask_soon(self) -> None:
        """What the coordinator has said last is not true any more: have it asked at once."""
        if self._member is not None:
            self._member.ask_soon()

    def topic_changed(self, name: str, partitions: int) -> None:
        """The cluster has said how many partitions a topic has."""
        if self._member is not None:
            self._member.topic_changed(name, partitions)

    def missing(self) -> Collection[str]:
        """Topics that the member looks for because it leads."""
        return () if self._member is None else self._member.protocol.missing()

    def ask_for_assignment(self, reason: int) -> None:
        """Have the group computed anew, with metadata of now. Raises ValueError outside a group
        that could do it.
        """
        if self._member is None or not self._is_modern or not self._assignor_runner.has_assignors:
            raise ValueError("the consumer is in no group with assignors of its own")
        self._assignor_runner.reason = reason
        self._member.want()

    async def look_again(self) -> None:
        """Look for topics that have come, gone or grown."""
        if self._member is not None:
            try:
                await self._member.look_again()
            except KohortError as error:
                logger.info("group %s: %s", self._settings.group_id, error)

    # The protocol

    def _begin(self) -> None:
        assert self.wanted is not None
        settings = self._settings
        common = (settings, self._metadata, self.wanted, self._backoff)
        protocol: GroupProtocol
        if self._is_modern:
            protocol = ModernProtocol(*common, self._assignor_runner.offers)
        else:
            protocol = ClassicProtocol(*common)
        self._member = Member(
            settings.group_id or "",
            protocol,
            self._new_cluster(),
            self._ownership,
            self._assignor_runner,
            on_refusal=self._refused,
            timeout_s=settings.request_timeout_ms / 1000,
        )
        self._member.start()
        self._join(self._member)
        if not self._is_modern:
            self._look_soon()

    def _join(self, member: Member) -> None:
        """The application is there, so nobody is in a hurry."""
        self._late = self._ownership.hurry = False
        member.join()

    def _look_soon(self) -> None:
        """A member of a classic group matches expressions itself."""
        self._changing = asyncio.create_task(self.look_again())

    def _refused(self, error: KohortError, for_good: bool) -> None:  # noqa: FBT001
        """Go on by the classic protocol where the broker has no KIP-848, else tell."""
        too_old = isinstance(error, ApiError) and error.code is ErrorCode.UNSUPPORTED_VERSION
        if for_good and too_old and self._is_modern and self._settings.group_protocol == "auto":
            self._is_modern = False
            logger.info("group %s: by the classic protocol: %s", self._settings.group_id, error)
            self._changing = asyncio.create_task(self._change())
        elif for_good and too_old and self._is_modern:
            needs = f"ConsumerGroupHeartbeat v{HEARTBEAT.version} (KIP-848, Apache Kafka 4.0)"
            not_offered = isinstance(error.__cause__, UnsupportedVersionError)
            why = str(error.__cause__) if not_offered else "it refuses that"
            text = (
                "group_protocol is consumer, which the broker does not have: "
                f"it needs {needs}, and {why}"
            )
            refusal = ApiError(ErrorCode.UNSUPPORTED_VERSION, text)
            self._ownership.refused(refusal, for_good=True)
        else:
            if isinstance(error, ApiError):
                error = explained(error, self._metadata.cluster.principal, self._named(error))
            self._ownership.refused(error, for_good=for_good)

    def _named(self, error: ApiError) -> str:
        """What a refusal is about: of several topics the coordinator names none."""
        if error.code is not ErrorCode.TOPIC_AUTHORIZATION_FAILED or self.wanted is None:
            return self._settings.group_id or ""
        return ", ".join(sorted(self.wanted.names)) or "of the pattern"

    async def _change(self) -> None:
        former, self._member = self._member, None
        if former is not None:
            await former.close()
        if self._member is None:  # nobody has begun meanwhile
            self._begin()
