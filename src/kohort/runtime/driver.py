"""The one order that matters: step, append, sync, and only then reply.

This is the only place where the coordinator meets its log. A turn takes everything that has arrived
as one batch; its replies are parked at the log's end and leave when the log says that so much is
durable. A reply without records parks there too, so nobody ever reads what a crash could take back.

When a step or an append fails, the shard has absorbed what the log does not hold: every call of the
turn is refused, and the shard is read anew from the log, between the turns of the others.
"""

from collections import deque
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any

from kohort.coordinator.effects import Call, Effects, Reply
from kohort.coordinator.shard import Shard
from kohort.coordinator.topics import Topics
from kohort.errors import ApiError, Broken, ErrorCode, StorageError
from kohort.records import codec
from kohort.records.codec import Record
from kohort.runtime.loader import load
from kohort.runtime.observers import GroupStates, Observer
from kohort.storage.log import Log
from kohort.terms import Millis, Offset
from kohort.wire import batch

BATCH_RECORDS = 4096  # where a turn is cut: a reader holds a batch as a whole
RETRY_MS = 1000


class Condition(Enum):
    """What a shard can do for its callers."""

    LOADING = "loading"
    ACTIVE = "active"
    FAILED = "failed"


class PartitionDriver:
    """Drives one shard. `turn` may be called at any time; `synced` must follow with what the log
    has made durable. Nothing here waits, and nothing here knows what a socket is.
    """

    def __init__(self, log: Log, new_shard: Callable[[], Shard], observe: Observer) -> None:
        self.log = log
        self.condition = Condition.LOADING
        self.shard = new_shard()
        self._new_shard = new_shard
        self._observe = observe
        self._states = GroupStates(observe)
        self._inbox: deque[Call[Any]] = deque()
        self._parked: deque[tuple[Offset, Reply]] = deque()
        self._unanswered: dict[int, Call[Any]] = {}
        self._loading: Iterator[int] | None = None
        self._retry_at: Millis | None = None
        self._durable = log.end
        self._lost = False

    @property
    def active(self) -> bool:
        return self.condition is Condition.ACTIVE

    @property
    def waits_for_sync(self) -> bool:
        """Whether the log holds more than it has made durable."""
        return self._durable < self.log.end

    def submit(self, call: Call[Any]) -> None:
        """Take a call for the next turn. A shard that cannot serve it refuses it there and then."""
        if self.condition is Condition.ACTIVE:
            self._inbox.append(call)
        elif self.condition is Condition.LOADING:
            self._refuse(
                call, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "the group's log is being read"
            )
        else:
            self._refuse(
                call, ErrorCode.NOT_COORDINATOR, "the group's log cannot be written or read"
            )

    def wake_at(self) -> Millis | None:
        """When `turn` has something to do of its own accord."""
        if self.condition is Condition.ACTIVE:
            return self.shard.wake_at()
        return self._retry_at

    def turn(self, now: Millis) -> None:
        """Everything that is due and everything that has arrived, as one batch."""
        if self._retry_at is not None and now >= self._retry_at:
            self.start_loading()
        if self.condition is not Condition.ACTIVE:
            return
        calls = list(self._inbox)
        self._inbox.clear()
        steps: list[Effects] = []
        try:
            wake = self.shard.wake_at()
            if wake is not None and wake <= now:
                steps.append(self.shard.tick(now))
            for call in calls:
                effects = self.shard.call(call, now)
                if len(effects.replies) != 1 or effects.replies[0].token is not call.token:
                    self._remember(call, effects)
                steps.append(effects)
            self._write(steps, now)
        except StorageError as error:
            self._fail(calls, ErrorCode.NOT_COORDINATOR, error, now)
        except Exception as error:  # noqa: BLE001  (whatever it is, the state is not to be trusted)
            self._fail(calls, ErrorCode.UNKNOWN_SERVER_ERROR, error, now)
        else:
            self._states.stepped(self.shard, calls, steps)

    def topics_changed(self, topics: Topics, now: Millis) -> None:
        """Bring the shard the next image of the cluster's topics."""
        if self.condition is not Condition.ACTIVE:
            self.shard.topics = topics
            return
        try:
            self._write([self.shard.topics_changed(topics, now)], now)
        except Exception as error:  # noqa: BLE001  (as in `turn`)
            self._fail([], ErrorCode.NOT_COORDINATOR, error, now)

    def synced(self, durable: Offset) -> list[Reply]:
        """The replies that are safe to send, in the order in which they were earned."""
        self._durable = durable
        released: list[Reply] = []
        parked = self._parked
        while parked and parked[0][0] <= durable:
            released.append(parked.popleft()[1])
        return released

    def start_loading(self) -> None:
        """Begin to read the shard from its log; `load_some` goes on with it."""
        topics = self.shard.topics
        self.shard = self._new_shard()
        self.shard.topics = topics
        self.condition = Condition.LOADING
        self._retry_at = None
        self._loading = load(self.log, self.shard)

    def load_some(self, now: Millis, records: int = 1 << 62) -> bool:
        """Read about so many records more; true while there is more to read.

        A log that cannot be read leaves the shard FAILED, unless another try may help.
        """
        if self._loading is None:
            return False
        read = 0
        try:
            for count in self._loading:
                read += count
                if read >= records:
                    return True
            self._loading = None
            self._states.loaded(self.shard)
            self._write([self.shard.start(now)], now)
            self.condition = Condition.ACTIVE
        except Exception as error:  # noqa: BLE001  (a half-read shard must never become active)
            self._loading = None
            self._observe(f"a shard cannot be loaded: {type(error).__name__}: {error}")
            self.condition = Condition.FAILED
            self._retry_at = Millis(now + RETRY_MS) if isinstance(error, StorageError) else None
        return False

    def _write(self, steps: list[Effects], now: Millis) -> None:
        end = self.log.end
        for records in _batches(steps):
            try:
                end = self.log.append(_pack(records, now), len(records))
            except Broken:
                self._lost = True  # the log refuses everything from now on
                raise
        for step in steps:
            for reply in step.replies:
                self._parked.append((end, reply))
                if self._unanswered:
                    self._unanswered.pop(id(reply.token), None)

    def _remember(self, call: Call[Any], effects: Effects) -> None:
        """Keep a call that waits for somebody else's step, so that a failure can refuse it."""
        if all(reply.token is not call.token for reply in effects.replies):
            self._unanswered[id(call.token)] = call

    def _refuse(self, call: Call[Any], code: ErrorCode, text: str) -> None:
        response = call.request.refused(ApiError(code, text))
        self._parked.append((self.log.end, Reply(call.token, response)))

    def _fail(self, calls: list[Call[Any]], code: ErrorCode, error: Exception, now: Millis) -> None:
        self._observe(
            f"a shard has failed and will be loaded again: {type(error).__name__}: {error}"
        )
        waiting = {id(call.token): call for call in calls} | self._unanswered
        self._unanswered.clear()
        for call in waiting.values():
            self._refuse(call, code, str(error))
        self.condition = Condition.FAILED
        self._retry_at = None if self._lost else Millis(now + RETRY_MS)


def _batches(steps: list[Effects]) -> Iterator[list[Record]]:
    """The records of a turn, cut between steps where a batch would grow too large."""
    together: list[Record] = []
    for step in steps:
        together += step.records
        if len(together) > BATCH_RECORDS:
            yield together
            together = []
    if together:
        yield together


def _pack(records: list[Record], now: Millis) -> bytes:
    return batch.build([codec.encode(record) for record in records], now, base_sequence=0)
