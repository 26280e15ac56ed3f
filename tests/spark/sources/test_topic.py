# SPDX-License-Identifier: Apache-2.0
"""A live cluster, read by our own Fetch: what changes meanwhile, and what is missing."""

import asyncio
import os
import pickle

import pytest
from tests.spark.sources.commits import commit, create, produce
from tests.spark.sources.logs import log_source, read, rows_of

from kohort import Security
from kohort.client.network.cluster import Node
from kohort.pipeline.columns.record_positions import raw
from kohort.pipeline.sources import topic_client
from kohort.pipeline.sources.log_position import Position, Settings, SourceError
from kohort.spark.sources import topic_feed
from kohort.spark.sources.feed import Span
from kohort.spark.sources.registry import source
from kohort.spark.sources.topic import TopicSource
from kohort.testing import Broker

pytestmark = pytest.mark.clients

SETTINGS = {"offsets.topic.num.partitions": "4"}


@pytest.fixture(scope="module")
def broker():
    with Broker(SETTINGS, nodes=3, process=True) as one:
        create(one.bootstrap, "orders")
        commit(one.bootstrap, [f"group-{number}" for number in range(12)])
        yield one


def cluster(broker, topic=None):
    if topic is not None:
        return TopicSource(broker.bootstrap, topic)
    return source(f"cluster:{broker.bootstrap}")


def test_the_rows_are_those_of_the_files_and_nothing_is_left_in_the_log(broker):
    live, files = cluster(broker), log_source(broker.data_dir)

    plan = live.plan({})

    assert plan == files.plan({})
    assert len(read(live, plan)) == 108
    assert sorted(read(live, plan)) == sorted(read(files, plan))
    assert live.identity() == files.identity()
    assert None not in live.identity()
    assert live.plan({}) == plan
    assert live.plan(plan.positions).ranges == {}
    assert live.positions({index: end for index, (_, end) in plan.ranges.items()}) == plan.positions
    assert live.settings() == Settings(7 * 24 * 60 * 60 * 1000, 1000)
    assert files.settings() == Settings()


def test_a_notebook_has_a_loop_that_runs_already(broker):
    async def cell():
        return cluster(broker).identity()

    assert asyncio.run(cell()) == cluster(broker).identity()


