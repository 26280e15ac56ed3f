# SPDX-License-Identifier: Apache-2.0
"""Step, append, sync, reply: with a machine that is no group coordinator."""

import errno
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.observer import RecordingObserver
from tests.runtime.counter import Add, Ask, Counter, call

from kohort.errors import ApiError, Broken, ErrorCode, StorageError, WireError
from kohort.machines.effects import (
    TAKE_AGAIN,
    BackgroundTask,
    Call,
    Continuation,
    Effects,
    GroupEvent,
    Marker,
    Producer,
    Reply,
    Transaction,
)
from kohort.machines.topics import Topics
from kohort.runtime.driver import RETRY_MS, Condition, PartitionDriver
from kohort.sim.disk import SimulatedFiles
from kohort.storage.memory import MemoryLog
from kohort.storage.segments import SegmentLog
from kohort.terms import GroupId, Millis, Offset
from kohort.wire import batch

NOW = Millis(1000)


class Desk:
    """A driver on a log in memory; `ask` takes a turn and what it has earned."""

    def __init__(
        self, log: Any = None, limit_bytes: int = 1 << 20, machine: type[Counter] = Counter
    ) -> None:
        self.log = MemoryLog() if log is None else log
        self.told = RecordingObserver()
        self.driver = PartitionDriver(
            self.log, machine, self.told, name="the counter", limit_bytes=lambda: limit_bytes
        )
        self.load()

    def load(self) -> None:
        self.driver.start_loading()
        while self.driver.load_some(NOW, 10):
            pass

    @property
    def machine(self) -> Counter:
        return self.driver.machine

    def turn(self, *calls: Call[Ask], sync: bool = True, now: Millis = NOW) -> None:
        for one in calls:
            self.driver.submit(one)
        self.driver.turn(now)
        if sync:
            for reply in self.driver.synced(self.log.sync()):
                assert reply.token.answer is None, "answered twice"
                reply.token.answer = reply.response

    def ask(self, *adds: Add, **more: Any) -> Any:
        asked = call(Ask(*adds, **more))
        self.turn(asked)
        return asked.token.answer

    def batches(self) -> list[batch.BatchHeader]:
        return [batch.header_at(data) for data in self.log.read(self.log.start, 1 << 30)]


def test_an_answer_does_not_depend_on_what_is_told_of_it() -> None:
    class Silent(Counter):
        def log_lines(self, calls: Any, steps: Any) -> Iterator[str]:
            raise ZeroDivisionError("a bug")

    desk = Desk(machine=Silent)
    assert desk.ask(Add("a", 1)) is not None
    assert desk.machine.counts == {"a": 1}
    assert "a bug" in desk.told.errors[-1]


def test_of_a_turn_that_has_changed_nothing_nobody_is_told() -> None:
    desk = Desk()
    assert desk.ask(Add("a", 1)) is not None
    before = list(desk.told.lines)
    assert before[-1] == "1 calls"
    assert desk.ask() is not None
    assert desk.told.lines == before


def test_what_a_step_writes_is_true_for_the_next_and_answered_when_durable() -> None:
    """K40-32, K848-027."""
    desk = Desk()
    first, second = call(Ask(Add("a", 1))), call(Ask())
    desk.turn(first, second, sync=False)

    assert (first.token.answer, second.token.answer) == (None, None)
    assert desk.driver.durable < desk.driver.log.end
    desk.turn()
    assert (first.token.answer, second.token.answer) == ({}, {"a": 1})
    assert len(desk.batches()) == 1


def test_a_sync_releases_what_it_has_reached_and_no_more() -> None:
    """K40-32, K848-027: a read waits for what was written before it, and for nothing later."""
    desk = Desk()
    first, read = call(Ask(Add("a", 1))), call(Ask())
    desk.turn(first, read, sync=False)
    reached = desk.log.end
    second, later = call(Ask(Add("a", 1))), call(Ask())
    desk.turn(second, later, sync=False)

    assert desk.driver.synced(Offset(reached - 1)) == []
    released = desk.driver.synced(reached)
    assert [(one.token, one.response) for one in released] == [
        (first.token, {}),
        (read.token, {"a": 1}),
    ]
    assert [one.token for one in desk.driver.synced(desk.log.end)] == [second.token, later.token]


