"""What a test asks by the protocol, of any broker; `Broker` and `groups` show most of it."""

import asyncio

import pytest

from kohort.client.admin.views import TopicPartition
from kohort.errors import ApiError, ErrorCode, KohortError
from kohort.server.broker import Broker
from kohort.testing import asking
from kohort.testing.asking import Asker
from kohort.wire.batch import build, build_marker
from kohort.wire.batch.reading import Record


def asked(play):
    async def whole():
        async with Broker({"offsets.topic.num.partitions": 2}) as broker:
            asker = Asker(broker.bootstrap)
            try:
                await asker.create_topic("t", 2, 1, {})
                return await play(asker)
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


def test_markers_are_nobodys_records():
    data = build([(b"k", b"v")], 7) + build_marker(
        commit=True,
        coordinator_epoch=0,
        timestamp=7,
        base_offset=1,
        producer_id=1,
        producer_epoch=0,
    )
    assert [one.value for one in asking._records_of(data)] == [b"v"]
    assert asking._end_of(data, 0) == 2
    with pytest.raises(KohortError, match="nothing is read at offset 2"):
        asking._end_of(data, 2)
