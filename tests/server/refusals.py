# SPDX-License-Identifier: Apache-2.0
"""A broker on a disk of which one step fails, and whether it has told the truth then.

`tried` plays a case of `mutations` with one step of the disk failing, lets clients go on, and kills
the broker. Then what was refused must be as it was, what was acknowledged must be there, and what
was acknowledged after the failure must be there too.
"""

import errno
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, NamedTuple

from tests.server.desk import Asked, Desk
from tests.server.mutations import (
    CASES,
    SILENT,
    Act,
    acl,
    beat,
    broker_limit,
    codes,
    commit,
    created,
    group_limit,
    initialised,
    join,
    limited,
    produced,
    scram,
    sure,
    sync,
)
from tests.server.seen import View, view
from tests.server.transactional import Producing

from kohort.errors import KohortError
from kohort.sim.disk import SimulatedFiles
from kohort.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup

SETTINGS = {
    "offsets_topic_num_partitions": "1",
    "transaction_state_log_num_partitions": "1",
    "group_initial_rebalance_delay_ms": "0",
    "auto_create_topics_enable": "true",
    "num_partitions": "1",
    "log_initial_task_delay_ms": "0",
    "log_retention_check_interval_ms": "1000",
    "authorizer_class_name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super_users": "User:ANONYMOUS",
}
PLACE, EVERYTHING = "place", "everything"
WAIT_MS = 3_000  # a machine that has failed reads its log again within it


class FailingFiles(SimulatedFiles):
    """A disk on which the step of a number fails, once. Of a write that fails for want of room some
    bytes are there.
    """

    def __init__(self) -> None:
        super().__init__()
        self.armed = False
        self.taken: list[tuple[str, str]] = []  # steps since the disk was armed: what and where
        self.fails_at = -1
        self.error = errno.EIO
        self.room = 0  # for bytes of a write that fails with ENOSPC
        self.lasts = ""  # what fails from then on: that step at that PLACE, or EVERYTHING
        self.failed: tuple[str, str] | None = None
        self.told_refusal = self._has_room_again
        self.lives = 1

    def arm(self, step: int, error: int, room: int = 0, lasts: str = "") -> None:
        self.armed, self.taken, self.failed = True, [], None
        self.fails_at, self.error, self.room, self.lasts = step, error, room, lasts

    def disarm(self) -> None:
        self.armed = False
        self.room_bytes = None

    def before(self, operation: str, path: str) -> None:
        super().before(operation, path)
        if not self.armed:
            return
        place = operation, path
        self.taken.append(place)
        begun = self.failed is not None
        again = begun and (
            (self.lasts == PLACE and place == self.failed)
            or (self.lasts == EVERYTHING and operation not in ("read", "names"))
        )
        if len(self.taken) - 1 != self.fails_at and not again:
            return
        self.failed = self.failed or place
        if operation == "write" and self.error == errno.ENOSPC:
            self.room_bytes = self.room  # the write itself fails, half way
        else:
            raise self.refusal(self.error, path)

    def _has_room_again(self) -> None:
        self.room_bytes = None

    def _with(self, root: Any) -> "FailingFiles":
        disk = FailingFiles()
        disk.root = root
        disk.lives = self.lives + 1
        return disk


def opened(disk: FailingFiles, now: int) -> Desk:
    disk.locked.clear()
    desk = Desk(files=disk, now=now, seed=disk.lives, **SETTINGS)
    desk.housekeep()
    return desk