def test_live_and_loaded_replay_get_the_same_arguments() -> None:
    """Offset and producer, also where several batches and markers lie between."""
    desk = Desk(limit_bytes=300)
    producer, other = Producer(7, 1), Producer(8, 0)
    desk.turn(
        call(Ask(Add("a", 1), Add("b", 2))),
        call(Ask(Add("a", 3), transaction=Transaction(producer))),
        call(Ask(*(Add(f"many-{number}", 1) for number in range(20)))),
    )
    desk.turn(
        call(Ask(Add("b", 1), transaction=Transaction(other))),
        call(Ask(transaction=Transaction(producer, Marker(commit=True, coordinator_epoch=3)))),
        call(Ask(Add("c", 1))),
        call(Ask(transaction=Transaction(other, Marker(commit=False, coordinator_epoch=3)))),
    )

    live = desk.machine
    assert [offset for _, offset, _ in live.places] == [*range(24), 25]
    assert live.ended == [(producer, True), (other, False)]
    desk.load()
    assert desk.machine is not live
    assert (desk.machine.places, desk.machine.ended) == (live.places, live.ended)
    assert desk.machine.counts == live.counts
    headers = desk.batches()
    assert [one.is_control for one in headers[-4:]] == [False, True, False, True]
    assert all(one.length <= 300 for one in headers)
    assert {one.producer_id for one in headers if one.is_transactional} == {7, 8}


def test_a_record_larger_than_a_batch_may_be_refuses_its_call_alone() -> None:
    desk = Desk(limit_bytes=300)
    bad, good = call(Ask(Add("x", 1), Add("y" * 300, 1))), call(Ask(Add("a", 1)))
    desk.turn(bad, good)

    assert (bad.token.answer, good.token.answer) == ("MESSAGE_TOO_LARGE", {})
    assert desk.machine.counts == {"a": 1}


@pytest.mark.parametrize(
    ("more", "name", "code"),
    [
        ({}, "größe", "INVALID_REQUEST"),
        ({"fails": ZeroDivisionError("a bug")}, "a", "UNKNOWN_SERVER_ERROR"),
        ({"fails": ApiError(ErrorCode.NOT_CONTROLLER)}, "a", "NOT_CONTROLLER"),
        ({"fails": WireError("lies")}, "a", "INVALID_REQUEST"),
    ],
)
def test_a_call_that_fails_fails_alone(more: dict[str, Any], name: str, code: str) -> None:
    desk = Desk()
    before, bad, after = call(Ask(Add("a", 1))), call(Ask(Add(name, 1), **more)), call(Ask())
    desk.turn(before, bad, after)

    assert (before.token.answer, bad.token.answer) == ({}, code)
    assert after.token.answer == {"a": 1}
    assert desk.driver.active
    assert len(desk.told.errors) == (code == "UNKNOWN_SERVER_ERROR")
    assert all("a bug" in one and "the counter" in one for one in desk.told.errors)


def test_a_call_that_fails_for_want_of_descriptors_may_come_again(monkeypatch: Any) -> None:
    """It is no fault of ours and none of the client's: one line, and a code that is retried."""
    desk = Desk()

    def call_without(_call: Any, _now: Any) -> Any:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(desk.machine, "call", call_without)
    refused = call(Ask(Add("a", 1)))
    desk.turn(refused)
    assert refused.token.answer == "COORDINATOR_NOT_AVAILABLE"
    assert desk.driver.active
    assert desk.told.errors == []
    assert ["Too many open files" in line for line in desk.told.warnings] == [True]


def test_those_whom_a_failed_call_would_have_answered_are_refused_with_it() -> None:
    desk = Desk()
    waiting = call(Ask(parks=True))
    desk.turn(waiting)
    assert waiting.token.answer is None
    assert desk.ask(Add("größe", 1), releases=True) == "INVALID_REQUEST"
    assert waiting.token.answer == "INVALID_REQUEST"


def test_a_call_is_taken_again_when_what_it_needs_is_true() -> None:
    desk = Desk()
    assert desk.ask(Add("b", 2), first=Add("a", 1)) == {"a": 1}
    assert [record for record, _, _ in desk.machine.places] == [Add("a", 1), Add("b", 2)]
    assert len(desk.batches()) == 1


