# SPDX-License-Identifier: Apache-2.0
"""The one order that matters: step, append, sync, and only then reply.

Only here does a machine meet its log. A turn takes everything that has arrived as one batch. Its
replies are parked at the log's end, and leave once the log is durable up to there. A reply without
records parks there too, so nobody ever reads what a crash could take back.

A call that fails leaves all others, and the state, as they are. When the log refuses what is
already true in the machine, every call of the turn is refused, and the machine is loaded again from
the log, between the turns of the others. Until the log has room again, only calls that change
nothing are taken, so that one who writes while a disk is full does not take the machine from all
others: a client that might write is refused before the machine is asked, what other machines of the
broker say waits, and the time of deadlines stands still.
"""

import errno
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from traceback import format_exception
from typing import Any, Generic, TypeVar

from kohort.errors import ApiError, Broken, ErrorCode, StorageError, WireError
from kohort.machines.effects import BROKER, BackgroundTask, Call, Effects, Reply
from kohort.machines.machine import Machine
from kohort.machines.topics import Topics
from kohort.runtime.backlog import Backlog
from kohort.runtime.loader import load
from kohort.runtime.observers import Observer
from kohort.runtime.turns import Turn
from kohort.storage.log import Log
from kohort.terms import Millis, Offset

INTERNAL = "internal failure: "  # a line begins so when a fault of ours is told, not one of a disk
LOADED_AGAIN = " and it is loaded again: "
"""In the line that tells why a machine is not to be trusted any more."""
RETRY_MS = 1000
AT_ONCE = 256  # calls of a turn while others wait: more than it has time for
AGAIN_MAX = 4  # a call that is taken more often than this would go on for ever
_TOO_MANY_FILES = (errno.EMFILE, errno.ENFILE)

_ANY_TIME, _NEVER = Millis(0), Millis(1 << 62)
_NOTHING = Effects()  # of a step before it is taken, and after the last one

M = TypeVar("M", bound=Machine)


def _never() -> bool:
    return False


class Condition(Enum):
    """What a machine can do for its callers."""

    LOADING = "loading"
    ACTIVE = "active"
    FAILED = "failed"


