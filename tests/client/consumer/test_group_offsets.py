# SPDX-License-Identifier: Apache-2.0
"""Committed offsets of a member: who asks, in which versions, and that newer ones come last."""

import asyncio
import contextlib
from typing import Any

import pytest
from tests.client.consumer.running import until
from tests.client.scripted import ReceivedRequest, ScriptedCluster, asynchronous, in_turn

from kohort.client.admin import CommittedOffset
from kohort.client.consumer.group_offsets import (
    NOBODY,
    NOT_THE_MEMBER,
    GroupOffsets,
    Identity,
)
from kohort.errors import ApiError, ErrorCode, UnsupportedVersionError
from kohort.terms import NO_TOPIC_ID, TopicId, TopicPartition
from kohort.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kohort.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
MODERN = Identity("m", 7, "i", is_modern=True)
CLASSIC = Identity("m", 3, None)


def offsets(script: ScriptedCluster, who: Identity | None = NOBODY) -> GroupOffsets:
    return GroupOffsets(script.cluster(), "g", lambda: who)


def deadline(timeout_s: float = 5) -> float:
    return asyncio.get_running_loop().time() + timeout_s


def committed(asked: ReceivedRequest, *codes: int) -> OffsetCommitResponse:
    """Each partition that was named is answered with a code in turn, the last one for the rest."""
    left = list(codes) or [0]
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetCommitResponsePartition(
                        partition_index=one.partition_index,
                        error_code=left.pop(0) if len(left) > 1 else left[0],
                    )
                    for one in topic.partitions
                ],
            )
            for topic in asked.request.topics
        ]
    )


def fetched(asked: ReceivedRequest, code: int = 0, of_partition: int = 0) -> OffsetFetchResponse:
    """Partition 0 is committed at 5, and no other."""
    if asked.version < 8:
        parts = [
            OffsetFetchResponsePartition(
                partition_index=index,
                committed_offset=-1 if index else 5,
                error_code=of_partition,
            )
            for index in asked.request.topics[0].partition_indexes
        ]
        topic = OffsetFetchResponseTopic(name="t", partitions=parts)
        return OffsetFetchResponse(topics=[topic], error_code=code)
    new = [
        OffsetFetchResponsePartitions(
            partition_index=index,
            committed_offset=-1 if index else 5,
            committed_leader_epoch=2,
            metadata="x",
            error_code=of_partition,
        )
        for index in asked.request.groups[0].topics[0].partition_indexes
    ]
    topic_id = asked.request.groups[0].topics[0].topic_id
    of_topic = OffsetFetchResponseTopics(name="t", topic_id=topic_id, partitions=new)
    return OffsetFetchResponse(
        groups=[OffsetFetchResponseGroup(group_id="g", topics=[of_topic], error_code=code)]
    )


@asynchronous
async def test_a_commit_says_who_commits() -> None:
    async with ScriptedCluster(1, {OffsetCommitRequest: committed}) as script:
        await offsets(script, MODERN).commit(lambda: {T0: CommittedOffset(4, 1, "x")}, deadline())
        (asked,) = script.sent("OffsetCommit")
        request = asked.request
        assert asked.version == 9
        assert (request.member_id, request.generation_id_or_member_epoch) == ("m", 7)
        assert request.group_instance_id == "i"
        part = request.topics[0].partitions[0]
        assert (part.committed_offset, part.committed_leader_epoch) == (4, 1)
        assert part.committed_metadata == "x"


@asynchronous
async def test_a_classic_member_commits_to_old_brokers_too() -> None:
    async with ScriptedCluster(1, {OffsetCommitRequest: committed}) as script:
        script.offer("OffsetCommit", "2-5")
        await offsets(script, CLASSIC).commit(lambda: {T0: CommittedOffset(4)}, deadline())
        assert script.sent("OffsetCommit")[0].version == 5
        with pytest.raises(UnsupportedVersionError, match="a commit by a member of a KIP-848"):
            await offsets(script, MODERN).commit(lambda: {T0: CommittedOffset(4)}, deadline())


@asynchronous
async def test_only_what_was_refused_is_committed_again() -> None:
    answers = in_turn(lambda asked: committed(asked, 0, 14), committed)
    async with ScriptedCluster(1, {OffsetCommitRequest: answers}) as script:
        both = {T0: CommittedOffset(1), T1: CommittedOffset(2)}
        await offsets(script).commit(lambda: both, deadline())
        first, second = script.sent("OffsetCommit")
        assert len(first.request.topics[0].partitions) == 2
        assert [one.partition_index for one in second.request.topics[0].partitions] == [1]


