# SPDX-License-Identifier: Apache-2.0
"""Members that compute the assignments of their groups: whoever fails, the group goes on.

K848-177: the interface that an application has for it.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.client.consumer.running import Worker, consumer, until, within
from tests.client.scripted import asynchronous
from tests.clients.member_processes import (
    assert_nothing_committed_is_read_again,
    create_topic,
    numbers_read,
    produce,
    settled,
)
from tests.waiting import eventually

from kohort import ApiError, AssignmentTold, Assignor, GroupToAssign, Share, TopicPartition
from kohort.testing import Broker

pytestmark = [pytest.mark.clients, pytest.mark.timeout(300)]

WEIGHED = "kohort-weighed"
PARTITIONS = 6


@pytest.fixture
def quick() -> Iterator[Broker]:
    with Broker({"group.consumer.heartbeat.interval.ms": 100}) as broker:
        yield broker


class Dealer(Assignor):
    """Deals partitions in turn, unless it is told to do something else."""

    name = "dealer"

    def __init__(self, says: bytes = b"", otherwise: Callable[[Any], Any] | None = None) -> None:
        self.says = says
        self.otherwise = otherwise
        self.told: list[AssignmentTold] = []
        self.asked: list[GroupToAssign] = []

    def metadata(self) -> bytes:
        return self.says

    def assign(self, group: GroupToAssign) -> Any:
        self.asked.append(group)
        if self.otherwise is not None:
            return self.otherwise(group)
        return dealt(group)

    def on_assignment(self, told: AssignmentTold) -> None:
        self.told.append(told)


def dealt(group: GroupToAssign) -> dict[str, Share]:
    members = sorted(group.members)
    every = [one for topic in sorted(group.topics) for one in group.partitions_of(topic)]
    return {
        member: Share(every[turn :: len(members)], b"for " + group.members[member].metadata)
        for turn, member in enumerate(members)
    }


@asynccontextmanager
async def working(broker: Broker, *assignors: Assignor, **settings: Any) -> AsyncIterator[Worker]:
    async with Worker(consumer(broker, "t", assignors=assignors, **settings)) as worker:
        yield worker


def sizes(*workers: Worker) -> list[int]:
    return [len(one.consumer.assignment()) for one in workers]


@asynchronous
async def test_members_hear_what_the_one_that_computes_tells_them(quick: Broker) -> None:
    """K848-177, K848-010, K848-181: metadata goes from each member to the assignor, which sees
    nothing else, and back with the partitions; a reason asks for another assignment.
    """
    quick.create_topic("t", PARTITIONS)
    a, b = Dealer(b"a"), Dealer(b"b")
    async with within(), working(quick, a) as first:
        await until(lambda: sizes(first) == [6])
        async with working(quick, b) as second:
            await until(lambda: sizes(first, second) == [3, 3])
            await until(lambda: a.told and b.told and len(a.told[-1].partitions) == 3)
            assert (a.told[-1].metadata, b.told[-1].metadata) == (b"for a", b"for b")
            assert {one.error for one in a.told + b.told} == {0}
            last = (a.asked + b.asked)[-1]
            assert sorted(one.metadata for one in last.members.values()) == [b"a", b"b"]

            a.says = b"changed"
            first.consumer.ask_for_assignment(7)
            await until(lambda: a.told[-1].metadata == b"for changed")
            reasons = {one.reason for asked in a.asked + b.asked for one in asked.members.values()}
            assert reasons == {0, 7}
        await until(lambda: sizes(first) == [6])


STOP = threading.Event()


def loops(_: Any) -> Any:
    while not STOP.wait(0.01):
        pass


def raises(_: Any) -> Any:
    raise RuntimeError("no idea")


def gives_twice(group: GroupToAssign) -> Any:
    return {member: group.partitions_of("t") for member in group.members}


def gives_what_is_not_there(group: GroupToAssign) -> Any:
    return {member: [TopicPartition("t", PARTITIONS)] for member in list(group.members)[:1]}


def gives_to_nobody_known(group: GroupToAssign) -> Any:
    return {"somebody": group.partitions_of("t")}


def gives_another_topic(group: GroupToAssign) -> Any:
    return {member: [("u", 0)] for member in list(group.members)[:1]}


def says_too_much(group: GroupToAssign) -> Any:
    return {
        member: Share(some.partitions, bytes(10 << 20)) for member, some in dealt(group).items()
    }


def gives_nonsense(_: Any) -> Any:
    return [None, 7]


def gives_none(_: Any) -> Any:
    return None


@pytest.mark.parametrize(
    "otherwise",
    [
        *(loops, raises, gives_twice, gives_what_is_not_there, gives_to_nobody_known),
        *(gives_another_topic, says_too_much, gives_nonsense, gives_none),
    ],
)
@asynchronous
async def test_an_assignor_that_fails_leaves_everybody_what_it_has(
    quick: Broker, otherwise: Callable[[Any], Any]
) -> None:
    """The group hears of it, reads on, and is assigned once somebody can."""
    quick.create_topic("t", PARTITIONS)
    quick.create_topic("u", 1)
    STOP.clear()
    a, b = Dealer(), Dealer()
    settings = {"assignor_timeout_ms": 300}
    try:
        async with within(), working(quick, a, **settings) as first:
            await until(lambda: sizes(first) == [6])
            a.otherwise = b.otherwise = otherwise
            async with working(quick, b, **settings) as second:
                await until(lambda: a.told[-1].error and b.told and b.told[-1].error)
                assert sizes(first, second) == [6, 0]
                for index in range(PARTITIONS):
                    quick.produce("t", f"v{index}", partition=index)
                await until(lambda: len(first.seen) == PARTITIONS)

                a.otherwise = b.otherwise = None
                second.consumer.ask_for_assignment(1)
                await until(lambda: sizes(first, second) == [3, 3])
                assert (a.told[-1].error, b.told[-1].error) == (0, 0)
    finally:
        STOP.set()


@asynchronous
async def test_metadata_that_is_too_large_is_refused_and_said(quick: Broker) -> None:
    """By the consumer, what no broker reads; by the broker, what its log does not take."""
    quick.create_topic("t", PARTITIONS)
    with pytest.raises(ValueError, match=r"metadata of assignor dealer have 10485760 bytes"):
        await consumer(quick, "t", assignors=[Dealer(bytes(10 << 20))]).start()
    async with within(), consumer(quick, "t", assignors=[Dealer(bytes(1 << 20))]) as reader:
        with pytest.raises(ApiError, match=r"INVALID_REQUEST.* metadata"):
            await reader.getone()


@asynchronous
async def test_whoever_gives_up_its_place_while_it_computes_is_followed_by_another(
    quick: Broker,
) -> None:
    quick.create_topic("t", PARTITIONS)
    STOP.clear()
    slow, good = Dealer(otherwise=loops), Dealer()
    try:
        async with within(), working(quick, good) as first:
            await until(lambda: sizes(first) == [6])
            async with working(quick, slow) as second:
                await until(lambda: slow.asked or sizes(first, second) == [3, 3])
            await until(lambda: sizes(first) == [6])
    finally:
        STOP.set()


@asynchronous
async def test_a_broker_that_lets_nobody_compute_does_it_itself(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """K848-079: the consumer says so once, and takes what the broker gives."""
    with Broker({"group.consumer.client.assignors.enable": "false"}) as broker:
        broker.create_topic("t", PARTITIONS)
        async with within(), working(broker, Dealer()) as only:
            await until(lambda: sizes(only) == [6])
    said = [one for one in caplog.messages if "has no client-side assignors" in one]
    assert len(said) == 1
    assert "dealer will not be asked" in said[0]


@asynchronous
async def test_an_assignor_may_wait_for_somebody(quick: Broker) -> None:
    """`assign` may be a coroutine."""

    class Patient(Dealer):
        async def assign(self, group: GroupToAssign) -> Any:
            await asyncio.sleep(0.05)
            return dealt(group)

    quick.create_topic("t", PARTITIONS)
    async with within(), working(quick, Patient()) as only:
        await until(lambda: sizes(only) == [6])
        assert quick.groups["g"].describe().assignor == "dealer"  # type: ignore[union-attr]


@asynchronous
async def test_from_one_assignor_to_another_member_by_member(quick: Broker) -> None:
    """Members that offer both are replaced for members that offer the former one."""

    class Successor(Dealer):
        name = "successor"

    quick.create_topic("t", PARTITIONS)

    def selected() -> str | None:
        found = quick.groups["g"].describe()
        return None if found is None or found.client_side is None else found.client_side.selected

    async with within(), working(quick, Dealer()) as old:
        await until(lambda: sizes(old) == [6])
        async with working(quick, Successor(), Dealer()) as new:
            await until(lambda: sizes(old, new) == [3, 3])
            assert selected() == "dealer"
            await old.stop()
            await old.consumer.close()
            await until(lambda: sizes(new) == [6])
            await until(lambda: selected() == "successor")


@asynchronous
async def test_beside_a_member_that_cannot_compute_the_broker_does(quick: Broker) -> None:
    """A member without assignors joins: the broker computes and says why. It leaves: they do."""
    quick.create_topic("t", PARTITIONS)

    def why() -> str | None:
        found = quick.groups["g"].describe()
        return None if found is None or found.client_side is None else found.client_side.why

    mine = Dealer()
    async with within(), working(quick, mine) as first:
        await until(lambda: sizes(first) == [6])
        assert why() == ""
        async with working(quick) as stock:
            await until(lambda: sizes(first, stock) == [3, 3])
            assert why()
        await until(lambda: sizes(first) == [6] and why() == "")


def test_a_group_that_computes_grows_and_shrinks(broker: Broker, crew: Any) -> None:
    """Members come, one leaves, one is killed, the broker is killed: every record is seen."""
    create_topic(broker.bootstrap, "orders", PARTITIONS)
    produce(broker.bootstrap, "orders", range(500))
    members = []
    for _ in range(3):
        members.append(crew.join(WEIGHED, broker.bootstrap, "orders", "g"))
        settled(members, PARTITIONS)
    assert broker.groups["g"].describe().assignor == "by-weight"
    members.pop(1).leave()
    settled(members, PARTITIONS)
    members.pop(0).kill()
    settled(members, PARTITIONS)
    broker.kill()
    broker.restart()
    members.append(crew.join(WEIGHED, broker.bootstrap, "orders", "g"))
    settled(members, PARTITIONS)
    produce(broker.bootstrap, "orders", range(500, 1000))
    eventually(lambda: set(numbers_read(crew.members)) == set(range(1000)), "all is read")
    assert_nothing_committed_is_read_again(crew.members)


def test_members_of_every_kind_share_a_group(broker: Broker, crew: Any) -> None:
    """Members that compute, stock ones of both protocols and static ones, in turn and together."""
    create_topic(broker.bootstrap, "orders", PARTITIONS)
    produce(broker.bootstrap, "orders", range(300))
    members = []
    for kind in (WEIGHED, "confluent-consumer", "kohort-classic", WEIGHED):
        instance = "i" if len(members) == 3 else None
        members.append(crew.join(kind, broker.bootstrap, "orders", "g", instance))
        settled(members, PARTITIONS)
    produce(broker.bootstrap, "orders", range(300, 600))
    eventually(lambda: set(numbers_read(crew.members)) == set(range(600)), "all is read")
    for stock in (members.pop(1), members.pop(1)):
        stock.leave()
    settled(members, PARTITIONS)
    eventually(lambda: broker.groups["g"].describe().assignor == "by-weight", "they compute")
    produce(broker.bootstrap, "orders", range(600, 900))
    eventually(lambda: set(numbers_read(crew.members)) == set(range(900)), "all is read")
    assert_nothing_committed_is_read_again(crew.members)


def test_the_coordinator_moves_while_members_compute(cluster: Broker, crew: Any) -> None:
    create_topic(cluster.bootstrap, "orders", PARTITIONS)
    produce(cluster.bootstrap, "orders", range(300))
    members = [crew.join(WEIGHED, cluster.bootstrap, "orders", "g")]
    for node in range(3):
        members.append(crew.join(WEIGHED, cluster.bootstrap, "orders", "g"))
        if cluster.groups["g"].coordinator != node:
            cluster.groups["g"].move(node)  # whoever has been asked has to find it
        settled(members, PARTITIONS)
    eventually(lambda: set(numbers_read(crew.members)) == set(range(300)), "all is read")
    assert cluster.groups["g"].describe().assignor == "by-weight"
    assert_nothing_committed_is_read_again(crew.members)
