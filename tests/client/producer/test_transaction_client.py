# SPDX-License-Identifier: Apache-2.0
"""Transactions against a broker, of both versions; and with a coordinator that plays a part."""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest
from tests.client.consumer.running import consumer, until
from tests.client.producer.scripted_leaders import (
    identified,
    producer,
    refused,
    scripted,
    sequences,
    taken,
)
from tests.client.scripted import CLOSE, ScriptedCluster, asynchronous, in_turn

from kohort.client.network.cluster import Backoff
from kohort.client.network.connection import Connection
from kohort.client.network.connection_errors import ConnectionFailedError, RequestTimeoutError
from kohort.client.producer import DeliveryError, Producer, TransactionError
from kohort.errors import ApiError, ErrorCode
from kohort.terms import TopicPartition
from kohort.testing import Broker
from kohort.testing.faults import FaultHandle
from kohort.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from kohort.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from kohort.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from kohort.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kohort.wire.messages.produce import ProduceRequest
from kohort.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

T0 = TopicPartition("t", 0)


@pytest.fixture(params=["v1", "v2"])
def broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    versions = {"EndTxn": 4} if request.param == "v1" else None
    with Broker(in_memory=True, versions=versions) as broker:
        broker.create_topic("t", 2)
        yield broker


def made(broker: Broker, **settings: Any) -> Producer:
    return producer(broker, **{"transactional_id": "x", **settings})


async def write(client: Producer, value: bytes = b"v", group: Any = None) -> None:
    """A record in a transaction of its own, and an offset where a group is given."""
    async with client.transaction():
        await client.send("t", value, partition=0)
        if group is not None:
            await client.send_offsets_to_transaction({T0: 1}, group)


async def break_off(client: Producer, *, group: Any = None) -> None:
    """A transaction whose block raises."""
    with contextlib.suppress(KeyError):
        async with client.transaction():
            await client.send_and_wait("t", b"aborted", partition=0)
            await client.send("t", b"never sent", partition=1)
            if group is not None:
                await client.send_offsets_to_transaction({T0: 1}, group)
            raise KeyError


async def cancel_at(slow: FaultHandle, doing: Coroutine[Any, Any, None]) -> None:
    """Cancel it when the broker has the request that it is slow with."""
    task = asyncio.create_task(doing)
    await asyncio.to_thread(slow.wait)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def committed(broker: Broker, count: int) -> list[bytes]:
    """So many records as a reader sees them who waits for the end of transactions."""
    reader = consumer(broker, alone=True, isolation_level="read_committed")
    async with asyncio.timeout(10), reader:
        await reader.assign([T0, TopicPartition("t", 1)])
        return sorted([(await reader.getone()).value for _ in range(count)])


@asynchronous
async def test_a_transaction_becomes_visible_as_a_whole(broker: Broker) -> None:
    async with made(broker) as client:
        for number in range(3):
            async with client.transaction():
                for partition in (0, 1):
                    await client.send("t", b"%d-%d" % (number, partition), partition=partition)
    expected = [b"%d-%d" % (number, place) for number in range(3) for place in (0, 1)]
    assert await committed(broker, 6) == expected


@asynchronous
async def test_what_is_aborted_is_never_seen(broker: Broker) -> None:
    async with made(broker) as client:
        await break_off(client)
        await write(client, b"good")
        await client.begin_transaction()
        await client.send("t", b"aborted as well", partition=0)
        await client.abort_transaction()
        async with client.transaction():
            await client.send("t", b"more", partition=0)
    assert await committed(broker, 2) == [b"good", b"more"]


@asynchronous
async def test_an_empty_transaction_asks_nobody(broker: Broker) -> None:
    async with made(broker) as client:
        async with client.transaction():
            pass
        await client.begin_transaction()
        await client.abort_transaction()
        async with client.transaction():
            await client.send("t", b"v", partition=0)
    assert await committed(broker, 1) == [b"v"]