@asynchronous
async def test_a_refusal_names_its_partition() -> None:
    async with ScriptedCluster(
        1, {OffsetCommitRequest: lambda asked: committed(asked, 110)}
    ) as script:
        with pytest.raises(ApiError, match="t:0: FENCED_MEMBER_EPOCH"):
            await offsets(script).commit(lambda: {T0: CommittedOffset(1)}, deadline())


@asynchronous
async def test_the_epoch_of_now_is_told_after_a_stale_one() -> None:
    epochs = [4, 5, 5]
    answers = in_turn(lambda asked: committed(asked, 113), committed)
    async with ScriptedCluster(1, {OffsetCommitRequest: answers}) as script:
        mine = GroupOffsets(
            script.cluster(), "g", lambda: Identity("m", epochs.pop(0), is_modern=True)
        )
        await mine.commit(lambda: {T0: CommittedOffset(1)}, deadline())
        told = [one.request.generation_id_or_member_epoch for one in script.sent("OffsetCommit")]
        assert told == [4, 5]


@asynchronous
async def test_who_is_no_member_commits_nothing() -> None:
    async with ScriptedCluster(1, {OffsetCommitRequest: committed}) as script:
        with pytest.raises(ApiError, match="the consumer is no member of group g at the moment"):
            await offsets(script, None).commit(lambda: {T0: CommittedOffset(1)}, deadline())
        assert not offsets(script, None).has_identity
        assert script.sent("OffsetCommit") == []


@asynchronous
async def test_commits_wait_for_each_other_and_look_when_it_is_their_turn() -> None:
    async with ScriptedCluster(1, {OffsetCommitRequest: committed}) as script:
        mine = offsets(script)
        newest = {"offset": 1}
        first = asyncio.create_task(
            mine.commit(lambda: {T0: CommittedOffset(newest["offset"])}, deadline())
        )
        second = asyncio.create_task(
            mine.commit(lambda: {T0: CommittedOffset(newest["offset"])}, deadline())
        )
        await asyncio.sleep(0)
        newest["offset"] = 2
        done = asyncio.create_task(mine.finished())
        await asyncio.gather(first, second, done)
        told = [
            one.request.topics[0].partitions[0].committed_offset
            for one in script.sent("OffsetCommit")
        ]
        assert told[-1] == 2
        assert told == sorted(told)


@asynchronous
async def test_nothing_to_commit_asks_nobody() -> None:
    async with ScriptedCluster() as script:
        await offsets(script).commit(dict, deadline())
        assert await offsets(script).fetch([], deadline()) == {}
        assert script.asked == []


@pytest.mark.parametrize(
    ("versions", "who", "expected"),
    [
        ("1-9", MODERN, (9, "m", 7)),
        ("1-9", CLASSIC, (9, None, -1)),
        ("1-8", MODERN, (8, None, -1)),
    ],
)
@asynchronous
async def test_a_fetch_says_who_asks_where_it_can(
    versions: str, who: Identity, expected: Any
) -> None:
    async with ScriptedCluster(1, {OffsetFetchRequest: fetched}) as script:
        script.offer("OffsetFetch", versions)
        found = await offsets(script, who).fetch([T1, T0], deadline())
        assert found == {T0: CommittedOffset(5, 2, "x"), T1: None}
        (asked,) = script.sent("OffsetFetch")
        group = asked.request.groups[0]
        assert (asked.version, group.member_id, group.member_epoch) == expected
        assert asked.request.require_stable


@pytest.mark.parametrize(("versions", "stable"), [("1-7", True), ("1-6", False)])
@asynchronous
async def test_old_brokers_are_asked_for_one_group(versions: str, stable: bool) -> None:  # noqa: FBT001
    async with ScriptedCluster(1, {OffsetFetchRequest: fetched}) as script:
        script.offer("OffsetFetch", versions)
        found = await offsets(script, CLASSIC).fetch([T0], deadline())
        assert found == {T0: CommittedOffset(5)}
        assert script.sent("OffsetFetch")[0].request.require_stable is stable


@asynchronous
async def test_an_open_transaction_is_waited_for() -> None:
    answers = in_turn(lambda asked: fetched(asked, of_partition=88), fetched)
    async with ScriptedCluster(1, {OffsetFetchRequest: answers}) as script:
        assert await offsets(script).fetch([T0], deadline()) == {T0: CommittedOffset(5, 2, "x")}
        assert len(script.sent("OffsetFetch")) == 2


