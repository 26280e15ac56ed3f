"""The fast readers of the pipeline say what the broker's own codec says, of any bytes at all."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.errors import WireError
from kohort.spark.segments import NEWEST_MS, parse
from kohort.wire import batch
from kohort.wire.batch import Record

INT64 = 2**63 - 1
times = st.one_of(
    st.integers(-2, 2**41), st.sampled_from([NEWEST_MS, NEWEST_MS + 1, INT64, -INT64 - 1])
)
maybe_bytes = st.one_of(
    st.none(), st.binary(max_size=6), st.integers(60, 9000).map(lambda size: bytes(size))
)


@st.composite
def batches(draw, base_offset):
    deltas = sorted(draw(st.sets(st.integers(0, 200), max_size=4)))
    headers = st.lists(st.tuples(st.text(max_size=2), maybe_bytes), max_size=2)
    records = [
        Record(
            base_offset + delta, draw(times), draw(maybe_bytes), draw(maybe_bytes), draw(headers)
        )
        for delta in deltas
    ]
    codec = draw(st.integers(0, 4))
    flags = draw(st.sampled_from([0, 0x08, 0x10, 0x30, 0x40]))
    return batch.build_records(
        records,
        base_offset=base_offset,
        last_offset=base_offset + 200,
        attributes=codec | flags,
        max_timestamp=draw(times),
        producer_id=draw(st.integers(-1, 5)),
    )


@st.composite
def logs(draw):
    count = draw(st.sampled_from([1, 2, 5, 40]))
    few = draw(st.lists(st.integers(0, 4), min_size=count, max_size=count))
    different = [draw(batches(0)) for _ in range(5)]
    return [batch.stamp(different[one], 1000 * place, 7) for place, one in enumerate(few)]


def sealed(one):
    """With the crc that its bytes have."""
    import google_crc32c

    return one[:17] + google_crc32c.value(one[21:]).to_bytes(4) + one[21:]


@st.composite
def damaged(draw, log):
    """One batch with some bytes changed, or its crc made right after that."""
    place = draw(st.integers(0, len(log) - 1))
    one = bytearray(log[place])
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(12, len(one) - 1))
        one[at] = draw(st.sampled_from([0, 1, 2, 0x7F, 0x80, 0xFF, one[at] ^ 1, one[at] ^ 0x40]))
    changed = bytes(one)
    if draw(st.booleans()):
        changed = sealed(changed)
    return [*log[:place], changed, *log[place + 1 :]]


def micros(ms):
    return ms * 1000 if 0 <= ms <= NEWEST_MS else None


def expected(log):
    """Offset, timestamp, key, value and whether it is damage, by the broker's own reader."""
    for one in log:
        try:
            header = batch.header_at(one)
            batch.check(one, 0, header)
            for offset, ms, key, value in batch.entries(one):
                yield offset, micros(ms), key, value, header.producer_id, False
        except WireError:
            yield int.from_bytes(one[:8]), None, None, one, -1, True


def told(rows):
    columns = ["offset", "timestamp", "key", "value", "producer_id", "error"]
    values = [
        rows.column(name).cast(pa.int64()) if name == "timestamp" else rows.column(name)
        for name in columns
    ]
    lists = [one.to_pylist() for one in values]
    return [(*row[:-1], row[-1] is not None) for row in zip(*lists, strict=True)]


@settings(deadline=None)
@given(logs())
def test_batches_are_read_as_the_broker_reads_them(log):
    data = b"".join(log)
    parsed = parse(data, 3)
    assert told(parsed.rows) == list(expected(log))
    assert parsed.used == len(data)
    header = batch.header_at(log[-1])
    assert parsed.next_offset == header.last_offset + 1
    assert parsed.last == (header.base_offset, header.crc)


@settings(deadline=None)
@given(st.data())
def test_a_damaged_batch_is_one_row_and_shifts_no_neighbour(data):
    log = data.draw(damaged(data.draw(logs())))
    parsed = parse(b"".join(log), 3)
    assert told(parsed.rows) == list(expected(log))


@settings(deadline=None)
@given(logs(), st.data())
def test_any_bytes_are_read_as_far_as_they_are_batches(log, data):
    whole = b"".join(log)
    junk = data.draw(st.binary(max_size=80))
    at = data.draw(st.integers(0, len(whole)))
    mixed = whole[:at] + junk + whole[at + data.draw(st.integers(0, 30)) :]
    parsed = parse(mixed, 3, final=True)
    pa.RecordBatch.validate(parsed.rows, full=True)
    assert parsed.used == len(mixed) or not any(mixed[parsed.used :])
    before = sum(len(one) for one in log) if at == len(whole) else at
    whole_ones = [one for end, one in ends(log) if end <= before]
    wanted = list(expected(whole_ones))
    assert told(parsed.rows)[: len(wanted)] == wanted


def ends(log):
    end = 0
    for one in log:
        end += len(one)
        yield end, one


@settings(deadline=None)
@given(logs(), st.integers(0, 3000), st.integers(0, 3000))
def test_a_range_is_the_rows_in_it(log, start, end):
    rows = told(parse(b"".join(log), 3, start=start, end=end).rows)
    assert rows == [row for row in expected(log) if start <= row[0] < end]


@pytest.mark.parametrize("codec", range(5))
def test_a_thousand_records_of_each_compression(codec):
    records = [Record(one, 5 + one, b"k%d" % one, b"v" * (one % 90)) for one in range(1000)]
    log = [batch.build_records(records, attributes=codec)] * 2
    log[1] = batch.stamp(log[1], 1000, 0)
    assert told(parse(b"".join(log), 3).rows) == list(expected(log))