def prepared() -> tuple[FailingFiles, int]:
    """The disk of a broker that was killed, with something to change of every kind; and when."""
    disk = FailingFiles()
    desk = opened(disk, now=1_700_000_000_000)
    desk.create("orders", partitions=2)
    desk.create("going", partitions=2)
    desk.create("home")
    desk.create("kept", retention_ms="20000")
    for topic in ("orders", "going", "home", "kept"):
        for number in range(3):
            assert desk.produce(topic, value=b"%d" % number).error_code == 0
    for acted in (
        commit("committed", 5),
        acl("before"),
        scram("before"),
        limited("orders", "1000"),
    ):
        sure(desk, acted)
    sure(desk, group_limit("configured", "46000"))
    sure(desk, broker_limit("1000012"))
    sure(desk, beat("consumer", 0))
    joined = sure(desk, join("classic"))
    sure(desk, sync("classic", joined))
    producing = Producing(desk, "t", kind=1)
    producing.write(b"in transaction")
    assert producing.commit_offsets(7, group="transactional") == 0
    ended = Producing(desk, "ended", kind=1)
    ended.write(b"ended", topic="home")
    return disk, desk.now + 1000


class Fault(NamedTuple):
    """The step that fails, and how."""

    step: int
    error: int
    room: int = 0
    lasts: str = ""


@cache
def base() -> tuple[FailingFiles, int, View]:
    disk, now = prepared()
    desk = opened(disk.after_crash(), now)
    return disk, now, view(desk)


class Played(NamedTuple):
    """One run of a case: the answers, what clients see then, and which steps the disk took."""

    disk: FailingFiles
    desk: Desk
    asked: list[Asked]
    seen: View


def played(name: str, fault: Fault | None) -> Played:
    """Let a case happen, with a step that fails, and let everything come to rest."""
    disk, now, _ = base()
    disk = disk.after_crash()
    desk = opened(disk, now)
    if fault is None:
        disk.arm(-1, 0)
    else:
        disk.arm(*fault)
    asked = CASES[name](desk)
    desk.settle()
    _rest(desk)
    disk.disarm()
    # A client whose connection was ended asks on another one.
    desk.clients[0] = desk.connect(0)
    _rest(desk)
    return Played(disk, desk, asked, view(desk))


def _rest(desk: Desk) -> None:
    desk.wait(WAIT_MS)
    desk.housekeep()


@cache
def undisturbed(name: str) -> tuple[list[tuple[str, str]], View]:
    """The steps of the disk that a case takes, and what clients see then."""
    run = played(name, None)
    for asked in run.asked:
        assert name in SILENT or asked.answer is not None, name
        assert name in SILENT or not codes(asked.answer), (name, asked.answer)
    return run.disk.taken, run.seen


def faults(name: str) -> Iterator[Fault]:
    """Every step that a case takes, failing in every way."""
    taken, _ = undisturbed(name)
    for step, (operation, _) in enumerate(taken):
        yield Fault(step, errno.EIO)
        yield Fault(step, errno.ENOSPC, 30)
        if operation == "write":
            yield Fault(step, errno.ENOSPC, 300)  # so a batch may be whole, and others not
        yield Fault(step, errno.EIO, lasts=PLACE)
        yield Fault(step, errno.EIO, lasts=EVERYTHING)
        yield Fault(step, errno.ENOSPC, 30, lasts=EVERYTHING)


RECORDS = {"a record": produced("home", b"later"), "a commit": commit("later", 3)}
CATALOG = {"a topic": created("later", 1), "a producer id": initialised(None)}
LIVES: tuple[tuple[str, dict[str, Act]], ...] = (
    ("a kill", {}),
    ("a kill after records", RECORDS),
    ("a stop after more", RECORDS | CATALOG),
)


def tried(name: str, fault: Fault) -> None:
    """Raises AssertionError where a fault makes the broker tell something untrue."""
    before, (_, after) = base()[2], undisturbed(name)
    run = played(name, fault)
    where = f"{name}, {fault}, {run.disk.failed}"
    allowed = _allowed(name, run, before, after)
    _compare(where, "now", run.seen, allowed)
    acknowledged: dict[str, Any] = {}
    for way, following in LIVES:
        acknowledged |= _followed(run.desk, following, acknowledged)
        if way.startswith("a stop"):
            run.desk.cluster.close()
        try:
            again = opened(run.disk.after_crash(), run.desk.now)
        except KohortError as error:
            raise AssertionError(f"{where}: no start after {way}: {error}") from error
        found = view(again)
        _compare(where, f"after {way}", found, allowed)
        for key, value in found.items():
            if key in run.seen and not isinstance(run.seen[key], int) and _settled(name, run):
                same = value == run.seen[key] or _only_longer(run.seen[key], value)
                assert same, f"{where}: after {way}: {key}: {run.seen[key]}, then {value}"
        _look_for(f"{where}: after {way}", again, acknowledged, found)