@pytest.mark.parametrize(
    ("answer", "refusal"),
    [
        (lambda asked: fetched(asked, code=30), "GROUP_AUTHORIZATION_FAILED"),
        (
            lambda asked: fetched(asked, of_partition=29),
            "t:0: User:ANONYMOUS is not authorized for topic t",
        ),
        (lambda _asked: OffsetFetchResponse(), "the broker's answer lacks group g"),
        (
            lambda _asked: OffsetFetchResponse(groups=[OffsetFetchResponseGroup(group_id="g")]),
            "the broker's answer lacks partition t:0",
        ),
    ],
)
@asynchronous
async def test_what_cannot_be_known_is_an_error(answer: Any, refusal: str) -> None:
    async with ScriptedCluster(1, {OffsetFetchRequest: answer}) as script:
        with pytest.raises(ApiError, match=refusal):
            await offsets(script).fetch([T0], deadline(1))


# Topics by id

I = TopicId(b"i" * 16)  # noqa: E741  (an id)
U0 = TopicPartition("u", 0)


@asynchronous
async def test_topics_are_named_by_id_where_all_have_one() -> None:
    script = ScriptedCluster(
        answers={
            OffsetFetchRequest: fetched,
            OffsetCommitRequest: committed,
        }
    )
    async with script:
        some = offsets(script)
        assert await some.fetch([T0], deadline(), {T0: I}) == {T0: CommittedOffset(5, 2, "x")}
        await some.fetch([T0, T1], deadline(), {T0: I})
        await some.commit(lambda: {T0: CommittedOffset(6)}, deadline(), lambda _: I)
        known = {T0: I, U0: NO_TOPIC_ID}
        both = {one: CommittedOffset(6) for one in known}
        await some.commit(lambda: both, deadline(), known.__getitem__)
        assert [one.version for one in script.sent("OffsetFetch")] == [10, 9]
        assert [one.version for one in script.sent("OffsetCommit")] == [10, 9]
        assert script.sent("OffsetFetch")[0].request.groups[0].topics[0].topic_id == I
        assert script.sent("OffsetCommit")[0].request.topics[0].topic_id == I
        await some._cluster.close()


@asynchronous
async def test_a_broker_without_ids_is_asked_by_name() -> None:
    script = ScriptedCluster(answers={OffsetFetchRequest: fetched, OffsetCommitRequest: committed})
    script.offer("OffsetFetch", "1-9")
    script.offer("OffsetCommit", "2-9")
    async with script:
        some = offsets(script)
        assert await some.fetch([T0], deadline(), {T0: I}) == {T0: CommittedOffset(5, 2, "x")}
        await some.commit(lambda: {T0: CommittedOffset(6)}, deadline(), lambda _: I)
        assert script.sent("OffsetCommit")[0].request.topics[0].name == "t"
        await some._cluster.close()


@asynchronous
async def test_a_topic_that_is_gone_is_told_at_once_to_who_reads_offsets() -> None:
    script = ScriptedCluster(
        answers={OffsetFetchRequest: lambda asked: fetched(asked, of_partition=100)}
    )
    async with script:
        some = offsets(script)
        with pytest.raises(ApiError) as failure:
            await some.fetch([T0], deadline(600), {T0: I})
        assert failure.value.code is ErrorCode.UNKNOWN_TOPIC_ID
        assert len(script.sent("OffsetFetch")) == 1
        await some._cluster.close()


@asynchronous
async def test_an_offset_of_a_topic_that_is_gone_is_refused_after_some_looks() -> None:
    script = ScriptedCluster(answers={OffsetCommitRequest: lambda asked: committed(asked, 100)})
    async with script:
        some = offsets(script)
        with pytest.raises(ApiError) as failure:
            await some.commit(lambda: {T0: CommittedOffset(6)}, deadline(600), lambda _: I)
        assert failure.value.code is ErrorCode.UNKNOWN_TOPIC_ID
        assert len(script.sent("OffsetCommit")) == 4
        await some._cluster.close()


@asynchronous
async def test_what_was_lost_is_not_committed_by_a_later_epoch() -> None:
    """The coordinator moved while the member was put out, and let in again."""
    busy = int(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)

    def loads(asked: ReceivedRequest) -> OffsetCommitResponse:
        some.lost([T0])
        return committed(asked, busy)

    async with ScriptedCluster(1, {OffsetCommitRequest: in_turn(loads, committed)}) as script:
        some = offsets(script, MODERN)
        both = {T0: CommittedOffset(4), T1: CommittedOffset(5)}
        with pytest.raises(ApiError, match="t:0: lost before") as refused:
            await some.commit(lambda: both, deadline())
        assert refused.value.code is ErrorCode.UNKNOWN_MEMBER_ID
        named = [
            [one.partition_index for one in asked.request.topics[0].partitions]
            for asked in script.sent("OffsetCommit")
        ]
        assert named == [[0, 1], [1]]
        some.lost([T1])
        await some.commit(lambda: {T1: CommittedOffset(6)}, deadline())


