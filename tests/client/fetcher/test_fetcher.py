# SPDX-License-Identifier: Apache-2.0
"""Records ahead of whoever takes them: from brokers that refuse, lie, hang and go away.

Requests of these fetchers wait longer for records than a test may last. So whatever has to come of
something else than new records is seen to come of it.
"""

import asyncio
from typing import Any

import pytest
from tests.client.consumer.running import until
from tests.client.fetcher.batches import T0, T1, T2, answer, batch, damaged, emptied
from tests.client.fetcher.scripted_logs import Cast, failure, fetcher, now, read
from tests.client.scripted import CLOSE, ReceivedRequest, asynchronous

import kohort.client.fetcher.fetcher as module
from kohort.client.fetcher.decoding import RecordError
from kohort.client.fetcher.record import OffsetAndEpoch
from kohort.errors import ApiError, ErrorCode
from kohort.terms import TopicId, TopicPartition, uuid_text
from kohort.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from kohort.wire.messages.list_offsets import ListOffsetsRequest

U0 = TopicPartition("u", 0)


def parts(**of: PartitionData) -> FetchResponse:
    """An answer outside of any session, by topic."""
    return FetchResponse(
        responses=[
            FetchableTopicResponse(topic=topic, partitions=[part]) for topic, part in of.items()
        ]
    )


def asked_for(asked: ReceivedRequest) -> dict[TopicPartition, int]:
    return {
        TopicPartition(topic.topic, one.partition): one.fetch_offset
        for topic in asked.request.topics
        for one in topic.partitions
    }


# The usual way


@asynchronous
async def test_records_of_several_brokers_from_a_place_on() -> None:
    async with Cast(2, topics={"t": [0, 1]}) as cast:
        cast.put(T0, batch(0, 1, 2, epoch=3), emptied(3, 5, epoch=3))
        cast.put(T1, batch(4, 5), batch(9))
        async with fetcher(cast) as some:
            some.add({T0: OffsetAndEpoch(1), T1: None})
            assert await read(some, 5) == {T0: [1, 2], T1: [4, 5, 9]}
            await until(lambda: some.take(1) == {} and some.position(T0) == OffsetAndEpoch(6, 3))
            assert some.position(T1) == OffsetAndEpoch(10, 0)
            assert (some.end(T0), some.end(T1)) == (6, 10)
            cast.put(T0, batch(6))
            assert await read(some, 1) == {T0: [6]}


@asynchronous
async def test_what_is_known_of_a_partition_before_the_first_answer() -> None:
    async with Cast() as cast, fetcher(cast) as some:
        some.add({T0: None})
        assert [some.position(T0), some.position(T1), some.end(T0), some.end(T1)] == [None] * 4
        assert some.take(5) == {}
        with pytest.raises(KeyError):
            some.seek(T1, OffsetAndEpoch(0))


@pytest.mark.parametrize(("level", "end"), [("read_committed", 3), ("read_uncommitted", 5)])
@asynchronous
async def test_the_end_is_that_of_what_may_be_read(level: str, end: int) -> None:
    async with Cast() as cast, fetcher(cast, isolation_level=level) as some:
        part = answer(batch(0), high_watermark=5, last_stable_offset=3)
        cast.script = [lambda _: parts(t=part)]
        some.add({T0: OffsetAndEpoch(0)})
        await read(some, 1)
        assert some.end(T0) == end
        assert cast.sent("Fetch")[0].request.isolation_level == int(level == "read_committed")


@asynchronous
async def test_partitions_have_their_turns() -> None:
    async with Cast(topics={"t": [0, 0, 0]}) as cast, fetcher(cast) as some:
        for one in (T0, T1, T2):
            cast.put(one, batch(0, 1, 2, 3))
        some.add(dict.fromkeys((T0, T1, T2), OffsetAndEpoch(0)))
        await until(lambda: all(one.is_ready for one in some._states.values()))
        turns = [dict(some.take(2)) for _ in range(6)]
        assert [next(iter(turn)) for turn in turns] == [T0, T1, T2] * 2
        assert [one.offset for turn in turns for one in turn.get(T1, [])] == [0, 1, 2, 3]


@asynchronous
async def test_the_settings_are_what_is_asked() -> None:
    async with Cast() as cast:
        cast.put(T0, batch(0))
        settings: Any = {
            "fetch_min_bytes": 2,
            "fetch_max_bytes": 3,
            "max_partition_fetch_bytes": 4,
            "fetch_max_wait_ms": 5,
            "client_rack": "r",
        }
        async with fetcher(cast, **settings) as some:
            some.add({T0: OffsetAndEpoch(0)})
            await read(some, 1)
        asked = cast.sent("Fetch")[0].request
        assert (asked.min_bytes, asked.max_bytes, asked.max_wait_ms, asked.rack_id) == (
            2,
            3,
            5,
            "r",
        )
        assert asked.topics[0].partitions[0].partition_max_bytes == 4


