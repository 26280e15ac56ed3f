# SPDX-License-Identifier: Apache-2.0
"""Who leads a partition, where it begins, and whether its log still has what was read before."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.client.consumer.running import until
from tests.client.fetcher.batches import T0, T1, answer, batch
from tests.client.fetcher.scripted_logs import Cast, finding, look, now, state
from tests.client.scripted import CLOSE, ReceivedRequest, asynchronous

from kohort.client.fetcher.partition_lookup import out_of_range
from kohort.client.fetcher.partition_state import TopicPartitionState
from kohort.client.fetcher.record import OffsetAndEpoch
from kohort.errors import ApiError, ErrorCode
from kohort.terms import TopicPartition
from kohort.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kohort.wire.messages.metadata import MetadataRequest
from kohort.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)

U0 = TopicPartition("u", 0)
BOTH = (ListOffsetsRequest, OffsetForLeaderEpochRequest)


def rests(one: TopicPartitionState) -> bool:
    """It is looked up again, but not at once."""
    return one.leader is None and one.not_before > now() and one.error is None


def missing(request: type[Any], **settings: Any) -> TopicPartitionState:
    """A state of which something is missing that this request finds out."""
    return state(
        T0, "earliest" if request is ListOffsetsRequest else OffsetAndEpoch(5, 3), **settings
    )


# Leaders


@asynchronous
async def test_leaders_with_their_epochs_and_the_ids_of_topics() -> None:
    async with Cast(2, topics={"t": [0, 1], "u": [1]}) as cast, finding(cast) as found:
        cast.ids, cast.epochs = {"t": b"i" * 16}, {T1: 4}
        some = [state(one, OffsetAndEpoch(0)) for one in (T0, T1, U0)]
        await look(found, *some)
        assert [one.leader and one.leader.id for one in some] == [0, 1, 1]
        assert [one.leader_epoch for one in some] == [0, 4, 0]
        assert [one.topic_id for one in some] == [b"i" * 16, b"i" * 16, bytes(16)]
        (asked,) = cast.sent("Metadata")
        assert sorted(one.name for one in asked.request.topics) == ["t", "u"]


@asynchronous
async def test_what_is_remembered_of_leaders_is_asked_again() -> None:
    """Whoever looks for a leader has found out that the one before is wrong."""
    async with Cast(2) as cast, finding(cast) as found:
        one = state(T0, OffsetAndEpoch(0))
        for leader in (0, 1):
            cast.topics["t"] = [leader]
            one.look_up(0.0)
            await look(found, one)
            assert one.leader is not None
            assert one.leader.id == leader


@asynchronous
async def test_who_has_no_leader_rests_and_the_others_go_on() -> None:
    async with Cast(topics={"t": [0, 7]}) as cast, finding(cast) as found:
        some = {one: state(one, OffsetAndEpoch(0)) for one in (T0, T1, TopicPartition("t", 9), U0)}
        await look(found, *some.values())
        assert some.pop(T0).leader is not None
        assert all(rests(one) for one in some.values())


@asynchronous
async def test_a_partition_that_is_not_there_is_told_once(caplog: Any) -> None:
    async with Cast(topics={"t": [0, 0]}) as cast, finding(cast) as found:
        one = state(TopicPartition("t", 9), OffsetAndEpoch(0))
        for _ in range(3):
            one.look_up(0.0)
            await look(found, one)
    assert caplog.messages == ["t:9: t has 2 partitions; it is looked for again"]


@asynchronous
async def test_a_topic_that_nobody_may_read() -> None:
    async with Cast(topics={"t": [0], "u": [0]}) as cast, finding(cast) as found:
        cast.topic_codes["u"] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        good, bad = state(T0, OffsetAndEpoch(0)), state(U0, OffsetAndEpoch(0))
        await look(found, good, bad)
        assert good.leader is not None
        assert isinstance(bad.error, ApiError)
        assert bad.error.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert "u:0" in str(bad.error)


@asynchronous
async def test_nobody_to_ask() -> None:
    async with Cast() as cast:
        cast.answers[MetadataRequest] = lambda _: CLOSE
        async with finding(cast) as found:
            with pytest.raises(ApiError, match="closed the connection"):
                await found.leaders([state(T0, OffsetAndEpoch(0))])
            await found.leaders([])  # nothing is asked then


# Where a partition begins


@pytest.mark.parametrize(("reset", "offset"), [("earliest", 3), ("latest", 9)])
@pytest.mark.parametrize("level", ["read_committed", "read_uncommitted"])
@asynchronous
async def test_a_partition_begins_at_one_of_its_ends(reset: str, offset: int, level: str) -> None:
    async with Cast() as cast, finding(cast, isolation_level=level) as found:
        cast.log[T0], cast.epochs[T0] = (3, 9), 2
        one = state(T0, reset)
        await look(found, one)
        assert (one.position, one.reset, one.error) == (OffsetAndEpoch(offset, 2), None, None)
        assert not one.has_to_be_checked  # this leader has said so
        (asked,) = cast.sent("ListOffsets")
        assert asked.request.isolation_level == int(level == "read_committed")
        assert asked.request.topics[0].partitions[0].current_leader_epoch == 2


@asynchronous
async def test_a_broker_is_asked_once_for_all_of_its_partitions() -> None:
    async with Cast(2, topics={"t": [0, 0, 1], "u": [0]}) as cast, finding(cast) as found:
        some = [state(one, "latest") for one in (T0, T1, TopicPartition("t", 2), U0)]
        await look(found, *some)
        assert sorted(one.node for one in cast.sent("ListOffsets")) == [0, 1]
        assert all(one.position is not None for one in some)


@pytest.mark.parametrize(
    ("offset", "position", "reset"), [(4, OffsetAndEpoch(4, 0), None), (-1, None, "latest")]
)
@asynchronous
async def test_a_partition_begins_an_hour_ago(offset: int, position: Any, reset: Any) -> None:
    """Where all records are older than that, it begins behind the last of them (KIP-1106)."""
    asked_for = []

    def told(asked: ReceivedRequest) -> Any:
        asked_for.append(asked.request.topics[0].partitions[0].timestamp)
        answer = cast.list_offsets(asked)
        answer.topics[0].partitions[0].offset = offset
        answer.topics[0].partitions[0].leader_epoch = min(offset, 0)
        return answer

    async with Cast() as cast, finding(cast) as found:
        cast.answers[ListOffsetsRequest] = told
        one = state(T0, "by_duration:PT1H")
        await look(found, one)
        assert (one.position, one.reset) == (position, reset)
    hour_ago = datetime.now(UTC).timestamp() * 1000 - 3_600_000
    assert asked_for == [pytest.approx(hour_ago, abs=60_000)]


@asynchronous
async def test_a_duration_may_be_longer_than_there_was_time() -> None:
    async with Cast() as cast, finding(cast) as found:
        one = state(T0, "by_duration:P99999999D")
        await look(found, one)
        assert cast.sent("ListOffsets")[0].request.topics[0].partitions[0].timestamp == 0
        assert one.reset == "latest"


@asynchronous
async def test_an_end_that_is_not_known_yet_is_asked_for_later() -> None:
    async with Cast() as cast, finding(cast) as found:
        cast.log[T0] = (-1, -1)
        one = state(T0, "latest")
        await look(found, one)
        assert (one.position, one.reset, one.error) == (None, "latest", None)
        assert one.not_before > now()


@asynchronous
async def test_without_a_place_and_a_policy_nobody_is_asked() -> None:
    async with Cast() as cast, finding(cast) as found:
        one = state(T0, None, auto_offset_reset="none")
        await look(found, one)
        assert isinstance(one.error, ApiError)
        assert one.error.code is ErrorCode.OFFSET_OUT_OF_RANGE
        assert "t:0 has no committed offset, and auto_offset_reset is none" in str(one.error)
        assert cast.sent("ListOffsets") == []


# Refusals, of either request


@pytest.mark.parametrize("request_type", BOTH)
@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    ],
)
@asynchronous
async def test_what_passes_is_asked_again(request_type: Any, code: ErrorCode) -> None:
    async with Cast(topics={"t": [0, 0]}) as cast, finding(cast) as found:
        cast.epochs = {T0: 4, T1: 4}
        cast.log = {T0: (3, 9), T1: (3, 9)}
        cast.refusing(request_type, code)
        one, other = missing(request_type), state(T1, "earliest")
        await look(found, one, other)
        assert rests(one)
        assert other.position == OffsetAndEpoch(3, 4)
        await look(found, one)
        assert one.position in (OffsetAndEpoch(3, 4), OffsetAndEpoch(5, 3))
        assert not one.has_to_be_checked


@pytest.mark.parametrize("request_type", BOTH)
@asynchronous
async def test_what_does_not_pass_is_an_error(request_type: Any) -> None:
    async with Cast(topics={"t": [0, 0]}) as cast, finding(cast) as found:
        cast.epochs[T0] = 4
        cast.refusing(request_type, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        one, other = missing(request_type), state(T1, "earliest")
        await look(found, one, other)
        assert isinstance(one.error, ApiError)
        assert one.error.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert other.position == OffsetAndEpoch(0, 0)


@pytest.mark.parametrize("request_type", BOTH)
@asynchronous
async def test_a_leader_that_breaks_off_is_looked_up_again(request_type: Any) -> None:
    async with Cast(2, topics={"t": [0, 1]}) as cast, finding(cast) as found:
        cast.epochs[T0] = 4
        usual = cast.answers[request_type]
        cast.answers[request_type] = lambda asked: usual(asked) if asked.node else CLOSE
        one, other = missing(request_type), state(T1, "earliest")
        await look(found, one, other)
        assert rests(one)
        assert other.position == OffsetAndEpoch(0, 0)


@pytest.mark.parametrize(
    ("request_type", "empty"),
    [
        (ListOffsetsRequest, ListOffsetsResponse()),
        (OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse()),
    ],
)
@asynchronous
async def test_an_answer_that_says_nothing_of_a_partition(request_type: Any, empty: Any) -> None:
    async with Cast() as cast, finding(cast) as found:
        cast.epochs[T0] = 4
        cast.answers[request_type] = lambda _: empty
        one = missing(request_type)
        await look(found, one)
        assert rests(one)


# Somebody seeks meanwhile


@pytest.mark.parametrize(
    ("before", "after", "offset"),
    [
        ("latest", OffsetAndEpoch(5), 9),
        ("latest", "earliest", 9),
        ("by_duration:PT1H", "earliest", 9),
        ("by_duration:PT1H", "earliest", -1),
        ("by_duration:PT1H", OffsetAndEpoch(5), -1),
    ],
)
@asynchronous
async def test_a_late_offset_is_not_taken(before: Any, after: Any, offset: int) -> None:
    one = state(T0, before)

    def told(asked: ReceivedRequest) -> Any:
        one.go_to(after)
        answer = cast.list_offsets(asked)
        answer.topics[0].partitions[0].offset = offset
        return answer

    async with Cast() as cast, finding(cast) as found:
        cast.answers[ListOffsetsRequest] = told
        await look(found, one)
    assert (one.position, one.reset) == (
        (after, None) if isinstance(after, OffsetAndEpoch) else (None, after)
    )


@pytest.mark.parametrize("end", [(-1, -1), (3, 2), (3, 9)])
@pytest.mark.parametrize("where", [OffsetAndEpoch(7, 3), "latest"])
@asynchronous
async def test_a_late_word_on_what_was_read_is_not_taken(end: Any, where: Any) -> None:
    one = state(T0, OffsetAndEpoch(5, 3))

    def told(asked: ReceivedRequest) -> Any:
        one.go_to(where)
        return cast.leader_epochs(asked)

    async with Cast() as cast, finding(cast) as found:
        cast.epochs[T0], cast.ends[T0] = 4, end
        cast.answers[OffsetForLeaderEpochRequest] = told
        await look(found, one)
    assert one.position == (where if isinstance(where, OffsetAndEpoch) else None)
    assert one.checked_epoch < 4
    assert one.error is None


# What was read before (KIP-320)


@pytest.mark.parametrize("end", [(3, 5), (3, 100), (2, 5)])
@asynchronous
async def test_a_log_that_still_has_it(end: tuple[int, int]) -> None:
    async with Cast() as cast, finding(cast) as found:
        cast.epochs[T0], cast.ends[T0] = 4, end
        one = state(T0, OffsetAndEpoch(5, 3))
        await look(found, one)
        (asked,) = cast.sent("OffsetForLeaderEpoch")
        told = asked.request.topics[0].partitions[0]
        assert (told.current_leader_epoch, told.leader_epoch) == (4, 3)
        assert asked.request.replica_id == -1
        assert (one.position, one.checked_epoch) == (OffsetAndEpoch(5, 3), 4)
        await look(found, one)
        assert len(cast.sent("OffsetForLeaderEpoch")) == 1


@pytest.mark.parametrize("policy", ["earliest", "latest"])
@asynchronous
async def test_a_log_that_was_truncated_is_read_on_from_its_end(policy: str) -> None:
    async with Cast() as cast, finding(cast, auto_offset_reset=policy) as found:
        cast.epochs[T0], cast.ends[T0] = 4, (2, 3)
        one = state(T0, OffsetAndEpoch(5, 3), auto_offset_reset=policy)
        await look(found, one)
        assert (one.position, one.checked_epoch, one.error) == (OffsetAndEpoch(3, 2), 4, None)


@pytest.mark.parametrize("end", [(-1, -1), (3, -1), (-1, 9)])
@asynchronous
async def test_a_log_that_knows_no_end_is_begun_where_the_settings_say(end: Any) -> None:
    async with Cast() as cast, finding(cast, auto_offset_reset="earliest") as found:
        cast.epochs[T0], cast.ends[T0] = 4, end
        one = state(T0, OffsetAndEpoch(5, 3), auto_offset_reset="earliest")
        await look(found, one)
        assert (one.position, one.reset) == (None, "earliest")


@pytest.mark.parametrize(
    ("end", "why"),
    [((2, 3), "epoch 3 ends at offset 3"), ((-1, -1), "ends at an offset that is not known")],
)
@asynchronous
async def test_a_truncated_log_is_an_error_without_a_policy(end: Any, why: str) -> None:
    async with Cast() as cast, finding(cast, auto_offset_reset="none") as found:
        cast.epochs[T0], cast.ends[T0] = 4, end
        one = state(T0, OffsetAndEpoch(5, 3), auto_offset_reset="none")
        await look(found, one)
        assert isinstance(one.error, ApiError)
        assert one.error.code is ErrorCode.OFFSET_OUT_OF_RANGE
        assert why in str(one.error)
        assert "the next record was to be 5" in str(one.error)
        assert one.position == OffsetAndEpoch(5, 3)


@pytest.mark.parametrize("policy", ["latest", "none"])
@pytest.mark.parametrize("end", [(3, 7), (-1, -1)])
@asynchronous
async def test_what_was_not_handed_out_yet_is_not_lost_with_the_end(policy: str, end: Any) -> None:
    """The log was cut at 7: what is before that is still to be handed out."""
    async with Cast() as cast, finding(cast, auto_offset_reset=policy) as found:
        one = state(T0, OffsetAndEpoch(5, 3), auto_offset_reset=policy)
        assert one.buffer is not None
        one.buffer.add(answer(batch(5, 6, 7, 8, epoch=3)))
        assert len(one.take(1)) == 1
        cast.epochs[T0], cast.ends[T0] = 4, end
        await look(found, one)
        assert (one.position, one.error) == (OffsetAndEpoch(6, 3), None)
        assert one.has_to_be_checked  # the place before is another one
        assert not one.is_ready


@asynchronous
async def test_a_broker_that_does_not_know_epochs_is_believed() -> None:
    async with Cast() as cast, finding(cast) as found:
        cast.offer("OffsetForLeaderEpoch", None)
        cast.epochs[T0] = 4
        one = state(T0, OffsetAndEpoch(5, 3))
        await look(found, one)
        assert (one.position, one.checked_epoch, one.error) == (OffsetAndEpoch(5, 3), 4, None)
        assert one.leader is not None


# A place that the log does not have


@pytest.mark.parametrize("policy", ["earliest", "latest", "by_duration:PT1H"])
def test_out_of_range_is_where_the_settings_say(policy: str) -> None:
    one = state(T0, OffsetAndEpoch(5), auto_offset_reset=policy)
    out_of_range(one, policy, 9)
    assert (one.position, one.reset, one.error) == (None, policy, None)


@pytest.mark.parametrize(
    ("log_start", "end", "shown"),
    [
        (9, 20, "t:0 has no offset 5: it begins at 9, it ends at 20"),
        (None, 3, "t:0 has no offset 5: it ends at 3"),
        (-1, None, "t:0 has no offset 5"),
    ],
)
def test_out_of_range_is_an_error_without_a_policy(log_start: Any, end: Any, shown: str) -> None:
    one = state(T0, OffsetAndEpoch(5), auto_offset_reset="none")
    one.high_watermark = end
    out_of_range(one, "none", log_start)
    assert isinstance(one.error, ApiError)
    assert one.error.code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert str(one.error).endswith(shown)
    assert one.position == OffsetAndEpoch(5)


@asynchronous
async def test_a_leader_that_hangs_holds_up_nobody_elses_partitions() -> None:
    async with Cast(2, topics={"t": [0, 1]}) as cast, finding(cast) as found:
        usual = cast.answers[ListOffsetsRequest]
        cast.answers[ListOffsetsRequest] = lambda asked: usual(asked) if asked.node else None
        one, other = state(T0, "latest"), state(T1, "latest")
        task = asyncio.create_task(look(found, one, other))
        await until(lambda: other.position is not None)
        assert (one.position, task.done()) == (None, False)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