def test_a_call_that_asks_for_ever_fails_the_machine() -> None:
    desk = Desk()
    assert desk.ask(Add("a", 1), continuation=TAKE_AGAIN) == "UNKNOWN_SERVER_ERROR"
    assert len(desk.batches()) == 0
    assert desk.driver.condition is Condition.LOADING


def test_a_deadline_that_fails_is_told_and_put_off_and_the_others_are_met() -> None:
    desk = Desk()
    desk.machine.due = [Effects([Add("a", 1)]), ZeroDivisionError("a bug"), Effects([Add("b", 1)])]
    desk.turn()

    assert desk.machine.counts == {"a": 1, "b": 1}
    assert desk.machine.put_offs == [NOW]
    assert len(desk.told.errors) == 1
    assert desk.driver.active


@pytest.mark.parametrize("duty", ["a deadline", "a task"])
@pytest.mark.parametrize(
    ("limit_bytes", "code"), [(1 << 20, "UNKNOWN_SERVER_ERROR"), (70, "MESSAGE_TOO_LARGE")]
)
def test_those_whom_a_failed_duty_would_have_answered_are_refused(
    duty: str, limit_bytes: int, code: str
) -> None:
    desk = Desk(limit_bytes=limit_bytes)
    waiting = call(Ask(parks=True))
    desk.turn(waiting)
    effects = Effects([Add("größe", 1)], [Reply(waiting.token, "released")])
    if duty == "a task":
        desk.machine.chores = [effects]
        desk.driver.topics_changed(Topics(), NOW)
    else:
        desk.machine.due = [effects]
    if limit_bytes == 70:
        effects.records = [Add("long", 1)]

    desk.turn()

    assert waiting.token.answer == code
    assert duty in desk.told.errors[0]
    assert desk.driver.active


def after(steps: int) -> Callable[[], bool]:
    """A slice in which so many steps are taken."""
    left = iter(range(1, steps))
    return lambda: next(left, None) is None


def test_many_deadlines_are_met_in_several_turns() -> None:
    desk = Desk()
    desk.machine.due = [Effects([Add("a", 1)]) for _ in range(1005)]
    desk.driver.turn(NOW, over=after(1000))
    assert desk.machine.counts == {"a": 1000}
    assert desk.driver.wake_at() == 0
    desk.turn()
    assert desk.machine.counts == {"a": 1005}


def test_calls_for_which_a_slice_has_no_time_are_the_next_turns() -> None:
    desk = Desk()
    calls = [call(Ask(Add("a", 1))) for _ in range(10)]
    for one in calls:
        desk.driver.submit(one)

    desk.driver.turn(NOW, over=after(4))
    assert desk.machine.counts == {"a": 4}
    assert desk.driver.has_more

    desk.turn()
    assert desk.machine.counts == {"a": 10}
    assert not desk.driver.has_more


def test_calls_of_the_next_turn_are_refused_with_those_of_a_turn_that_fails() -> None:
    files = SimulatedFiles()
    desk = Desk(SegmentLog("/log-0", files))
    calls = [call(Ask(Add("a", 1))) for _ in range(10)]
    for one in calls:
        desk.driver.submit(one)
    files.room_bytes = 0

    desk.driver.turn(NOW, over=after(4))
    desk.turn()
    assert [one.token.answer for one in calls] == ["NOT_COORDINATOR"] * 10
    assert desk.machine.counts == {}


def test_what_follows_from_a_change_of_topics_lets_others_in_between() -> None:
    desk = Desk()
    desk.machine.chores = [Effects([Add("a", 1)]), Effects([Add("a", 1)])]
    desk.driver.topics_changed(Topics(), NOW)
    assert desk.driver.has_more
    assert desk.ask() == {"a": 1}
    assert desk.ask() == {"a": 2}
    desk.turn()
    assert not desk.driver.has_more


def test_a_deadline_may_begin_a_longer_task() -> None:
    desk = Desk()
    steps = [Effects([Add("a", 1)]), Effects([Add("a", 1)])]
    desk.machine.due = [Effects([Add("b", 1)], continuation=Continuation(long_task=iter(steps)))]
    desk.turn()
    assert desk.machine.counts == {"a": 1, "b": 1}
    assert desk.ask() == {"a": 2, "b": 1}
    desk.turn()
    assert (desk.machine.counts["a"], desk.driver.has_more) == (2, False)