@pytest.mark.parametrize(
    ("ids", "lowest", "highest"),
    [({}, 12, 12), ({"t": b"i" * 16}, 12, 12), ({"t": b"i" * 16, "u": b"j" * 16}, 13, 18)],
)
@asynchronous
async def test_topics_are_named_by_id_where_all_have_one(
    ids: Any, lowest: int, highest: int
) -> None:
    async with Cast(topics={"t": [0], "u": [0]}) as cast, fetcher(cast) as some:
        cast.ids = ids
        cast.put(T0, batch(0))
        cast.put(U0, batch(0))
        some.add({T0: OffsetAndEpoch(0), U0: OffsetAndEpoch(0)})
        assert await read(some, 2) == {T0: [0], U0: [0]}
        assert lowest <= cast.sent("Fetch")[0].version <= highest


@asynchronous
async def test_a_batch_that_is_larger_than_a_share_comes_whole() -> None:
    async with Cast() as cast, fetcher(cast, max_partition_fetch_bytes=100) as some:
        cast.put(T0, batch(0, value=b"v" * 5000), batch(1, value=b"w" * 5000))
        some.add({T0: OffsetAndEpoch(0)})
        assert await read(some, 2) == {T0: [0, 1]}


@asynchronous
async def test_nothing_to_read_is_waited_for_until_somebody_nudges() -> None:
    async with Cast() as cast, fetcher(cast) as some:
        some.add({T0: OffsetAndEpoch(0)})
        assert not await some.wait(now() + 0.05)
        waiting = asyncio.create_task(some.wait(now() + 20))
        await asyncio.sleep(0)
        some.nudge()
        assert await waiting
        assert some.take(1) == {}


@asynchronous
async def test_to_close_ends_everything() -> None:
    before = asyncio.all_tasks()
    async with Cast() as cast:
        async with fetcher(cast) as some:
            some.add({T0: OffsetAndEpoch(0)})
            await until(lambda: cast.sent("Fetch"))
        ours = {one for one in asyncio.all_tasks() - before if "Fetcher" in str(one.get_coro())}
        assert not ours
    async with Cast() as cast, fetcher(cast):
        pass  # with nothing to read


# Sessions


@asynchronous
async def test_a_session_says_only_what_is_new() -> None:
    async with Cast(topics={"t": [0, 0]}) as cast, fetcher(cast) as some:
        some.add({T0: OffsetAndEpoch(0), T1: OffsetAndEpoch(0)})
        for offset in range(3):
            cast.put(T0, batch(offset))
            assert await read(some, 1) == {T0: [offset]}
        await until(lambda: len(cast.sent("Fetch")) == 4)
        asked = cast.sent("Fetch")
        assert [one.request.session_epoch for one in asked] == [0, 1, 2, 3]
        assert [asked_for(one) for one in asked] == [{T0: 0, T1: 0}, {T0: 1}, {T0: 2}, {T0: 3}]


@asynchronous
async def test_a_broker_that_keeps_no_sessions() -> None:
    async with Cast(topics={"t": [0, 0]}) as cast, fetcher(cast) as some:
        cast.sessions = None
        some.add({T0: OffsetAndEpoch(0), T1: OffsetAndEpoch(0)})
        for offset in range(3):
            cast.put(T0, batch(offset))
            assert await read(some, 1) == {T0: [offset]}
        assert {one.request.session_epoch for one in cast.sent("Fetch")} == {0}


def refuse(code: ErrorCode) -> Any:
    return lambda _: FetchResponse(error_code=code)


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ],
)
@asynchronous
async def test_a_request_that_is_refused_is_followed_by_one_of_a_new_session(
    code: ErrorCode,
) -> None:
    async with Cast(topics={"t": [0, 0]}) as cast, fetcher(cast) as some:
        cast.put(T0, batch(0))
        cast.script = [None, refuse(code)]
        some.add({T0: OffsetAndEpoch(0), T1: OffsetAndEpoch(0)})
        assert await read(some, 1) == {T0: [0]}
        await until(lambda: len(cast.sent("Fetch")) == 3)
        _, refused, again = cast.sent("Fetch")
        assert refused.request.session_epoch == 1
        assert (again.request.session_id, again.request.session_epoch) == (0, 0)
        assert asked_for(again) == {T0: 1, T1: 0}
        cast.put(T1, batch(0))
        assert await read(some, 1) == {T1: [0]}


@asynchronous
async def test_a_session_that_the_broker_has_put_out() -> None:
    async with Cast(topics={"t": [0, 0]}) as cast, fetcher(cast, fetch_max_wait_ms=10) as some:
        some.add({T0: OffsetAndEpoch(0), T1: OffsetAndEpoch(0)})
        await until(lambda: len(cast.sent("Fetch")) > 3)
        assert cast.sessions
        cast.sessions.clear()
        cast.put(T1, batch(0))
        assert await read(some, 1) == {T1: [0]}


