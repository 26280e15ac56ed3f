# SPDX-License-Identifier: Apache-2.0
"""What a client sends is bounded before it is looked at. A refusal costs what was sent: it unfolds
no more than the bound, its answer is small, and the log is as it was.

The table is every codec with every lie. A lie is a builder: codec to batch.
"""

import tracemalloc
from functools import cache
from itertools import product

import pytest
from tests.server.desk import START, Desk
from tests.server.partitions.test_batch_validation import sealed

from kohort.config import BrokerConfig
from kohort.errors import ErrorCode
from kohort.server.apis import produce
from kohort.wire import batch as batches
from kohort.wire import codec as wire
from kohort.wire.batch import checking
from kohort.wire.compression import OUTPUT_LIMIT
from kohort.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

MIB = 1024 * 1024
HOUR_MS = 3_600_000
INVALID = ErrorCode.INVALID_RECORD
CODECS = {"plain": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
MOST = BrokerConfig().message_max_bytes
ANSWER_MOST = 12_000
PRODUCER = (2**40, 0, 0)


def varint(number):
    number = number << 1 ^ number >> 127
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*out, number))


def record(place=0, *, delta=0, key=b"k", value=b"v", headers=b"\0"):
    fields = b"\0" + varint(delta) + varint(place)
    for field in (key, value):
        fields += varint(-1) if field is None else varint(len(field)) + field
    fields += headers
    return varint(len(fields)) + fields


@cache
def many(count, **more):
    return b"".join(record(place, **more) for place in range(count))


def unfolds(size, count):
    """A batch of so many bytes, which claims so many records: none is what it says."""
    return lambda codec: sealed(b"\xff" * size, count, codec=codec, time=START)


def claims(count, body=record(), **more):  # noqa: B008  (a value)
    return lambda codec: sealed(body, count, codec=codec, time=START, **more)


LIES = {
    # counts
    "two billion records in one": (claims(2**31 - 1), INVALID),
    "a million records in one": (claims(1_000_000), INVALID),
    "more compressed records than anybody sends": (claims(2_097_153), INVALID),
    "one record more": (claims(101, many(100)), INVALID),
    "one record fewer": (claims(99, many(100)), INVALID),
    "two billion records of a producer": (claims(2**31 - 1, producer=PRODUCER), INVALID),
    "two billion records in a transaction": (
        claims(2**31 - 1, producer=PRODUCER, flags=batches.TRANSACTIONAL),
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,  # as upstream, without a transactional id
    ),
    "two billion markers": (claims(2**31 - 1, flags=batches.CONTROL), INVALID),
    "fewer records than none": (claims(-5), INVALID),
    # unfolded sizes
    "17 MiB that are no records": (unfolds(17 * MIB, 5), INVALID),
    "64 MiB that are no records": (unfolds(64 * MIB, 1_000_000), INVALID),
    "more than all bounds": (
        lambda codec: sealed(
            record(value=bytes(OUTPUT_LIMIT if codec else 2 * MIB)), 1, codec=codec, time=START
        ),
        INVALID,
    ),
    "a record longer than its batch": (claims(1, varint(2**31) + record()), INVALID),
    "a record of a negative size": (claims(1, varint(-9) + record()), INVALID),
    "a value longer than its record": (
        claims(1, b"\x12" + record()[1:6] + b"\x7f\x00" * 3),
        INVALID,
    ),
    "records of nothing": (claims(900, bytes(6300)), INVALID),
    "a million headers of nothing": (
        claims(1, record(headers=varint(10**6) + bytes(10))),
        INVALID,
    ),
    # times
    "100,000 records of tomorrow": (
        lambda codec: sealed(many(100_000), 100_000, codec=codec, time=START + 24 * HOUR_MS),
        ErrorCode.INVALID_TIMESTAMP,
    ),
    "the last one is of tomorrow, and the header hides it": (
        claims(500, many(499) + record(499, delta=24 * HOUR_MS)),
        ErrorCode.INVALID_TIMESTAMP,
    ),
    "the first one is of the last day of all": (
        claims(1, record(delta=2**63 - 1 - START)),
        ErrorCode.INVALID_TIMESTAMP,
    ),
    "a time beyond 64 bits": (claims(1, record(delta=2**63 - 1)), ErrorCode.INVALID_TIMESTAMP),
    "a delta beyond 64 bits": (claims(1, record(delta=2**68)), ErrorCode.INVALID_TIMESTAMP),
    "a delta without an end": (
        claims(1, b"\x1a\0" + b"\xff" * 9 + record()[3:]),
        INVALID,
    ),
    "a header of the last day of all": (
        lambda codec: sealed(record(), 1, codec=codec, time=2**63 - 1),
        ErrorCode.INVALID_TIMESTAMP,
    ),
}


def request(*batches_, topic="orders"):
    return ProduceRequest(
        acks=-1,
        timeout_ms=1000,
        topic_data=[
            TopicProduceData(
                name=topic,
                partition_data=[PartitionProduceData(index=0, records=each) for each in batches_],
            )
        ],
    )


@pytest.fixture
def unfolded(monkeypatch):
    """How many bytes each look into a batch has unfolded."""
    sizes = []
    unpacked = checking.unpacked

    def measured(codec, data, limit):
        assert limit <= OUTPUT_LIMIT
        body = unpacked(codec, data, limit)
        sizes.append(len(body))
        return body

    monkeypatch.setattr(checking, "unpacked", measured)
    return sizes