def test_a_task_that_fails_ends_alone() -> None:
    desk = Desk()
    desk.machine.chores = [ZeroDivisionError("a bug"), Effects([Add("a", 1)])]
    desk.driver.topics_changed(Topics(), NOW)
    desk.turn()
    desk.turn()
    assert (desk.driver.active, desk.driver.wake_at()) == (True, None)
    assert len(desk.told.errors) == 1


def test_what_happened_is_told() -> None:
    desk = Desk()
    desk.ask(events=[GroupEvent(GroupId("g"), "something")])
    assert desk.told.lines == ["1 calls", "something"]


def headers_in(desk: Desk) -> list[tuple[bytes | None, list[tuple[str, bytes | None]]]]:
    data = list(desk.log.read(desk.log.start, 1 << 30))
    return [(one.key, one.headers) for part in data for one in batch.records(part)]


def test_headers_are_written_with_their_records_and_are_no_state() -> None:
    desk = Desk()
    events = [GroupEvent(GroupId("g"), "first")]
    desk.ask(Add("a", 1), Add("b", 2), events=events)
    desk.ask(Add("c", 3))
    assert headers_in(desk) == [(b"a", [("why", b"first")]), (b"b", []), (b"c", [])]
    counts = desk.machine.counts
    desk.load()
    assert desk.machine.counts == counts == {"a": 1, "b": 2, "c": 3}


def test_headers_stay_with_their_records_where_a_step_is_cut() -> None:
    desk = Desk(limit_bytes=200)
    events = [GroupEvent(GroupId("g"), text) for text in ("one", "two", "three", "four")]
    desk.ask(*(Add(name, 1) for name in "abcd"), events=events)
    assert len(desk.batches()) > 1
    assert headers_in(desk) == [
        (name.encode(), [("why", event.text.encode())])
        for name, event in zip("abcd", events, strict=True)
    ]
    assert all(one.length <= 200 for one in desk.batches())


def test_a_record_without_room_for_headers_goes_without() -> None:
    desk = Desk(limit_bytes=200)
    desk.ask(Add("a", 1), Add("b", 1), events=[GroupEvent(GroupId("g"), "x" * 200)])
    assert headers_in(desk) == [(b"a", []), (b"b", [])]


def test_a_full_disk_refuses_the_turn_and_the_machine_is_read_anew() -> None:
    files = SimulatedFiles()
    desk = Desk(SegmentLog("/log-0", files))
    desk.ask(Add("a", 1))
    waiting = call(Ask(parks=True))
    desk.turn(waiting)
    files.room_bytes = 0
    assert desk.ask(Add("a", 5)) == "NOT_COORDINATOR"
    assert waiting.token.answer == "NOT_COORDINATOR"
    assert desk.ask() == "COORDINATOR_LOAD_IN_PROGRESS"
    files.room_bytes = None
    desk.turn(now=desk.driver.wake_at())
    assert desk.ask() == "COORDINATOR_LOAD_IN_PROGRESS"
    while desk.driver.load_some(NOW, 1):
        pass
    assert desk.ask() == {"a": 1}


def test_while_a_log_refuses_writes_those_who_read_are_served() -> None:
    """Deadlines wait, and whether the log has room is asked once a second."""
    files = SimulatedFiles()
    desk = Desk(SegmentLog("/log-0", files))
    desk.ask(Add("a", 1))
    files.room_bytes = 0
    assert desk.ask(Add("a", 5)) == "NOT_COORDINATOR"
    desk.turn(now=desk.driver.wake_at())
    desk.load()
    desk.machine.due = [Effects([Add("b", 1)])]
    told = len(desk.told.errors)
    for _ in range(3):
        assert desk.ask(Add("a", 5)) == "NOT_COORDINATOR"
        assert desk.ask() == {"a": 1}
    assert desk.driver.wake_at() == NOW + RETRY_MS

    desk.turn(now=NOW + RETRY_MS)
    assert desk.driver.wake_at() == NOW + 2 * RETRY_MS
    assert desk.ask() == {"a": 1}, "it has looked, and there is no room yet"
    files.room_bytes = None
    again = call(Ask(Add("a", 5)))
    desk.turn(again, now=NOW + 2 * RETRY_MS)
    assert again.token.answer == {"a": 1, "b": 1}
    assert desk.ask() == {"a": 6, "b": 1}
    assert len(desk.told.errors) == told, "it was not read again"
    assert desk.machine.jumped_ms == 2 * RETRY_MS, "nobody is late whose calls were refused"


