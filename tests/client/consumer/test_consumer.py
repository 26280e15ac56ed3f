# SPDX-License-Identifier: Apache-2.0
"""The consumer against a broker, by both protocols: nothing is lost, whatever the group does."""

import asyncio
import contextlib
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from tests.client.consumer.running import (
    PROTOCOLS,
    RebalanceRecorder,
    Worker,
    consumer,
    until,
    within,
)
from tests.client.scripted import asynchronous

from kohort.client.admin import (
    AclBinding,
    AclOperation,
    AdminClient,
    CommittedOffset,
    ResourceType,
)
from kohort.client.consumer import Consumer, RebalanceListener
from kohort.client.fetcher import ConsumerRecord
from kohort.config import STANDARD_AUTHORIZER
from kohort.errors import ApiError, ErrorCode
from kohort.records.schemas import ConsumerGroupMemberMetadataValue
from kohort.terms import TopicPartition
from kohort.testing import Broker

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
both = pytest.mark.parametrize("protocol", PROTOCOLS)


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker({"group.consumer.heartbeat.interval.ms": 100}) as broker:
        yield broker


def fill(broker: Broker, count: int, *, partitions: int = 2, first: int = 0) -> list[str]:
    if "t" not in broker.topics:
        broker.create_topic("t", partitions)
    values = [f"v{number}" for number in range(first, first + count)]
    for index in range(partitions):
        broker.produce("t", *values[index::partitions], partition=index)
    return values


def committed(broker: Broker) -> dict[int, int]:
    return {place.partition: one for place, one in broker.groups["g"].committed().items()}


async def grow(broker: Broker, topic: str, count: int) -> None:
    async with AdminClient(broker.bootstrap) as admin:
        (await admin.create_partitions({topic: count})).all()


@both
@asynchronous
async def test_all_records_are_read_and_committed(broker: Broker, protocol: str) -> None:
    values = fill(broker, 100)
    async with within(), Worker(consumer(broker, "t", group_protocol=protocol)) as worker:
        await until(lambda: len(worker.seen) == 100)
        assert sorted(worker.seen) == sorted(values)
        one = worker.records[0]
        assert (one.topic, one.offset, one.key) == ("t", 0, None)
        assert worker.consumer.assignment() == {T0, T1}
        assert [worker.consumer.lag(place) for place in (T0, T1)] == [0, 0]
    assert committed(broker) == {0: 50, 1: 50}
    assert broker.groups["g"].state == "Empty"
    assert broker.groups["g"].describe().type == protocol  # type: ignore[union-attr]


@both
@asynchronous
async def test_who_comes_after_goes_on_where_the_one_before_was(
    broker: Broker, protocol: str
) -> None:
    fill(broker, 10)
    async with within():
        async with Worker(consumer(broker, "t", group_protocol=protocol)) as first:
            await until(lambda: len(first.seen) == 10)
        more = fill(broker, 6, first=10)
        async with Worker(consumer(broker, "t", group_protocol=protocol)) as second:
            await until(lambda: len(second.seen) >= 6)
            assert sorted(second.seen) == sorted(more)


@both
@asynchronous
async def test_a_group_grows_and_shrinks_and_every_record_is_seen_once(
    broker: Broker, protocol: str
) -> None:
    values = fill(broker, 200, partitions=4)
    seen: list[str] = []

    async def work(record: ConsumerRecord) -> None:
        await asyncio.sleep(0.001)
        seen.append((record.value or b"").decode())

    def new() -> Worker:
        settings: Any = {"group_protocol": protocol}
        if protocol == "classic":
            settings["partition_assignment_strategy"] = ["cooperative-sticky"]
        return Worker(consumer(broker, "t", **settings), work)

    async with within(), new() as first:
        await until(lambda: len(seen) > 20)
        async with new() as second, new() as third:
            await until(lambda: second.consumer.assignment() and third.consumer.assignment())
            values += fill(broker, 200, partitions=4, first=200)
            await until(lambda: len(seen) > 250)
        values += fill(broker, 40, partitions=4, first=400)
        await until(lambda: len(first.consumer.assignment()) == 4)
        await until(lambda: len(seen) >= len(values))
    assert sorted(seen) == sorted(values)
    assert sum(committed(broker).values()) == len(values)


@both
@asynchronous
async def test_a_partition_is_given_up_when_its_record_is_processed(
    broker: Broker, protocol: str
) -> None:
    """Nobody else gets a record while somebody works on it."""
    fill(broker, 2, partitions=2)
    hold = asyncio.Event()
    at_work: set[str] = set()
    finished: list[str] = []

    async def slow(record: ConsumerRecord) -> None:
        value = (record.value or b"").decode()
        assert value not in at_work
        at_work.add(value)
        await hold.wait()
        finished.append(value)

    async with within(), Worker(consumer(broker, "t", group_protocol=protocol), slow) as first:
        await until(lambda: at_work)
        async with Worker(consumer(broker, "t", group_protocol=protocol), slow) as second:
            await asyncio.sleep(0.5)
            assert len(at_work) <= 2
            hold.set()
            await until(lambda: len(finished) == 2)
            await until(
                lambda: len(first.consumer.assignment()) == len(second.consumer.assignment()) == 1
            )
    assert sorted(finished) == ["v0", "v1"]


