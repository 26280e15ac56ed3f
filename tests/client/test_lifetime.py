# SPDX-License-Identifier: Apache-2.0
"""Clients show what they are, say when nobody has closed them, and stay closed."""

import asyncio
import contextlib
import gc
import logging
import warnings

import pytest
from tests.client.scripted import asynchronous

from kohort import AdminClient, Consumer, NewTopic, Producer
from kohort.client.members.events import TopicIdPartition
from kohort.client.network.connection import Connection
from kohort.client.network.metadata import CachedTopic
from kohort.terms import PartitionIndex, TopicId, uuid_text
from kohort.testing import Broker

PLACE = ("t", 0)


@pytest.fixture(scope="module")
def broker():
    with Broker(in_memory=True) as broker:
        broker.create_topic("t")
        yield broker


def made(kind, bootstrap, **settings):
    """A client of this kind, which is not started."""
    match kind:
        case "consumer":
            return Consumer("t", bootstrap_servers=bootstrap, group_id="g", **settings)
        case "classic":
            settings |= {"group_id": "c", "group_protocol": "classic"}
            return Consumer("t", bootstrap_servers=bootstrap, **settings)
        case "assigned":
            return Consumer(bootstrap_servers=bootstrap, **settings)
        case "producer":
            return Producer(bootstrap_servers=bootstrap, **settings)
        case "transactions":
            return Producer(bootstrap_servers=bootstrap, transactional_id="x", **settings)
    return AdminClient(bootstrap, **settings)


async def used(client):
    """Started, as far as it has a start, and used once."""
    if isinstance(client, AdminClient):
        await client.describe_cluster()
        return
    await client.start()
    if isinstance(client, Producer) and client.settings.transactional_id is None:
        await client.send_and_wait("t", b"x")


def unclosed(program):
    """What is said of clients that this program leaves open, and not an earlier test."""
    gc.freeze()  # what earlier tests have left, which may be a million objects
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        program()
        for _ in range(3):  # a transport goes after its client
            gc.collect()
    return [str(one.message) for one in caught if "use `async with`" in str(one.message)]


KINDS = ["consumer", "assigned", "producer", "transactions", "admin"]


@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        ("consumer", "<Consumer group_id='g' reads='t' at {}, {}>"),
        ("assigned", "<Consumer at {}, {}>"),
        ("producer", "<Producer client_id='kohort-producer' at {}, {}>"),
        ("transactions", "<Producer client_id='kohort-producer' transactional_id='x' at {}, {}>"),
        ("admin", "<AdminClient client_id='kohort-admin' at {}, {}>"),
    ],
)
@asynchronous
async def test_a_client_shows_what_it_is_for_and_whether_it_is_open(broker, kind, shown):
    client = made(kind, broker.bootstrap)
    assert repr(client) == shown.format(broker.bootstrap, "not started")
    await used(client)
    assert repr(client) == shown.format(broker.bootstrap, "open")
    await client.close()
    assert repr(client) == shown.format(broker.bootstrap, "closed")


@pytest.mark.parametrize("kind", KINDS)
def test_one_that_is_never_closed_is_named(broker, kind):
    async def forgotten():
        await used(made(kind, broker.bootstrap))

    (text,) = unclosed(lambda: asyncio.run(forgotten()))
    assert text.startswith("unclosed <")
    assert ", open>: use `async with`, or await close()" in text


@pytest.mark.parametrize("kind", KINDS)
def test_one_that_is_closed_or_was_never_started_is_none_to_speak_of(broker, kind):
    async def closed():
        made(kind, broker.bootstrap)
        client = made(kind, broker.bootstrap)
        await used(client)
        await client.close()

    assert unclosed(lambda: asyncio.run(closed())) == []


@pytest.mark.parametrize("make", [Consumer, Producer, AdminClient])
def test_one_that_was_refused_goes_without_a_word(make):
    def refused():
        with pytest.raises((ValueError, TypeError)):
            make(bootstrap_servers=7)

    assert unclosed(refused) == []


