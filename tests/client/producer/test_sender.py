# SPDX-License-Identifier: Apache-2.0
"""What is sent to whom, what is sent again, and what everybody is told."""

import asyncio
from typing import Any

import pytest
from tests.client.consumer.running import until
from tests.client.producer.scripted_leaders import (
    answered,
    producer,
    refused,
    scripted,
    sequences,
    taken,
)
from tests.client.scripted import CLOSE, asynchronous, in_turn

from kohort.client.producer import Delivered, DeliveryError
from kohort.errors import ErrorCode
from kohort.terms import uuid_text
from kohort.wire.messages.metadata import MetadataRequest
from kohort.wire.messages.produce import ProduceRequest

V = [b"v"]
FIRST, SECOND = b"i" * 16, b"j" * 16


@asynchronous
async def test_deliveries_have_an_offset_and_a_time_each() -> None:
    async with scripted(taken) as world, producer(world, linger_ms=20) as client:
        some = [await client.send("t", b"v", timestamp_ms=time) for time in (5, 6)]
        assert [await one for one in some] == [Delivered("t", 0, 100, 5), Delivered("t", 0, 101, 6)]
        (asked,) = world.sent("Produce")
        assert (asked.request.acks, asked.version) == (-1, 12)


@asynchronous
async def test_the_time_of_the_log_is_told_where_it_has_its_own() -> None:
    async with (
        scripted(lambda asked: taken(asked, append_time=9)) as world,
        producer(world) as client,
    ):
        assert (await client.send_and_wait("t", b"v", timestamp_ms=5)).timestamp_ms == 9


@asynchronous
async def test_each_leader_gets_its_own() -> None:
    async with scripted(taken, 2, t=[0, 1]) as world, producer(world) as client:
        both = [await client.send("t", b"%d" % one, partition=one) for one in (0, 1)]
        await asyncio.gather(*both)
        found = {one.node: sequences([one]) for one in world.sent("Produce")}
        assert found == {0: [(0, 0, [b"0"])], 1: [(0, 0, [b"1"])]}


@asynchronous
async def test_a_lost_answer_is_sent_again_by_the_same_sequence() -> None:
    async with scripted(in_turn(CLOSE, taken)) as world, producer(world) as client:
        assert (await client.send_and_wait("t", b"v")).offset == 100
        assert sequences(world.sent("Produce")) == [(0, 0, V), (0, 0, V)]


@asynchronous
async def test_a_leader_that_has_moved_is_looked_up() -> None:
    async with scripted(taken, 2, t=[0]) as world:

        def moved(asked):
            world.topics["t"] = [1]
            return refused(ErrorCode.NOT_LEADER_OR_FOLLOWER)(asked)

        world.answers[ProduceRequest] = in_turn(moved, taken)
        async with producer(world) as client:
            await client.send_and_wait("t", b"v")
        assert [one.node for one in world.sent("Produce")] == [0, 1]


@asynchronous
async def test_a_leader_that_is_gone_is_looked_up() -> None:
    async with scripted(taken, 2, t=[0, 1]) as world, producer(world) as client:
        await client.send_and_wait("t", b"v", partition=1)
        await world.stop(1)
        world.topics["t"] = [0, 0]
        await client.send_and_wait("t", b"v", partition=1)
        assert [one.node for one in world.sent("Produce")] == [1, 0]


@asynchronous
async def test_what_is_refused_for_good_says_why() -> None:
    answer = refused(ErrorCode.INVALID_RECORD, "no key", r1="bad")
    async with scripted(answer) as world, producer(world, linger_ms=20) as client:
        some = [await client.send("t", b"v") for _ in range(2)]
        found = await asyncio.gather(*some, return_exceptions=True)
        assert [str(one) for one in found] == [
            "INVALID_RECORD: t:0: no key; record 1: bad; it was not written"
        ] * 2