@asynchronous
async def test_what_was_in_work_when_the_block_broke_is_not_committed(broker: Broker) -> None:
    fill(broker, 10, partitions=1)

    async def breaks() -> None:
        async with within(), consumer(broker, "t") as reader:
            async for record in reader:
                if record.value == b"v3":
                    raise RuntimeError("at v3")

    with pytest.raises(RuntimeError, match="at v3"):
        await breaks()
    assert committed(broker) == {0: 3}


@asynchronous
async def test_leaving_the_loop_says_that_the_last_record_is_processed(broker: Broker) -> None:
    fill(broker, 10, partitions=1)
    async with within(), consumer(broker, "t") as reader:
        async for record in reader:
            if record.value == b"v3":
                break
    assert committed(broker) == {0: 4}


ENDS = {  # how the work on v3 ends, and what is committed when the consumer is closed
    "finally": 3,
    "finally, a batch": 3,
    "except": 3,
    "cancelled": 3,
    "raised": 3,
    "another closes": 3,
    "another unsubscribes": 3,
    "another assigns": 3,
    "another seeks": 3,
    "a listener commits": 3,
    "the task ends": 4,
    "unsubscribed": 4,
    "inside another handler": 4,
}


@pytest.mark.parametrize("how", ENDS)
@asynchronous
async def test_what_was_not_processed_is_not_committed(broker: Broker, how: str) -> None:
    """At least once, whatever ends the work."""
    fill(broker, 10, partitions=1)
    settings: dict[str, Any] = {"auto_commit_interval_ms": 100}

    class Commits(RebalanceListener):
        async def on_revoked(self, _partitions: Any) -> None:
            await reader.commit()

    if how == "a listener commits":
        settings = {"enable_auto_commit": False, "listener": Commits()}
    topics = [] if how == "another assigns" else ["t"]
    reader = consumer(broker, *topics, **settings)
    at_v3 = asyncio.Event()

    async def work() -> None:
        if "batch" in how:
            await reader.getmany(timeout_ms=20_000, max_records=3)
            assert len((await reader.getmany(timeout_ms=20_000))[T0]) == 7
            raise ArithmeticError
        async for record in reader:
            if record.value == b"v3":
                break
        at_v3.set()
        if how in ("finally", "except", "raised", "a listener commits"):
            raise ArithmeticError
        if how.startswith(("another", "cancelled")):
            await asyncio.sleep(3600)

    async def runs_in_the_task() -> None:
        if how == "except":
            try:
                await work()
            except ArithmeticError:
                await reader.close()
        elif how.startswith("finally"):
            try:
                await work()
            finally:
                await reader.close()
        elif how == "a listener commits":
            async with reader:
                await work()
        elif how == "unsubscribed":
            await work()
            await reader.unsubscribe()
            await reader.close(processed=False)
        else:
            try:
                raise KeyError  # noqa: TRY301  (to be inside its handler)
            except KeyError:
                async with reader:
                    await work()

    async def runs_beside() -> None:
        async with reader:
            if not topics:
                await reader.assign([T0])
            task = asyncio.create_task(work())
            await at_v3.wait()
            if how == "another unsubscribes":
                await reader.unsubscribe()
            elif how == "another assigns":
                await reader.assign([T0])
                await asyncio.sleep(0.5)
            elif how == "another seeks":
                reader.seek(T0, 9)
                await asyncio.sleep(0.5)
            elif how == "cancelled":
                task.cancel()
            if not how.startswith("another"):
                await asyncio.gather(task, return_exceptions=True)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async with within():
        if how in ("cancelled", "raised", "the task ends") or how.startswith("another"):
            await runs_beside()
        else:
            await reader.start()
            with contextlib.suppress(ArithmeticError):
                await runs_in_the_task()
    assert committed(broker) == {0: ENDS[how]}


@asynchronous
async def test_what_a_task_broke_off_is_handed_to_the_next(broker: Broker) -> None:
    fill(broker, 10, partitions=1)
    async with within(), consumer(broker, "t", auto_commit_interval_ms=100) as reader:
        seen: list[int] = []

        async def work(until: int) -> None:
            async for record in reader:
                if record.offset == until:
                    raise ArithmeticError
                seen.append(record.offset)

        for until in (3, 7, 10):
            task = asyncio.create_task(work(until))
            await asyncio.wait([task], timeout=1)
            if until == 10:
                task.cancel()
            with pytest.raises((ArithmeticError, asyncio.CancelledError)):
                await task
        assert seen == list(range(10))


@asynchronous
async def test_what_was_lost_in_work_is_not_committed_in_silence(broker: Broker) -> None:
    """Whoever is too slow hears of it, though nothing is assigned to him any more."""
    fill(broker, 1, partitions=1)
    settings: Any = {"max_poll_interval_ms": 300, "enable_auto_commit": False}
    async with within(), consumer(broker, "t", **settings) as slow:
        await slow.getone()
        await until(lambda: not slow.assignment())
        with pytest.raises(ApiError, match="lost while their records were in work"):
            await slow.commit()


@asynchronous
async def test_batches_are_processed_as_a_whole(broker: Broker) -> None:
    fill(broker, 10, partitions=1)
    async with within(), consumer(broker, "t", max_poll_records=4) as reader:
        batch = await reader.getmany(timeout_ms=20_000)
        assert [one.offset for one in batch[T0]] == [0, 1, 2, 3]
        assert await reader.position(T0) == 4
        batch = await reader.getmany(timeout_ms=20_000, max_records=2)
        assert [one.offset for one in batch[T0]] == [4, 5]
        await reader.close(processed=False)
    assert committed(broker) == {0: 4}


