# SPDX-License-Identifier: Apache-2.0
"""The partitions of a consumer: what begins and ends with each of them.

A partition begins at its committed offset, and its records are handed out once the listener knows
of it. It ends when the application has come back from its records: then what was processed is
committed, and only then is it given away.
"""

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any

from kohort.client.admin.group_views import CommittedOffset
from kohort.client.consumer.group_offsets import GroupOffsets
from kohort.client.consumer.in_flight_records import InFlightRecords
from kohort.client.consumer.settings import ConsumerSettings
from kohort.client.fetcher import Fetcher, OffsetAndEpoch
from kohort.client.log_deduplication import LogDeduplicator
from kohort.errors import ApiError, ErrorCode, KohortError
from kohort.terms import TopicId, TopicPartition

logger = logging.getLogger(__name__)

_LOOK_AGAIN_S = 0.2  # whether the coordinator is still waiting for what the application works on
_LOOKS = 4  # for the committed offsets of a topic by its id, before its name counts
_OFFSETS_S = 5.0  # for one attempt to read committed offsets


class RebalanceListener:
    """Override what you need; each may be a plain function or a coroutine.

    The consumer waits for each before it goes on, while its heartbeats continue. An exception is
    raised by the next call for records.
    """

    def on_assigned(self, partitions: Collection[TopicPartition]) -> Awaitable[None] | None:
        """These are ours from now on. Their records come after this call; `seek` is possible."""

    def on_revoked(self, partitions: Collection[TopicPartition]) -> Awaitable[None] | None:
        """These are to be given up. All that was handed out of them is done with, unless the
        application was too slow; they are given away after this call, and `commit` is possible.
        """

    def on_lost(self, partitions: Collection[TopicPartition]) -> Awaitable[None] | None:
        """These belong to others already, perhaps; nothing can be committed."""
        return self.on_revoked(partitions)


def check_listener(given: object) -> None:
    """Raises TypeError for what cannot be told anything: a function, or the class of a listener."""
    calls = ("on_assigned", "on_revoked", "on_lost")
    hears = all(callable(getattr(given, call, None)) for call in calls)
    if given is not None and (isinstance(given, type) or not hears):
        raise TypeError(f"listener is {given!r}, expected an instance of a RebalanceListener")