@asynchronous
async def test_a_partition_that_is_gone_is_the_reason() -> None:
    answer = refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    async with (
        asyncio.timeout(30),
        scripted(answer, t=[0, 0]) as world,
        producer(world, batch_size=10) as client,
    ):
        await client.partitions_for("t")
        world.topics["t"] = [0]
        some = [await client.send("t", bytes(20), partition=1) for _ in range(2)]
        found = await asyncio.gather(*some, return_exceptions=True)
    expected = (
        "UNKNOWN_TOPIC_OR_PARTITION: t:1: t has no partition 1 any more, it was made anew with 1 "
        "partition; it was not written"
    )
    assert [str(one) for one in found] == [expected] * 2


@asynchronous
async def test_a_lost_answer_is_not_told_as_a_failure_that_did_not_happen() -> None:
    settings = {"request_timeout_ms": 50, "delivery_timeout_ms": 60}
    async with scripted(lambda _: None) as world, producer(world, **settings) as client:
        with pytest.raises(DeliveryError, match="it may have been written") as raised:
            await client.send_and_wait("t", b"v")
    assert raised.value.maybe_written
    assert raised.value.code is ErrorCode.REQUEST_TIMED_OUT


@asynchronous
async def test_a_leader_that_has_appended_and_leads_no_more() -> None:
    def appended(asked):
        return answered(asked, lambda _: (ErrorCode.NOT_LEADER_OR_FOLLOWER, 7))

    settings = {"delivery_timeout_ms": 60, "request_timeout_ms": 50}
    async with scripted(appended) as world, producer(world, **settings) as client:
        with pytest.raises(DeliveryError, match="it may have been written") as told:
            await client.send_and_wait("t", b"v")
        assert told.value.maybe_written


QUICK = {
    "retry_backoff_ms": 10,
    "retry_backoff_max_ms": 20,
    "request_timeout_ms": 500,
    "delivery_timeout_ms": 3000,
}


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Any:
    """What was said of records that wait."""
    monkeypatch.setattr("kohort.client.producer.stall_warnings.LASTS_S", 0.1)
    caplog.set_level("WARNING", "kohort.client.producer")
    return lambda: [one for one in caplog.messages if one.startswith("records ")]


@pytest.mark.parametrize(("what", "gone"), [("the cluster", (0, 1)), ("node 1", (1,))])
@asynchronous
async def test_what_is_away_is_said_once(what: str, gone: tuple[int, ...], waits: Any) -> None:
    async with scripted(taken, 2, t=[0, 1]) as world, producer(world, **QUICK) as client:
        await client.send_and_wait("t", b"v", partition=1)
        for node in gone:
            await world.stop(node)
        with pytest.raises(DeliveryError, match="not delivered within 3000 ms"):
            await client.send_and_wait("t", b"v", partition=1)
    (said,) = waits()
    assert said.startswith(f"records wait for {what}: NETWORK_EXCEPTION: cannot connect to ")


@pytest.mark.parametrize(
    ("what", "why"),
    [("topic t", "a partition of t has no leader"), ("t:1", "NOT_ENOUGH_REPLICAS")],
)
@asynchronous
async def test_what_keeps_records_waiting_is_said_and_so_is_its_end(
    what: str, why: str, waits: Any
) -> None:
    async with scripted(taken, 2, t=[0, 1]) as world, producer(world, **QUICK) as client:
        await client.send_and_wait("t", b"v", partition=1)
        code = ErrorCode.NOT_ENOUGH_REPLICAS
        if what == "topic t":
            world.topics["t"], code = [0, -1], ErrorCode.NOT_LEADER_OR_FOLLOWER
        world.answers[ProduceRequest] = refused(code)
        delivery = await client.send("t", b"v", partition=1)
        await until(waits)
        world.topics["t"], world.answers[ProduceRequest] = [0, 1], taken
        assert (await delivery).partition == 1
        await until(lambda: len(waits()) == 2)
    first, last = waits()
    assert first.startswith(f"records wait for {what}: {why}")
    assert last.startswith("records have waited ")
    assert last.endswith(f" s for {what}")


@asynchronous
async def test_what_never_left_was_not_written() -> None:
    async with scripted(taken) as world:
        settings = {"request_timeout_ms": 50, "delivery_timeout_ms": 60}
        async with producer(world, **settings) as client:
            await client.send_and_wait("t", b"v")
            await world.stop(0)
            await asyncio.sleep(0.02)  # the client sees that the connection is gone
            with pytest.raises(DeliveryError, match="it was not written") as raised:
                await client.send_and_wait("t", b"v")
    assert not raised.value.maybe_written