@asynchronous
async def test_one_by_one_and_in_batches_by_turns(broker: Broker) -> None:
    fill(broker, 10, partitions=1)
    async with within(), consumer(broker, "t") as reader:
        assert (await reader.getone()).offset == 0
        batch = await reader.getmany(timeout_ms=20_000, max_records=3)
        assert [one.offset for one in batch[T0]] == [1, 2, 3]
        assert (await reader.getone()).offset == 4
        assert await reader.position(T0) == 5
        await reader.commit()
        assert committed(broker) == {0: 5}


@asynchronous
async def test_nothing_to_read_is_an_empty_batch(broker: Broker) -> None:
    broker.create_topic("t", 1)
    async with within(), consumer(broker, "t") as reader:
        assert await reader.getmany() == {}
        assert await reader.getmany(timeout_ms=50) == {}


@asynchronous
async def test_commits_of_ones_own(broker: Broker) -> None:
    fill(broker, 10, partitions=2)
    async with within(), consumer(broker, "t", enable_auto_commit=False) as reader:
        for _ in range(4):
            await reader.getone()
        await reader.commit({T0: 1})
        await reader.commit({("t", 1): CommittedOffset(2, None, "why")})
        assert committed(broker) == {0: 1, 1: 2}
        found = await reader.committed(T0, T1, ("t", 7))
        assert found[T0] == CommittedOffset(1)
        assert found[T1] == CommittedOffset(2, None, "why")
        assert found[TopicPartition("t", 7)] is None
        await asyncio.gather(*(reader.commit_nowait({T0: offset}) for offset in (2, 4, 3)))
        assert committed(broker)[0] == 3
        with pytest.raises(ValueError, match="offset -1 of t:0"):
            await reader.commit({T0: -1})
    assert committed(broker) == {0: 3, 1: 2}


@asynchronous
async def test_no_commit_outlives_its_consumer() -> None:
    """It would open connections anew, for as long as its coordinator is away."""
    with Broker() as broker:
        fill(broker, 1, partitions=1)
        reader = consumer(broker, "t", enable_auto_commit=False, close_timeout_ms=300)
        async with within():
            await reader.start()
            await reader.getone()
        broker.stop()
        commits = [reader.commit_nowait() for _ in range(3)]
        await reader.close()
        assert all(commit.done() for commit in commits)
        assert not asyncio.all_tasks() - {asyncio.current_task()}


@asynchronous
async def test_auto_commit_goes_on_beside(broker: Broker) -> None:
    fill(broker, 10, partitions=1)
    async with within(), consumer(broker, "t", auto_commit_interval_ms=100) as reader:
        for _ in range(5):
            await reader.getone()
        await until(lambda: committed(broker) == {0: 4})  # the fifth is in work
        await reader.commit()
        await asyncio.sleep(0.5)
        assert committed(broker) == {0: 5}  # what the application says stands


@both
@asynchronous
async def test_the_listener_hears_of_everything_in_order(broker: Broker, protocol: str) -> None:
    """K848-180: piece by piece in the new protocol, and by cooperative-sticky in the other."""
    fill(broker, 4, partitions=2)
    told = RebalanceRecorder()
    settings: Any = {}
    if protocol == "classic":
        settings["partition_assignment_strategy"] = "cooperative-sticky"
    first = consumer(broker, "t", group_protocol=protocol, listener=told, **settings)
    async with within(), Worker(first):
        await until(lambda: told.events == [("assigned", [0, 1])])
        async with Worker(consumer(broker, "t", group_protocol=protocol, **settings)) as second:
            await until(lambda: len(second.consumer.assignment()) == 1)
            (other,) = second.consumer.assignment()
            assert told.events[1:] == [("revoked", [other.partition])]
        await until(lambda: told.events[2:] == [("assigned", [other.partition])])
    assert told.events[3:] == [("revoked", [0, 1])]


@asynchronous
async def test_a_listener_may_seek_before_the_first_record(broker: Broker) -> None:
    fill(broker, 10, partitions=1)

    class Seeks(RebalanceRecorder):
        async def on_assigned(self, partitions: Any) -> None:
            reader.seek(T0, 7)

    reader = consumer(broker, "t", listener=Seeks())
    async with within(), reader:
        assert (await reader.getone()).offset == 7


@pytest.mark.parametrize("listener", [print, RebalanceRecorder, object(), "told", {}])
@asynchronous
async def test_what_is_no_listener_is_refused(broker: Broker, listener: Any) -> None:
    """It would be missed when partitions come, and no record would follow."""
    fill(broker, 1, partitions=1)
    with pytest.raises(TypeError, match=r"listener is .*, expected an instance of a Rebalance"):
        consumer(broker, "t", listener=listener)
    async with within(), consumer(broker, "t") as reader:
        with pytest.raises(TypeError, match="listener is "):
            reader.subscribe("u", listener=listener)
        assert (await reader.getone()).offset == 0  # all is as it was


@asynchronous
async def test_a_commit_for_a_topic_that_is_not_there_says_so(broker: Broker) -> None:
    fill(broker, 1, partitions=1)
    async with within(), consumer(broker, "t") as reader:
        await reader.getone()
        with pytest.raises(ApiError, match="PARTITION: nowhere:0: there is no such partition"):
            await reader.commit({TopicPartition("nowhere", 0): 1})