@asynchronous
async def test_offsets_are_committed_with_the_transaction(broker: Broker) -> None:
    broker.produce("t", "a", "b", partition=0)
    async with (
        made(broker) as client,
        consumer(broker, "t", enable_auto_commit=False) as reader,
    ):
        record = await reader.getone()
        await break_off(client, group=reader.group_metadata())
        assert T0 not in broker.groups["g"].committed()
        async with client.transaction():
            await client.send("t", record.value, partition=1)
            await client.send_offsets_to_transaction(
                {T0: record.offset + 1}, reader.group_metadata()
            )
    assert broker.groups["g"].committed() == {T0: 1}


@asynchronous
async def test_a_consumer_that_is_no_member_any_more_commits_nothing(broker: Broker) -> None:
    broker.produce("t", "a", partition=0)
    async with made(broker) as client:
        async with consumer(broker, "t", enable_auto_commit=False) as reader:
            await reader.getone()
            former = reader.group_metadata()
        with pytest.raises(TransactionError, match="offsets of group g") as raised:
            async with client.transaction():
                await client.send_offsets_to_transaction({T0: 1}, former)
        assert raised.value.abortable
        assert T0 not in broker.groups["g"].committed()
        async with client.transaction():
            await client.send_offsets_to_transaction({T0: 1}, "other")
    assert broker.groups["other"].committed() == {T0: 1}


@asynchronous
async def test_a_successor_fences_the_one_before_it(broker: Broker) -> None:
    async with made(broker) as first:
        await first.begin_transaction()
        await first.send_and_wait("t", b"of the first", partition=0)
        async with made(broker) as second:
            async with second.transaction():
                await second.send("t", b"of the second", partition=0)
            with pytest.raises(TransactionError) as raised:
                await first.commit_transaction()
            assert not raised.value.abortable
            assert "another producer has taken over its transactional id" in str(raised.value)
            with pytest.raises(TransactionError):
                await first.send("t", b"v")
            with pytest.raises(TransactionError):
                await first.begin_transaction()
    assert await committed(broker, 1) == [b"of the second"]


@pytest.mark.parametrize("handled", [True, False])
@pytest.mark.parametrize("api", ["EndTxn", "Produce", "TxnOffsetCommit", "InitProducerId"])
@asynchronous
async def test_lost_answers_change_nothing(
    broker: Broker,
    api: str,
    handled: bool,  # noqa: FBT001
) -> None:
    broker.faults.close(api, handled=handled, times=2)
    async with made(broker) as client:
        for number in range(3):
            async with client.transaction():
                await client.send("t", b"%d" % number, partition=0)
                await client.send_offsets_to_transaction({T0: number}, "g")
    assert await committed(broker, 3) == [b"0", b"1", b"2"]
    assert broker.groups["g"].committed() == {T0: 2}


@asynchronous
async def test_an_open_transaction_is_aborted_by_close(broker: Broker) -> None:
    client = made(broker)
    async with client:
        await client.begin_transaction()
        delivery = await client.send("t", b"aborted", partition=0)
        await delivery
    async with made(broker) as client, client.transaction():
        await client.send("t", b"good", partition=0)
    assert await committed(broker, 1) == [b"good"]


@asynchronous
async def test_one_refusal_fails_the_commit(broker: Broker) -> None:
    async with made(broker) as client:
        broker.faults.error("Produce", ErrorCode.INVALID_RECORD)
        with pytest.raises(TransactionError, match="has to be aborted") as raised:
            async with client.transaction():
                await client.send("t", b"bad", partition=0)
        assert (raised.value.code, raised.value.abortable) == (ErrorCode.INVALID_RECORD, True)
        async with client.transaction():
            await client.send("t", b"good", partition=0)
    assert await committed(broker, 1) == [b"good"]


@asynchronous
async def test_who_gives_up_sending_offsets_has_to_abort(broker: Broker) -> None:
    async with made(broker) as client:
        slow = broker.faults.delay("TxnOffsetCommit", 0.5)
        await client.begin_transaction()
        await cancel_at(slow, client.send_offsets_to_transaction({T0: 1}, "g"))
        with pytest.raises(TransactionError, match="unknown whether it has the offsets"):
            await client.commit_transaction()
        await client.abort_transaction()


@asynchronous
async def test_who_is_cancelled_while_it_delivers_aborts(broker: Broker) -> None:
    async with made(broker) as client:
        slow = broker.faults.delay("Produce", 0.5)
        await cancel_at(slow, write(client, b"aborted"))
        await write(client, b"good")
    assert await committed(broker, 1) == [b"good"]