class PartitionDriver(Generic[M]):
    """Drives one machine. `turn` may be called at any time; after it, tell `synced` how far the log
    is durable. Nothing here waits, and nothing here knows what a socket is.

    `name` is the machine's name in messages; `limit_bytes` returns the size of the largest batch
    that it may write.
    """

    def __init__(
        self,
        log: Log,
        new_machine: Callable[[], M],
        observe: Observer,
        *,
        name: str,
        limit_bytes: Callable[[], int] = lambda: 1 << 20,
    ) -> None:
        self.log = log
        self.name = name
        self.limit_bytes = limit_bytes
        self.condition = Condition.LOADING
        self._new_machine = new_machine
        self._observe = observe
        self._inbox: list[Call[Any]] = []
        self._backlog = Backlog()
        self._parked: deque[tuple[Offset, Reply]] = deque()
        self._unanswered: dict[int, Call[Any]] = {}
        self._long_tasks: deque[Iterator[Effects]] = deque()
        self.tasks: deque[BackgroundTask] = deque()  # to be done by whoever drives this
        self._out: dict[tuple[Any, ...], BackgroundTask] = {}
        self.machine = self._made()
        self._done: deque[tuple[BackgroundTask, Any]] = deque()
        self.loading: Iterator[int] | None = None  # the steps that `load_some` goes on with
        self._retry_at: Millis | None = None
        self._next_deadline = _ANY_TIME  # no deadline comes before it: `wake_at` has looked
        self._room_asked_at: Millis | None = None  # when to see whether the log has room again
        self._postponed: list[Call[Any]] = []  # until then
        self._started_at = Millis(0)
        self._half_started = False  # it has not written what a start writes
        self.durable = log.end  # the offset up to which the log is on the disk
        self._lost = False
        self._unread = False  # the log cannot be read, and will not be until somebody has mended it

    @property
    def condition(self) -> Condition:
        return self._condition

    @condition.setter
    def condition(self, condition: Condition) -> None:
        self._condition = condition
        self.active = condition is Condition.ACTIVE  # every request asks this

    @property
    def waiting(self) -> int:
        """How many calls wait for the next turn."""
        return len(self._inbox) + self._backlog.size

    @property
    def parked(self) -> int:
        """How many replies wait for the log."""
        return len(self._parked)

    def submit(self, call: Call[Any]) -> None:
        """Take a call for the next turn. A machine that cannot serve it refuses it at once."""
        if self.active:
            self._inbox.append(call)
        elif self.condition is Condition.LOADING:
            self._refuse(call, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"{self.name} is being read")
        else:
            text = f"{self.name} cannot be written or read"
            code = (
                ErrorCode.COORDINATOR_NOT_AVAILABLE if self._unread else ErrorCode.NOT_COORDINATOR
            )
            self._refuse(call, code, text)

    def wake_at(self) -> Millis | None:
        """When `turn` has something to do of its own accord."""
        if not self.active:
            return self._retry_at
        if self._room_asked_at is not None:
            return self._room_asked_at
        wake = self.machine.wake_at()
        self._next_deadline = _NEVER if wake is None else wake
        return wake

    @property
    def has_more(self) -> bool:
        """Whether another turn has something to do at once."""
        if not self.active:
            return False
        more = self._inbox or self._backlog.size
        return bool(more or (self._long_tasks and self._room_asked_at is None))

    def turn(
        self, now: Millis, due: Millis | None = None, over: Callable[[], bool] = _never
    ) -> None:
        """Handle what is due and what has arrived, as one batch, until a slice is `over`; what is
        left of it is the next turn's. Deadlines count as due up to `due`, which may lie before
        `now` when clients could not be heard meanwhile.
        """
        if self._retry_at is not None and now >= self._retry_at:
            self.start_loading()
        if not self.active:
            return
        calls, self._inbox = self._inbox, []
        if self._backlog.size:
            self._backlog.add(calls)
            calls = self._backlog.take(AT_ONCE)
        turn = Turn(self.machine, self.log.end, self.limit_bytes)
        try:
            if self._room_asked_at is not None and not self._has_room(now):
                calls = self._refuse_writes(calls)
            elif self._half_started:
                self.start_loading()
                calls += self._all_waiting()
                self._refuse_all(calls, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "there is room")
                return
            else:
                due = now if due is None else due
                if self._next_deadline <= due and self._is_due(due):
                    self._do_due(turn, due, over)
                self._next_deadline = _ANY_TIME
                if self._long_tasks:
                    self._step_long_task(turn)
                if self._done:
                    self._take_outcomes(turn, now)
                if self._postponed:
                    calls[:0] = self._postponed
                    self._postponed.clear()
            self._take_all(turn, calls, now, over)
            self._write(turn, now)
        except StorageError as error:
            self._write_refused(calls, error, now)
        except Exception as error:  # noqa: BLE001  (whatever it is, the state is not to be trusted)
            self._fail(calls, ErrorCode.UNKNOWN_SERVER_ERROR, error, now)
        else:
            if turn.tasks:
                self._send_out(turn.tasks)
            if turn.batches or turn.has_events:
                self._tell(calls, turn.steps)

    def _is_due(self, due: Millis) -> bool:
        wake = self.machine.wake_at()
        return wake is not None and wake <= due

    def _tell(self, calls: Iterable[Call[Any]], steps: Iterable[Effects]) -> None:
        """Tell what has happened. The answers do not depend on it."""
        try:
            for line in self.machine.log_lines(calls, steps):
                self._observe.info(line)
        except Exception as error:  # noqa: BLE001  (what has happened is written already)
            self._tell_failure("to tell what has happened", error)

    def clock_jumped(self, by_ms: int) -> None:
        """The clock has jumped forward or back by this much."""
        self._next_deadline = _ANY_TIME
        self.machine.clock_jumped(by_ms)
        if self._retry_at is not None:
            self._retry_at = Millis(self._retry_at + by_ms)
        if self._room_asked_at is not None:
            self._room_asked_at = Millis(self._room_asked_at + by_ms)
        self._started_at = Millis(self._started_at + by_ms)

    def try_writes(self) -> None:
        """The disk may have room again: look in the next turn, without a pause."""
        if self._room_asked_at is not None:
            self._room_asked_at = Millis(0)

    def topics_changed(self, topics: Topics, now: Millis) -> None:
        """Give the machine the next image of the topics; `turn` does what follows from it."""
        self._next_deadline = _ANY_TIME
        follows = self.machine.topics_changed(topics, now)
        if self.active:
            self._long_tasks.append(follows)

    def task_done(self, task: BackgroundTask, outcome: Any) -> None:
        """A background task has its result, or the exception that has ended it; the next turn takes
        it. One of a machine that is no longer there is forgotten.
        """
        if self._out.get(task.key) is task:
            self._done.append((task, outcome))

    def synced(self, durable: Offset) -> list[Reply]:
        """The replies that are now safe to send, in the order of their calls."""
        self.durable = durable
        released: list[Reply] = []
        parked = self._parked
        while parked and parked[0][0] <= durable:
            released.append(parked.popleft()[1])
        return released

    def lost(self, error: Exception) -> list[Reply]:
        """A sync of the log has failed: the replies that are no longer certain. The machine serves
        no calls until the log is opened anew.
        """
        self._lost = True
        lost = [reply for _, reply in self._parked]
        self._parked.clear()
        self.durable = self.log.end  # nothing waits for it any more
        self._fail([], ErrorCode.NOT_COORDINATOR, error, Millis(0))
        return lost

    def resign(self, why: str) -> None:
        """Let go of everything that only the machine knows, as a coordinator does whose partition
        another node takes over: calls that wait are refused, and deadlines are forgotten. Whoever
        takes over calls `start_loading`; until then calls are refused as while the log is read.
        """
        self._refuse_all(self._all_waiting(), ErrorCode.NOT_COORDINATOR, why)
        self._reset()

    def start_loading(self) -> None:
        """Begin to load the machine from its log; `load_some` goes on with it. A lost log is not
        loaded again.
        """
        if self._lost:
            return
        self._reset()
        self.loading = load(self.log, self.machine)

    def _reset(self) -> None:
        """A machine that knows nothing, unless the log is lost."""
        if self._lost:
            return
        self.machine = self._made()
        self._next_deadline = _ANY_TIME
        self.condition = Condition.LOADING
        self._retry_at = None
        self._long_tasks.clear()
        self.tasks.clear()
        self._out.clear()
        self._done.clear()
        self.loading = None

    def _made(self) -> M:
        machine = self._new_machine()
        machine.running_tasks = self._out
        return machine

    def load_some(self, now: Millis, records: int = 1 << 62) -> bool:
        """Read about this many records more; true while there is more to read.

        A log that cannot be read leaves the machine FAILED, unless another try may help.
        """
        if self.loading is None:
            return False
        read = 0
        try:
            for count in self.loading:
                read += count
                if read >= records:
                    return True
            self.loading = None
            self._start(now)
        except Exception as error:  # noqa: BLE001  (a half-read machine must never become active)
            self.loading = None
            self.condition = Condition.FAILED
            # A disk that has refused a read may give it later; damage stays.
            again = isinstance(error, StorageError) or isinstance(error.__cause__, OSError)
            # Of records in a layout that nobody knows upstream says NOT_COORDINATOR as well.
            self._unread = not again and not isinstance(error, WireError)
            self._retry_at = Millis(now + RETRY_MS) if again else None
            self._observe.error(
                f"{self.name} cannot be loaded, its calls are refused"
                f"{' until it can' if again else ''}: {type(error).__name__}: {error}"
            )
        return False

    def _start(self, now: Millis) -> None:
        """Serve from now on. The records of the start are written first, or in the next turns; if
        the log has no room, when the machine is loaded once more.
        """
        turn = Turn(self.machine, self.log.end, self.limit_bytes)
        follows = self.machine.start(now)
        first = next(follows, None)
        self._half_started = (
            self._room_asked_at is not None and first is not None and bool(first.records)
        )
        if first is not None and not self._half_started:
            turn.take(first, turn.encoded(first))
            self._warn(first)
            self._long_tasks.append(follows)
            try:
                self._write(turn, now)
            except StorageError as error:
                self._write_refused([], error, now)
                return
        self.condition = Condition.ACTIVE
        self._started_at = now
        self._send_out(turn.tasks)
        if turn.steps:
            self._tell((), turn.steps)

    def _warn(self, step: Effects) -> None:
        for line in step.warnings:
            self._observe.warning(line)

    def _do_due(self, turn: Turn, due: Millis, over: Callable[[], bool]) -> None:
        """Meet deadlines. One that fails is reported and put off; the others are met."""
        steps = self.machine.tick(due)
        while True:
            effects = _NOTHING
            try:
                effects = next(steps, _NOTHING)
                if effects is _NOTHING:
                    return
                entries = turn.encoded(effects)
            except Exception as error:  # noqa: BLE001  (it is this deadline's alone)
                effects, entries = self._undone("a deadline", effects, error), []
                self.machine.put_off(due)
                steps = self.machine.tick(due)
            turn.take(effects, entries)
            if effects.continuation is not None and effects.continuation.long_task is not None:
                self._long_tasks.append(effects.continuation.long_task)
            if over():
                return

    def _step_long_task(self, turn: Turn) -> None:
        """Go on with the first of the long tasks, a step in a turn."""
        effects = _NOTHING
        try:
            effects = next(self._long_tasks[0], _NOTHING)
            if effects is _NOTHING:
                self._long_tasks.popleft()
                return
            entries = turn.encoded(effects)
        except Exception as error:  # noqa: BLE001  (the task ends here; its records are not true)
            effects, entries = self._undone("a task", effects, error), []
            self._long_tasks.popleft()
        turn.take(effects, entries)
        self._warn(effects)

    def _take_outcomes(self, turn: Turn, now: Millis) -> None:
        """Give the machine what its tasks have brought. One that fails here is reported."""
        while self._done:
            task, outcome = self._done.popleft()
            del self._out[task.key]
            effects = _NOTHING
            try:
                effects = self.machine.finished(task, outcome, now)
                entries = turn.encoded(effects)
            except Exception as error:  # noqa: BLE001  (it is this task's alone)
                effects, entries = self._undone("a background task", effects, error), []
            turn.take(effects, entries)
            self._warn(effects)
            if effects.continuation is not None and effects.continuation.long_task is not None:
                self._long_tasks.append(effects.continuation.long_task)

    def _send_out(self, tasks: Iterable[BackgroundTask]) -> None:
        """Hand out what steps have asked for, unless it is being done already."""
        for task in tasks:
            if task.key not in self._out:
                self._out[task.key] = task
                self.tasks.append(task)

    def _has_room(self, now: Millis) -> bool:
        """Whether the log, which has refused a write, takes one again; asked once a second."""
        if self._room_asked_at is not None and now >= self._room_asked_at:
            try:
                self.log.try_room()
            except StorageError:
                self._room_asked_at = Millis(now + RETRY_MS)
            else:
                self._room_asked_at = None
                # Nobody is late whose calls were refused.
                self.machine.clock_jumped(now - self._started_at)
        return self._room_asked_at is None

    def _refuse_writes(self, calls: Iterable[Call[Any]]) -> list[Call[Any]]:
        """Refuse each call that might write, or let it wait; the others, which change nothing."""
        others = []
        for call in calls:
            if self.machine.reads(call):
                others.append(call)
            elif call.client is BROKER:
                self._postponed.append(call)
            else:
                text = f"the log of {self.name} has refused a write a moment ago"
                self._refuse(call, ErrorCode.NOT_COORDINATOR, text)
        return others

    def _take_all(
        self, turn: Turn, calls: list[Call[Any]], now: Millis, over: Callable[[], bool]
    ) -> None:
        """Take calls in their order. One that fails is refused, and changes nothing. Those for
        which no time is left wait again, and are taken from `calls`.
        """
        ask, encoded, take = self.machine.call, turn.encoded, turn.take
        for place, call in enumerate(calls):
            if place and over():
                self._backlog.put_back(calls[place:])
                del calls[place:]
                break
            rounds = 0
            again = True
            while again:
                effects = _NOTHING
                try:
                    effects = ask(call, now)
                    entries = encoded(effects) if effects.records or effects.events else []
                except Exception as error:  # noqa: BLE001  (it is this call's alone)
                    effects, entries = self._refused(call, effects, self._refusal(call, error)), []
                take(effects, entries)
                again = effects.continuation is not None and effects.continuation.again
                rounds += 1
                if rounds > AGAIN_MAX:
                    raise Broken(f"{type(call.request).__name__} asks to be taken for ever")
            replies = effects.replies
            if len(replies) != 1 or replies[0].token is not call.token:
                self._remember(call, effects)

    def _refusal(self, call: Call[Any], error: Exception) -> ApiError:
        """The answer to a call that has failed: what is wrong with it, or with us."""
        if isinstance(error, ApiError):
            return error
        if isinstance(error, WireError):
            return ApiError(ErrorCode.INVALID_REQUEST, str(error))
        what = f"{type(call.request).__name__} of {call.client.id!r} at {call.client.host}"
        if isinstance(error, OSError) and error.errno in _TOO_MANY_FILES:
            self._observe.warning(f"{what} is refused: {error.strerror}, raise `ulimit -n`")
            text = "the broker has no file descriptor left"
            return ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, text)
        self._tell_failure(what, error)
        return ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{type(error).__name__}: {error}")

    def _refused(self, call: Call[Any], effects: Effects, error: ApiError) -> Effects:
        """The refusal of a call, and of those that its step would have answered."""
        others = self._refusals(
            (reply for reply in effects.replies if reply.token is not call.token), error
        )
        return Effects([], [Reply(call.token, call.request.refused(error)), *others])

    def _undone(self, what: str, effects: Effects, error: Exception) -> Effects:
        """The refusal of those that a step without a call would have answered; its failure is
        reported.
        """
        self._tell_failure(what, error)
        if not isinstance(error, ApiError):
            text = f"{type(error).__name__}: {error}"
            error = ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, text)
        return Effects([], list(self._refusals(effects.replies, error)))

    def _refusals(self, replies: Iterable[Reply], error: ApiError) -> Iterator[Reply]:
        for reply in replies:
            waiting = self._unanswered.get(id(reply.token))
            if waiting is not None:
                yield Reply(reply.token, waiting.request.refused(error))

    def _write(self, turn: Turn, now: Millis) -> None:
        end = self.log.end
        if turn.batches:
            try:
                # All or none: what stays of a refused turn would count once it is read again.
                end = self.log.append_all(turn.packed(now))
            except Broken:
                self._lost = True  # the log refuses everything from now on
                raise
        if end != turn.end:
            raise Broken(f"{self.name} ends at {end}, its machine at {turn.end}")
        for step in turn.steps:
            for reply in step.replies:
                self._parked.append((end, reply))
                if self._unanswered:
                    self._unanswered.pop(id(reply.token), None)

    def _remember(self, call: Call[Any], effects: Effects) -> None:
        """Keep a call that waits for another one, so that a failure can refuse it."""
        if all(reply.token is not call.token for reply in effects.replies):
            self._unanswered[id(call.token)] = call

    def _refuse(self, call: Call[Any], code: ErrorCode, text: str) -> None:
        response = call.request.refused(ApiError(code, text))
        self._parked.append((self.log.end, Reply(call.token, response)))

    def _write_refused(self, calls: list[Call[Any]], error: StorageError, now: Millis) -> None:
        """What is true in the machine is not in the log: it is loaded again at once."""
        self._fail(calls, ErrorCode.NOT_COORDINATOR, error, now, pause_ms=0)
        self._room_asked_at = Millis(now + RETRY_MS)

    def _fail(
        self,
        calls: list[Call[Any]],
        code: ErrorCode,
        error: Exception,
        now: Millis,
        *,
        pause_ms: int = RETRY_MS,
    ) -> None:
        """The machine is not to be trusted any more. It is loaded again after the pause: who asks
        meanwhile is told that it is being read.
        """
        refused = self._refuse_all([*calls, *self._all_waiting()], code, str(error))
        ours = code is ErrorCode.UNKNOWN_SERVER_ERROR and not self._lost
        self._observe.error(
            f"{INTERNAL if ours else ''}{self.name} has failed, {refused} calls are refused"
            f"{': ' if self._lost else LOADED_AGAIN}{type(error).__name__}: {error}"
        )
        self.loading = None
        if self._lost:
            self.condition = Condition.FAILED
            self._retry_at = None
        else:
            self.condition = Condition.LOADING
            self._retry_at = Millis(now + pause_ms)

    def _all_waiting(self) -> list[Call[Any]]:
        """The calls that wait for a turn; they do so no longer."""
        calls = self._backlog.take(self._backlog.size) + self._inbox
        self._inbox = []
        return calls

    def _refuse_all(self, calls: list[Call[Any]], code: ErrorCode, text: str) -> int:
        """Refuse these calls and all that wait for another one; how many they were."""
        waiting = {id(call.token): call for call in (*calls, *self._postponed)} | self._unanswered
        self._postponed.clear()
        self._unanswered.clear()
        for call in waiting.values():
            self._refuse(call, code, text)
        return len(waiting)

    def _tell_failure(self, what: str, error: Exception) -> None:
        """Report a fault of ours, with the traceback for whoever repairs it."""
        self._observe.error(
            f"{INTERNAL}{what} has failed in {self.name}:\n{''.join(format_exception(error))}"
        )