@pytest.mark.parametrize(
    "wrong", [float("nan"), float("inf"), -1, 10**400, True, "1", None], ids=lambda it: repr(it)[:9]
)
@asynchronous
async def test_a_time_that_is_none_is_refused_and_nobody_waits(broker: Broker, wrong: Any) -> None:
    fill(broker, 1, partitions=1)
    async with within(), consumer(broker, "t") as reader:
        with pytest.raises((TypeError, ValueError), match=r"timeout_ms is .*, expected"):
            await reader.getmany(timeout_ms=wrong)
        with pytest.raises(ValueError, match="max_records is '1', expected 1 or more"):
            await reader.getmany(max_records="1")  # type: ignore[arg-type]
        assert (await reader.getone()).offset == 0


@asynchronous
async def test_partitions_that_are_none_are_named(broker: Broker) -> None:
    """A text would fall apart into a topic and a number, and nobody would ever read it."""
    fill(broker, 1, partitions=1)
    async with within(), consumer(broker) as reader:
        for wrong in (["ab"], [("t", "0")], ("t", 0), "t", 5):
            with pytest.raises(TypeError, match="no partition"):
                await reader.assign(wrong)  # type: ignore[arg-type]
        await reader.assign([T0])
        calls: list[Any] = [reader.pause, reader.resume, reader.lag, lambda of: reader.seek(of, 0)]
        for call in calls:
            with pytest.raises(TypeError, match="'t' is no partition, expected a TopicPartition"):
                call("t")
        for ask in (reader.position, reader.committed):
            with pytest.raises(TypeError, match="'t' is no partition"):
                await ask("t")  # type: ignore[operator]
        for tell in (reader.commit, reader.seek_to_time, reader.offsets_for_times):
            with pytest.raises(TypeError, match="'t' is no partition"):
                await tell({"t": 0})  # type: ignore[operator]
            with pytest.raises(TypeError, match="is 5, expected a mapping by partition"):
                await tell(5)  # type: ignore[operator]


@asynchronous
async def test_what_a_listener_raises_is_heard(broker: Broker) -> None:
    fill(broker, 1, partitions=1)

    class Fails(RebalanceRecorder):
        def on_assigned(self, partitions: Any) -> None:  # type: ignore[override]
            raise RuntimeError("no room")

    async with within(), consumer(broker, "t", listener=Fails()) as reader:
        with pytest.raises(RuntimeError, match="no room"):
            await reader.getone()
        assert (await reader.getone()).offset == 0  # said once, and the partition is ours


@asynchronous
async def test_seeking_pausing_and_places(broker: Broker) -> None:
    fill(broker, 20, partitions=2)
    async with within(), consumer(broker, "t") as reader:
        await until(lambda: len(reader.assignment()) == 2)
        reader.pause(T1)
        assert reader.paused() == {T1}
        first = [await reader.getone() for _ in range(10)]
        assert {one.partition for one in first} == {0}
        reader.seek(T0, 3)
        assert await reader.position(T0) == 3
        assert (await reader.getone()).offset == 3
        reader.seek(T0, "earliest")
        assert (await reader.getone()).offset == 0
        reader.seek(T0, "latest")
        assert await reader.position(T0) == 10
        reader.resume(T1)
        second = [await reader.getone() for _ in range(10)]
        assert {one.partition for one in second} == {1}
        found = await reader.seek_to_time({T1: 1})
        assert found[T1].offset == 0
        assert (await reader.getone()).offset == 0
        for wrong in (lambda: reader.pause(("u", 0)), lambda: reader.seek(("t", 5), 0)):
            with pytest.raises(ValueError, match="is not assigned to this consumer"):
                wrong()
        with pytest.raises(ValueError, match="offset -4 of t:0, expected 0 or more"):
            reader.seek(T0, -4)


@asynchronous
async def test_pausing_in_the_middle_of_a_run_loses_nothing(broker: Broker) -> None:
    fill(broker, 10, partitions=1)
    async with within(), consumer(broker, "t") as reader:
        assert (await reader.getone()).offset == 0
        reader.pause(T0)
        assert await reader.getmany(timeout_ms=100) == {}
        reader.resume(T0)
        assert [(await reader.getone()).offset for _ in range(9)] == list(range(1, 10))


@asynchronous
async def test_partitions_of_ones_own_choice_without_a_group(broker: Broker) -> None:
    fill(broker, 20, partitions=2)
    async with within(), consumer(broker, alone=True) as reader:
        await reader.assign([T1])
        assert [(await reader.getone()).partition for _ in range(10)] == [1] * 10
        await reader.assign([T0])
        assert reader.assignment() == {T0}
        assert (await reader.getone()).partition == 0
        for refused in (reader.commit, reader.committed):
            with pytest.raises(ValueError, match="the consumer has no group"):
                await refused()
    assert list(broker.groups) == []


@asynchronous
async def test_partitions_of_ones_own_choice_with_a_group(broker: Broker) -> None:
    fill(broker, 20, partitions=2)
    for expected in (0, 3, 6):
        async with within(), consumer(broker) as reader:
            await reader.assign([T1])
            assert (await reader.getone()).offset == expected
            assert len([await reader.getone() for _ in range(2)]) == 2
            with pytest.raises(ValueError, match="partitions are assigned by `assign`"):
                reader.subscribe("t")
    assert committed(broker) == {1: 9}