@asynchronous
async def test_a_batch_that_is_too_large_is_sent_in_parts() -> None:
    def answer(asked):
        ((_, _, values),) = sequences([asked])
        judge = refused(ErrorCode.MESSAGE_TOO_LARGE) if len(values) > 1 else taken
        return judge(asked)

    async with scripted(answer) as world, producer(world, linger_ms=20) as client:
        some = [await client.send("t", b"%d" % one) for one in range(3)]
        await asyncio.gather(*some)
        sent = [one for one in sequences(world.sent("Produce")) if len(one[2]) == 1]
        assert sent == [(0, 0, [b"0"]), (0, 1, [b"1"]), (0, 2, [b"2"])]


@asynchronous
async def test_a_gap_at_the_broker_goes_on_at_a_newer_epoch() -> None:
    answer = in_turn(taken, refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER), taken)
    async with scripted(answer) as world, producer(world) as client:
        for _ in range(2):
            await client.send_and_wait("t", b"v")
        assert sequences(world.sent("Produce")) == [(0, 0, V), (0, 1, V), (1, 0, V)]


@asynchronous
async def test_without_acks_nothing_is_awaited() -> None:
    async with scripted(lambda _: None) as world, producer(world, acks=0) as client:
        assert await client.send_and_wait("t", b"v", timestamp_ms=3) == Delivered("t", 0, -1, 3)
        await client.send_and_wait("t", b"w")
        await until(lambda: len(world.sent("Produce")) == 2)
        assert sequences(world.sent("Produce")) == [(-1, -1, V), (-1, -1, [b"w"])]


@asynchronous
async def test_no_more_requests_are_under_way_than_allowed() -> None:
    gate = asyncio.Event()
    most = 0
    async with scripted(lambda _: None) as world:
        settings = {"acks": 1, "max_in_flight_requests_per_connection": 2, "batch_size": 1}
        async with producer(world, **settings) as client:
            for _ in range(5):
                await client.send("t", b"v")
            for _ in range(20):
                await asyncio.sleep(0.001)
                most = max(most, len(world.sent("Produce")))
            gate.set()
            closing = asyncio.create_task(client.close())
            await asyncio.sleep(0)
            closing.cancel()
            await asyncio.gather(closing, return_exceptions=True)
    assert most == 2


@asynchronous
async def test_zstd_needs_a_broker_that_has_it() -> None:
    async with scripted(taken) as world:
        world.offer("Produce", "3-6")
        async with producer(world, compression_type="zstd") as client:
            with pytest.raises(DeliveryError, match="compression_type zstd needs v7"):
                await client.send_and_wait("t", b"v")
        async with producer(world, compression_type="lz4") as client:
            assert (await client.send_and_wait("t", b"v")).offset == 100


@asynchronous
async def test_brokers_without_ids_are_asked_twice_whether_a_partition_is_gone() -> None:
    """Nothing but the number tells that the topic is another one, and a broker may lag behind."""
    async with (
        asyncio.timeout(30),
        scripted(taken, t=[0, 0, 0]) as world,
        producer(world, linger_ms=60_000) as client,
    ):
        gone = await client.send("t", b"gone", partition=2)
        await client.send("t", b"here", partition=0)
        some = [await client.send("t", b"%d" % one, key=b"%d" % one) for one in range(9)]
        world.topics["t"] = [0]
        assert await client.partitions_for("t") == [0]
        before = len(world.sent("Metadata"))
        await client.flush()
        assert len(world.sent("Metadata")) >= before + 2
        with pytest.raises(DeliveryError, match="no partition 2 any more, it was made anew"):
            await gone
        assert {(await one).partition for one in some} == {0}