@asynchronous
async def test_a_record_that_comes_too_late_for_the_commit_is_refused(broker: Broker) -> None:
    async with made(broker) as client:
        await client.begin_transaction()
        early = await client.send("t", b"early", partition=0)
        broker.faults.delay("Produce", 0.2)
        committing = asyncio.create_task(client.commit_transaction())
        await asyncio.sleep(0)
        with pytest.raises(ValueError, match="about to commit: this comes too late"):
            await client.send("t", b"late", partition=0)
        await committing
        assert early.done()
        await write(client, b"next")
    assert await committed(broker, 2) == [b"early", b"next"]


@asynchronous
async def test_who_is_cancelled_before_the_commit_is_asked_for_may_go_on(broker: Broker) -> None:
    async with made(broker) as client:
        await client.begin_transaction()
        await client.send("t", b"one", partition=0)
        await cancel_at(broker.faults.delay("Produce", 0.5), client.commit_transaction())
        await client.send("t", b"two", partition=0)
        await client.commit_transaction()
    assert await committed(broker, 2) == [b"one", b"two"]


@asynchronous
async def test_who_is_cancelled_in_a_commit_is_told_how_to_end_it(broker: Broker) -> None:
    async with made(broker) as client:
        await cancel_at(broker.faults.delay("EndTxn", 0.5), write(client, b"one"))
        for call in (client.begin_transaction, client.abort_transaction):
            with pytest.raises(ValueError, match="is committing, call `commit_transaction`"):
                await call()
        await client.commit_transaction()
        await write(client, b"two")
    assert await committed(broker, 2) == [b"one", b"two"]


# A coordinator that plays a part, in transactions of the first version.


def ended(code: int = 0) -> EndTxnResponse:
    return EndTxnResponse(error_code=code)


def added(code: int = 0) -> Callable[[Any], AddPartitionsToTxnResponse]:
    def answer(asked: Any) -> AddPartitionsToTxnResponse:
        return AddPartitionsToTxnResponse(
            results_by_topic_v3_and_below=[
                AddPartitionsToTxnTopicResult(
                    name=topic.name,
                    results_by_partition=[
                        AddPartitionsToTxnPartitionResult(
                            partition_index=one, partition_error_code=code
                        )
                        for one in topic.partitions
                    ],
                )
                for topic in asked.request.v3_and_below_topics
            ]
        )

    return answer


def offsets_told(code: int = 0) -> TxnOffsetCommitResponse:
    one = TxnOffsetCommitResponsePartition(partition_index=0, error_code=code)
    return TxnOffsetCommitResponse(
        topics=[TxnOffsetCommitResponseTopic(name="t", partitions=[one])]
    )


def coordinator(**answers: Any) -> ScriptedCluster:
    world = scripted(taken)
    kinds = {
        "init": (InitProducerIdRequest, identified),
        "add": (AddPartitionsToTxnRequest, added()),
        "group": (AddOffsetsToTxnRequest, AddOffsetsToTxnResponse()),
        "offsets": (TxnOffsetCommitRequest, offsets_told()),
        "end": (EndTxnRequest, ended()),
        "produce": (ProduceRequest, taken),
    }
    for name, (kind, usual) in kinds.items():
        world.answers[kind] = in_turn(*answers.pop(name, ()), usual)
    assert not answers
    return world


@asynchronous
async def test_the_first_version_tells_the_coordinator_first() -> None:
    async with coordinator() as world:
        async with made(world) as client:
            for _ in range(2):
                async with client.transaction():
                    await client.send_and_wait("t", b"v")
                    await client.send_offsets_to_transaction({T0: 1}, "g")
        looked_up = ["FindCoordinator", "InitProducerId"]
        once = ["AddPartitionsToTxn", "Produce", "AddOffsetsToTxn"]
        found = world.names()
        assert found == [
            *looked_up,
            *once,
            *("FindCoordinator", "TxnOffsetCommit", "EndTxn"),
            *once,
            *("TxnOffsetCommit", "EndTxn"),
        ]
        assert [one.request.key_type for one in world.sent("FindCoordinator")] == [1, 0]
        versions = {one.name: one.version for one in world.asked}
        assert (versions["Produce"], versions["EndTxn"], versions["AddPartitionsToTxn"]) == (
            *(11, 4),
            3,
        )
        assert sequences(world.sent("Produce")) == [(0, 0, [b"v"]), (0, 1, [b"v"])]