@both
@asynchronous
async def test_another_subscription(broker: Broker, protocol: str) -> None:
    fill(broker, 1, partitions=1)
    broker.create_topic("u", 1)
    broker.produce("u", "of u")
    async with within(), consumer(broker, "t", group_protocol=protocol) as reader:
        assert (await reader.getone()).topic == "t"
        reader.subscribe("u")
        record = await reader.getone()
        assert (record.topic, record.value) == ("u", b"of u")
        assert reader.assignment() == {("u", 0)}
        await reader.unsubscribe()
        assert reader.assignment() == frozenset()
        assert broker.groups["g"].state == "Empty"
        reader.subscribe("t")
        await until(lambda: reader.assignment() == {("t", 0)})


@both
@asynchronous
async def test_topics_by_pattern_and_one_that_comes_later(broker: Broker, protocol: str) -> None:
    """K848-188: a pattern, and a name beside it."""
    broker.create_topic("p-1", 1)
    broker.produce("p-1", "early")
    for name in ("other", "more"):
        broker.create_topic(name, 1)
    settings: Any = {"group_protocol": protocol, "metadata_max_age_ms": 300}
    async with within(), consumer(broker, "more", pattern="p-.*", **settings) as reader:
        assert (await reader.getone()).value == b"early"
        broker.create_topic("p-2", 1)
        broker.produce("p-2", "late")
        assert (await reader.getone()).value == b"late"
        assert reader.assignment() == {("more", 0), ("p-1", 0), ("p-2", 0)}


@both
@asynchronous
async def test_a_topic_that_comes_after_its_subscription(broker: Broker, protocol: str) -> None:
    """No age of metadata is waited for: it is five minutes."""
    async with within(), consumer(broker, "late", group_protocol=protocol) as reader:
        await until(lambda: broker.groups["g"].state == "Stable")
        broker.create_topic("late", 2)
        broker.produce("late", "first")
        assert (await reader.getone()).value == b"first"
        assert len(reader.assignment()) == 2


@asynchronous
async def test_a_leader_looks_for_a_topic_that_only_another_member_wants(broker: Broker) -> None:
    fill(broker, 2, partitions=1)
    first = consumer(broker, "t", group_protocol="classic")
    second = consumer(broker, "late", group_protocol="classic")
    async with within(), first, second:
        await until(lambda: broker.groups["g"].is_now("Stable", members=2))
        broker.create_topic("late", 1)
        broker.produce("late", "first")
        assert (await second.getone()).value == b"first"


@both
@asynchronous
async def test_a_topic_that_grows(broker: Broker, protocol: str) -> None:

    fill(broker, 1, partitions=1)
    settings: Any = {"group_protocol": protocol, "metadata_max_age_ms": 300}
    async with within(), Worker(consumer(broker, "t", **settings)) as worker:
        await until(lambda: worker.seen == ["v0"])
        await grow(broker, "t", 3)
        await until(lambda: len(worker.consumer.assignment()) == 3)
        broker.produce("t", "new", partition=2)
        await until(lambda: worker.seen == ["v0", "new"])


@both
@asynchronous
async def test_a_static_member_comes_back_to_its_partitions(broker: Broker, protocol: str) -> None:
    fill(broker, 4, partitions=2)
    told = RebalanceRecorder()
    static: Any = {"group_protocol": protocol, "group_instance_id": "i1"}
    async with within(), Worker(consumer(broker, "t", group_protocol=protocol, listener=told)):
        async with Worker(consumer(broker, "t", **static)) as first:
            await until(lambda: len(told.has) == len(first.consumer.assignment()) == 1)
            mine = first.consumer.assignment()
        before = list(told.events)
        async with Worker(consumer(broker, "t", **static)) as again:
            await until(lambda: again.consumer.assignment() == mine)
        assert told.events == before
        async with consumer(broker, "t", **static) as third:
            await until(lambda: third.assignment() == mine)
            await third.close(for_good=True)
        await until(lambda: len(told.events) > len(before))


@both
@asynchronous
async def test_who_stays_away_too_long_leaves_and_comes_back(broker: Broker, protocol: str) -> None:
    fill(broker, 4, partitions=1)
    settings: Any = {"group_protocol": protocol, "max_poll_interval_ms": 1000}
    async with within(), consumer(broker, "t", **settings) as slow:
        assert (await slow.getone()).offset == 0
        async with Worker(consumer(broker, "t", group_protocol=protocol)) as other:
            await until(lambda: other.consumer.assignment() == {T0})
            await until(lambda: other.seen == ["v0", "v1", "v2", "v3"])  # the first was in work
            assert slow.assignment() == frozenset()
        fill(broker, 1, partitions=1, first=4)
        assert (await slow.getone()).offset == 4


@asynchronous
async def test_who_comes_back_while_it_is_leaving_is_taken_in_again(broker: Broker) -> None:
    fill(broker, 2, partitions=1)

    class Slow(RebalanceListener):
        async def on_revoked(self, partitions: Any) -> None:
            await asyncio.sleep(0.8)

    settings: Any = {"max_poll_interval_ms": 500, "listener": Slow(), "max_poll_records": 1}
    async with within(), consumer(broker, "t", **settings) as slow:
        assert (await slow.getone()).offset == 0
        await until(lambda: broker.groups["g"].state == "Stable")
        await asyncio.sleep(0.9)  # it has begun to leave, and its listener is still busy
        assert (await slow.getone()).offset in (0, 1)