def test_times_are_those_of_the_files(broker):
    live, files = cluster(broker), log_source(broker.data_dir)
    rows = [
        row for batch in live._feed.read([Span(0, 0, 1000)][:0]) for row in raw(batch).to_pylist()
    ]
    assert rows == []
    spans = [one.span for one in live._feed.weigh(live.plan({}).ranges)]
    times = sorted(
        row["timestamp"] for batch in live._feed.read(spans) for row in raw(batch).to_pylist()
    )
    middle = times[len(times) // 2]

    for limits in ({"from_time": middle}, {"to_time": middle}):
        assert live.plan({}, **limits).ranges == files.plan({}, **limits).ranges
    assert live.plan({}, to_time=middle) == files.plan({}, to_time=middle)


def test_a_span_begins_and_ends_anywhere_and_pieces_are_small(broker, monkeypatch):
    small_pieces(monkeypatch)
    live = cluster(broker)
    plan = live.plan({})
    index, (start, end) = next(iter(plan.ranges.items()))
    whole = rows_of(live, [Span(index, start, end)])

    for at in range(start, end + 1, 4):
        first = rows_of(live, [Span(index, start, at)])
        assert first + rows_of(live, [Span(index, at, end)]) == whole


def test_a_reader_that_goes_away_ends_the_fetching(broker):
    live = cluster(broker)
    spans = [one.span for one in live._feed.weigh(live.plan({}).ranges)]

    reading = live._feed.read(spans)
    next(reading)
    reading.close()


def test_leaders_that_moved_are_looked_up_again(broker, monkeypatch):
    """The first look-up tells leaders of before: one that leads another partition, and one that
    is not there any more.
    """
    live = cluster(broker)
    spans = [one.span for one in live._feed.weigh(live.plan({}).ranges)]
    whole = sorted(rows_of(live, spans))
    looked_up = []
    look_up = topic_client.TopicClient._look_up

    async def outdated(client):
        await look_up(client)
        if not looked_up:
            moved = dict(zip(client.leaders, list(client.leaders.values())[1:], strict=False))
            client.leaders.update(moved)
            client.leaders[0] = topic_client.Leader(Node(9, "127.0.0.1", 1), 0)
        looked_up.append(1)

    monkeypatch.setattr(topic_client.TopicClient, "_look_up", outdated)

    assert sorted(rows_of(live, spans)) == whole
    assert len(looked_up) > 1


def test_a_leader_that_stays_away_is_an_error_that_says_for_how_long(broker, monkeypatch):
    monkeypatch.setattr(topic_client, "PATIENCE_S", 0.3)
    live = cluster(broker)
    look_up = topic_client.TopicClient._look_up

    async def without_leaders(client):
        await look_up(client)
        client.leaders.pop(1, None)

    monkeypatch.setattr(topic_client.TopicClient, "_look_up", without_leaders)

    with pytest.raises(SourceError, match=r"partition 1 .* nobody leads it, for 0 seconds"):
        rows_of(live, [Span(1, 0, 5)])


def test_a_broker_that_restarts_while_it_is_read(monkeypatch):
    small_pieces(monkeypatch)
    with Broker(SETTINGS, process=True) as broker:
        create(broker.bootstrap, "letters", 1)
        for number in range(60):
            produce(broker.bootstrap, "letters", [f"{number}-{at}" for at in range(5)])
        live = cluster(broker, "letters")
        reading = live._feed.read([one.span for one in live._feed.weigh(live.plan({}).ranges)])
        offsets = next(reading).column("offset").to_pylist()
        broker.restart()
        offsets += [offset for rows in reading for offset in rows.column("offset").to_pylist()]

    assert offsets == list(range(300))


def test_records_that_are_removed_and_tails_that_are_cut():
    with Broker(SETTINGS, process=True) as broker:
        create(broker.bootstrap, "letters", 2)
        for number in range(20):
            produce(broker.bootstrap, "letters", [f"a{number}"])
        live = cluster(broker, "letters")
        first = live.plan({})
        assert first.ranges == {0: (0, 20)}
        assert first.positions[1] == Position(0)
        delete_before(broker, 8)
        # Removed between planning and reading: workers go on, and the driver tells.
        assert [offset for _, offset, _ in read(live, first)] == list(range(8, 20))
        (note,) = live.changes(first)
        assert "offsets 0 to 7 of partition 0" in note.text
        assert "were removed before" in live.plan({0: Position(3)}).notes[0].text
        for number in range(5):
            produce(broker.bootstrap, "letters", [f"b{number}"])
        second = live.plan(first.positions)
        assert (second.ranges, second.notes) == ({0: (20, 25)}, ())
        cut(broker, "letters-0", 2)

        short = live.plan(second.positions)
        assert (short.cut, short.ranges) == ({0: 20}, {0: (20, 23)})
        assert [key for _, _, key in read(live, second)] == ["b0", "b1", "b2"]
        for number in range(4):
            produce(broker.bootstrap, "letters", [f"c{number}"])
        third = live.plan(second.positions)

        assert (third.cut, third.ranges) == ({0: 20}, {0: (20, 27)})
        assert "cut at or behind offset 20" in third.notes[0].text
        assert [key for _, _, key in read(live, third)][-4:] == ["c0", "c1", "c2", "c3"]
        assert live.plan(third.positions).cut == {}


def test_a_batch_that_is_larger_than_any_limit(monkeypatch):
    small_pieces(monkeypatch)
    with Broker(SETTINGS, process=True) as broker:
        create(broker.bootstrap, "letters", 1)
        produce(broker.bootstrap, "letters", [f"k{at}" for at in range(2000)])
        live = cluster(broker, "letters")

        assert [offset for _, offset, _ in read(live)] == list(range(2000))


def test_what_is_missing_is_said(broker):
    for text, words in [
        ("cluster:127.0.0.1:1", "127.0.0.1:1 cannot be asked: .* refused; is it up"),
        ("cluster:127.0.0.1:x", "is not an address, expected host:port"),
        ("cluster: ", "is not a source, expected one of log:DIRECTORY"),
        ("kluster:a:1", "is not a source"),
    ]:
        with pytest.raises(SourceError, match=words):
            source(text).plan({})
    with pytest.raises(SourceError, match=r"speaks plain text, and security.protocol is SSL[^;]*$"):
        source(f"cluster:{broker.bootstrap}", Security(protocol="SSL")).plan({})
    with pytest.raises(SourceError, match=r"has no topic nothing$"):
        cluster(broker, "nothing").plan({})


def test_a_topic_that_may_not_be_read_is_said(broker, monkeypatch):
    from kohort.client.network.cluster import Cluster
    from kohort.errors import ErrorCode

    real = Cluster.metadata

    async def refused(self, *arguments, **named):
        answer = await real(self, *arguments, **named)
        answer.topics[0].error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return answer

    monkeypatch.setattr(Cluster, "metadata", refused)

    with pytest.raises(SourceError, match="may not be read: allow this client Describe and Read"):
        cluster(broker).plan({})


def small_pieces(monkeypatch):
    for name in ("FIRST_BYTES", "LEAST_BYTES", "PIECE_BYTES"):
        monkeypatch.setattr(topic_feed, name, 300)


def delete_before(broker, offset):
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    for one in admin.delete_records([TopicPartition("letters", 0, offset)]).values():
        one.result()


def cut(broker, folder, batches):
    """Take the last batches away, as a crash takes what was never synced."""
    from kohort.pipeline.sources.files import Walk

    broker.kill()
    path = max((broker.data_dir / folder).glob("*.log"))
    walk = Walk(str(path))
    heads = list(walk.heads(0, walk.size()))
    os.truncate(path, heads[-batches].position)
    broker.start()


def test_security_is_for_clusters_and_in_no_option():
    user = Security(
        protocol="SASL_PLAINTEXT", mechanism="PLAIN", username="alice", password="hunter2"
    )
    found = source("cluster:h:1", user)
    assert "hunter2" not in str(found._options)
    assert found._form.name() == "kohort.topic"
    assert pickle.loads(pickle.dumps(found._feed))._security == user
    with pytest.raises(SourceError, match=r"expected connector:h:1\?config=FILE"):
        source("connector:h:1", user)