@asynchronous
async def test_an_abort_of_the_first_version_asks_for_a_newer_epoch() -> None:
    async with coordinator() as world:
        world.answers[InitProducerIdRequest] = in_turn(
            identified, InitProducerIdResponse(producer_id=77, producer_epoch=1)
        )
        async with made(world) as client:
            await client.begin_transaction()
            await client.send_and_wait("t", b"v")
            await client.abort_transaction()
            async with client.transaction():
                await client.send("t", b"w")
        first, second = (one.request for one in world.sent("InitProducerId"))
        assert (first.producer_id, first.producer_epoch) == (-1, -1)
        assert (second.producer_id, second.producer_epoch) == (77, 0)
        assert sequences(world.sent("Produce")) == [(0, 0, [b"v"]), (1, 0, [b"w"])]


@pytest.mark.parametrize("what", ["init", "add", "group", "offsets", "end"])
@pytest.mark.parametrize(
    "code", ["NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS", "CONCURRENT_TRANSACTIONS"]
)
@asynchronous
async def test_what_passes_is_waited_for(what: str, code: str) -> None:
    error = int(ErrorCode[code])
    async with coordinator(**{what: [passing(what, error)]}) as world, made(world) as client:
        async with client.transaction():
            await client.send("t", b"v")
            await client.send_offsets_to_transaction({T0: 1}, "g")
        asked_again = code == "NOT_COORDINATOR"
        assert len(world.sent("FindCoordinator")) == 2 + asked_again


def passing(what: str, code: int) -> Any:
    return {
        "init": InitProducerIdResponse(error_code=code, producer_id=-1),
        "add": added(code),
        "group": AddOffsetsToTxnResponse(error_code=code),
        "offsets": offsets_told(code),
        "end": ended(code),
    }[what]


@pytest.mark.parametrize("end", ["commit", "abort", "abort after a cancellation"])
@asynchronous
async def test_the_end_of_a_transaction_waits_for_its_offsets(end: str) -> None:
    """Else this one ends without them, and the group has them with the next one."""
    unheard: Any = lambda _: None  # noqa: E731  (an answer)
    async with coordinator(offsets=[unheard]) as world:
        async with made(world, request_timeout_ms=500) as client:
            await client.begin_transaction()
            await client.send_and_wait("t", b"v")
            offering = asyncio.create_task(client.send_offsets_to_transaction({T0: 7}, "g"))
            await until(lambda: world.sent("TxnOffsetCommit"))
            if "cancellation" in end:
                offering.cancel()
                await asyncio.sleep(0)
            await (client.commit_transaction() if end == "commit" else client.abort_transaction())
            assert offering.done()
            await asyncio.gather(offering, return_exceptions=True)
            await asyncio.sleep(0.7)
        found = [name for name in world.names() if name in ("TxnOffsetCommit", "EndTxn")]
        tried = 2 if end == "commit" else 1
        assert found == ["TxnOffsetCommit"] * tried + ["EndTxn"]


@pytest.mark.parametrize("what", ["add", "group"])
@pytest.mark.parametrize("how", ["refused", "lost"])
@asynchronous
async def test_what_never_began_is_aborted_without_a_word(what: str, how: str) -> None:
    """The coordinator still ends the transaction before: it has none that could be aborted."""
    busy = passing(what, int(ErrorCode.CONCURRENT_TRANSACTIONS)) if how == "refused" else CLOSE
    answers: Any = {what: [busy] * 1000, "end": [ended(int(ErrorCode.INVALID_TXN_STATE))]}
    async with coordinator(**answers) as world, made(world) as client:
        await client.begin_transaction()
        if what == "add":
            await client.send("t", b"v")
        else:
            asking = asyncio.create_task(client.send_offsets_to_transaction({T0: 1}, "g"))
        name = "AddPartitionsToTxn" if what == "add" else "AddOffsetsToTxn"
        await until(lambda: len(world.sent(name)) > 1)
        await client.abort_transaction()
        if what == "group":
            assert isinstance((await asyncio.gather(asking, return_exceptions=True))[0], ApiError)
        assert len(world.sent("EndTxn")) == (how == "lost")
        world.answers[AddPartitionsToTxnRequest] = added()
        world.answers[EndTxnRequest] = lambda _: ended()
        await write(client)