@asynchronous
async def test_to_close_ends_who_waits_and_whoever_comes_after(broker: Broker) -> None:
    fill(broker, 1, partitions=1)
    for wait in ("getone", "for", "getmany"):
        reader = consumer(broker, "t", group_id=wait)
        with pytest.raises(ValueError, match="the consumer is not started"):
            await reader.getone()
        await reader.start()
        first = asyncio.get_running_loop().create_future()

        async def run(reader: Consumer = reader, wait: str = wait, first: Any = first) -> str:
            first.set_result((await reader.getone()).offset)
            if wait == "getmany":
                await reader.getmany(timeout_ms=60_000)
            elif wait == "getone":
                await reader.getone()
            async for _ in reader:
                pass
            return "over"

        waiting = asyncio.create_task(run())
        async with within():
            assert await first == 0
            await asyncio.sleep(0.05)
            await reader.close()
            (outcome,) = await asyncio.gather(waiting, return_exceptions=True)
        assert str(outcome) == ("over" if wait == "for" else "the consumer is closed")
        for call in (reader.getmany(), reader.commit(), reader.commit({T0: 1})):
            with pytest.raises(ValueError, match="the consumer is closed"):
                await call


@asynchronous
async def test_what_a_listener_may_not_do(broker: Broker) -> None:
    """Whatever would wait for the listener itself is refused, and nothing hangs."""
    fill(broker, 2, partitions=1)
    readers: dict[str, Consumer] = {}
    for call in ("getone", "getmany", "unsubscribe", "close"):

        class Calls(RebalanceListener):
            async def on_assigned(self, partitions: Any, call: str = call) -> None:
                await getattr(readers[call], call)()

        reader = readers[call] = consumer(broker, "t", group_id=call, listener=Calls())
        async with within(), reader:
            with pytest.raises(RuntimeError, match="inside a rebalance listener"):
                await reader.getone()
            assert (await reader.getone()).offset == 0


@asynchronous
async def test_a_listener_that_waits_for_what_was_cancelled(broker: Broker) -> None:
    fill(broker, 1, partitions=1)

    class Cancelled(RebalanceListener):
        async def on_assigned(self, partitions: Any) -> None:
            task = asyncio.create_task(asyncio.sleep(9))
            task.cancel()
            await task

    async with within(), consumer(broker, "t", listener=Cancelled()) as reader:
        with pytest.raises(RuntimeError, match="a rebalance listener was cancelled"):
            await reader.getone()
        assert (await reader.getone()).offset == 0


@both
@asynchronous
async def test_a_commit_of_what_was_lost_in_work_is_refused(broker: Broker, protocol: str) -> None:
    fill(broker, 4, partitions=1)
    told = RebalanceRecorder()
    settings: Any = {"group_protocol": protocol, "enable_auto_commit": False, "listener": told}
    async with within(), consumer(broker, "t", **settings) as reader:
        await reader.getone()
        broker.groups["g"].remove_members()
        await until(lambda: ("lost", [0]) in told.events)
        with pytest.raises(ApiError, match="t:0: lost while their records were in work") as caught:
            await reader.commit()
        assert caught.value.code is ErrorCode.UNKNOWN_MEMBER_ID
        assert (await reader.getone()).offset == 0
        await reader.commit()
    assert committed(broker) == {0: 1}


@asynchronous
async def test_a_topic_that_is_gone_holds_up_no_commit_of_others(broker: Broker) -> None:
    fill(broker, 1, partitions=1)
    broker.create_topic("u", 1)
    broker.produce("u", "x")
    async with within(10), consumer(broker, enable_auto_commit=False) as reader:
        await reader.assign([T0, ("u", 0)])
        while sum([len(one) for one in (await reader.getmany(timeout_ms=100)).values()]) < 1:
            pass
        broker.delete_topic("u")
        with pytest.raises(ApiError, match="u:0: its topic was deleted") as caught:
            await reader.commit({T0: 1, ("u", 0): 1})
        assert caught.value.code is ErrorCode.UNKNOWN_TOPIC_ID
        assert committed(broker) == {0: 1}


@asynchronous
async def test_to_assign_where_offsets_are_refused(broker: Broker) -> None:
    fill(broker, 1, partitions=1)
    broker.faults.error("OffsetFetch", "GROUP_AUTHORIZATION_FAILED", times=None)
    async with within(10), consumer(broker, default_api_timeout_ms=1000) as reader:
        with pytest.raises(ApiError, match="GROUP_AUTHORIZATION_FAILED"):
            await reader.assign([T0])
        broker.faults.clear()
        broker.faults.error("OffsetFetch", "COORDINATOR_LOAD_IN_PROGRESS", times=None)
        with pytest.raises(ApiError, match=r"COORDINATOR_LOAD_IN_PROGRESS|REQUEST_TIMED_OUT"):
            await reader.assign([T0])


@pytest.mark.parametrize("offset", ["begin", 1.5, None, -1, 1 << 63])
@asynchronous
async def test_places_that_make_no_sense(broker: Broker, offset: Any) -> None:
    fill(broker, 1, partitions=1)
    async with within(), consumer(broker) as reader:
        await reader.assign([T0])
        with pytest.raises((TypeError, ValueError), match=r"offset .* of t:0, expected"):
            reader.seek(T0, offset)
        with pytest.raises((TypeError, ValueError), match=r"offset .* of t:0, expected"):
            await reader.commit({T0: offset})