class Ownership:
    """`owned` is what the consumer has, `paused` what the application has paused of it.

    `trouble` is what the next call for records raises, and `final` what each of them does. The
    next one raises `denied`, too, unless the coordinator has accepted a request meanwhile.
    `hurry` means that nobody waits for the application any more: it is too slow, or the consumer
    closes. `gone` is what others got, until this one has it again, and `lost_in_work` what they got
    while the application worked on records of it, until it comes back; `void_in_work` is what it
    works on of a topic that was deleted and made anew.
    `telling` is the task in which the listener is told something.
    """

    def __init__(
        self,
        fetcher: Fetcher,
        in_flight: InFlightRecords,
        settings: ConsumerSettings,
        offsets: GroupOffsets | None,
    ) -> None:
        self.owned: frozenset[TopicPartition] = frozenset()
        self.paused: frozenset[TopicPartition] = frozenset()
        self.trouble: BaseException | None = None
        self.final: BaseException | None = None
        self.denied: KohortError | None = None
        self.telling: asyncio.Task[Any] | None = None
        self.listener = RebalanceListener()
        self.hurry = False
        self.lost_in_work: frozenset[TopicPartition] = frozenset()
        self.gone: frozenset[TopicPartition] = frozenset()
        self.void_in_work: frozenset[TopicPartition] = frozenset()
        self._fetcher = fetcher
        fetcher.on_topic_recreated = self._topic_recreated
        self._in_flight = in_flight
        self._settings = settings
        self._offsets = offsets
        self._committed: dict[TopicPartition, int] = {}
        self._unwanted: set[TopicPartition] = set()  # to be given up, or lost: nothing is read
        self._beginning: set[TopicPartition] = set()  # the listener does not know of them yet
        self._paused_before: frozenset[TopicPartition] = frozenset()  # the rebalance under way
        self._repeats = LogDeduplicator()  # of refusals
        self._back = asyncio.Event()

    # The application

    def listen(self, listener: RebalanceListener | None) -> None:
        """Tell this one from now on; None changes nothing. Raises TypeError for what is none."""
        check_listener(listener)
        if listener is not None:
            self.listener = listener

    def mark_processed(self) -> None:
        """The application asks for more, so it has processed what it was handed."""
        self.lost_in_work = self.void_in_work = frozenset()
        self._back.set()

    def pause(self, partitions: Collection[TopicPartition]) -> None:
        """Hand out nothing of these. Raises ValueError for one that is not assigned."""
        self.check(partitions)
        self.paused |= frozenset(partitions)
        self.put_back(partitions)
        self._fetcher.pause(partitions)

    def resume(self, partitions: Collection[TopicPartition]) -> None:
        """Hand these out again. Raises ValueError for one that is not assigned."""
        self.check(partitions)
        self.paused -= frozenset(partitions)
        self._fetcher.resume(self._free(partitions))

    def put_back(self, partitions: Collection[TopicPartition]) -> None:
        """Records of these that are lined up are read again later."""
        for partition, place in self._in_flight.put_back(partitions).items():
            self._fetcher.seek(partition, place)

    def hand_out_again(self) -> None:
        """Nobody works any more on what was handed out last: it is not processed."""
        for partition, place in self._in_flight.take_back().items():
            logger.warning(
                "%s: the task that worked on it broke off: from offset %d again",
                *(partition, place.offset),
            )
            self._fetcher.seek(partition, place)

    def position(self, partition: TopicPartition) -> OffsetAndEpoch | None:
        """The next record that the application gets; None while it is looked up.

        Raises ValueError for a partition that is not assigned.
        """
        self.check([partition])
        fetched = self._fetcher.position(partition)
        return None if fetched is None else self._in_flight.position(partition, fetched)

    def check(self, partitions: Collection[TopicPartition]) -> None:
        for partition in partitions:
            if partition not in self.owned:
                raise ValueError(
                    f"partition {partition} is not assigned to this consumer, which has "
                    f"{', '.join(map(str, sorted(self.owned))) or 'none'}"
                )

    # What the group says

    async def assigned(
        self,
        partitions: Collection[TopicPartition],
        ids: Mapping[TopicPartition, TopicId] | None = None,
        *,
        returned: Collection[TopicPartition] = (),
        deadline: float | None = None,
    ) -> None:
        """Begin with these, each at its committed offset. `ids` are the topics that the group
        means, where it names them by id. Those that have `returned` from a rebalance are paused if
        they were before it.

        Raises ApiError at the deadline, if there is one, and before it for what does not pass.
        """
        self._unwanted.difference_update(partitions)
        paused, self._paused_before = self._paused_before.intersection(returned), frozenset()
        begin = await self._begin(partitions, ids, deadline)
        if begin is None:
            return  # lost meanwhile
        places, known = begin
        partitions = places.keys()
        self._fetcher.add(places, known, bound=ids is not None)
        self._fetcher.pause(places)  # until the listener knows of them
        self._beginning.update(places)
        self.owned |= frozenset(places)
        self.gone -= self.owned
        self.paused |= paused.intersection(places)
        try:
            await self._tell(self.listener.on_assigned, partitions)
        except asyncio.CancelledError:
            self._forget(partitions)  # it was not told of them
            raise
        finally:
            self._beginning.difference_update(places)
        self._fetcher.resume(self._free(places))

    def unwanted(self, partitions: Collection[TopicPartition], *, lost: bool = False) -> None:
        """These will be revoked, or are lost: none of their records is handed out from now on, and
        what is lost is committed by nobody, though its turn to be forgotten comes later.

        Whoever still waits to begin with them stops that, as the group waits for it. An open
        transaction may keep their offsets for long.
        """
        self._unwanted.update(partitions)
        if lost:
            self._note_lost(self.owned.intersection(partitions))
        self._stop(self.owned.intersection(partitions))

    def _stop(self, partitions: Collection[TopicPartition]) -> None:
        self._fetcher.pause(partitions)
        self.put_back(partitions)

    def _free(self, partitions: Collection[TopicPartition]) -> frozenset[TopicPartition]:
        """Those of these whose records may be handed out."""
        mine = self.owned.intersection(partitions)
        return mine - self.paused - self._unwanted - self._beginning

    async def revoked(
        self, partitions: Collection[TopicPartition], still_ours: Callable[[], bool]
    ) -> None:
        """Stop with these. The application has until the coordinator loses its patience. If this is
        cancelled, it still has them.
        """
        partitions = self.owned.intersection(partitions)  # the others have never begun
        if not partitions:
            return
        self._unwanted.update(partitions)
        self._stop(partitions)
        try:
            await self._farewell(partitions, still_ours)
        except asyncio.CancelledError:
            self._unwanted.difference_update(partitions)
            self._fetcher.resume(self._free(partitions))
            raise
        self._paused_before = self.paused.intersection(partitions)
        self._forget(partitions)

    async def _farewell(
        self, partitions: Collection[TopicPartition], still_ours: Callable[[], bool]
    ) -> None:
        while self._in_flight.works_on(partitions) and still_ours() and not self.hurry:
            self._back.clear()
            try:
                async with asyncio.timeout(_LOOK_AGAIN_S):
                    await self._back.wait()
            except TimeoutError:
                continue
        if still_ours():
            if self._settings.enable_auto_commit:
                await self.commit_processed(partitions, self._settings.request_timeout_ms / 1000)
            elif self._offsets is not None:
                await self._offsets.finished()
        if still_ours():  # that commit may have told that others have them
            await self._tell(self.listener.on_revoked, partitions)
            self._note_lost(partitions)
        else:
            self._note_lost(partitions)
            await self._tell(self.listener.on_lost, partitions)

    async def lost(self, partitions: Collection[TopicPartition], error: ApiError) -> None:
        """Drop these: others may have them."""
        logger.warning("lost %s: %s", ", ".join(map(str, partitions)), error)
        self._note_lost(partitions)
        self._forget(partitions)
        await self._tell(self.listener.on_lost, partitions)

    def refused(self, error: KohortError, *, for_good: bool) -> None:
        """The coordinator says no."""
        if for_good:
            self.final = error
            self._fetcher.nudge()
        elif isinstance(error, ApiError) and error.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            self.denied = error
            self._fetcher.nudge()
        elif self._repeats.is_due(str(error)):  # the same one comes with every attempt
            logger.warning("refused, and asking again: %s", error)

    def accepted(self) -> None:
        """The coordinator refuses nothing any more: a refusal that comes later is a new one."""
        self._repeats.end()
        self.denied = None

    def forget_refusals(self) -> None:
        """The subscription is another one."""
        self.final = self.denied = None

    def fail(self, error: BaseException) -> None:
        """The next call for records raises this."""
        self.trouble = error
        self._fetcher.nudge()

    def raise_trouble(self) -> None:
        """Raise the trouble: once, or at each call where only another subscription helps.

        A topic that is denied is raised once for each refusal, as by Java's consumer: the
        coordinator is asked again, since the right may be granted at any time.
        """
        trouble = self.trouble or self.final or self.denied
        self.trouble = self.denied = None
        if trouble is not None:
            raise trouble

    # Offsets

    def processed(
        self, partitions: Collection[TopicPartition], *, handed: bool = False
    ) -> dict[TopicPartition, CommittedOffset]:
        """The places that may be committed: as far as these are processed, or handed out."""
        found = {}
        for partition in sorted(partitions):
            fetched = self._fetcher.position(partition)
            if fetched is None:
                continue
            told = self._in_flight.position if handed else self._in_flight.processed
            place = told(partition, fetched)
            epoch = place.leader_epoch if place.leader_epoch >= 0 else None
            found[partition] = CommittedOffset(place.offset, epoch, "")
        return found

    async def commit_processed(
        self, partitions: Collection[TopicPartition], timeout_s: float
    ) -> None:
        """Commit as far as is processed. Records that are not committed are processed again by
        another member.
        """
        if self._offsets is None:
            return
        deadline = asyncio.get_running_loop().time() + timeout_s
        news: dict[TopicPartition, CommittedOffset] = {}

        def what_is_new() -> dict[TopicPartition, CommittedOffset]:
            mine = self.owned.intersection(partitions)
            handed = self.processed(mine, handed=True)
            for partition, offset in self.processed(mine).items():
                committed = self._committed.get(partition, -1)
                # The application may have committed what it still works on: that stands.
                if not offset.offset <= committed <= handed[partition].offset:
                    news[partition] = offset
            return news

        try:
            await self._offsets.commit(what_is_new, deadline, self._fetcher.topic_id)
        except KohortError as error:
            shown = ", ".join(
                f"{partition} at {position.offset}" for partition, position in news.items()
            )
            logger.warning("not committed: %s: %s", shown or "what was processed", error)
        else:
            self.note(news)

    def note(self, committed: Mapping[TopicPartition, CommittedOffset]) -> None:
        """These are committed."""
        for partition, offset in committed.items():
            if partition in self.owned:
                self._committed[partition] = offset.offset

    async def _begin(
        self,
        partitions: Collection[TopicPartition],
        told: Mapping[TopicPartition, TopicId] | None,
        until: float | None,
    ) -> (
        tuple[dict[TopicPartition, OffsetAndEpoch | None], Mapping[TopicPartition, TopicId]] | None
    ):
        """Where each begins, and in which topic; None when the partitions are lost before that is
        known.
        """
        places: dict[TopicPartition, OffsetAndEpoch | None] = dict.fromkeys(partitions)
        ids = told or {}
        offsets = self._offsets
        loop = asyncio.get_running_loop()
        unknown = 0
        while offsets is not None:
            deadline = loop.time() + _OFFSETS_S
            if until is not None:
                deadline = min(deadline, until)
            if told is None:
                ids = {}
                if unknown < _LOOKS:
                    ids = await self._fetcher.topic_ids(partitions, deadline)
            try:
                committed = await offsets.fetch(partitions, deadline, ids)
            except KohortError as error:
                if isinstance(error, ApiError) and error.code is ErrorCode.UNKNOWN_TOPIC_ID:
                    unknown += 1  # the coordinator may hear of a new topic later than others
                    if told is not None and unknown == _LOOKS:
                        break  # it is gone, and the group is about to say so
                partitions = [place for place in partitions if place not in self._unwanted]
                if not offsets.has_identity or self.hurry or not partitions:
                    return None
                places = dict.fromkeys(partitions)
                passes = not isinstance(error, ApiError) or error.code.retriable
                if until is not None and (loop.time() >= until or not passes):
                    raise
                logger.warning("committed offsets are not known yet: %s", error)
                if not passes:
                    self.fail(error)
                await asyncio.sleep(_LOOK_AGAIN_S)
            else:
                for partition, offset in committed.items():
                    if offset is not None:
                        epoch = -1 if offset.leader_epoch is None else offset.leader_epoch
                        places[partition] = OffsetAndEpoch(offset.offset, epoch)
                        self._committed[partition] = offset.offset
                break
        return places, ids

    def _topic_recreated(self, partition: TopicPartition) -> None:
        """The records that were handed out are of a topic that is gone: none of them may be
        committed.
        """
        if self._in_flight.works_on([partition]):
            self.void_in_work |= {partition}
        self._in_flight.drop([partition])
        self._committed.pop(partition, None)

    def _note_lost(self, partitions: Collection[TopicPartition]) -> None:
        if self._offsets is not None:
            self._offsets.lost(partitions)
        gone = (partition for partition in partitions if self._in_flight.works_on([partition]))
        self.lost_in_work = self.lost_in_work.union(gone)
        self.gone = self.gone.union(partitions)

    def _forget(self, partitions: Collection[TopicPartition]) -> None:
        gone = frozenset(partitions)
        self._in_flight.drop(gone)
        self._fetcher.remove(self.owned & gone)
        self.owned -= gone
        self.paused -= gone
        self._unwanted -= gone
        for partition in gone:
            self._committed.pop(partition, None)

    async def _tell(
        self,
        call: Callable[[Collection[TopicPartition]], Awaitable[None] | None],
        partitions: Collection[TopicPartition],
    ) -> None:
        """What a listener raises is raised by the next call for records."""
        task = self.telling = asyncio.current_task()
        try:
            answer = call(tuple(sorted(partitions)))
            if inspect.isawaitable(answer):
                await answer
        except Exception as error:  # noqa: BLE001  (the application's own)
            self.fail(error)
        except asyncio.CancelledError as error:
            if task is None or task.cancelling():
                raise
            failure = RuntimeError("a rebalance listener was cancelled")
            failure.__cause__ = error
            self.fail(failure)
        finally:
            self.telling = None