@asynchronous
async def test_what_was_committed_before_it_was_lost_is_committed() -> None:
    def told(asked: ReceivedRequest) -> OffsetCommitResponse:
        some.lost([T0])
        return committed(asked)

    async with ScriptedCluster(1, {OffsetCommitRequest: told}) as script:
        some = offsets(script, MODERN)
        await some.commit(lambda: {T0: CommittedOffset(4)}, deadline())


# Whoever believes to be the member hears that it is not


def listening(script: ScriptedCluster, who: Identity) -> tuple[GroupOffsets, list[Any], list[Any]]:
    refusals: list[Any] = []
    unknown: list[Any] = []
    mine = GroupOffsets(
        *(script.cluster(), "g", lambda: who),
        on_refusal=lambda who, error: refusals.append((who, error.code)),
        on_unknown=unknown.extend,
    )
    return mine, refusals, unknown


WHO = pytest.mark.parametrize("who", [MODERN, CLASSIC], ids=["modern", "classic"])
REFUSALS = [*sorted(NOT_THE_MEMBER), ErrorCode.OFFSET_METADATA_TOO_LARGE]


@WHO
@pytest.mark.parametrize("code", REFUSALS)
@asynchronous
async def test_a_refused_commit_says_in_whose_name_it_was(who: Identity, code: ErrorCode) -> None:
    answers = in_turn(lambda asked: committed(asked, code), committed)
    async with ScriptedCluster(1, {OffsetCommitRequest: answers}) as script:
        mine, refusals, _ = listening(script, who)
        with contextlib.suppress(ApiError):  # some pass
            await mine.commit({T0: CommittedOffset(1), T1: CommittedOffset(1)}, deadline())
        assert refusals == ([(who, code)] if code in NOT_THE_MEMBER else [])


@WHO
@pytest.mark.parametrize("where", ["code", "of_partition"])
@pytest.mark.parametrize("code", REFUSALS)
@asynchronous
async def test_a_refused_look_at_offsets_does_so_too(
    who: Identity, code: ErrorCode, where: str
) -> None:
    answers = in_turn(lambda asked: fetched(asked, **{where: code}), fetched)
    async with ScriptedCluster(1, {OffsetFetchRequest: answers}) as script:
        mine, refusals, _ = listening(script, who)
        with contextlib.suppress(ApiError):
            await mine.fetch([T0], deadline())
        assert refusals == ([(who, code)] if code in NOT_THE_MEMBER else [])


@pytest.mark.parametrize("code", [3, 100])
@asynchronous
async def test_a_partition_that_the_coordinator_does_not_know_is_looked_up(code: int) -> None:
    answers = {
        OffsetCommitRequest: in_turn(lambda asked: committed(asked, code), committed),
        OffsetFetchRequest: in_turn(lambda asked: fetched(asked, of_partition=code), fetched),
    }
    async with ScriptedCluster(1, answers) as script:
        mine, _, unknown = listening(script, MODERN)
        await mine.commit({T0: CommittedOffset(1)}, deadline())
        assert unknown == [T0]
        with contextlib.suppress(ApiError):
            await mine.fetch([T1], deadline())
        assert unknown == [T0, T1]


@asynchronous
async def test_a_commit_that_waits_for_its_turn_does_not_commit_what_is_lost_meanwhile() -> None:
    """Under an epoch of later it would go behind what others have committed."""
    held = asyncio.Event()

    async def slow(asked: ReceivedRequest) -> OffsetCommitResponse:
        await held.wait()
        return committed(asked)

    async with ScriptedCluster(1, {OffsetCommitRequest: slow}) as script:
        mine = offsets(script)
        first = asyncio.create_task(mine.commit({T0: CommittedOffset(1)}, deadline()))
        given = {T0: CommittedOffset(2), T1: CommittedOffset(2)}
        second = asyncio.create_task(mine.commit(given, deadline()))
        of_then = asyncio.create_task(mine.commit(lambda: {T0: CommittedOffset(9)}, deadline()))
        await until(lambda: script.sent("OffsetCommit"))
        mine.lost([T0])
        held.set()
        await first  # the coordinator has taken it
        with pytest.raises(ApiError, match="t:0: lost before they were committed"):
            await second
        await of_then  # it was asked for later, as things are then
        told = [
            [(one.partition_index, one.committed_offset) for one in topic.partitions]
            for asked in script.sent("OffsetCommit")
            for topic in asked.request.topics
        ]
        assert told == [[(0, 1)], [(1, 2)], [(0, 9)]]