@both
@asynchronous
async def test_the_broker_starts_anew(broker: Broker, protocol: str) -> None:
    fill(broker, 10, partitions=2)
    async with within(60), Worker(consumer(broker, "t", group_protocol=protocol)) as worker:
        await until(lambda: len(worker.seen) == 10)
        await worker.consumer.commit()
        broker.restart()
        fill(broker, 10, partitions=2, first=10)
        await until(lambda: len(set(worker.seen)) == 20)
    assert sum(committed(broker).values()) == 20


@both
@asynchronous
async def test_the_coordinator_moves(protocol: str) -> None:
    settings = {"group.consumer.heartbeat.interval.ms": 100}
    with Broker(settings, nodes=2) as broker:
        fill(broker, 10, partitions=2)
        async with within(60), Worker(consumer(broker, "t", group_protocol=protocol)) as worker:
            await until(lambda: len(worker.seen) == 10)
            broker.groups["g"].move()
            broker.move_leader("t", 0)
            fill(broker, 10, partitions=2, first=10)
            await until(lambda: len(worker.seen) == 20)
        assert sum(committed(broker).values()) == 20


@both
@asynchronous
async def test_a_member_that_was_thrown_out_comes_back(broker: Broker, protocol: str) -> None:
    fill(broker, 4, partitions=1)
    told = RebalanceRecorder()
    reader = consumer(broker, "t", group_protocol=protocol, listener=told)
    async with within(), Worker(reader) as worker:
        await until(lambda: len(worker.seen) == 4)
        await reader.commit()
        broker.groups["g"].remove_members()
        await until(lambda: ("lost", [0]) in told.events)
        fill(broker, 4, partitions=1, first=4)
        await until(lambda: len(worker.seen) == 8)


@asynchronous
async def test_without_kip_848_the_classic_protocol_is_spoken() -> None:
    """K848-168: or, where only the new one is wanted, it is said at once."""
    with Broker({"group.coordinator.rebalance.protocols": "classic"}) as broker:
        fill(broker, 4)
        async with within(), Worker(consumer(broker, "t")) as worker:
            await until(lambda: len(worker.seen) == 4)
            assert broker.groups["g"].describe().type == "classic"  # type: ignore[union-attr]
        async with within(), consumer(broker, "t", group_protocol="consumer") as reader:
            with pytest.raises(
                Exception, match="group_protocol is consumer, which the broker does"
            ):
                await reader.getone()


@asynchronous
async def test_an_assignor_of_the_broker_by_name(broker: Broker) -> None:
    """K848-176, K848-179: and how long the application may stay away is the rebalance timeout."""
    fill(broker, 1)
    settings: Any = {"group_remote_assignor": "range", "max_poll_interval_ms": 77_000}
    async with within(), Worker(consumer(broker, "t", **settings)) as worker:
        await until(lambda: worker.seen)
        group = broker.groups["g"].describe()
        assert group is not None
        assert group.assignor == "range"
    records = [one.value for one in broker.groups["g"].records()]
    members = [one for one in records if isinstance(one, ConsumerGroupMemberMetadataValue)]
    assert {one.rebalance_timeout_ms for one in members} == {77_000}


@asynchronous
async def test_who_is_refused_for_good_says_why(broker: Broker) -> None:
    fill(broker, 1, partitions=1)
    settings: Any = {"group_protocol": "consumer", "group_remote_assignor": "best"}
    async with within(), consumer(broker, "t", **settings) as reader:
        for _ in range(2):  # nothing comes of asking again
            with pytest.raises(ApiError, match="best") as caught:
                await reader.getone()
    assert caught.value.code is ErrorCode.UNSUPPORTED_ASSIGNOR


@asynchronous
async def test_a_cluster_that_is_not_there() -> None:
    with Broker() as broker:
        reader = consumer(broker, "t", default_api_timeout_ms=500)
    with pytest.raises(ApiError, match="refused"):
        await reader.start()
    with pytest.raises(ValueError, match="the consumer is closed"):
        await reader.start()


@pytest.mark.parametrize(
    ("topics", "settings", "refusal"),
    [
        (("t",), {"group_id": None}, "to subscribe needs a group_id"),
        ((), {"pattern": "("}, "missing closing"),
        (("t",), {"group_idd": "g"}, "unknown setting 'group_idd', did you mean 'group_id'"),
        (("t",), {"heartbeat_interval_ms": 45_000}, "expected less than session_timeout_ms"),
        (("t",), {"partition_assignment_strategy": "best"}, "expected some of range, roundrobin"),
        ((), {"group_id": None, "group_instance_id": "i"}, "group_instance_id needs a group_id"),
        ((), {"pattern": re.compile("t")}, "pattern is re.compile.*expected its text.*RE2"),
        ((), {"pattern": "(?=x)"}, r"pattern '\(\?=x\)' is none of RE2: inv"),
        ((["t"],), {}, "topics has .'t'., expected a text"),
        (("t",), {"group_protocol": "new"}, "expected one of auto, consumer, classic"),
    ],
)
def test_settings_that_make_no_sense(topics: Any, settings: Any, refusal: str) -> None:
    from kohort import Consumer

    with pytest.raises(Exception, match=refusal):
        Consumer(*topics, **{"group_id": "g", **settings})


# Closing