@asynchronous
async def test_a_broker_that_lags_behind_takes_no_partition_away() -> None:
    """It has the topic as it was before it grew: by its id it is the same one."""
    async with scripted(taken, t=[0, 0]) as world, producer(world, linger_ms=60_000) as client:
        honest = world.answers[MetadataRequest]
        count = 2

        def lagging(asked: Any) -> Any:
            answer = honest(asked)
            for topic in answer.topics:
                topic.topic_id, topic.partitions = FIRST, topic.partitions[:count]
            return answer

        world.answers[MetadataRequest] = lagging
        delivery = await client.send("t", b"v", partition=1)
        count = 1
        assert await client.partitions_for("t") == [0]
        flushing = asyncio.ensure_future(client.flush())
        looks = len(world.sent("Metadata"))
        await until(lambda: len(world.sent("Metadata")) > looks + 4)
        assert not delivery.done()
        count = 2
        await flushing
        assert (await delivery).partition == 1


@asynchronous
async def test_a_quota_is_kept_to() -> None:
    def throttled(asked):
        answer = taken(asked)
        answer.throttle_time_ms = 80
        return answer

    async with scripted(in_turn(throttled, taken)) as world, producer(world) as client:
        loop = asyncio.get_running_loop()
        await client.send_and_wait("t", b"v")
        before = loop.time()
        await client.send_and_wait("t", b"v")
        assert loop.time() - before > 0.05


@asynchronous
async def test_a_topic_that_grows_is_seen_in_time() -> None:
    async with scripted(taken) as world, producer(world, metadata_max_age_ms=30) as client:
        await client.send_and_wait("t", b"v")
        world.topics["t"] = [0, 0]
        before = len(world.sent("Metadata"))
        await until(lambda: len(world.sent("Metadata")) > before + 1)
        assert (
            len({(await client.send_and_wait("t", b"%d" % n, key=b"%d" % n))[1] for n in range(9)})
            == 2
        )
        assert not any(one.request.allow_auto_topic_creation for one in world.sent("Metadata")[1:])


@asynchronous
async def test_a_producer_that_is_refused_sends_nothing_more() -> None:
    answer = refused(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "not you")
    async with scripted(answer) as world, producer(world, batch_size=1) as client:
        some = [await client.send("t", b"v") for _ in range(3)]
        found = await asyncio.gather(*some, return_exceptions=True)
        assert {one.code for one in found} == {ErrorCode.CLUSTER_AUTHORIZATION_FAILED}
        assert len(world.sent("Produce")) == 1


# Topics by id


def with_id(world: Any, topic_id: bytes) -> None:
    """The cluster tells this id of its topics from now on."""

    def told(asked: Any) -> Any:
        answer = usual(asked)
        for topic in answer.topics:
            topic.topic_id = topic_id
        return answer

    usual = world._metadata
    world.answers[MetadataRequest] = told


@asynchronous
async def test_topics_are_named_by_id_where_the_leader_understands_that() -> None:
    async with scripted(taken) as world, producer(world) as client:
        with_id(world, FIRST)
        assert (await client.send_and_wait("t", b"v")).offset == 100
        world.offer("Produce", "3-12")
        await world.stop_connections()
        assert (await client.send_and_wait("t", b"v")).offset == 100
        asked = world.sent("Produce")
        assert [one.version for one in asked] == [13, 12]
        assert [one.request.topic_data[0].topic_id for one in asked] == [FIRST, bytes(16)]
        assert [one.request.topic_data[0].name for one in asked] == ["", "t"]


@asynchronous
async def test_a_topic_that_was_made_anew_gets_what_is_left(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with scripted(taken) as world, producer(world) as client:
        with_id(world, FIRST)
        await client.send_and_wait("t", b"a")

        def gone(asked: Any) -> Any:
            with_id(world, SECOND)
            return refused(ErrorCode.UNKNOWN_TOPIC_ID)(asked)

        world.answers[ProduceRequest] = in_turn(gone, taken)
        await client.send_and_wait("t", b"b")
        asked = world.sent("Produce")
        assert sequences(asked) == [(0, 0, [b"a"]), (0, 1, [b"b"]), (0, 1, [b"b"])]
        assert [one.request.topic_data[0].topic_id for one in asked] == [FIRST, FIRST, SECOND]
    assert (
        f"t was deleted and made anew (id {uuid_text(SECOND)}, before {uuid_text(FIRST)}): what is "
        "not delivered goes to the new one"
    ) in caplog.messages
