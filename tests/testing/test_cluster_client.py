# SPDX-License-Identifier: Apache-2.0
"""What a test asks by the protocol, of any broker; `Broker` and `groups` show most of it."""

import asyncio
from time import sleep

import pytest

from kohort import Producer
from kohort.client.admin.views import TopicPartition
from kohort.errors import ApiError, ErrorCode, KohortError
from kohort.server.broker import Broker
from kohort.storage import memory_files
from kohort.testing import Broker as KitBroker
from kohort.testing import cluster_client
from kohort.testing.cluster_client import ClusterClient
from kohort.wire.batch.reading import Record
from kohort.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kohort.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kohort.wire.messages.leave_group import LeaveGroupRequest

SLOW_SYNC_S = 0.05
JOIN_AT_ONCE = 3  # the last version of JoinGroup without MEMBER_ID_REQUIRED


def asked(play, **settings):
    return played(lambda asker, _: play(asker), **settings)


def played(play, **settings):
    """What `play` returns, given an asker and where its broker is."""

    async def whole():
        async with Broker({"offsets.topic.num.partitions": 2, **settings}) as broker:
            asker = ClusterClient(broker.bootstrap)
            try:
                await asker.create_topic("t", 2, 1, {})
                return await play(asker, broker.bootstrap)
            finally:
                await asker.close()

    return asyncio.run(whole())


def test_records_come_back_in_the_order_given():
    async def play(asker):
        entries = [Record(0, 7, key, b"v", []) for key in (b"a", None, b"b", None, b"c")]
        return await asker.produce("t", entries, None)

    written = asked(play)
    assert [one.key for one in written] == [b"a", None, b"b", None, b"c"]
    assert len({(one.partition, one.offset) for one in written}) == 5
    assert {one.partition for one in written if one.key is None} == {0}


def test_a_refusal_is_raised():
    async def play(asker):
        for question in (
            asker.create_topic("t", 1, 1, {}),
            asker.delete_topic("no"),
            asker.delete_group("no"),
            asker.read("no", None),
            asker.produce("no", [Record(0, 7, None, b"v", [])], None),
            asker.produce("t", [Record(0, 7, None, b"v", [])], 9),
        ):
            with pytest.raises(ApiError):
                await question
        with pytest.raises(ApiError) as raised:
            await asker.ends([TopicPartition("no", 0)], "latest")
        assert raised.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    asked(play)


def test_a_broker_that_gives_nothing_is_not_asked_for_ever(monkeypatch):
    async def play(asker):
        await asker.produce("t", [Record(0, 7, None, b"v", [])], 0)
        ends = asker.ends

        async def further(places, when, **named):
            found = await ends(places, when, **named)
            return {place: at + (when == "latest") for place, at in found.items()}

        monkeypatch.setattr(asker, "ends", further)
        with pytest.raises(KohortError, match="nothing is read of t:0 at offset 1, expected"):
            await asker.read("t", 0)

    asked(play)


CLASSIC = JoinGroupRequest(
    group_id="g",
    session_timeout_ms=30_000,
    rebalance_timeout_ms=60_000,
    member_id="",
    protocol_type="consumer",
    protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
)
MODERN = ConsumerGroupHeartbeatRequest(
    group_id="g",
    member_id="m",
    member_epoch=0,
    rebalance_timeout_ms=60_000,
    subscribed_topic_names=["t"],
    topic_partitions=[],
)


@pytest.mark.parametrize("join", [CLASSIC, MODERN], ids=["classic", "modern"])
def test_what_becomes_of_members_that_are_removed(join, monkeypatch):
    """A coordinator that has moved is asked again; a member that has gone is no error."""
    leave = LeaveGroupRequest if join is CLASSIC else ConsumerGroupHeartbeatRequest
    codes = []

    async def play(asker):
        ask = asker._cluster.ask

        async def asked(node, request, **named):
            if isinstance(request, leave) and codes:
                return request.refused(ApiError(codes.pop(0)))
            return await ask(node, request, **named)

        async def come():
            node = (await asker._cluster.coordinators(["g"], cluster_client._deadline()))["g"]
            answer = await ask(
                node, join, deadline=cluster_client._deadline(), at_most=JOIN_AT_ONCE
            )
            assert answer.error_code == 0

        monkeypatch.setattr(asker._cluster, "ask", asked)
        await come()
        codes.append(ErrorCode.NOT_COORDINATOR)
        assert await asker.remove_members("g", None) == 1
        assert (await asker.describe("g")).members == ()
        await come()
        codes.append(ErrorCode.GROUP_AUTHORIZATION_FAILED)
        with pytest.raises(ApiError, match="GROUP_AUTHORIZATION_FAILED"):
            await asker.remove_members("g", None)
        for gone in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND):
            codes.append(gone)
            assert await asker.remove_members("g", None) == 0
        assert await asker.remove_members("g", None) == 1

    asked(play, **{"group.initial.rebalance.delay.ms": 0})


def test_what_a_transaction_has_committed_is_there_at_once(monkeypatch):
    """The answer to a commit comes before its markers are durable."""
    monkeypatch.setattr(memory_files.MemoryFile, "sync", lambda _self: sleep(SLOW_SYNC_S))

    async def play(broker, topic, group):
        async with Producer(
            bootstrap_servers=broker.bootstrap, linger_ms=0, transactional_id="it"
        ) as producer:
            async with producer.transaction():
                await producer.send(topic, b"record")
            assert [record.value for record in broker.read(topic)] == [b"record"]
            async with producer.transaction():
                await producer.send_offsets_to_transaction({(topic, 0): 1}, group.id)
            assert group.committed() == {(topic, 0): 1}

    with KitBroker() as broker:
        asyncio.run(play(broker, broker.create_topic("t"), broker.groups["g"]))


def test_an_open_transaction_holds_up_nobody_who_looks(monkeypatch):
    monkeypatch.setattr(cluster_client, "DECIDED_S", 30.0)

    async def play(asker, bootstrap):
        async with Producer(bootstrap_servers=bootstrap, transactional_id="it") as producer:
            await producer.begin_transaction()
            await producer.send_and_wait("t", b"open", partition=0)
            async with asyncio.timeout(10):
                return await asker.read("t", 0, "read_committed")

    assert played(play) == []


def test_a_broker_that_does_not_tell_of_transactions_can_be_read():
    async def play(asker):
        await asker.produce("t", [Record(0, 7, None, b"v", [])], 0)
        read = await asker.read("t", 0, "read_committed")
        return [one.value for one in read], await asker.committed("g")

    assert asked(play, **{"api.versions.max": "ListTransactions:-1"}) == ([b"v"], {})