@both
@asynchronous
async def test_to_close_without_a_broker_takes_no_longer_than_it_may_and_says_why(
    protocol: str, caplog: pytest.LogCaptureFixture
) -> None:
    loop = asyncio.get_running_loop()
    with Broker({"group.consumer.heartbeat.interval.ms": 100}) as broker:
        fill(broker, 10)
        reader = consumer(broker, "t", group_protocol=protocol, close_timeout_ms=1500)
        async with within():
            await reader.start()
            assert await reader.getone()
        broker.stop()
        began = loop.time()
        await reader.close()
        assert 1.4 < loop.time() - began < 10
    lines = [one for one in caplog.messages if "waits for" in one or "waiting for" in one]
    assert lines[0].startswith("closing waits for the last commit, for 2 partitions")
    assert lines[1].startswith("group g was not left within close_timeout_ms (1500)")
    assert len(lines) == 2


@asynchronous
async def test_who_closes_second_waits_for_the_first(broker: Broker) -> None:
    fill(broker, 10)
    may_go_on = asyncio.Event()
    revoked: list[int] = []

    class Slow(RebalanceListener):
        async def on_revoked(self, partitions: Any) -> None:  # type: ignore[override]
            revoked.append(len(partitions))
            await reader.close()  # it is under way: nothing to wait for
            await may_go_on.wait()

    reader = consumer(broker, "t", listener=Slow())
    async with within():
        await reader.start()
        assert await reader.getone()
        first, second = (asyncio.create_task(reader.close()) for _ in range(2))
        await until(lambda: revoked)
        assert not first.done()
        assert not second.done()
        may_go_on.set()
        await asyncio.gather(first, second)
        assert reader.assignment() == frozenset()
        await reader.close()


@both
@asynchronous
async def test_a_block_that_is_cancelled_leaves_nothing_behind(
    broker: Broker, protocol: str
) -> None:
    """Also when the way out is cancelled once more."""
    fill(broker, 10)
    before = asyncio.all_tasks()

    async def read(reader: Consumer) -> None:
        async with reader:
            async for _ in reader:
                await asyncio.sleep(0)

    for again in (False, True):
        reader = consumer(broker, "t", group_protocol=protocol)
        async with within():
            task = asyncio.create_task(read(reader))
            await until(reader.assignment)
            task.cancel()
            if again:
                await until(lambda reader=reader: reader._closed)
                task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await until(lambda: asyncio.all_tasks() == before)


def test_another_event_loop_is_refused(broker: Broker) -> None:
    """And nothing is broken by it."""
    fill(broker, 10)
    reader = consumer(broker, "t")
    calls: list[Any] = [
        reader.getone,
        reader.getmany,
        reader.commit,
        lambda: reader.committed(T0),
        lambda: reader.position(T0),
        lambda: reader.assign([]),
        reader.unsubscribe,
        lambda: reader.offsets_for_times({T0: "earliest"}),
        reader.close,
        reader.start,
    ]
    plain: list[Any] = [
        lambda: reader.pause(T0),
        lambda: reader.resume(T0),
        lambda: reader.seek(T0, 0),
        lambda: reader.subscribe("t"),
        reader.commit_nowait,
    ]

    async def elsewhere() -> None:
        for call in plain:
            with pytest.raises(RuntimeError, match="belongs to the event loop in which it was"):
                call()
        for call in calls:
            with pytest.raises(RuntimeError, match="belongs to the event loop in which it was"):
                await call()

    async def here() -> None:
        async with within(), reader:
            first = await reader.getone()
            await asyncio.to_thread(asyncio.run, elsewhere())
            assert (await reader.getone()).value != first.value
            await reader.commit()

    asyncio.run(here())
    assert sum(committed(broker).values()) == 2


@pytest.mark.parametrize("group_id", ["idle", None])
@asynchronous
async def test_who_waits_and_reads_nothing_is_told_once(group_id, caplog):
    """No topic is subscribed to, and nothing is assigned: such a wait never ends by itself."""
    with Broker(in_memory=True) as broker:
        broker.create_topic("t")
        broker.produce("t", "x")
        async with Consumer(
            bootstrap_servers=broker.bootstrap, group_id=group_id, auto_offset_reset="earliest"
        ) as reader:
            waiting = asyncio.create_task(reader.getone())
            line = "nothing is read: no topic is subscribed to, and nothing is assigned"
            await until(lambda: line in caplog.messages)
            await asyncio.sleep(0.6)
            assert caplog.messages.count(line) == 1
            await reader.assign([("t", 0)])
            assert (await waiting).value == b"x"


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@asynchronous
async def test_a_denied_topic_is_an_error_until_the_right_is_granted(protocol):
    rules = {
        "authorizer.class.name": STANDARD_AUTHORIZER,
        "super.users": "User:admin",
        "allow.everyone.if.no.acl.found": "true",
    }
    with Broker(rules, in_memory=True) as broker:
        broker.create_topic("t")
        broker.produce("t", "x")
        of_another = AclBinding(ResourceType.TOPIC, "t", "User:alice", AclOperation.READ)
        async with within(), AdminClient(broker.bootstrap) as admin:
            (await admin.create_acls([of_another])).all()
            async with consumer(broker, "t", group_protocol=protocol) as reader:
                line = "^TOPIC_AUTHORIZATION_FAILED: User:ANONYMOUS is not authorized for topic t$"
                for _ in range(2):
                    with pytest.raises(ApiError, match=line):
                        await reader.getone()
                (await admin.create_acls([replace(of_another, principal="User:*")])).all()
                found = {}
                while not found:
                    with contextlib.suppress(ApiError):  # the answer to a request before the grant
                        found = await reader.getmany(timeout_ms=2000)
                assert found[TopicPartition("t", 0)][0].value == b"x"