def _followed(desk: Desk, following: dict[str, Act], had: dict[str, Any]) -> dict[str, Any]:
    """What clients go on with, and what of it is acknowledged."""
    asked = {key: act(desk)[0] for key, act in following.items() if key not in had}
    if asked:
        _rest(desk)
    return {
        key: one.answer
        for key, one in asked.items()
        if one.answer is not None and not codes(one.answer)
    }


def _settled(name: str, run: Played) -> bool:
    return name not in SILENT and all(asked.answer is not None for asked in run.asked)


def _only_longer(seen: Any, value: Any) -> bool:
    """The records that were written by those who have gone on."""
    if not (isinstance(seen, tuple) and isinstance(value, tuple) and len(seen) == 2):
        return False
    mine, theirs = seen[1], value[1]
    return (
        isinstance(mine, list)
        and isinstance(theirs, list)
        and seen[0] == value[0]
        and [row for row in theirs if row not in mine]
        == [row for row in theirs if row[1:] == (b"later",)]
        and [row for row in theirs if row in mine] == mine
    )


def _allowed(name: str, run: Played, before: View, after: View) -> list[View]:
    """What may be seen. With several requests in a turn each thing counts for itself."""
    if name in SILENT or any(asked.answer is None for asked in run.asked):
        return [before, after]
    refused = [bool(codes(asked.answer)) for asked in run.asked]
    if all(refused):
        return [before]
    return [before, after] if any(refused) else [after]


def _compare(where: str, when: str, seen: View, allowed: Iterable[View]) -> None:
    views = list(allowed)
    for key in dict.fromkeys([*seen, *(key for view_ in views for key in view_)]):
        if "later" in key:
            continue
        found = seen.get(key)
        if isinstance(found, int) and not key.startswith("topic ") and when == "now":
            continue  # out of service
        wanted = [view_.get(key) for view_ in views]
        if any(found == one or _only_longer(one, found) for one in wanted):
            continue
        raise AssertionError(f"{where}: {when}: {key} is {found}, expected one of {wanted}")


def _look_for(where: str, desk: Desk, acknowledged: dict[str, Any], found: View) -> None:
    """What was acknowledged after the failure."""
    if "a record" in acknowledged:
        records = found["records of home-0"]
        assert records[1][-1][1] == b"later", f"{where}: a later record is gone: {records}"
    if "a commit" in acknowledged:
        asked = OffsetFetchRequestGroup(group_id="later", topics=None)
        (group,) = desk.ask(OffsetFetchRequest(groups=[asked]), 9).groups
        assert group.topics, f"{where}: a later commit is gone"
        assert group.topics[0].partitions[0].committed_offset == 3
    if "a topic" in acknowledged:
        assert "topic later" in found, f"{where}: a later topic is gone"
    if "a producer id" in acknowledged:
        (asked_id,) = initialised(None)(desk)
        desk.settle()
        given = acknowledged["a producer id"].producer_id
        assert asked_id.answer.producer_id > given, f"{where}: {given} is given out again"


def first_faults(name: str) -> Iterator[Fault]:
    """The first step of each kind failing once, and every write when most of it is done."""
    seen: set[str] = set()
    for step, (operation, _) in enumerate(undisturbed(name)[0]):
        if operation not in seen or operation == "write":
            seen.add(operation)
            yield Fault(step, errno.EIO)
            if operation == "write":
                yield Fault(step, errno.ENOSPC, 300)
