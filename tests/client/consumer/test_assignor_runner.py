# SPDX-License-Identifier: Apache-2.0
"""A member computes its group's assignment: whatever its assignor does, the group hears of it."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.client.consumer.running import until, within
from tests.client.scripted import CLOSE, Answer, ScriptedCluster, asynchronous, in_turn

from kohort.client.consumer.assignor import (
    AssignmentTold,
    Assignor,
    GroupMember,
    GroupToAssign,
    Share,
)
from kohort.client.consumer.assignor_runner import FAILED, INVALID, AssignorRunner
from kohort.client.consumer.group_offsets import Identity
from kohort.client.members.heartbeat import Offer
from kohort.errors import ErrorCode
from kohort.terms import TopicPartition
from kohort.wire.messages.consumer_group_install_assignment import (
    ConsumerGroupInstallAssignmentRequest,
    ConsumerGroupInstallAssignmentResponse,
)
from kohort.wire.messages.consumer_group_install_assignment import Member as Installed
from kohort.wire.messages.consumer_group_install_assignment import TopicPartition as Given
from kohort.wire.messages.consumer_group_prepare_assignment import (
    Assignor as WireAssignor,
)
from kohort.wire.messages.consumer_group_prepare_assignment import (
    ConsumerGroupPrepareAssignmentRequest,
    ConsumerGroupPrepareAssignmentResponse,
    Member,
    TopicMetadata,
)
from kohort.wire.messages.consumer_group_prepare_assignment import TopicPartition as Has

T, U, GONE = b"t" * 16, b"u" * 16, b"g" * 16
T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
PREPARED = ConsumerGroupPrepareAssignmentResponse(
    group_epoch=7,
    assignor_name="mine",
    metadata_version=2,
    members=[
        Member(
            member_id="m1",
            instance_id="i",
            rack_id="r",
            subscribed_topic_ids=[T, U, GONE],
            assignor=WireAssignor(reason=5, metadata_version=2, metadata_bytes=b"hello"),
            topic_partitions=[
                Has(topic_id=T, partitions=[0, 1]),
                Has(topic_id=GONE, partitions=[0]),
            ],
        ),
        Member(
            member_id="m2", subscribed_topic_ids=[T], assignor=WireAssignor(metadata_version=-1)
        ),
    ],
    topics=[
        TopicMetadata(topic_id=T, topic_name="t", num_partitions=2),
        TopicMetadata(topic_id=U, topic_name="u", num_partitions=1),
    ],
)
DONE = ConsumerGroupInstallAssignmentResponse()


class Plays(Assignor):
    """Gives what it is told to give, or what a function of the group makes."""

    name = "mine"
    minimum_version, maximum_version = 1, 2

    def __init__(self, given: Any = None) -> None:
        self.given = {} if given is None else given
        self.groups: list[GroupToAssign] = []
        self.threads: list[threading.Thread] = []
        self.told: list[AssignmentTold] = []

    def metadata(self) -> bytes:
        return b"mine"

    def assign(self, group: GroupToAssign) -> Any:
        self.groups.append(group)
        self.threads.append(threading.current_thread())
        return self.given(group) if callable(self.given) else self.given

    def on_assignment(self, told: AssignmentTold) -> None:
        self.told.append(told)


class World:
    def __init__(
        self, script: ScriptedCluster, *assignors: Assignor, timeout_s: float, fallback: str
    ) -> None:
        self.script = script
        self.who: Identity | None = Identity("m1", 3, is_modern=True)
        self.cluster = script.cluster()
        self.assignor_runner = AssignorRunner(
            *(assignors, self.cluster, "g", lambda: self.who),
            timeout_s=timeout_s,
            fallback=fallback,
        )
        self.asked_soon = 0
        self.assignor_runner.ask_soon = self._ask_soon

    def _ask_soon(self) -> None:
        self.asked_soon += 1

    async def computed(self) -> list[Any]:
        """Ask for an assignment, and wait until nothing more comes of it; what was installed."""
        self.assignor_runner.on_compute_request()
        task = self.assignor_runner._task
        assert task is not None
        await task
        return [one.request for one in self.script.sent("ConsumerGroupInstallAssignment")]


@asynccontextmanager
async def world(
    *assignors: Assignor,
    timeout_s: float = 20.0,
    fallback: str = "none",
    prepare: Answer | None = None,
    install: Answer | None = None,
) -> AsyncIterator[World]:
    answers: dict[type, Answer] = {
        ConsumerGroupPrepareAssignmentRequest: prepare or in_turn(PREPARED),
        ConsumerGroupInstallAssignmentRequest: install or in_turn(DONE),
    }
    async with within(), ScriptedCluster(2, answers) as script:
        script.coordinators["g"] = 1
        made = World(script, *assignors, timeout_s=timeout_s, fallback=fallback)
        yield made
        await made.assignor_runner.close()
        await made.cluster.close()


def refused(request: type, code: ErrorCode) -> Any:
    if request is ConsumerGroupPrepareAssignmentRequest:
        return ConsumerGroupPrepareAssignmentResponse(error_code=code, error_message="no")
    return ConsumerGroupInstallAssignmentResponse(error_code=code, error_message="no")


# The usual way


@asynchronous
async def test_the_assignor_sees_the_group_by_names() -> None:
    mine = Plays()
    async with world(mine) as it:
        await it.computed()
    (group,) = mine.groups
    assert (group.version, group.topics) == (2, {"t": 2, "u": 1})
    first = GroupMember(
        member_id="m1",
        topics=frozenset({"t", "u"}),
        partitions=frozenset({T0, T1}),
        metadata=b"hello",
        metadata_version=2,
        reason=5,
        instance_id="i",
        rack="r",
    )
    second = GroupMember(member_id="m2", topics=frozenset({"t"}), metadata_version=-1)
    assert group.members == {"m1": first, "m2": second}


@asynchronous
async def test_what_it_gives_is_installed_by_ids() -> None:
    mine = Plays({"m1": Share([U0, T1], b"told"), "m2": [("t", 0)]})
    async with world(mine) as it:
        (request,) = await it.computed()
        assert {one.node for one in it.script.sent("ConsumerGroupPrepareAssignment")} == {1}
    assert (request.group_id, request.member_id, request.member_epoch) == ("g", "m1", 3)
    assert (request.group_epoch, request.error) == (7, 0)
    assert request.members == [
        Installed(
            member_id="m1",
            partitions=[
                Given(topic_id=T, partitions=[1]),
                Given(topic_id=U, partitions=[0]),
            ],
            metadata_version=2,
            metadata_bytes=b"told",
        ),
        Installed(
            member_id="m2",
            partitions=[Given(topic_id=T, partitions=[0])],
            metadata_version=-1,  # a classic member
        ),
    ]
    assert mine.threads[0] is not threading.main_thread()


@asynchronous
async def test_a_coroutine_runs_on_the_loop() -> None:
    class Async(Plays):
        async def assign(self, group: GroupToAssign) -> Any:
            await asyncio.sleep(0)
            return super().assign(group)

    mine = Async({"m1": [T0]})
    async with world(mine) as it:
        (request,) = await it.computed()
    assert [one.member_id for one in request.members] == ["m1"]
    assert mine.threads == [threading.main_thread()]


@asynchronous
async def test_a_plain_function_may_give_something_to_wait_for() -> None:
    async def later() -> Any:
        await asyncio.sleep(0)
        return {"m1": [T0]}

    async with world(Plays(lambda _: later())) as it:
        (request,) = await it.computed()
    assert (request.error, [one.member_id for one in request.members]) == (0, ["m1"])


@asynchronous
async def test_the_coordinator_names_the_assignor() -> None:
    class Other(Plays):
        name = "other"

    other, mine = Other(), Plays({"m1": [T0]})
    async with world(other, mine) as it:
        (request,) = await it.computed()
    assert (request.error, other.groups, len(mine.groups)) == (0, [], 1)


@asynchronous
async def test_one_assignment_is_computed_at_a_time() -> None:
    go_on = threading.Event()
    mine = Plays(lambda _: go_on.wait(20) and {})
    async with world(mine) as it:
        for _ in range(3):
            it.assignor_runner.on_compute_request()
            await until(lambda: mine.groups)
        go_on.set()
        await until(lambda: it.script.sent("ConsumerGroupInstallAssignment"))
        assert len(mine.groups) == 1
        assert len(await it.computed()) == 2


# What an assignor may do


def raises(error: BaseException) -> Callable[[GroupToAssign], Any]:
    def fail(_: GroupToAssign) -> Any:
        raise error

    return fail


@pytest.mark.parametrize(
    "given",
    [
        raises(RuntimeError("no")),
        raises(TimeoutError()),
        raises(StopIteration()),
        raises(SystemExit(1)),
        raises(KeyboardInterrupt()),
        5,
        [("m1", 5)],
        {"m1": 5},
        {"m1": [5]},
        {"m1": [("t", 0, 0)]},
        {"m1": [("t", "0")]},
        {"m1": Share([("t", 0, 0)])},  # type: ignore[list-item]
        {"m1": Share(None)},  # type: ignore[arg-type]
        {"m1": Share([T0], "text")},  # type: ignore[arg-type]
        {"m1": Share([T0], None)},  # type: ignore[arg-type]
        {"m1": [(["t"], 0)]},
    ],
    ids=lambda given: "raises" if callable(given) else str(given),
)
@asynchronous
async def test_an_assignor_that_fails_is_told_of(given: Any) -> None:
    """At once: its time is longer than this test may take."""
    async with world(Plays(given), timeout_s=600.0) as it:
        (request,) = await it.computed()
    assert (request.error, request.members, request.group_epoch) == (FAILED, [], 7)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (5, "assign returned 5, expected a mapping of partitions by member id"),
        ({"m1": "t"}, "m1 gets what is no share: 't' holds no partitions, expected some"),
        ({"m1": ["t0"]}, "m1 gets what is no share: 't0' is no partition, expected"),
        ({"m1": Share([("t", "0")])}, "m1 gets what is no share: ('t', '0') is no partition"),  # type: ignore[list-item]
        ({"m1": Share([T0], "text")}, "m1 gets the metadata 'text', expected bytes"),  # type: ignore[arg-type]
    ],
)
@asynchronous
async def test_what_has_not_the_form_of_shares_is_told_in_a_line(
    given: Any, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with world(Plays(given)) as it:
        await it.computed()
    (told,) = [one for one in caplog.records if one.levelname == "ERROR"]
    assert told.getMessage().startswith(f"group g: assignor mine: {text}")
    assert told.exc_info is None


@pytest.mark.parametrize(
    "given",
    [
        {"m3": [T0]},
        {"m2": [U0]},
        {"m1": [TopicPartition("t", 2)]},
        {"m1": [TopicPartition("t", -1)]},
        {"m1": [T0], "m2": [T0]},
        {"m1": [T0, T0]},
        {"m1": [TopicPartition("x", 0)]},
    ],
    ids=str,
)
@asynchronous
async def test_what_cannot_be_is_not_installed(given: Any) -> None:
    async with world(Plays(given)) as it:
        (request,) = await it.computed()
    assert (request.error, request.members) == (INVALID, [])


@asynchronous
async def test_an_assignor_that_never_ends() -> None:
    go_on = threading.Event()
    async with world(Plays(lambda _: go_on.wait(60)), timeout_s=0.2) as it:
        (request,) = await it.computed()
        assert request.error == FAILED
    go_on.set()


@asynchronous
async def test_a_coroutine_that_never_ends() -> None:
    class Hangs(Plays):
        async def assign(self, group: GroupToAssign) -> Any:
            await asyncio.Event().wait()

    async with world(Hangs(), timeout_s=0.2) as it:
        (request,) = await it.computed()
    assert request.error == FAILED


@asynchronous
async def test_an_assignor_that_this_member_does_not_have() -> None:
    class Other(Plays):
        name = "other"

    other = Other()
    async with world(other) as it:
        (request,) = await it.computed()
    assert (request.error, other.groups) == (FAILED, [])


@asynchronous
async def test_an_assignment_that_comes_after_the_end_is_nobodys() -> None:
    go_on = threading.Event()
    mine = Plays(lambda _: go_on.wait(20) and {})
    async with world(mine) as it:
        it.assignor_runner.on_compute_request()
        await until(lambda: mine.groups)
        await it.assignor_runner.close()
        go_on.set()
        await asyncio.sleep(0.02)
        assert it.script.sent("ConsumerGroupInstallAssignment") == []


# What the coordinator may say


@pytest.mark.parametrize(
    "request_type", [ConsumerGroupPrepareAssignmentRequest, ConsumerGroupInstallAssignmentRequest]
)
@pytest.mark.parametrize(
    "code", [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
)
@asynchronous
async def test_what_passes_is_tried_again(request_type: type, code: ErrorCode) -> None:
    usual = PREPARED if request_type is ConsumerGroupPrepareAssignmentRequest else DONE
    answers = in_turn(refused(request_type, code), CLOSE, usual)
    given: Any = {"prepare" if usual is PREPARED else "install": answers}
    mine = Plays({"m1": [T0]})
    async with world(mine, **given) as it:
        await it.computed()
        assert len(it.script.sent(request_type.__name__.removesuffix("Request"))) == 3
    assert len(mine.groups) == 1


@pytest.mark.parametrize(
    "code", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.INVALID_REQUEST]
)
@asynchronous
async def test_who_is_not_asked_any_more_computes_nothing(code: ErrorCode) -> None:
    refusal = refused(ConsumerGroupPrepareAssignmentRequest, code)
    mine = Plays()
    async with world(mine, prepare=in_turn(refusal, PREPARED)) as it:
        assert await it.computed() == []
        assert mine.groups == []
        assert len(await it.computed()) == 1  # asked again, it does


@asynchronous
async def test_an_epoch_that_has_passed_is_not_installed_again() -> None:
    refusal = refused(ConsumerGroupInstallAssignmentRequest, ErrorCode.STALE_MEMBER_EPOCH)
    async with world(Plays({"m1": [T0]}), install=in_turn(refusal)) as it:
        assert len(await it.computed()) == 1


@asynchronous
async def test_an_assignment_that_the_coordinator_finds_wrong_is_an_error_of_ours() -> None:
    refusal = refused(ConsumerGroupInstallAssignmentRequest, ErrorCode.INVALID_ASSIGNMENT)
    async with world(Plays({"m1": [T0]}), install=in_turn(refusal)) as it:
        assert [one.error for one in await it.computed()] == [0, INVALID]
        assert it.script.sent("ConsumerGroupInstallAssignment")[1].request.members == []


@asynchronous
async def test_who_is_no_member_asks_nobody() -> None:
    async with world(Plays()) as it:
        it.who = None
        assert await it.computed() == []
        assert it.script.sent("ConsumerGroupPrepareAssignment") == []


@asynchronous
async def test_it_is_asked_and_installed_as_the_member_of_then() -> None:
    async with world(Plays(), timeout_s=20) as it:

        def grow(_: GroupToAssign) -> Any:
            it.who = Identity("m1", 4, is_modern=True)
            return {}

        it.assignor_runner._assignors["mine"].given = grow  # type: ignore[attr-defined]
        (request,) = await it.computed()
        (prepared,) = it.script.sent("ConsumerGroupPrepareAssignment")
        assert (prepared.request.member_epoch, request.member_epoch) == (3, 4)


# Offers, and what is told


@asynchronous
async def test_what_a_member_offers() -> None:
    class Other(Plays):
        name = "other"

        def metadata(self) -> bytes:
            raise LookupError

    async with world(Plays()) as it:
        it.assignor_runner.reason = 4
        offer = Offer("mine", 1, 2, reason=4, metadata_version=2, metadata=b"mine")
        assert it.assignor_runner.offers() == (offer,)
    async with world() as it:
        assert it.assignor_runner.offers() is None
    async with world(Other()) as it:
        with pytest.raises(LookupError):
            it.assignor_runner.offers()


@asynchronous
async def test_the_assignor_is_told_and_what_it_raises_is_logged(caplog: Any) -> None:
    class Fails(Plays):
        def on_assignment(self, told: AssignmentTold) -> None:
            super().on_assignment(told)
            raise RuntimeError("not now")

    mine = Fails()
    async with world(mine) as it:
        it.assignor_runner.notify_assignment(AssignmentTold((T0,), b"x", 1))
    assert mine.told == [AssignmentTold((T0,), b"x", 1)]
    assert "RuntimeError: not now" in caplog.text
    async with world() as it:
        it.assignor_runner.notify_assignment(AssignmentTold((T0,)))  # nobody is there to hear of it


@asynchronous
async def test_of_several_assignors_the_one_is_told_that_has_computed() -> None:
    first, second = Plays(), Plays()
    second.name = "second"
    async with world(first, second) as it:
        for name in ("second", "mine", "", "of nobody here"):
            it.assignor_runner.notify_assignment(AssignmentTold((T0,), assignor=name))
    assert [one.assignor for one in second.told] == ["second"]
    assert [one.assignor for one in first.told] == ["mine", ""]


# What the others hear of it


@pytest.mark.parametrize("install", [None, ErrorCode.STALE_MEMBER_EPOCH])
@asynchronous
async def test_the_coordinator_is_asked_as_soon_as_there_is_an_outcome(install: Any) -> None:
    """Its next answer has the assignment, or says that it is still needed."""
    refusal = refused(ConsumerGroupInstallAssignmentRequest, ErrorCode.STALE_MEMBER_EPOCH)
    answers = None if install is None else in_turn(refusal)
    async with world(Plays({"m1": [T0]}), install=answers) as it:
        await it.computed()
        assert it.asked_soon == 1


@asynchronous
async def test_every_member_warns_when_the_assignor_has_failed(caplog: Any) -> None:
    async with world() as it:
        it.assignor_runner.notify_assignment(AssignmentTold((T0, T1), assignor="mine"))
        assert caplog.messages == []
        it.assignor_runner.notify_assignment(AssignmentTold((T0, T1), error=1, assignor="mine"))
    (line,) = caplog.messages
    assert line.startswith("group g: assignor mine has failed (1) at the member that computes")
    assert "here 2 partitions" in line


@asynchronous
async def test_a_member_whose_assignor_fails_may_compute_as_a_broker_would() -> None:
    def fails(_group: GroupToAssign) -> Any:
        raise ArithmeticError

    async with world(Plays(fails), fallback="uniform") as it:
        (request,) = await it.computed()
    assert request.error == 0
    given = [
        (one.member_id, part.topic_id, index)
        for one in request.members
        for part in one.partitions
        for index in part.partitions
    ]
    assert {(topic_id, index) for _, topic_id, index in given} == {
        (topic.topic_id, index)
        for topic in PREPARED.topics
        for index in range(topic.num_partitions)
    }
    assert len(given) == 3