def test_who_might_write_is_refused_before_the_machine_is_asked() -> None:
    """What a step touches beside its records would stay touched."""
    files = SimulatedFiles()
    desk = Desk(SegmentLog("/log-0", files))
    files.room_bytes = 0
    desk.ask(Add("a", 5))
    desk.turn(now=desk.driver.wake_at())
    desk.load()
    assert desk.ask(Add("a", 5), parks=True) == "NOT_COORDINATOR"
    assert desk.machine.parked == []
    desk.driver.try_writes()
    files.room_bytes = None
    assert desk.ask(Add("a", 5)) == {}
    assert desk.ask() == {"a": 5}


class StartsWithARecord(Counter):
    def start(self, now: Millis) -> Iterator[Effects]:
        yield Effects([Add("started", 1)])


def test_nobody_is_forgotten_who_has_waited_for_a_slice_when_there_is_room_again() -> None:
    """What had had no time was answered behind what came later, or never."""
    files = SimulatedFiles()
    desk = Desk(SegmentLog("/log-0", files), machine=StartsWithARecord)
    files.room_bytes = 0
    desk.ask(Add("a", 5))
    desk.driver.turn(desk.driver.wake_at() or NOW)
    desk.load()
    calls = [call(Ask()) for _ in range(40)]
    for one in calls:
        desk.driver.submit(one)
    desk.driver.turn(NOW, over=after(1))
    files.room_bytes = None
    desk.turn(now=Millis(NOW + 5 * RETRY_MS))
    assert desk.driver.waiting == 0
    assert all(one.token.answer is not None for one in calls)


class Unreadable(MemoryLog):
    """A log that cannot be read a few times."""

    failures = 0
    failure: type[Exception] = StorageError

    def read(self, start: Any, limit_bytes: int) -> Any:
        if self.failures:
            self.failures -= 1
            raise self.failure("cannot be read") from OSError(errno.EIO, "the disk refuses")
        return super().read(start, limit_bytes)


@pytest.mark.parametrize("failure", [StorageError, Broken])
def test_a_log_that_cannot_be_read_now_is_read_later(failure: type[Exception]) -> None:
    """Also where the index of a segment could not be built: that raises Broken."""
    log = Unreadable()
    log.failures = 1
    log.failure = failure
    desk = Desk(log)
    assert desk.ask() == "NOT_COORDINATOR"
    assert "refused until it can" in desk.told.errors[0]
    desk.turn(now=desk.driver.wake_at())
    desk.load()
    assert desk.ask() == {}


def test_a_log_that_is_damaged_is_not_tried_again() -> None:
    log = MemoryLog()
    log.append(batch.build([(b"a", b"not a number")], 0), 1)
    desk = Desk(log)
    assert desk.driver.condition is Condition.FAILED
    assert desk.driver.wake_at() is None
    assert desk.ask() == "COORDINATOR_NOT_AVAILABLE"


class Newer(Counter):
    """A machine that finds records of a version that it does not know."""

    def decode(self, key: bytes, value: bytes | None) -> Add:
        raise WireError("version 99 of a record, expected at most 3")


def test_a_log_with_records_of_an_unknown_version_is_refused_as_upstream_does() -> None:
    log = MemoryLog()
    log.append(batch.build([(b"a", b"1")], 0), 1)
    desk = Desk(log, machine=Newer)
    assert (desk.driver.condition, desk.driver.wake_at()) == (Condition.FAILED, None)
    assert desk.ask() == "NOT_COORDINATOR"


def test_a_failed_sync_refuses_those_who_have_just_arrived() -> None:
    desk = Desk()
    written, parked, arrived = call(Ask(Add("a", 1))), call(Ask(parks=True)), call(Ask())
    desk.turn(written, parked, sync=False)
    desk.driver.submit(arrived)

    uncertain = desk.driver.lost(StorageError("the disk is gone"))

    assert [one.token for one in uncertain] == [written.token]
    desk.turn()
    assert (parked.token.answer, arrived.token.answer) == ("NOT_COORDINATOR", "NOT_COORDINATOR")
    assert "2 calls are refused" in desk.told.errors[0]
    assert desk.ask() == "NOT_COORDINATOR"