# Partitions that are refused


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    ],
)
@asynchronous
async def test_what_passes_is_asked_again_of_whoever_leads_then(code: ErrorCode) -> None:
    async with Cast(2, topics={"t": [0, 0]}) as cast:
        cast.put(T0, batch(0))
        cast.put(T1, batch(0))
        cast.refusing(FetchRequest, code)
        async with fetcher(cast) as some:
            some.add({T0: OffsetAndEpoch(0), T1: OffsetAndEpoch(0)})
            await until(lambda: cast.sent("Fetch"))
            cast.topics["t"][0], cast.epochs[T0] = 1, 1
            assert await read(some, 2) == {T0: [0], T1: [0]}
            assert {one.node for one in cast.sent("Fetch")} == {0, 1}


def make_anew(cast: Cast, *batches: bytes) -> None:
    """The topic is deleted, and there is another one of its name."""
    cast.ids["t"] = b"j" * 16
    cast.batches.clear()
    cast.put(T0, *batches)


@pytest.mark.parametrize("policy", ["earliest", "latest", "by_duration:PT1H"])
@asynchronous
async def test_a_topic_that_was_made_anew_is_read_from_its_first_record_on(
    policy: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever the policy: all of its records came after what was read before."""
    settings = {"fetch_max_wait_ms": 10, "auto_offset_reset": policy}
    async with Cast() as cast, fetcher(cast, **settings) as some:
        told: list[TopicPartition] = []
        some.on_topic_recreated = told.append
        cast.ids["t"] = b"i" * 16
        cast.put(T0, batch(0, 1))
        some.add({T0: OffsetAndEpoch(0)})
        assert await read(some, 2) == {T0: [0, 1]}
        assert some.topic_id(T0) == b"i" * 16
        make_anew(cast, batch(0, 1, 2))
        assert await read(some, 3) == {T0: [0, 1, 2]}
        assert some.topic_id(T0) == b"j" * 16
        assert told == [T0]
    (warning,) = [one.getMessage() for one in caplog.records if one.levelname == "WARNING"]
    ids = [uuid_text(one * 16) for one in (b"j", b"i")]
    assert warning == (
        f"t:0: the topic was deleted and made anew (id {ids[0]}, before {ids[1]}): from its first "
        "record on in place of offset 2"
    )


@asynchronous
async def test_a_topic_that_was_made_anew_is_not_read_without_a_policy() -> None:
    settings = {"fetch_max_wait_ms": 10, "auto_offset_reset": "none"}
    async with Cast() as cast, fetcher(cast, **settings) as some:
        cast.ids["t"] = b"i" * 16
        cast.put(T0, batch(0))
        some.add({T0: OffsetAndEpoch(0)})
        assert await read(some, 1) == {T0: [0]}
        make_anew(cast, batch(0, 1))
        error = await failure(some)
        assert isinstance(error, ApiError)
        assert error.code is ErrorCode.OFFSET_OUT_OF_RANGE
        some.seek(T0, OffsetAndEpoch(1))
        assert await read(some, 1) == {T0: [1]}


@asynchronous
async def test_a_topic_that_the_group_does_not_mean_is_not_read() -> None:
    """It may be another member's: the group says by id who reads which."""
    async with (
        Cast(topics={"t": [0], "u": [0]}) as cast,
        fetcher(cast, fetch_max_wait_ms=10) as some,
    ):
        cast.ids |= {"t": b"i" * 16, "u": b"u" * 16}
        cast.put(T0, batch(0))
        some.add({T0: OffsetAndEpoch(0)}, {T0: TopicId(b"i" * 16)}, bound=True)
        assert await read(some, 1) == {T0: [0]}
        make_anew(cast, batch(0, 1))
        asked = len(cast.sent("Metadata"))
        await until(lambda: len(cast.sent("Metadata")) > asked + 2)
        assert some.take(10) == {}
        assert some.position(T0) == OffsetAndEpoch(1, 0)
        some.remove([T0])
        some.add({T0: None}, {T0: TopicId(b"j" * 16)}, bound=True)  # this is what it means
        assert await read(some, 2) == {T0: [0, 1]}


@asynchronous
async def test_who_had_a_topic_reads_all_of_the_one_that_was_made_anew() -> None:
    """Also where `latest` would skip what was written before the group heard of it."""
    async with (
        Cast(topics={"t": [0, 0]}) as cast,
        fetcher(cast, auto_offset_reset="latest") as some,
    ):
        cast.ids["t"] = b"j" * 16
        cast.put(T0, batch(0, 1))
        cast.put(T1, batch(0, 1))
        some.add({T0: OffsetAndEpoch(5)}, {T0: TopicId(b"i" * 16)}, bound=True)
        some.remove([T0])
        some.add(dict.fromkeys([T0, T1]), dict.fromkeys([T0, T1], TopicId(b"j" * 16)))
        assert await read(some, 4) == {T0: [0, 1], T1: [0, 1]}
        some.remove([T0, T1])
        some.add({T0: None, T1: OffsetAndEpoch(1)}, dict.fromkeys([T0, T1], TopicId(b"j" * 16)))
        assert await read(some, 1) == {T1: [1]}  # and T0 at its end, as it is the same topic


@asynchronous
async def test_an_answer_for_the_topic_before_is_not_taken() -> None:
    """Though it is for the offset that the new one is read from as well."""
    asked_for_both = asyncio.Event()

    def of_the_former(asked: ReceivedRequest) -> FetchResponse:
        cast.ids["t"] = b"j" * 16
        cast.put(T0, batch(0))
        (state,) = some._states.values()
        state.topic_recreated(TopicId(b"j" * 16))
        state.go_to(OffsetAndEpoch(0))
        some.resume([T0])
        asked_for_both.set()
        part = PartitionData(partition_index=0, high_watermark=9, records=batch(0, 1, 2))
        topic = FetchableTopicResponse(topic_id=b"i" * 16, partitions=[part])
        return FetchResponse(responses=[topic])

    async with Cast() as cast, fetcher(cast) as some:
        cast.ids["t"] = b"i" * 16
        cast.script = [of_the_former]
        some.add({T0: OffsetAndEpoch(0)})
        await asked_for_both.wait()
        assert await read(some, 1) == {T0: [0]}
        assert some.end(T0) == 1


@pytest.mark.parametrize(
    "code", [ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE]
)
@asynchronous
async def test_what_does_not_pass_is_raised_when_nobody_else_has_records(code: ErrorCode) -> None:
    async with Cast(topics={"t": [0, 0]}) as cast, fetcher(cast) as some:
        cast.put(T0, batch(0))
        cast.put(T1, batch(0), batch(1))
        cast.refusing(FetchRequest, code)
        some.add({T0: OffsetAndEpoch(0), T1: OffsetAndEpoch(0)})
        await until(lambda: some._states[T0].error and some._states[T1].is_ready)
        assert await read(some, 2) == {T1: [0, 1]}
        for _ in range(2):
            error = await failure(some)
            assert isinstance(error, ApiError)
            assert error.code is code
            assert "t:0" in str(error)
        assert some.position(T0) == OffsetAndEpoch(0)
        cast.put(T1, batch(2))
        await until(lambda: some._states[T1].is_ready)
        assert [one.offset for one in some.take(9)[T1]] == [2]
        some.seek(T0, OffsetAndEpoch(0))
        assert await read(some, 1) == {T0: [0]}


@asynchronous
async def test_what_a_broker_finds_damaged_can_be_passed_by() -> None:
    async with Cast() as cast, fetcher(cast) as some:
        cast.put(T0, batch(0), batch(1))
        cast.refusing(FetchRequest, ErrorCode.CORRUPT_MESSAGE)
        some.add({T0: OffsetAndEpoch(0)})
        error = await failure(some)
        assert isinstance(error, RecordError)
        assert error.offset == 0
        some.seek(T0, OffsetAndEpoch(error.offset + 1))
        assert await read(some, 1) == {T0: [1]}


@pytest.mark.parametrize("at", [0, 1])
@asynchronous
async def test_a_deserializer_that_ends_the_program_loses_nothing(at: int) -> None:
    """What was taken of the partition before it, and nobody got, is handed out again."""
    ends = [SystemExit]

    def deserialize(value: bytes) -> bytes:
        nonlocal calls
        calls += 1
        if calls > 2 + at and ends:
            raise ends.pop()
        return value

    calls = 0
    async with Cast(1, topics={"t": [0, 0]}) as cast:
        cast.put(T0, batch(0, 1))
        cast.put(T1, batch(0, 1), batch(2))
        async with fetcher(cast, value_deserializer=deserialize) as some:
            some.add({T0: OffsetAndEpoch(0), T1: OffsetAndEpoch(0)})
            await until(lambda: len([t for t in some._states.values() if t.is_ready]) == 2)
            with pytest.raises(SystemExit):
                some.take(100)
            assert [place and place.offset for place in map(some.position, (T0, T1))] == [0, 0]
            assert await read(some, 5) == {T0: [0, 1], T1: [0, 1, 2]}


@asynchronous
async def test_damage_stops_one_partition_and_no_other() -> None:
    async with Cast(2, topics={"t": [0, 0, 1]}) as cast, fetcher(cast) as some:
        cast.put(T0, batch(0), damaged(batch(1, 2), 70), batch(3))
        cast.put(T1, batch(0))
        cast.put(T2, batch(0))
        some.add(dict.fromkeys((T0, T1, T2), OffsetAndEpoch(0)))
        assert await read(some, 3) == {T0: [0], T1: [0], T2: [0]}
        error = await failure(some)
        assert isinstance(error, RecordError)
        assert (error.partition, error.offset) == (T0, 1)
        cast.put(T1, batch(1))
        cast.put(T2, batch(1))
        await until(lambda: some._states[T1].is_ready and some._states[T2].is_ready)
        assert {one: records[0].offset for one, records in some.take(9).items()} == {T1: 1, T2: 1}
        some.pause([T0])
        assert some.take(5) == {}  # who is paused says nothing
        some.resume([T0])
        assert isinstance(await failure(some), RecordError)
        some.seek(T0, OffsetAndEpoch(3))
        assert await read(some, 1) == {T0: [3]}


@pytest.mark.parametrize("told", [b"", b"\0" * 3, b"\xff" * 40, bytes(60)])
@asynchronous
async def test_an_answer_that_is_no_message_concerns_one_broker(told: bytes) -> None:
    async with Cast(2, topics={"t": [0, 1]}) as cast, fetcher(cast) as some:
        cast.script = [lambda _: told] * 2
        cast.put(T0, batch(0))
        cast.put(T1, batch(0))
        some.add({T0: OffsetAndEpoch(0), T1: OffsetAndEpoch(0)})
        assert await read(some, 2) == {T0: [0], T1: [0]}


@asynchronous
async def test_what_nobody_has_asked_for_is_not_taken() -> None:
    async with Cast() as cast, fetcher(cast) as some:
        strange = FetchResponse(
            responses=[
                FetchableTopicResponse(topic="u", partitions=[answer(batch(0))]),
                FetchableTopicResponse(topic="t", partitions=[answer(batch(0), partition_index=5)]),
            ]
        )
        cast.script = [lambda _: strange]
        cast.put(T0, batch(0))
        some.add({T0: OffsetAndEpoch(0)})
        assert await read(some, 1) == {T0: [0]}
        assert some.take(5) == {}


# Places that are not there


@pytest.mark.parametrize(("policy", "offset"), [("earliest", 5), ("latest", 9)])
@pytest.mark.parametrize("place", [2, 20])
@asynchronous
async def test_a_place_out_of_range(policy: str, offset: int, place: int) -> None:
    async with Cast(topics={"t": [0, 0]}) as cast, fetcher(cast, auto_offset_reset=policy) as some:
        cast.put(T0, batch(5, 6, 7, 8))
        cast.put(T1, batch(0))
        some.add({T0: OffsetAndEpoch(place), T1: OffsetAndEpoch(0)})
        await until(lambda: some.position(T0) == OffsetAndEpoch(offset, 0))
        cast.put(T0, batch(9))
        found = await read(some, 2 if policy == "latest" else 6)
        assert found[T1] == [0]
        assert found[T0][0] == offset


@asynchronous
async def test_a_place_out_of_range_is_an_error_without_a_policy() -> None:
    async with Cast(topics={"t": [0, 0]}) as cast, fetcher(cast, auto_offset_reset="none") as some:
        cast.put(T0, batch(5))
        cast.put(T1, batch(0))
        some.add({T0: OffsetAndEpoch(2), T1: OffsetAndEpoch(0)})
        assert await read(some, 1) == {T1: [0]}
        error = await failure(some)
        assert isinstance(error, ApiError)
        assert error.code is ErrorCode.OFFSET_OUT_OF_RANGE
        assert "t:0 has no offset 2: it begins at 5" in str(error)
        some.seek(T0, OffsetAndEpoch(5))
        assert await read(some, 1) == {T0: [5]}


@asynchronous
async def test_what_was_fetched_is_handed_out_before_the_place_after_it_is_out_of_range() -> None:
    """Retention may pass a reader that is slow; what it has is not lost by that."""
    async with Cast() as cast, fetcher(cast, fetch_max_wait_ms=10) as some:
        cast.put(T0, batch(0, 1))
        some.add({T0: OffsetAndEpoch(0)})
        await until(lambda: some._states[T0].is_ready)
        cast.batches.clear()
        cast.put(T0, batch(7))
        count = len(cast.sent("Fetch"))
        await until(lambda: len(cast.sent("Fetch")) > count + 1)
        assert await read(some, 3) == {T0: [0, 1, 7]}


@asynchronous
async def test_a_new_leader_whose_log_is_shorter() -> None:
    """What is not in its log any more is forgotten, and what comes in its place is read."""
    async with Cast(2) as cast, fetcher(cast, fetch_max_wait_ms=10) as some:
        cast.put(T0, batch(0, 1, 2))
        some.add({T0: OffsetAndEpoch(0)})
        assert await read(some, 3) == {T0: [0, 1, 2]}
        cast.topics["t"], cast.epochs[T0], cast.ends[T0] = [1], 1, (0, 2)
        cast.batches.clear()
        cast.put(T0, batch(0, 1), batch(2, 3, epoch=1))
        assert await read(some, 2) == {T0: [2, 3]}


@asynchronous
async def test_records_of_a_leader_need_no_check_by_it() -> None:
    """Who begins without an epoch learns the first one from records of this very leader."""
    async with Cast() as cast, fetcher(cast) as some:
        cast.epochs[T0] = 4
        cast.put(T0, batch(0, epoch=2))
        some.add({T0: OffsetAndEpoch(0)})
        assert await read(some, 1) == {T0: [0]}
        cast.put(T0, batch(1, epoch=4))
        assert await read(some, 1) == {T0: [1]}
        assert cast.sent("OffsetForLeaderEpoch") == []


# Replicas


@asynchronous
async def test_a_replica_that_the_leader_prefers() -> None:
    async with Cast(2) as cast, fetcher(cast, client_rack="r") as some:
        cast.followers, cast.preferred = {1}, {T0: 1}
        cast.put(T0, batch(0))
        some.add({T0: OffsetAndEpoch(0)})
        assert await read(some, 1) == {T0: [0]}
        cast.put(T0, batch(1))
        assert await read(some, 1) == {T0: [1]}
        assert [one.node for one in cast.sent("Fetch")][:3] == [0, 1, 1]


@asynchronous
async def test_a_replica_that_is_behind_is_left_for_the_leader() -> None:
    """Its log may not have what the leader's has: that is no reason to begin anywhere else."""
    async with Cast(2) as cast, fetcher(cast) as some:
        cast.followers, cast.preferred = {1}, {T0: 1}
        cast.put(T0, batch(0, 1, 2))

        def behind(asked: ReceivedRequest) -> Any:
            cast.preferred.clear()
            return parts(t=PartitionData(error_code=ErrorCode.OFFSET_OUT_OF_RANGE))

        cast.script = [None, behind]
        some.add({T0: OffsetAndEpoch(1)})
        assert await read(some, 2) == {T0: [1, 2]}
        assert [one.node for one in cast.sent("Fetch")][:3] == [0, 1, 0]
        assert cast.sent("ListOffsets") == []


@asynchronous
async def test_a_replica_that_was_left_meanwhile_does_not_speak_for_the_leader() -> None:
    async with Cast(2) as cast, fetcher(cast) as some:
        cast.followers, cast.preferred = {1}, {T0: 1}
        cast.put(T0, batch(0, 1, 2))

        def late(asked: ReceivedRequest) -> Any:
            cast.preferred.clear()
            some._states[T0].replica = None  # its time was over
            return parts(t=PartitionData(error_code=ErrorCode.OFFSET_OUT_OF_RANGE))

        cast.script = [None, late]
        some.add({T0: OffsetAndEpoch(1)})
        assert await read(some, 2) == {T0: [1, 2]}
        assert cast.sent("ListOffsets") == []


@asynchronous
async def test_a_replica_that_nobody_knows() -> None:
    async with Cast(2) as cast, fetcher(cast) as some:
        cast.put(T0, batch(0))
        cast.script = [lambda _: parts(t=PartitionData(preferred_read_replica=9))]
        some.add({T0: OffsetAndEpoch(0)})
        assert await read(some, 1) == {T0: [0]}


@asynchronous
async def test_the_leader_is_asked_again_after_a_time() -> None:
    async with Cast(2) as cast, fetcher(cast, fetch_max_wait_ms=10) as some:
        cast.followers, cast.preferred = {1}, {T0: 1}
        some.add({T0: OffsetAndEpoch(0)})
        await until(lambda: cast.sent("Fetch") and cast.sent("Fetch")[-1].node == 1)
        cast.preferred.clear()
        some._states[T0].replica_until = 0.0
        await until(lambda: cast.sent("Fetch")[-1].node == 0)
        assert some._states[T0].replica is None


@asynchronous
async def test_a_replica_that_goes_away() -> None:
    async with Cast(2) as cast, fetcher(cast) as some:
        cast.followers, cast.preferred = {1}, {T0: 1}
        cast.put(T0, batch(0))
        some.add({T0: OffsetAndEpoch(0)})
        assert await read(some, 1) == {T0: [0]}
        cast.preferred.clear()
        await cast.stop(1)
        cast.put(T0, batch(1))
        assert await read(some, 1) == {T0: [1]}


# Somebody seeks, pauses or removes while a fetch is under way


@pytest.mark.parametrize("where", [OffsetAndEpoch(5), "latest", OffsetAndEpoch(1)])
@asynchronous
async def test_an_answer_that_comes_after_a_seek_is_not_taken(where: Any) -> None:
    async with Cast() as cast, fetcher(cast) as some:
        cast.put(T0, batch(0, 1, 2, 3, 4), batch(5, 6))

        def late(_: ReceivedRequest) -> Any:
            some.seek(T0, where)
            return parts(t=answer(batch(0, 1, 2, 3, 4)))

        cast.script = [late]
        some.add({T0: OffsetAndEpoch(0)})
        await until(lambda: cast.sent("Fetch"))
        if where == "latest":
            await until(lambda: some.position(T0) == OffsetAndEpoch(7, 0))
            assert some.take(5) == {}
        else:
            assert (await read(some, 2))[T0] == [where.offset, where.offset + 1]


@asynchronous
async def test_a_refusal_that_comes_after_a_seek_is_not_heard() -> None:
    async with Cast() as cast, fetcher(cast, auto_offset_reset="none") as some:
        cast.put(T0, batch(0))

        def late(_: ReceivedRequest) -> Any:
            some.seek(T0, OffsetAndEpoch(0))
            return parts(t=PartitionData(error_code=ErrorCode.OFFSET_OUT_OF_RANGE))

        cast.script = [late]
        some.add({T0: OffsetAndEpoch(9)})
        assert await read(some, 1) == {T0: [0]}


@asynchronous
async def test_an_answer_for_a_partition_that_was_taken_away_and_came_back() -> None:
    async with Cast() as cast, fetcher(cast) as some:
        cast.put(T0, batch(0, 1), batch(2))

        def late(_: ReceivedRequest) -> Any:
            some.remove([T0, T1])
            some.add({T0: OffsetAndEpoch(2)})
            return parts(t=answer(batch(0, 1)))

        cast.script = [late]
        some.add({T0: OffsetAndEpoch(0)})
        assert await read(some, 1) == {T0: [2]}
        some.remove([T0])
        assert some.position(T0) is None


@asynchronous
async def test_what_comes_for_a_paused_partition_is_kept() -> None:
    async with Cast() as cast, fetcher(cast) as some:
        cast.put(T0, batch(0, 1))

        def late(_: ReceivedRequest) -> Any:
            some.pause([T0])
            return parts(t=answer(batch(0, 1)))

        cast.script = [late]
        some.add({T0: OffsetAndEpoch(0)})
        await until(lambda: some._states[T0].buffer and some._states[T0].buffer.bytes)
        assert some.take(5) == {}
        assert not await some.wait(now() + 0.05)
        some.resume([T0])
        assert await read(some, 2) == {T0: [0, 1]}
        assert asked_for(cast.sent("Fetch")[0]) == {T0: 0}


# Nobody waits for a request that waits for records


@asynchronous
async def test_a_partition_that_is_added_beside_one_without_records() -> None:
    async with Cast(topics={"t": [0, 0]}) as cast, fetcher(cast) as some:
        cast.put(T1, batch(0), batch(1))
        some.add({T0: OffsetAndEpoch(0)})
        await until(lambda: cast.sent("Fetch"))
        some.add({T1: OffsetAndEpoch(0)})
        assert await read(some, 2) == {T1: [0, 1]}


@asynchronous
async def test_a_partition_that_is_resumed_or_sought_beside_one_without_records() -> None:
    async with Cast(topics={"t": [0, 0]}) as cast, fetcher(cast) as some:
        some.add({T0: OffsetAndEpoch(0), T1: OffsetAndEpoch(0)})
        some.pause([T1])
        await until(lambda: cast.sent("Fetch"))
        cast.put(T1, batch(0), batch(1))
        some.resume([T1])
        assert await read(some, 2) == {T1: [0, 1]}
        some.seek(T1, "earliest")
        assert await read(some, 2) == {T1: [0, 1]}
        some.seek(T1, OffsetAndEpoch(1))
        assert await read(some, 1) == {T1: [1]}


@asynchronous
async def test_a_full_partition_goes_on_when_it_was_taken_from() -> None:
    """The request for the others has left without it, and may wait for long."""
    async with (
        Cast(topics={"t": [0, 0]}) as cast,
        fetcher(cast, max_partition_fetch_bytes=len(batch(0))) as some,
    ):
        cast.put(T0, *(batch(offset) for offset in range(20)))
        some.add({T0: OffsetAndEpoch(0), T1: OffsetAndEpoch(0)})
        assert await read(some, 20) == {T0: list(range(20))}


@asynchronous
async def test_a_record_that_comes_late_for_a_partition_that_came_late() -> None:
    async with Cast(topics={"t": [0, 0]}) as cast, fetcher(cast) as some:
        some.add({T0: OffsetAndEpoch(0)})
        await until(lambda: cast.sent("Fetch"))
        some.add({T1: OffsetAndEpoch(0)})
        await until(lambda: len(cast.sent("Fetch")) > 1)
        cast.put(T1, batch(0))
        assert await read(some, 1) == {T1: [0]}


@asynchronous
async def test_what_has_no_records_is_asked_for_with_pauses(monkeypatch: Any) -> None:
    async with Cast(topics={"t": [0, 0]}) as cast, fetcher(cast) as some:
        some.add({T0: OffsetAndEpoch(0)})
        await until(lambda: cast.sent("Fetch"))
        monkeypatch.setattr(module, "RETRY_BACKOFF_S", 600.0)
        some.add({T1: OffsetAndEpoch(0)})
        await until(lambda: len(cast.sent("Fetch")) == 2)
        for _ in range(10):
            some._go_on()
            await asyncio.sleep(0.01)
        _, beside = cast.sent("Fetch")
        assert len(cast.sent("Fetch")) == 2
        assert (beside.request.max_wait_ms, beside.request.session_epoch) == (0, -1)
        assert asked_for(beside) == {T1: 0}


# Memory


@asynchronous
async def test_a_partition_has_its_share_and_no_more() -> None:
    share = 2 * len(batch(0))
    async with (
        Cast(topics={"t": [0, 0]}) as cast,
        fetcher(cast, max_partition_fetch_bytes=share, fetch_max_wait_ms=10) as some,
    ):
        cast.put(T0, *(batch(offset) for offset in range(20)))
        cast.put(T1, batch(0))
        some.add({T0: OffsetAndEpoch(0), T1: OffsetAndEpoch(0)})
        await until(lambda: len(cast.sent("Fetch")) > 4)
        buffer = some._states[T0].buffer
        assert buffer is not None
        assert buffer.bytes == share
        assert await read(some, 21) == {T0: list(range(20)), T1: [0]}


@asynchronous
async def test_all_together_have_a_bound() -> None:
    size = len(batch(0))
    settings: Any = {"max_partition_fetch_bytes": size, "queued_max_bytes": 2 * size}
    async with Cast(4, topics={"t": [0, 1, 2, 3]}) as cast, fetcher(cast, **settings) as some:
        every = [TopicPartition("t", index) for index in range(4)]
        for one in every:
            cast.put(one, *(batch(offset) for offset in range(5)))
        some.add({every[0]: OffsetAndEpoch(0), every[1]: OffsetAndEpoch(0)})
        await until(lambda: queued(some) >= 2 * size)
        some.add({every[2]: OffsetAndEpoch(0), every[3]: OffsetAndEpoch(0)})
        await until(lambda: len(some._brokers) == 4)
        await asyncio.sleep(0.05)
        assert queued(some) == 2 * size
        assert await read(some, 20) == {one: list(range(5)) for one in every}


def queued(some: Any) -> int:
    return sum(one.buffer.bytes for one in some._states.values() if one.buffer)


@asynchronous
async def test_who_is_paused_does_not_use_up_the_room_of_the_others() -> None:
    size = len(batch(0))
    settings: Any = {"max_partition_fetch_bytes": size, "queued_max_bytes": 2 * size}
    async with Cast(topics={"t": [0, 0, 0]}) as cast, fetcher(cast, **settings) as some:
        for one in (T0, T1, T2):
            cast.put(one, batch(0), batch(1))
        some.add({T0: OffsetAndEpoch(0), T1: OffsetAndEpoch(0)})
        await until(lambda: queued(some) >= 2 * size)
        some.pause([T0, T1])
        some.add({T2: OffsetAndEpoch(0)})
        assert await read(some, 2) == {T2: [0, 1]}
        assert queued(some) <= 2 * size
        some.resume([T0, T1])
        assert await read(some, 4) == {T0: [0, 1], T1: [0, 1]}


# Brokers that go away


@asynchronous
async def test_a_leader_that_breaks_off_is_asked_again() -> None:
    async with Cast(2, topics={"t": [0, 1]}) as cast, fetcher(cast) as some:
        cast.script = [lambda _: CLOSE] * 2
        cast.put(T0, batch(0))
        cast.put(T1, batch(0))
        some.add({T0: OffsetAndEpoch(0), T1: OffsetAndEpoch(0)})
        assert await read(some, 2) == {T0: [0], T1: [0]}


@asynchronous
async def test_a_leader_that_is_gone_and_another_one_that_follows() -> None:
    async with Cast(3, topics={"t": [1, 2]}) as cast, fetcher(cast) as some:
        cast.put(T0, batch(0))
        some.add({T0: OffsetAndEpoch(0), T1: OffsetAndEpoch(0)})
        assert await read(some, 1) == {T0: [0]}
        await cast.stop(1)
        cast.put(T1, batch(0))
        assert await read(some, 1) == {T1: [0]}
        cast.put(T0, batch(1))
        cast.topics["t"][0], cast.epochs[T0] = 2, 1
        cast.ends[T0] = (0, 1)
        assert await read(some, 1) == {T0: [1]}


@asynchronous
async def test_a_leader_that_never_answers_holds_up_nobody_else() -> None:
    async with Cast(2, topics={"t": [0, 1]}) as cast, fetcher(cast) as some:
        usual = cast.answers[ListOffsetsRequest]
        cast.answers[ListOffsetsRequest] = lambda asked: usual(asked) if asked.node else None
        cast.put(T1, batch(0))
        some._finding._timeout_s = 600.0
        some.add({T0: None})
        await until(lambda: cast.sent("ListOffsets"))
        some.add({T1: None})
        assert await read(some, 1) == {T1: [0]}
        some.seek(T0, OffsetAndEpoch(0))
        cast.put(T0, batch(0))
        assert await read(some, 1) == {T0: [0]}


@asynchronous
async def test_nobody_knows_the_leaders_for_a_while() -> None:
    async with Cast(topics={"t": [9]}) as cast, fetcher(cast) as some:
        cast.put(T0, batch(0))
        some.add({T0: OffsetAndEpoch(0)})
        await until(lambda: len(cast.sent("Metadata")) > 2)
        cast.topics["t"] = [0]
        assert await read(some, 1) == {T0: [0]}


@pytest.mark.parametrize("where", ["leaders", "places", "_ask"])
@asynchronous
async def test_a_fault_of_ours_is_not_the_end(where: str, monkeypatch: Any, caplog: Any) -> None:
    async with Cast() as cast, fetcher(cast) as some:
        cast.put(T0, batch(0))
        owner: Any = some if where == "_ask" else some._finding
        usual, faults = getattr(owner, where), [RuntimeError("ours")]

        async def fails(*args: Any) -> None:
            if faults:
                raise faults.pop()
            await usual(*args)

        monkeypatch.setattr(owner, where, fails)
        some.add({T0: None})
        assert await read(some, 1) == {T0: [0]}
        assert "RuntimeError: ours" in caplog.text