@pytest.mark.parametrize(("lie", "codec"), list(product(LIES, CODECS)))
def test_a_lie_is_refused_at_the_cost_of_what_was_sent(lie, codec, unfolded):
    make, code = LIES[lie]
    batch = make(CODECS[codec])
    if len(batch) > MOST:
        code = ErrorCode.MESSAGE_TOO_LARGE
    desk = Desk()
    desk.create()
    desk.produce()

    tracemalloc.start()
    try:
        asked = desk.send(request(batch), 9)
        desk.settle()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    answer = asked.answer.responses[0].partition_responses[0]
    assert answer.error_code == code, answer.error_message
    assert len(wire.encode(asked.answer, 9)) < ANSWER_MOST
    assert len(answer.record_errors) <= checking.FAULTS_MAX
    assert len(unfolded) <= 1
    assert sum(unfolded) <= OUTPUT_LIMIT
    assert peak < 2 * OUTPUT_LIMIT + 16 * MIB
    assert desk.produce().base_offset == 1


@pytest.mark.parametrize("codec", CODECS)
def test_a_batch_for_a_compacted_topic_is_looked_at_as_little(codec, unfolded):
    """The first hundred records without a key are named, and what the cleaner could not read is
    refused, wherever it stands.
    """
    desk = Desk()
    desk.create(cleanup_policy="compact")
    keyless = many(50_000, key=None)
    cut = many(300) + record(299)  # an offset twice
    for body, count, named in ((keyless, 50_000, checking.FAULTS_MAX), (cut, 301, 0)):
        batch = sealed(body, count, codec=CODECS[codec], time=START)
        asked = desk.send(request(batch), 9)
        desk.settle()
        answer = asked.answer.responses[0].partition_responses[0]
        assert (answer.error_code, len(answer.record_errors)) == (INVALID, named)
    assert len(unfolded) == (2 if CODECS[codec] else 0)  # once for each batch
    assert desk.produce().base_offset == 0


@pytest.mark.parametrize("codec", ["gzip", "zstd"])
def test_a_batch_for_a_compacted_topic_has_no_more_records_than_the_cleaner_can_hold(
    codec, unfolded
):
    desk = Desk()
    desk.create("kept", cleanup_policy="compact")
    desk.create("plain")
    count = checking.KEYED_RECORDS_MAX + 1
    batch = sealed(many(count), count, codec=CODECS[codec], time=START)
    codes = []
    for topic in ("kept", "plain"):
        asked = desk.send(request(batch, topic=topic), 9)
        desk.settle()
        codes.append(asked.answer.responses[0].partition_responses[0].error_code)
    assert codes == [INVALID, 0]
    assert len(unfolded) == 1  # the first one was refused for its count


def test_an_answer_names_so_many_records_however_many_batches_are_refused():
    desk = Desk()
    desk.create()
    batch = sealed(many(1000), 1000, codec=4, time=START + 24 * HOUR_MS)
    asked = desk.send(request(*[batch] * 50), 9)
    desk.settle()

    answers = asked.answer.responses[0].partition_responses
    assert [answer.error_code for answer in answers] == [ErrorCode.INVALID_TIMESTAMP] * 50
    assert sum(len(answer.record_errors) for answer in answers) == produce.RECORD_ERRORS_MAX
    assert len(wire.encode(asked.answer, 9)) < ANSWER_MOST + 3 * len(batch) * 50
    assert [answer.batch_index for answer in answers[0].record_errors] == list(range(100))


MANY_HEADERS = {
    "in one record": (record(headers=varint(20_000_000) + b"\0\1" * 20_000_000), 1),
    "in many records": (many(20_000, headers=varint(1000) + b"\0\1" * 1000), 20_000),
}


@pytest.mark.parametrize("where", MANY_HEADERS)
@pytest.mark.parametrize("codec", ["gzip", "zstd"])
@pytest.mark.parametrize(("policy", "code"), [("delete", 0), ("compact", INVALID)])
def test_millions_of_headers_cost_no_more_than_their_bytes(where, codec, policy, code):
    """They are what the batch says, and are stored, but where the cleaner would have to hold them
    all.
    """
    desk = Desk()
    desk.create(cleanup_policy=policy)
    body, count = MANY_HEADERS[where]
    batch = sealed(body, count, codec=CODECS[codec], time=START)
    tracemalloc.start()
    try:
        asked = desk.send(request(batch), 9)
        desk.settle()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert asked.answer.responses[0].partition_responses[0].error_code == code
    assert peak < 2 * OUTPUT_LIMIT


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("policy", ["delete", "compact"])
def test_what_is_as_it_says_is_written(codec, policy):
    """Long deltas of time, sizes of every width, keys and headers of every kind."""
    desk = Desk()
    desk.create(cleanup_policy=policy)
    values = [b"", b"v" * 55, b"v" * 70, b"v" * 9000, b"v" * 70_000, None] * 20
    body = b"".join(
        record(place, delta=(-1) ** place * place * 9000, value=value, headers=b"\2\2h\1")
        for place, value in enumerate(values)
    )
    batch = sealed(body, len(values), codec=CODECS[codec], time=START)
    if len(batch) > MOST:
        body = many(200, delta=-70_000)
        batch = sealed(body, 200, codec=CODECS[codec], time=START)
    asked = desk.send(request(batch), 9)
    desk.settle()

    answer = asked.answer.responses[0].partition_responses[0]
    assert answer.error_code == 0, answer.error_message