def test_a_machine_whose_log_is_lost_while_it_is_read_never_serves() -> None:
    desk = Desk()
    desk.ask(Add("a", 1))
    desk.ask(Add("b", 1))
    desk.driver.start_loading()
    assert desk.driver.load_some(NOW, 1)

    desk.driver.lost(StorageError("the disk is gone"))

    assert not desk.driver.load_some(NOW, 1)
    desk.driver.start_loading()
    assert not desk.driver.load_some(NOW)
    assert (desk.driver.condition, desk.driver.wake_at()) == (Condition.FAILED, None)
    assert desk.ask() == "NOT_COORDINATOR"


def test_a_coordinator_that_resigns_knows_what_its_log_says() -> None:
    """Who waits is told to look elsewhere, and who has written is answered once that is durable."""
    desk = Desk()
    written = call(Ask(Add("a", 1)))
    desk.turn(written, sync=False)
    waiting = call(Ask())
    desk.driver.submit(waiting)
    before = desk.machine
    desk.driver.resign("another node has it")
    desk.driver.submit(nobody := call(Ask()))
    desk.turn()
    assert nobody.token.answer == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS.name
    assert (desk.driver.condition, desk.driver.wake_at()) == (Condition.LOADING, None)
    assert not desk.driver.load_some(NOW), "nobody has taken over yet"
    assert desk.driver.condition is Condition.LOADING
    desk.driver.start_loading()
    while desk.driver.load_some(NOW, 10):
        pass
    desk.turn()

    assert desk.machine is not before
    assert written.token.answer == {}
    assert waiting.token.answer == ErrorCode.NOT_COORDINATOR.name
    assert desk.ask() == {"a": 1}


def task(about: Any = None, key: str = "k") -> BackgroundTask:
    return BackgroundTask((key,), lambda: (_ for _ in ()), about)


def test_an_errand_is_handed_out_and_its_outcome_taken_in_the_next_turn() -> None:
    desk = Desk()
    wanted = task("mine")
    desk.ask(tasks=[wanted])
    assert list(desk.driver.tasks) == [wanted]

    desk.driver.task_done(desk.driver.tasks.popleft(), 7)
    assert desk.machine.outcomes == []
    desk.turn()
    desk.turn()
    assert desk.machine.outcomes == [("mine", 7)]


def test_one_errand_of_a_key_is_out_at_a_time() -> None:
    desk = Desk()
    first, second, other = task(), task(), task(key="other")
    desk.ask(tasks=[first, second, other])
    desk.ask(tasks=[second])
    assert list(desk.driver.tasks) == [first, other]

    desk.driver.task_done(first, None)
    desk.ask(tasks=[second])
    assert list(desk.driver.tasks) == [first, other, second]


def test_a_machine_knows_which_errands_are_out_also_after_it_was_read_anew() -> None:
    desk = Desk()
    for _ in range(2):
        wanted = task()
        desk.ask(tasks=[wanted])
        assert wanted.key in desk.machine.running_tasks
        desk.driver.task_done(wanted, None)
        desk.turn()
        assert wanted.key not in desk.machine.running_tasks
        desk.driver.resign("its node is gone")
        desk.load()


def test_an_errand_whose_outcome_fails_does_so_alone() -> None:
    desk = Desk()
    desk.ask(tasks=[task(ZeroDivisionError("a bug"))])
    desk.driver.task_done(desk.driver.tasks[0], None)
    assert desk.ask(Add("a", 1)) == {}
    assert desk.machine.counts == {"a": 1}
    assert "a background task has failed in the counter" in desk.told.errors[0]


def test_errands_of_a_machine_that_is_gone_are_forgotten() -> None:
    desk = Desk()
    wanted = task()
    desk.ask(tasks=[wanted])
    desk.driver.resign("its node is gone")
    desk.load()
    desk.driver.task_done(wanted, 7)
    desk.turn()
    assert not desk.driver.tasks
    assert desk.machine.outcomes == []


def test_a_call_that_is_refused_for_its_records_sends_nobody_out() -> None:
    desk = Desk()
    desk.ask(Add("größe", 1), tasks=[task()])
    assert not desk.driver.tasks
