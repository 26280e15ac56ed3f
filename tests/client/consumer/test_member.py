# SPDX-License-Identifier: Apache-2.0
"""A member's two tasks: one that never stops talking, and one that acts in order."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.client.consumer.running import until, within
from tests.client.scripted import CLOSE, ScriptedCluster, asynchronous, in_turn

from kohort.client.consumer.assignor import AssignmentTold
from kohort.client.consumer.group_offsets import Identity
from kohort.client.consumer.member import Member
from kohort.client.consumer.protocols import ClassicProtocol, ModernProtocol, TopicSubscription
from kohort.client.consumer.settings import ConsumerSettings
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
from kohort.client.members.membership import Heartbeat
from kohort.client.members.retry_backoff import RetryBackoff
from kohort.client.network.cluster import Node
from kohort.client.network.connection import Need
from kohort.client.network.metadata import Metadata
from kohort.errors import ApiError, ErrorCode
from kohort.terms import Millis, TopicId, TopicPartition
from kohort.wire.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from kohort.wire.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kohort.wire.messages.metadata import MetadataRequest

LOST = ApiError(ErrorCode.FENCED_MEMBER_EPOCH)
A, B, C = ("raw", 0), ("raw", 1), ("raw", 2)  # as a machine names partitions
PLACES = {one: TopicPartition("t", one[1]) for one in (A, B, C)}
HEARD = ConsumerGroupHeartbeatResponse(heartbeat_interval_ms=1000)


class Machine:
    """Says what a test puts into `due`, and answers with `events` what it is told."""

    def __init__(self) -> None:
        self.due: list[Any] = []
        self.events: list[Any] = []
        self.heard: list[tuple[Any, ...]] = []
        self.owned: set[Any] = set()
        self.consumable: set[Any] = set()
        self.has_coordinator = False
        self.fault: Exception | None = None

    def hear(self, *what: Any) -> list[Any]:
        self.heard.append(what)
        events, self.events = self.events, []
        return events

    def join(self) -> list[Any]:
        return self.hear("join")

    def leave(self, _now: Millis, *, for_good: bool) -> list[Any]:
        return self.hear("leave", for_good)

    def coordinator_found(self) -> None:
        self.has_coordinator = True

    def topics_known(self, counted: dict[str, int]) -> list[Any]:
        return self.hear("topics", counted)

    def received(self, number: int, answer: Any, _now: Millis) -> list[Any]:
        fault, self.fault = self.fault, None
        if fault is not None:
            raise fault
        return self.hear("answer", number, answer.member_epoch)

    def connection_lost(self, _now: Millis) -> list[Any]:
        return self.hear("lost")

    def refuse(self, error: ApiError) -> list[Any]:
        self.heard.append(("refuse", error.code))
        return [MembershipFailed(error)]

    def expire(self, _now: Millis) -> list[Any]:
        return []

    def next(self, _now: Millis) -> Any:
        return self.due.pop(0) if self.due and self.has_coordinator else None

    def wake_at(self) -> Millis | None:
        return Millis(0) if self.due and self.has_coordinator else None


IDS = {"t": TopicId(b"t" * 16), "u": TopicId(b"u" * 16)}


class Protocol:
    """Knows the names of `places`, and the counts of topics."""

    def __init__(self) -> None:
        self.machine = Machine()
        self.wanted = TopicSubscription(("t",))
        self.places = dict(PLACES)
        self.refusals: list[Exception] = []
        self.who: Identity | None = Identity("m")

    def want(self, _now: Millis) -> list[Any]:
        return self.machine.hear("want")

    def released(self, raw: Collection[Any], _now: Millis) -> list[Any]:
        self.machine.owned -= set(raw)
        return self.machine.hear("released", sorted(raw))

    async def named(self, raw: Collection[Any], _deadline: float) -> dict[Any, TopicPartition]:
        await asyncio.sleep(0)
        if self.refusals:
            raise self.refusals.pop(0)
        return {one: self.places[one] for one in raw if one in self.places}

    def topic_ids(self, named: Any) -> dict[TopicPartition, TopicId]:
        return {name: IDS[name.topic] for name in named.values() if name.topic in IDS}

    async def look_again(self, _now: Millis, _deadline: float) -> list[Any]:
        if self.refusals:
            raise self.refusals.pop(0)
        return self.machine.hear("look")

    async def count(self, topics: Collection[str], _deadline: float) -> dict[str, int]:
        if self.refusals:
            raise self.refusals.pop(0)
        return dict.fromkeys(topics, 3)

    def identity(self) -> Identity | None:
        return self.who

    def need(self, _request: Any) -> Need | None:
        return None

    def at_most(self, _request: Any) -> int:
        return 1

    def patience_ms(self, _request: Any) -> int:
        return 0


class Counting(Protocol, ClassicProtocol):
    """The same for a leader of a classic group."""

    def __init__(self) -> None:
        Protocol.__init__(self)


class PartitionOwner:
    def __init__(self) -> None:
        self.heard_before: list[int] = []  # than the event has its turn
        self.told: list[tuple[Any, ...]] = []
        self.may_go_on = asyncio.Event()
        self.may_go_on.set()
        self.fault: Exception | None = None
        self.accepted_count = 0

    def accepted(self) -> None:
        self.accepted_count += 1

    async def _tell(self, *what: Any) -> None:
        self.told.append(what)
        await self.may_go_on.wait()
        fault, self.fault = self.fault, None
        if fault is not None:
            raise fault

    async def assigned(
        self,
        partitions: Collection[TopicPartition],
        ids: Any = None,
        *,
        returned: Collection[TopicPartition] = (),
    ) -> None:
        self.returned = list(returned)
        assert ids == {one: IDS[one.topic] for one in partitions}
        await self._tell("assigned", [one.partition for one in partitions])

    async def revoked(
        self, partitions: Collection[TopicPartition], still_ours: Callable[[], bool]
    ) -> None:
        await self._tell("revoked", [one.partition for one in partitions], still_ours())

    def unwanted(self, partitions: Collection[TopicPartition], *, lost: bool) -> None:
        self.heard_before += [one.partition for one in partitions]

    async def lost(self, partitions: Collection[TopicPartition], error: ApiError) -> None:
        await self._tell("lost", [one.partition for one in partitions], error)


class AssignmentComputer:
    def __init__(self) -> None:
        self.heard: list[Any] = []

    def reached(self, coordinator: Node) -> None:
        self.reached_at = coordinator

    def on_compute_request(self) -> None:
        self.heard.append("asked")

    def notify_assignment(self, assignment: AssignmentTold) -> None:
        self.heard.append(assignment)


class World:
    def __init__(self, script: ScriptedCluster, protocol: Any) -> None:
        self.script = script
        self.protocol = protocol
        self.machine: Machine = protocol.machine
        self.owner, self.computer = PartitionOwner(), AssignmentComputer()
        self.refusals: list[tuple[Any, bool]] = []
        self.member = Member(
            "g",
            protocol,
            script.cluster(),
            self.owner,
            self.computer,
            on_refusal=lambda error, for_good: self.refusals.append((error, for_good)),
            timeout_s=20.0,
        )

    def play(self, *events: Any) -> None:
        """The machine says these at the next word from outside."""
        self.machine.events = list(events)
        self.member.want()

    def has(self, *raw: Any) -> None:
        self.machine.owned, self.machine.consumable = set(raw), set(raw)

    def heartbeat(self, number: int) -> None:
        self.machine.due.append(Heartbeat(number, beat(number)))
        self.member._news.set()

    async def owns(self, *raw: Any) -> None:
        self.has(*raw)
        self.play(PartitionsAssigned(raw))
        await until(lambda: self.owner.told)
        self.owner.told.clear()
        self.machine.heard.clear()


def beat(number: int) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=number)


@asynccontextmanager
async def world(protocol: Any = None, **answers: Any) -> AsyncIterator[World]:
    async with within(), ScriptedCluster(2) as script:
        script.answers[ConsumerGroupHeartbeatRequest] = answers.get("heartbeat", in_turn(HEARD))
        if "find" in answers:
            script.answers[FindCoordinatorRequest] = answers["find"]
        script.coordinators["g"] = 1
        made = World(script, Protocol() if protocol is None else protocol)
        made.member.start()
        yield made
        await made.member.close()


# Talking


@asynchronous
async def test_a_member_joins_by_its_coordinator_and_hears_answers_by_number() -> None:
    async with world() as it:
        assert it.member.outside.is_set()
        it.machine.events = [CoordinatorWanted()]
        it.machine.due = [Heartbeat(7, beat(0))]
        it.member.join()
        assert not it.member.outside.is_set()
        await until(lambda: ("answer", 7, 0) in it.machine.heard)
        (asked,) = it.script.sent("ConsumerGroupHeartbeat")
        assert (asked.node, asked.version, asked.request) == (1, 1, beat(0))


@asynchronous
async def test_heartbeats_go_on_while_the_application_is_slow() -> None:
    async with world() as it:
        it.has(A)
        it.owner.may_go_on.clear()
        it.play(CoordinatorWanted(), PartitionsAssigned((A,)))
        await until(lambda: it.owner.told)
        for number in (1, 2):
            it.heartbeat(number)
            await until(lambda: len(it.script.sent("ConsumerGroupHeartbeat")) == number)  # noqa: B023
        assert it.owner.told == [("assigned", [0])]


def coordinator(code: int) -> FindCoordinatorResponse:
    return FindCoordinatorResponse(coordinators=[Coordinator(key="g", error_code=code, host="")])


@asynchronous
async def test_the_coordinator_is_looked_for_until_it_is_found(
    caplog: pytest.LogCaptureFixture,
) -> None:
    usual = ScriptedCluster()._find_coordinator
    answers = in_turn(
        coordinator(ErrorCode.COORDINATOR_NOT_AVAILABLE),
        CLOSE,
        FindCoordinatorResponse(coordinators=[]),
        coordinator(ErrorCode.UNKNOWN_SERVER_ERROR),
        usual,
    )
    async with world() as it:
        real = it.script._find_coordinator
        it.script.answers[FindCoordinatorRequest] = lambda asked: (
            real(asked) if len(it.script.sent("FindCoordinator")) > 4 else answers(asked)
        )
        it.play(CoordinatorWanted())
        it.heartbeat(1)
        await until(lambda: it.script.sent("ConsumerGroupHeartbeat"))
        assert len(it.script.sent("FindCoordinator")) == 5
        assert it.refusals == []
        await until(lambda: len(warnings(caplog)) == 2)
        away, back = warnings(caplog)
        assert away.startswith("group g: its coordinator, which nobody names, is away: ")
        assert re.fullmatch(r"group g: its coordinator is back after \d+\.\d s: node 1 at .*", back)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if one.levelname == "WARNING"]


@asynchronous
async def test_a_coordinator_that_is_away_is_told_once_and_once_when_it_is_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """However often it is asked meanwhile, and also while it says that it is not ready."""
    async with world() as it:
        loading = ConsumerGroupHeartbeatResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        usual = it.script.answers[ConsumerGroupHeartbeatRequest]
        it.script.answers[ConsumerGroupHeartbeatRequest] = in_turn(CLOSE, CLOSE, loading, usual)
        it.play(CoordinatorWanted())
        for number in range(1, 5):
            it.heartbeat(number)
            await until(lambda: len(it.script.sent("ConsumerGroupHeartbeat")) == number)  # noqa: B023
            await until(lambda: len(it.machine.heard) > number)  # noqa: B023
            assert len(warnings(caplog)) == (1 if number < 4 else 2)
        away, back = warnings(caplog)
        assert away.startswith("group g: its coordinator, node 1 at 127.0.0.1:")
        assert "closed the connection" in away
        assert re.fullmatch(r"group g: its coordinator is back after \d+\.\d s: node 1 at .*", back)


@pytest.mark.parametrize("code", [ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.INVALID_GROUP_ID])
@asynchronous
async def test_a_coordinator_that_nobody_may_look_for(code: ErrorCode) -> None:
    async with world(find=in_turn(coordinator(code))) as it:
        it.machine.events = [CoordinatorWanted()]
        it.member.join()
        await it.member.outside.wait()
        await until(lambda: it.refusals)
        ((error, for_good),) = it.refusals
        assert (error.code, for_good) == (code, True)
        assert it.machine.heard[-1] == ("refuse", code)


@asynchronous
async def test_an_answer_that_never_comes_is_a_lost_connection() -> None:
    async with world(heartbeat=in_turn(CLOSE, HEARD)) as it:
        it.play(CoordinatorWanted())
        it.heartbeat(1)
        await until(lambda: ("lost",) in it.machine.heard)
        it.heartbeat(2)
        await until(lambda: ("answer", 2, 0) in it.machine.heard)


@asynchronous
async def test_a_fault_of_ours_leaves_no_member_without_heartbeats(caplog: Any) -> None:
    async with world() as it:
        it.machine.fault = RuntimeError("ours")
        it.play(CoordinatorWanted())
        it.heartbeat(1)
        await until(lambda: ("lost",) in it.machine.heard)
        assert "RuntimeError: ours" in caplog.text
        it.heartbeat(2)
        await until(lambda: ("answer", 2, 0) in it.machine.heard)


@asynchronous
async def test_a_broker_without_the_protocol() -> None:
    async with world() as it:
        it.script.offer("ConsumerGroupHeartbeat", None)
        it.machine.events = [CoordinatorWanted()]
        it.member.join()
        it.heartbeat(1)
        await it.member.outside.wait()
        await until(lambda: it.refusals)
        ((error, for_good),) = it.refusals
        assert (error.code, for_good) == (ErrorCode.UNSUPPORTED_VERSION, True)
        assert it.machine.heard[-1] == ("refuse", ErrorCode.UNSUPPORTED_VERSION)


@asynchronous
async def test_a_request_that_is_given_up_holds_nothing_back() -> None:
    async with world(heartbeat=in_turn(None, HEARD)) as it:
        it.play(CoordinatorWanted())
        it.heartbeat(1)
        await until(lambda: it.script.sent("ConsumerGroupHeartbeat"))
        it.play(HangUp())
        it.heartbeat(2)
        await until(lambda: ("answer", 2, 0) in it.machine.heard)
        assert ("lost",) not in it.machine.heard


# Acting


@asynchronous
async def test_partitions_come_and_go_by_name() -> None:
    async with world() as it:
        await it.owns(A, B)
        it.protocol.who = None
        it.play(PartitionsRevoked((B,)))
        await until(lambda: ("released", [B]) in it.machine.heard)
        it.play(PartitionsLost((A,), LOST))
        await until(lambda: ("released", [A]) in it.machine.heard)
        assert it.owner.told == [("revoked", [1], False), ("lost", [0], LOST)]


@asynchronous
async def test_one_event_is_over_before_the_next() -> None:
    async with world() as it:
        it.has(A, B)
        it.owner.may_go_on.clear()
        it.play(PartitionsAssigned((A,)), PartitionsRevoked((A,)), PartitionsAssigned((B,)))
        await until(lambda: it.owner.told)
        await asyncio.sleep(0.01)
        assert it.owner.told == [("assigned", [0])]
        it.owner.may_go_on.set()
        await until(lambda: len(it.owner.told) == 3)
        assert [one[0] for one in it.owner.told] == ["assigned", "revoked", "assigned"]


@pytest.mark.parametrize("event", [PartitionsRevoked((A,)), PartitionsLost((A,), LOST)])
@asynchronous
async def test_who_begins_hears_at_once_that_it_is_in_vain(event: Any) -> None:
    async with world() as it:
        it.has(A)
        it.owner.may_go_on.clear()
        it.play(PartitionsAssigned((A,)))
        await until(lambda: it.owner.told)
        it.play(event)
        await until(lambda: it.owner.heard_before == [0])
        assert [told[0] for told in it.owner.told] == ["assigned"]
        it.owner.may_go_on.set()
        await until(lambda: len(it.owner.told) == 2)


@pytest.mark.parametrize("event", [PartitionsRevoked((A,)), PartitionsLost((A,), LOST)])
@asynchronous
async def test_what_is_taken_away_is_released_whatever_happens(event: Any, caplog: Any) -> None:
    """Else the group would wait for it until the coordinator puts this member out."""
    async with world() as it:
        await it.owns(A)
        it.owner.fault = RuntimeError("ours")
        it.play(event)
        await until(lambda: ("released", [A]) in it.machine.heard)
        assert "RuntimeError: ours" in caplog.text


@asynchronous
async def test_a_fault_with_one_event_is_not_the_end(caplog: Any) -> None:
    async with world() as it:
        it.has(A, B)
        it.owner.fault = RuntimeError("ours")
        it.play(PartitionsAssigned((A,)), PartitionsAssigned((B,)))
        await until(lambda: len(it.owner.told) == 2)
        assert "RuntimeError: ours" in caplog.text


@asynchronous
async def test_a_topic_that_has_no_name_yet_holds_up_no_other() -> None:
    async with world() as it:
        it.has(A, B)
        del it.protocol.places[B]
        it.protocol.refusals = [ApiError(ErrorCode.NETWORK_EXCEPTION)]
        it.play(PartitionsAssigned((A, B)))
        await until(lambda: it.owner.told)
        assert it.owner.told == [("assigned", [0])]
        it.protocol.places[B] = PLACES[B]
        await until(lambda: len(it.owner.told) == 2)
        assert it.owner.told[1] == ("assigned", [1])


@asynchronous
async def test_what_is_taken_away_before_it_has_a_name_was_never_there() -> None:
    async with world() as it:
        it.has(A, B)
        it.protocol.places.clear()
        it.play(PartitionsAssigned((A, B)))
        await asyncio.sleep(0.01)
        it.machine.consumable = set()
        it.play(PartitionsRevoked((A, B)))
        await until(lambda: ("released", [A, B]) in it.machine.heard)
        assert it.owner.told == [("revoked", [], True)]


@asynchronous
async def test_what_is_released_has_no_name_any_more() -> None:
    async with world() as it:
        await it.owns(A)
        it.play(PartitionsRevoked((A,)), PartitionsRevoked((A,)))
        await until(lambda: len(it.owner.told) == 2)
        assert it.owner.told == [("revoked", [0], True), ("revoked", [], True)]


@asynchronous
async def test_what_the_assignor_adds_is_told_and_asked_for() -> None:
    async with world() as it:
        await it.owns(A, B)
        it.play(ComputeWanted(), AssignmentMetadata((B, A), 2, b"x", 1))
        await until(lambda: len(it.computer.heard) == 2)
        assert it.computer.heard == [
            "asked",
            AssignmentTold((TopicPartition("t", 0), TopicPartition("t", 1)), b"x", 2, 1),
        ]


@asynchronous
async def test_the_owner_hears_of_each_answer_that_refuses_nothing() -> None:
    refused = ConsumerGroupHeartbeatResponse(error_code=ErrorCode.UNRELEASED_INSTANCE_ID)
    async with world(heartbeat=in_turn(refused, HEARD)) as it:
        it.play(CoordinatorWanted())
        it.heartbeat(1)
        await until(lambda: ("answer", 1, 0) in it.machine.heard)
        assert it.owner.accepted_count == 0
        it.heartbeat(2)
        await until(lambda: it.owner.accepted_count == 1)


@asynchronous
async def test_refusals() -> None:
    async with world() as it:
        it.machine.events = [RequestRefused(LOST)]
        it.member.join()
        await until(lambda: it.refusals)
        assert (it.refusals, it.member.outside.is_set()) == ([(LOST, False)], False)
        it.play(MembershipFailed(LOST))
        await it.member.outside.wait()
        await until(lambda: len(it.refusals) == 2)
        assert it.refusals[1] == (LOST, True)


@pytest.mark.parametrize("for_good", [True, False])
@asynchronous
async def test_who_leaves_is_outside_at_the_end(for_good: bool) -> None:  # noqa: FBT001
    async with world() as it:
        it.member.join()
        it.member.leave(for_good=for_good)
        assert ("leave", for_good) in it.machine.heard
        assert not it.member.outside.is_set()
        it.play(GroupLeft())
        assert it.member.outside.is_set()


@asynchronous
async def test_a_leader_counts_until_it_knows() -> None:
    async with world(Counting()) as it:
        it.protocol.refusals = [ApiError(ErrorCode.LEADER_NOT_AVAILABLE)] * 2
        it.member.join()
        it.play(TopicsWanted(("t", "u")))
        await until(lambda: ("topics", {"t": 3, "u": 3}) in it.machine.heard)
        assert it.protocol.refusals == []


@asynchronous
async def test_to_look_again() -> None:
    async with world() as it:
        it.machine.events = [RequestRefused(LOST)]
        await it.member.look_again()
        await until(lambda: it.refusals)
        it.protocol.refusals = [LOST]
        with pytest.raises(ApiError, match="FENCED_MEMBER_EPOCH"):
            await it.member.look_again()


@asynchronous
async def test_to_close_ends_everything_at_any_time() -> None:
    before = asyncio.all_tasks()
    async with world(heartbeat=in_turn(None), find=in_turn(coordinator(15))) as it:
        it.has(A)
        it.owner.may_go_on.clear()
        it.machine.has_coordinator = True
        it.play(CoordinatorWanted(), PartitionsAssigned((A,)))
        await until(lambda: it.owner.told)
        await it.member.close()
        ours = {str(one.get_coro()) for one in asyncio.all_tasks() - before}
        assert not {one for one in ours if "Member." in one}


# With a machine of ours


@asynchronous
async def test_a_member_of_a_modern_group_from_its_first_word_to_its_last() -> None:
    topic_id = TopicId(b"t" * 16)

    def hear(asked: Any) -> Any:
        epoch = asked.request.member_epoch
        partitions = [TopicPartitions(topic_id=topic_id, partitions=[0, 1])]
        return ConsumerGroupHeartbeatResponse(
            member_id=asked.request.member_id,
            member_epoch=max(1, epoch) if epoch >= 0 else epoch,
            heartbeat_interval_ms=1000,
            assignment=Assignment(topic_partitions=partitions) if epoch == 0 else None,
        )

    async with within(), ScriptedCluster() as script:
        script.topics["t"] = [0, 0]
        usual = script.answers[MetadataRequest]

        def told(asked: Any) -> Any:
            for one in asked.request.topics or ():
                one.name = one.name or "t"
            answer = usual(asked)
            for topic in answer.topics:
                topic.topic_id = topic_id
            return answer

        script.answers[MetadataRequest] = told
        script.answers[ConsumerGroupHeartbeatRequest] = hear
        metadata = Metadata(script.cluster())
        settings = ConsumerSettings(group_id="g")
        protocol = ModernProtocol(
            settings, metadata, TopicSubscription(("t",)), RetryBackoff(), lambda: None
        )
        it = World(script, protocol)
        it.member.start()
        it.member.join()
        await until(lambda: it.owner.told == [("assigned", [0, 1])])
        it.member.leave()
        await it.member.outside.wait()
        assert it.owner.told[1:] == [("revoked", [0, 1], True)]
        epochs = [one.request.member_epoch for one in script.sent("ConsumerGroupHeartbeat")]
        assert (epochs[0], epochs[-1]) == (0, -1)
        await it.member.close()
        await metadata.cluster.close()