CALLS = [
    ("admin", lambda it: it.list_groups()),
    ("admin", lambda it: it.describe_cluster()),
    ("admin", lambda it: it.describe_groups("g")),
    ("admin", lambda it: it.delete_groups("g")),
    ("admin", lambda it: it.list_group_offsets("g")),
    ("admin", lambda it: it.describe_group_configs("g")),
    ("admin", lambda it: it.alter_group_configs({"g": {}})),
    ("admin", lambda it: it.create_topics([NewTopic("u")])),
    ("admin", lambda it: it.create_partitions({"t": 2})),
    ("admin", lambda it: it.delete_topics("t")),
    ("admin", lambda it: it.list_topics()),
    ("admin", lambda it: it.describe_topics("t")),
    ("admin", lambda it: it.list_offsets({PLACE: "latest"})),
    ("admin", lambda it: it.end_offsets([PLACE])),
    ("admin", lambda it: it.__aenter__()),
    ("consumer", lambda it: it.getone()),
    ("consumer", lambda it: it.getmany()),
    ("consumer", lambda it: it.position(PLACE)),
    ("consumer", lambda it: it.committed(PLACE)),
    ("consumer", lambda it: it.offsets_for_times({PLACE: "latest"})),
    ("consumer", lambda it: it.commit()),
    ("consumer", lambda it: it.start()),
    ("consumer", lambda it: it.assign([PLACE])),
    ("consumer", lambda it: it.unsubscribe()),
    ("producer", lambda it: it.send("t", b"x")),
    ("producer", lambda it: it.partitions_for("t")),
    ("producer", lambda it: it.start()),
    ("transactions", lambda it: it.begin_transaction()),
]


@pytest.mark.parametrize(("kind", "call"), CALLS)
@asynchronous
async def test_what_is_closed_stays_closed(broker, kind, call):
    client = made(kind, broker.bootstrap)
    await used(client)
    await client.close()
    async with asyncio.timeout(10):
        with pytest.raises(ValueError, match="is closed"):
            await call(client)
    assert not client._cluster._connections


@asynchronous
async def test_a_connection_that_opens_while_its_client_closes_is_closed(broker):
    admin = AdminClient(broker.bootstrap)
    asking = asyncio.ensure_future(admin.describe_cluster())
    await asyncio.sleep(0)
    await admin.close()
    with pytest.raises(ValueError, match="is closed"):
        await asking
    assert not admin._cluster._connections


@asynchronous
async def test_ids_of_topics_are_shown_as_kafkas_tools_write_them(broker):
    async with AdminClient(broker.bootstrap) as admin:
        created = await admin.create_topics([NewTopic("ids")])
        (listed,) = [one for one in await admin.list_topics() if one.name == "ids"]
        described = await admin.describe_topics("ids")
    shown = uuid_text(listed.topic_id)
    for view in (listed, created, described):
        assert f"topic_id={shown}, " in repr(view)
    for view in (
        CachedTopic("ids", TopicId(listed.topic_id), False, {}),
        TopicIdPartition(TopicId(listed.topic_id), PartitionIndex(0)),
    ):
        assert shown in repr(view)
        assert "\\x" not in repr(view)


@asynchronous
async def test_what_is_tried_twice_a_second_is_not_logged_twice_a_second(caplog):
    caplog.set_level(logging.INFO)
    with Broker(in_memory=True) as broker:
        broker.create_topic("t")
        consumer = made("assigned", broker.bootstrap)
        await consumer.assign([PLACE])
        await consumer.position(PLACE)
        broker.stop()
        tries = 0
        look_up = consumer._metadata.topics

        async def counted(*args, **named):
            nonlocal tries
            tries += 1
            return await look_up(*args, **named)

        consumer._metadata.topics = counted
        async with asyncio.timeout(30):
            while tries < 4:  # noqa: ASYNC110  (nobody tells)
                await asyncio.sleep(0.05)
        await consumer.close()
    lines = [one for one in caplog.messages if "leaders are not known yet" in one]
    assert len(lines) == len(set(lines)) > 0


def connections(client_id):
    """Those of a client that are open."""
    found = [one for one in gc.get_objects() if isinstance(one, Connection)]
    return [one for one in found if one.client_id == client_id and one.is_open]


@pytest.mark.parametrize("kind", [*KINDS, "classic"])
@asynchronous
async def test_a_close_that_is_cancelled_leaves_no_connection(broker, kind):
    """At each of the times at which the loop goes on to something else."""
    gc.freeze()  # `connections` looks at what is new
    number, cancelled = 0, True
    while cancelled:
        number += 1
        client_id = f"{kind}-{number}"
        client = made(kind, broker.bootstrap, client_id=client_id)
        await used(client)
        if kind in ("consumer", "assigned", "classic"):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(anext(client), 0.1)
        assert connections(client_id)
        closing = asyncio.create_task(client.close())
        for _ in range(number):
            await asyncio.sleep(0)
        cancelled = closing.cancel()
        await asyncio.gather(closing, return_exceptions=True)
        assert connections(client_id) == [], f"cancelled after {number} turns of the loop"
    assert number > 2
