# SPDX-License-Identifier: Apache-2.0
"""Reading partitions: what is taken out of an answer, and where the reader goes on."""

import pytest
from tests.client.admin.test_topics import found as offsets
from tests.client.network.test_connection import soon
from tests.client.scripted import ScriptedCluster, asynchronous, in_turn

from kohort.client.admin import TopicPartition
from kohort.client.topic_reader import TopicReader
from kohort.errors import ApiError, WireError
from kohort.wire.batch import build, build_marker
from kohort.wire.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from kohort.wire.messages.list_offsets import ListOffsetsRequest

ZERO, ONE = TopicPartition("orders", 0), TopicPartition("orders", 1)


def batch(base_offset, *values):
    return build([(None, value) for value in values], 1000, base_offset=base_offset)


def damaged(base_offset):
    data = bytearray(batch(base_offset, b"damaged"))
    data[-2] ^= 1
    return bytes(data)


def giving(*parts):
    """Answers (partition, code or bytes) for those asked; nothing for the others."""
    given = dict(parts)

    def answer(asked):
        partitions = []
        for one in asked.request.topics[0].partitions:
            part = given.get(one.partition, b"")
            error = part if isinstance(part, int) else 0
            partitions.append(
                PartitionData(
                    partition_index=one.partition,
                    error_code=error,
                    records=b"" if error else part,
                )
            )
        return FetchResponse(
            responses=[FetchableTopicResponse(topic="orders", partitions=partitions)]
        )

    return answer


class Reading:
    """A reader of a scripted cluster, from the beginning of each partition."""

    def __init__(self, *answers, leaders=(0,)):
        self.scripted = ScriptedCluster(
            max(leaders) + 1, {FetchRequest: in_turn(*answers), ListOffsetsRequest: offsets}
        )
        self.scripted.topics = {"orders": list(leaders)}

    async def __aenter__(self):
        await self.scripted.__aenter__()
        self.cluster = self.scripted.cluster()
        return await TopicReader.open(self.cluster, ["orders"], when="earliest", deadline=soon())

    async def __aexit__(self, *_):
        await self.cluster.close()
        await self.scripted.__aexit__()


async def values(reader):
    return [one.value for one in await reader.read(wait_ms=0, deadline=soon())]


@asynchronous
async def test_it_goes_on_behind_what_it_has_read():
    reading = Reading(
        giving((0, batch(0, b"a", b"b") + batch(5, b"c"))), giving((0, batch(6, b"d")))
    )
    async with reading as reader:
        assert await values(reader) == [b"a", b"b", b"c"]
        assert reader.places == {ZERO: 6}
        assert await values(reader) == [b"d"]
    asked = [
        one.request.topics[0].partitions[0].fetch_offset for one in reading.scripted.sent("Fetch")
    ]
    assert asked == [0, 6]
    assert {one.version for one in reading.scripted.sent("Fetch")} == {12}


@pytest.mark.parametrize("cut", [1, 12, 30, 61, 65])
@asynchronous
async def test_a_batch_that_is_cut_off_comes_again(cut):
    whole, rest = batch(0, b"a"), batch(1, b"b")
    async with Reading(giving((0, whole + rest[:cut])), giving((0, rest))) as reader:
        assert await values(reader) == [b"a"]
        assert reader.places == {ZERO: 1}
        assert await values(reader) == [b"b"]


@asynchronous
async def test_a_place_within_a_batch_gives_the_rest_of_it():
    async with Reading(giving((0, batch(0, b"a", b"b", b"c")))) as reader:
        reader.places[ZERO] = 1
        assert await values(reader) == [b"b", b"c"]


@asynchronous
async def test_markers_of_transactions_are_passed_by():
    marker = build_marker(
        commit=True,
        timestamp=1,
        producer_id=1,
        producer_epoch=0,
        coordinator_epoch=0,
        base_offset=1,
    )
    async with Reading(giving((0, batch(0, b"a") + marker))) as reader:
        assert await values(reader) == [b"a"]
        assert reader.places == {ZERO: 2}


@asynchronous
async def test_a_reader_of_committed_records_passes_by_those_of_aborted_transactions():
    """Also those of an answer that begins within the transaction, before the reader's place."""

    def marker(base_offset, *, commit):
        return build_marker(
            commit=commit,
            timestamp=1,
            producer_id=1,
            producer_epoch=0,
            coordinator_epoch=0,
            base_offset=base_offset,
        )

    def of_producer(base_offset, value):
        entries = [(None, value)]
        return build(
            entries, 1, base_offset=base_offset, producer_id=1, producer_epoch=0, transactional=True
        )

    data = of_producer(0, b"a") + of_producer(1, b"b") + marker(2, commit=False)
    data += of_producer(3, b"c") + marker(4, commit=True)

    def answer(_asked):
        aborted = [AbortedTransaction(producer_id=1, first_offset=0)]
        part = PartitionData(partition_index=0, records=data, aborted_transactions=aborted)
        return FetchResponse(responses=[FetchableTopicResponse(topic="orders", partitions=[part])])

    reading = Reading(answer)
    async with reading:
        reader = TopicReader(reading.cluster, {ZERO: 1}, read_committed=True)
        assert await values(reader) == [b"c"]
        assert reader.places == {ZERO: 5}
    assert [one.request.isolation_level for one in reading.scripted.sent("Fetch")] == [1]