@asynchronous
async def test_an_abort_waits_for_what_the_coordinator_was_asked_before() -> None:
    heard = asyncio.Event()

    async def refused_late(asked: Any) -> Any:
        await heard.wait()
        return passing("add", int(ErrorCode.CONCURRENT_TRANSACTIONS))(asked)

    async with coordinator(add=[refused_late]) as world, made(world) as client:
        await client.begin_transaction()
        await client.send("t", b"v")
        await until(lambda: world.sent("AddPartitionsToTxn"))
        aborting = asyncio.create_task(client.abort_transaction())
        await asyncio.sleep(0.05)
        heard.set()
        await aborting
        assert not world.sent("EndTxn")
        await write(client)


@pytest.mark.parametrize("what", ["add", "group", "offsets"])
@asynchronous
async def test_what_can_be_aborted_is(what: str) -> None:
    error = int(ErrorCode.TRANSACTION_ABORTABLE)
    async with coordinator(**{what: [passing(what, error)]}) as world, made(world) as client:
        with pytest.raises(TransactionError, match="TRANSACTION_ABORTABLE") as raised:
            await write(client, group="g")
        assert raised.value.abortable
        await write(client)
        assert [one.request.committed for one in world.sent("EndTxn")] == [False, True]


@pytest.mark.parametrize("what", ["add", "group", "offsets", "end"])
@pytest.mark.parametrize("code", ["PRODUCER_FENCED", "INVALID_TXN_STATE"])
@asynchronous
async def test_what_is_over_is_over(what: str, code: str) -> None:
    error = int(ErrorCode[code])
    async with coordinator(**{what: [passing(what, error)]}) as world, made(world) as client:
        with pytest.raises(TransactionError, match=code) as raised:
            await write(client, group="g")
        assert not raised.value.abortable
        with pytest.raises(TransactionError, match=code):
            await client.begin_transaction()


@pytest.mark.parametrize(
    ("code", "abortable"), [("PRODUCER_FENCED", False), ("INVALID_PRODUCER_EPOCH", True)]
)
@asynchronous
async def test_a_delivery_of_a_producer_that_was_taken_over_is_an_error_of_the_transaction(
    code: str,
    abortable: bool,  # noqa: FBT001
) -> None:
    """As is everything that this producer does after it."""
    async with coordinator(produce=[refused(ErrorCode[code])]) as world, made(world) as client:
        await client.begin_transaction()
        for _ in range(2):
            with pytest.raises(TransactionError, match=code) as raised:
                await client.send_and_wait("t", b"v")
            assert raised.value.abortable is abortable
            assert raised.value.code is ErrorCode[code]
        if abortable:
            await client.abort_transaction()


@asynchronous
async def test_another_refusal_is_one_of_the_delivery() -> None:
    refusal = refused(ErrorCode.INVALID_RECORD)
    async with coordinator(produce=[refusal]) as world, made(world) as client:
        await client.begin_transaction()
        with pytest.raises(DeliveryError, match="INVALID_RECORD"):
            await client.send_and_wait("t", b"v")
        await client.abort_transaction()


@asynchronous
async def test_a_start_that_is_refused() -> None:
    error = InitProducerIdResponse(
        error_code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, producer_id=-1
    )
    async with coordinator(init=[error]) as world:
        with pytest.raises(TransactionError, match="TRANSACTIONAL_ID_AUTHORIZATION_FAILED"):
            await made(world).start()


@asynchronous
async def test_a_commit_without_an_answer_may_be_committed() -> None:
    async with coordinator(end=[CLOSE] * 9) as world, made(world, max_block_ms=150) as client:
        with pytest.raises(TransactionError, match="commit again to find out") as raised:
            await write(client)
        assert (raised.value.maybe_committed, raised.value.abortable) == (True, False)
        with pytest.raises(ValueError, match="cannot begin: the producer is committing"):
            await client.begin_transaction()
        for _ in range(9):
            with contextlib.suppress(TransactionError):
                await client.commit_transaction()
                break
        await client.begin_transaction()
        await client.abort_transaction()


