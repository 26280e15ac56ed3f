# SPDX-License-Identifier: Apache-2.0
"""A live cluster that fails while it is read: the rows all the same, or one sentence in time."""

import pickle
import threading
import time

import pytest
from tests.spark.sources.commits import create, produce
from tests.spark.sources.proxy import Proxy
from tests.spark.sources.test_topic import cluster, delete_before, small_pieces

from kohort.pipeline.sources import topic_client
from kohort.pipeline.sources.log_position import SourceError
from kohort.spark.sources import topic_feed
from kohort.spark.sources.feed import Span
from kohort.spark.sources.topic import TopicSource
from kohort.testing import Broker

pytestmark = pytest.mark.clients

RECORDS = 300


@pytest.fixture(scope="module")
def through():
    """A broker that clients reach through a proxy, and the proxy."""
    with (
        Proxy() as proxy,
        Broker({"advertised.listeners": f"PLAINTEXT://{proxy.address}"}, in_memory=True) as broker,
    ):
        (proxy.target,) = broker._ports.values()
        create(broker.bootstrap, "letters", 1)
        for number in range(RECORDS // 5):
            produce(broker.bootstrap, "letters", [f"{number}-{at}" for at in range(5)])
        yield proxy


@pytest.fixture
def proxy(through, monkeypatch):
    small_pieces(monkeypatch)
    yield through
    through.breaks_after, through.is_silent = None, False


@pytest.fixture
def quickly(monkeypatch):
    """Patience ends soon."""
    for module, name, seconds in (
        (topic_client, "PATIENCE_S", 2.0),
        (topic_feed, "PATIENCE_S", 2.0),
        (topic_client, "_REQUEST_S", 0.8),
    ):
        monkeypatch.setattr(module, name, seconds)


def letters(proxy):
    return TopicSource(proxy.address, "letters")


def offsets(reading):
    return [offset for rows in reading for offset in rows.column("offset").to_pylist()]


def begun(live):
    """A read of which the first piece is there, and its offsets."""
    spans = [one.span for one in live._feed.weigh(live.plan({}).ranges)]
    reading = pickle.loads(pickle.dumps(live._feed)).read(spans)
    return reading, next(reading).column("offset").to_pylist()


def test_connections_that_break_in_the_middle_of_answers(proxy):
    live = letters(proxy)
    reading, found = begun(live)
    broken = proxy.broken
    proxy.breaks_after = 2000

    assert found + offsets(reading) == list(range(RECORDS))
    assert proxy.broken - broken > 5


def test_connections_that_break_always(proxy, quickly):
    live = letters(proxy)
    reading, _ = begun(live)
    proxy.breaks_after = 0

    with pytest.raises(SourceError, match=r"letters cannot be read: .* closed the connection"):
        offsets(reading)
    with pytest.raises(SourceError, match=r"cannot be asked: .* closed the connection"):
        letters(proxy).plan({})


def test_a_broker_that_falls_silent(proxy, quickly):
    live = letters(proxy)
    reading, _ = begun(live)
    proxy.is_silent = True

    for ask in (lambda: offsets(reading), lambda: live.plan({}), lambda: letters(proxy).plan({})):
        with pytest.raises(SourceError, match=r"cannot be (read|asked): .* in time"):
            ask()


def test_a_reader_that_needs_longer_than_anybody_waits(proxy, quickly):
    live = letters(proxy)
    reading, found = begun(live)

    time.sleep(2.2)

    assert found + offsets(reading) == list(range(RECORDS))


def test_a_broker_that_restarts_is_waited_for_once_it_has_answered():
    with Broker(process=True) as broker:
        create(broker.bootstrap, "letters", 1)
        produce(broker.bootstrap, "letters", ["a", "b"])
        live = cluster(broker, "letters")
        plan = live.plan({})
        broker.kill()
        timer = threading.Timer(0.5, broker.start)
        timer.start()
        again = live.plan({})
        timer.join()
        broker.kill()
        timer = threading.Timer(0.5, broker.start)
        timer.start()
        fresh = TopicSource(broker.bootstrap, "letters")._feed  # as in a task that begins just now
        assert offsets(fresh.read([Span(0, 0, 2)])) == [0, 1]
        timer.join()

    assert again == plan


def test_leaders_of_a_node_that_goes_away(monkeypatch):
    small_pieces(monkeypatch)
    with Broker(nodes=3, process=True) as broker:
        create(broker.bootstrap, "letters", 6)
        for index in range(6):
            for number in range(20):
                produce(broker.bootstrap, "letters", [f"{number}-{at}" for at in range(5)], index)
        live = cluster(broker, "letters")
        reading, found = begun(live)
        broker.nodes = 2
        broker.restart()
        found += offsets(reading)
        notes = [note.text for note in live.changes(live.plan({}))]

    assert sorted(found) == sorted(list(range(100)) * 6)
    assert any("the leader of partition" in one for one in notes)


def test_records_that_are_removed_while_they_are_read(monkeypatch):
    small_pieces(monkeypatch)
    with Broker(in_memory=True) as broker:
        create(broker.bootstrap, "letters", 1)
        for number in range(60):
            produce(broker.bootstrap, "letters", [f"{number}-{at}" for at in range(5)])
        live = cluster(broker, "letters")
        plan = live.plan({})
        reading, found = begun(live)
        delete_before(broker, 200)
        found += offsets(reading)
        (note,) = live.changes(plan)

    assert found == sorted(set(found))
    assert found[-100:] == list(range(200, 300))
    assert "offsets 0 to 199 of partition 0 were removed while they were read" in note.text


def test_a_topic_that_is_made_anew_while_it_is_read():
    from confluent_kafka.admin import AdminClient

    with Broker(in_memory=True) as broker:
        create(broker.bootstrap, "letters", 1)
        produce(broker.bootstrap, "letters", ["a", "b"])
        live = cluster(broker, "letters")
        plan = live.plan({})
        admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
        for one in admin.delete_topics(["letters"]).values():
            one.result()
        create(broker.bootstrap, "letters", 1)
        produce(broker.bootstrap, "letters", ["c", "d"])

        with pytest.raises(SourceError, match=r"letters at .* was deleted and made anew while it"):
            live.changes(plan)
        assert live.identity() == cluster(broker, "letters").identity()
        assert live.plan({}).ranges == plan.ranges


def test_a_topic_and_a_partition_that_are_gone(quickly):
    with Broker(in_memory=True) as broker:
        create(broker.bootstrap, "letters", 1)
        feed = cluster(broker, "letters")._feed
        with pytest.raises(SourceError, match=r"partition 7 of letters cannot be read: .*leads it"):
            offsets(feed.read([Span(7, 0, 5)]))
        with pytest.raises(SourceError, match=r"has no topic nothing\b(?!:)"):
            cluster(broker, "nothing").plan({})
        with pytest.raises(SourceError, match=r"partition 0 of nothing cannot be read: .*no topic"):
            offsets(cluster(broker, "nothing")._feed.read([Span(0, 0, 5)]))


def test_a_name_that_is_no_host():

    with pytest.raises(SourceError, match=r"the cluster at no.invalid:9092 cannot be asked: "):
        TopicSource("no.invalid:9092").plan({})