@asynchronous
async def test_an_answer_with_nothing_from_the_place_on_is_an_error():
    """It would be asked for again and again."""
    async with Reading(giving((0, batch(0, b"a")))) as reader:
        reader.places[ZERO] = 5
        with pytest.raises(WireError, match=r"orders:0 from offset 5 on: .* nothing from there on"):
            await values(reader)


@asynchronous
async def test_a_place_that_was_deleted_moves_to_the_beginning():
    async with Reading(giving((0, 1)), giving((0, batch(0, b"a")))) as reader:
        reader.places[ZERO] = 77
        assert await values(reader) == []
        assert reader.notes == ["orders:0 has no offset 77, going on at 0"]
        assert await values(reader) == [b"a"]


@asynchronous
async def test_a_place_behind_a_log_that_was_cut_moves_to_its_end():
    """Nothing that was read is read again."""
    async with Reading(giving((0, 1)), giving((0, batch(100, b"new")))) as reader:
        reader.places[ZERO] = 150
        assert await values(reader) == []
        assert reader.notes == ["orders:0 has no offset 150, going on at 100"]
        assert await values(reader) == [b"new"]


@asynchronous
async def test_a_place_in_a_topic_that_was_made_anew_moves_to_the_beginning():
    async with Reading(giving((0, 1)), giving((0, batch(0, b"new")))) as reader:
        reader.places[ZERO] = 150
        reader.topic_ids["orders"] = b"f" * 16
        assert await values(reader) == []
        assert await values(reader) == [b"new"]


@pytest.mark.parametrize(
    ("part", "error", "words"),
    [
        (29, ApiError, "orders:1: User:ANONYMOUS is not authorized for topic orders"),
        (damaged(3), WireError, "orders:1 from offset 0 on: batch at 0"),
        (batch(0, b"x" * 100)[:70], WireError, "of which 70 were sent"),
        (b"\0" * 16 + b"\x01" + b"\0" * 60, WireError, "has magic 1, expected 2"),
    ],
    ids=["not allowed", "damaged", "cut at once", "old"],
)
@asynchronous
async def test_one_partition_that_cannot_be_read_does_not_hide_the_others(part, error, words):
    answer = giving((0, batch(0, b"a")), (1, part), (2, batch(0, b"c")))
    async with Reading(answer, leaders=(0, 0, 0)) as reader:
        assert await values(reader) == [b"a", b"c"]
        with pytest.raises(error) as caught:
            await values(reader)
    assert words in str(caught.value)


@asynchronous
async def test_leaders_are_remembered_and_asked_for_their_own():
    once = giving((0, batch(0, b"a")), (1, batch(0, b"b")))
    reading = Reading(once, once, giving(), leaders=(0, 1))
    async with reading as reader:
        for _ in range(3):
            await values(reader)
    scripted = reading.scripted
    assert {
        (one.node, one.request.topics[0].partitions[0].partition) for one in scripted.sent("Fetch")
    } == {
        (0, 0),
        (1, 1),
    }
    assert len(scripted.sent("Metadata")) == 3  # the topic, its offsets, the first read


@asynchronous
async def test_a_leader_that_has_moved_is_looked_up_anew():
    reading = Reading(giving((0, 6)), giving((0, batch(0, b"a"))))
    async with reading as reader:
        assert await values(reader) == [b"a"]
    assert len(reading.scripted.sent("Metadata")) == 4


@asynchronous
async def test_only_some_may_be_asked_for():
    reading = Reading(giving((0, batch(0, b"a")), (1, batch(0, b"b"))), leaders=(0, 0))
    async with reading as reader:
        found = await reader.read(wait_ms=0, deadline=soon(), of=[ONE])
        assert [(one.partition, one.value) for one in found] == [(1, b"b")]
        assert await reader.ends(soon()) == {ZERO: 100, ONE: 100}


@asynchronous
async def test_a_topic_is_not_created():
    async with ScriptedCluster() as scripted:
        with pytest.raises(ApiError, match="topic orders does not exist"):
            await TopicReader.open(scripted.cluster(), ["orders"], when="latest", deadline=soon())


@asynchronous
async def test_a_partition_that_a_topic_has_not_is_named():
    async with ScriptedCluster() as scripted:
        scripted.topics = {"orders": [0, 0]}
        cluster = scripted.cluster()
        with pytest.raises(ApiError, match="topic orders has no partition 7, it has 2 partitions"):
            await TopicReader.open(cluster, [("orders", 7)], when="latest", deadline=soon())
        await cluster.close()


@asynchronous
async def test_several_topics_are_read_at_once():
    def answer(asked):
        responses = [
            FetchableTopicResponse(
                topic=topic.topic,
                partitions=[PartitionData(partition_index=1, records=batch(0, b"of " + name))],
            )
            for topic in asked.request.topics
            if (name := topic.topic.encode())
        ]
        return FetchResponse(responses=responses)

    async with ScriptedCluster(
        answers={FetchRequest: answer, ListOffsetsRequest: offsets}
    ) as scripted:
        scripted.topics = {"orders": [0, 0], "pay": [0, 0]}
        cluster = scripted.cluster()
        places = dict.fromkeys([TopicPartition("orders", 1), TopicPartition("pay", 1)], 0)
        reader = TopicReader(cluster, places)
        assert await values(reader) == [b"of orders", b"of pay"]
        assert set(reader.places.values()) == {1}
        await cluster.close()