@pytest.mark.parametrize("error", [ConnectionFailedError, RequestTimeoutError])
@asynchronous
async def test_a_commit_that_never_left_is_not_committed(
    error: type[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection ends before it has the request."""
    usual = Connection.ask

    async def ask(self: Connection, request: Any, **given: Any) -> Any:
        if isinstance(request, EndTxnRequest) and request.committed:
            raise error("it is gone", sent=False)
        return await usual(self, request, **given)

    async with coordinator() as world, made(world, max_block_ms=1_000) as client:
        monkeypatch.setattr(Connection, "ask", ask)
        await client.begin_transaction()
        await client.send_and_wait("t", b"v")
        with pytest.raises(TransactionError, match="the transaction is not committed") as raised:
            await client.commit_transaction()
        assert (raised.value.maybe_committed, raised.value.abortable) == (False, True)
        await client.abort_transaction()
        await client.begin_transaction()


@pytest.mark.parametrize("how", ["cancelled", "too late"])
@asynchronous
async def test_a_commit_that_was_not_asked_for_is_aborted(how: str) -> None:
    """The coordinator takes no commit for as long as anybody waits for it."""
    limit = asyncio.timeout(None)

    def end(asked: Any) -> EndTxnResponse:
        if how == "cancelled":  # when the answer is there and nothing is asked again yet
            limit.reschedule(asyncio.get_running_loop().time() + 0.1)
        return ended(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if asked.request.committed else 0)

    async with coordinator(end=[end] * 9) as world, made(world) as client:
        # "too late" is before it could be asked again
        pause_s = 1e6 if how == "too late" else 0.4
        client._cluster._backoff = Backoff(pause_s, pause_s)
        with pytest.raises((TransactionError, TimeoutError)) as raised:
            async with limit:
                await write(client)
        assert isinstance(raised.value, TimeoutError) == (how == "cancelled")
        if isinstance(raised.value, TransactionError):
            assert (raised.value.maybe_committed, raised.value.abortable) == (False, True)
            assert "the transaction is not committed" in str(raised.value)
        assert world.sent("EndTxn")[-1].request.committed is False
        await client.begin_transaction()


@pytest.mark.parametrize("code", ["PRODUCER_FENCED", "TRANSACTION_ABORTABLE"])
@pytest.mark.parametrize(
    ("first", "maybe"),
    [(CLOSE, True), ("NOT_COORDINATOR", True), ("CONCURRENT_TRANSACTIONS", False)],
)
@asynchronous
async def test_an_earlier_request_may_have_committed(code: str, first: Any, maybe: bool) -> None:  # noqa: FBT001
    before = ended(ErrorCode[first]) if isinstance(first, str) else first
    async with coordinator(end=[before, ended(ErrorCode[code])]) as world, made(world) as client:
        with pytest.raises(TransactionError) as raised:
            await write(client)
        assert raised.value.code is ErrorCode[code]
        assert raised.value.maybe_committed is maybe


@asynchronous
async def test_what_was_not_delivered_fails_with_its_transaction() -> None:
    never = [refused(ErrorCode.NOT_LEADER_OR_FOLLOWER)] * 999
    async with coordinator(produce=never) as world, made(world) as client:
        await client.begin_transaction()
        delivery = await client.send("t", b"v")
        await until(lambda: len(world.sent("Produce")) > 2)
        await client.abort_transaction()
        with pytest.raises(DeliveryError, match="the transaction was aborted; it was not wri"):
            await delivery


@asynchronous
async def test_transactions_need_an_id_and_a_beginning() -> None:
    async with coordinator() as world:
        async with producer(world) as client:
            with pytest.raises(ValueError, match="give it a transactional_id"):
                await client.begin_transaction()
        async with made(world) as client:
            with pytest.raises(ValueError, match="use `async with"):
                await client.send("t", b"v")
            with pytest.raises(ValueError, match="in no transaction"):
                await client.send_offsets_to_transaction({T0: 1}, "g")
            with pytest.raises(ValueError, match="offset -1 of t:0"):
                await client.send_offsets_to_transaction({T0: -1}, "g")
