# SPDX-License-Identifier: Apache-2.0
"""The fast readers of the pipeline say what the broker's own codec says, of any bytes at all."""

from itertools import combinations, pairwise

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.spark.rows import raw
from tests.wire.strategies import messages

from kohort.errors import WireError
from kohort.pipeline.columns.decode import OFFSET_COMMITS, decode, offset_commits
from kohort.pipeline.columns.decode.records import decode_row
from kohort.pipeline.columns.record_positions import ArrowRows
from kohort.pipeline.columns.record_positions import raw as columns_of
from kohort.pipeline.columns.segments import parse
from kohort.pipeline.columns.times import NEWEST_MS
from kohort.pipeline.schemas import DECODED, KINDS
from kohort.records.codec import RECORDS, Unknown, encode_key, encode_value
from kohort.records.codec import decode as broker_decode
from kohort.records.schemas import GroupSettingsKey
from kohort.wire import batch, codec
from kohort.wire.batch import Record

INT64 = 2**63 - 1
times = st.one_of(
    st.integers(-2, 2**41), st.sampled_from([NEWEST_MS, NEWEST_MS + 1, INT64, -INT64 - 1])
)
maybe_bytes = st.one_of(st.none(), st.binary(max_size=6), st.integers(60, 9000).map(bytes))


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


def header_or_none(one):
    try:
        header = batch.header_at(one)
        batch.check(one, 0, header)
        list(batch.entries(one))
    except WireError:
        return None
    return header


def expected(log, astray=()):
    """Offset, timestamp, key, value and whether it is damage, by the broker's own reader. A batch
    at one of the places `astray` is damage, and has the offset behind the batch before it.
    """
    behind = 0
    for place, one in enumerate(log):
        header = header_or_none(one)
        if place in astray:
            yield behind, None, None, one, -1, True
        elif header is None:
            yield int.from_bytes(one[:8]), None, None, one, -1, True
        else:
            for offset, ms, key, value in batch.entries(one):
                yield offset, micros(ms), key, value, header.producer_id, False
            behind = header.last_offset + 1


def readings(log):
    """What may be said of a log whose batches may overlap: of two that do, one is damage. As few
    are called so as leave the others in order.
    """
    sound = {place: header for place, one in enumerate(log) if (header := header_or_none(one))}
    for count in range(len(log)):
        found = [
            list(expected(log, astray))
            for astray in combinations(sound, count)
            if in_order([header for place, header in sound.items() if place not in astray])
        ]
        if found:
            return found
    raise AssertionError


def in_order(headers):
    return all(one.last_offset < other.base_offset for one, other in pairwise(headers))


def told(rows):
    columns = ["offset", "timestamp", "key", "value", "producer_id", "error"]
    values = [
        rows.column(name).cast(pa.int64()) if name == "timestamp" else rows.column(name)
        for name in columns
    ]
    lists = [one.to_pylist() for one in values]
    return [(*row[:-1], row[-1] is not None) for row in zip(*lists, strict=True)]


@given(logs())
def test_batches_are_read_as_the_broker_reads_them(log):
    data = b"".join(log)
    parsed = parse(data, 3)
    assert told(parsed.rows) == list(expected(log))
    assert parsed.used == len(data)
    header = batch.header_at(log[-1])
    assert parsed.next_offset == header.last_offset + 1
    assert parsed.last == (header.base_offset, header.crc)


def overlapping(records, delta, count):
    """A log whose first batch claims more offsets than there are before the next one."""
    one = batch.build_records(records, base_offset=0, last_offset=200)
    first = sealed(one[:23] + delta.to_bytes(4) + one[27:])
    return [first, *(batch.stamp(one, 1000 * place, 7) for place in range(1, count))]


@given(logs().flatmap(damaged))
@example(overlapping([], 0x010000C8, 5))
@example(overlapping([], 0x010000C8, 2))
@example(overlapping([], 1100, 3))
@example(overlapping([Record(0, INT64, b"k", b"v")], 0x010000C8, 5))
def test_a_damaged_batch_is_one_row_and_shifts_no_neighbour(log):
    parsed = parse(b"".join(log), 3)
    assert told(parsed.rows) in readings(log)


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


@st.composite
def record_bytes(draw, numbers=tuple(RECORDS)):
    """Key and value of a record of any type in any version, or of none of ours."""
    number = draw(st.sampled_from(numbers))
    row = RECORDS[number]
    key = encode_key(draw(messages(row.key, 0)))
    version = draw(st.sampled_from(list(row.value.versions)))
    value = encode_value(draw(messages(row.value, version)), version)
    if draw(st.integers(0, 9)) == 0:
        key = draw(st.sampled_from([9, 10, 11, 15, 17, 99, 20000])).to_bytes(2) + key[2:]
    return key, draw(st.sampled_from([value, value, value, None]))


@st.composite
def lies(draw, entry):
    """The record with something about it wrong, or perhaps still right."""
    parts = [None if one is None else bytearray(one) for one in entry]
    for _ in range(draw(st.integers(1, 2))):
        part = draw(st.sampled_from([one for one in parts if one is not None]))
        at = draw(st.integers(0, max(0, len(part) - 1)))
        what = draw(st.sampled_from(["cut", "longer", "changed", "text"]))
        if what == "cut":
            del part[at:]
        elif what == "longer":
            part += draw(st.binary(min_size=1, max_size=3))
        elif part:
            part[at] = draw(st.integers(0, 255)) if what == "changed" else 0xC3
    return tuple(None if one is None else bytes(one) for one in parts)


COMMITS = (0, 1, 1, 1)
sound = st.lists(record_bytes() | record_bytes(COMMITS), max_size=6)
mixed = st.lists(
    record_bytes(COMMITS)
    | record_bytes(COMMITS).flatmap(lies)
    | record_bytes().flatmap(lies)
    | st.tuples(st.none() | st.binary(max_size=3), st.none() | st.binary(max_size=3)),
    max_size=8,
)


def one_by_one(entries):
    for key, value in entries:
        row = decode_row(key, value, control=False)
        yield {name: row.get(name) for name in ADDED}


ADDED = [*DECODED.names[DECODED.names.index("kind") :], "error"]


def added(rows):
    """The columns that decoding adds, times as numbers."""
    columns = []
    for name in ADDED:
        one = rows.column(name)
        columns.append(one.cast(pa.int64()) if pa.types.is_timestamp(one.type) else one)
    batch_of_them = pa.RecordBatch.from_arrays(columns, ADDED)
    return batch_of_them.to_pylist()


def as_columns(rows):
    """What a decoder of single rows says, in the types of the columns."""
    fields = [DECODED.arrow.field(name) for name in ADDED]
    return added(
        pa.RecordBatch.from_arrays(
            [pa.array([row[one.name] for row in rows], one.type) for one in fields], ADDED
        )
    )


@given(mixed, st.integers(0, 3))
def test_many_records_are_read_as_one_by_one(entries, first):
    rows = raw([(place, *entry) for place, entry in enumerate(entries)]).slice(first)
    decoded = decode(ArrowRows(rows))
    decoded.validate(full=True)
    single = list(one_by_one(entries[first:]))
    assert added(decoded) == as_columns(single)
    assert decoded.select(rows.schema.names[:9]).equals(rows.select(rows.schema.names[:9]))
    wanted = [row["kind"] in {KINDS[0], KINDS[1]} for row in single]
    commits = offset_commits(ArrowRows(rows))
    assert commits.equals(decoded.filter(pa.array(wanted, pa.bool_())).select(commits.schema.names))


@given(
    st.lists(mixed, min_size=1, max_size=3),
    st.sets(st.sampled_from(OFFSET_COMMITS.names), min_size=1),
)
def test_rows_are_read_where_they_stand_as_they_are_from_columns(batches, names):
    log = []
    for entries in batches:
        records = [Record(place, 5, *entry) for place, entry in enumerate(entries)]
        log.append(
            batch.stamp(
                batch.build_records(records or [Record(0, 5, None, None)]), len(log) * 100, 0
            )
        )
    for piece in parse(b"".join(log), 3).pieces:
        columns = ArrowRows(columns_of(piece))
        assert decode(piece).equals(decode(columns))
        commits = offset_commits(columns)
        assert offset_commits(piece).equals(commits)
        assert offset_commits(piece, sorted(names)).equals(commits.select(sorted(names)))


def is_other(told_by_broker):
    """Of the settings of groups, which are of our own, the pipeline knows nothing."""
    return isinstance(told_by_broker, Unknown) or type(told_by_broker.key) is GroupSettingsKey


@given(sound)
def test_a_sound_record_is_what_the_broker_reads(entries):
    rows = list(one_by_one(entries))
    assert [row["error"] for row in rows] == [None] * len(rows)
    for (key, value), row in zip(entries, rows, strict=True):
        told_by_broker = broker_decode(key, value)
        if is_other(told_by_broker):
            assert (row["kind"], row["type"]) == ("other_record", int.from_bytes(key[:2]))
            continue
        key_fields = {row[name] for name in ("group_id", "topic", "member_id") if row[name]}
        texts = {
            one
            for name in told_by_broker.key.__struct_fields__
            if isinstance(one := getattr(told_by_broker.key, name), str)
        }
        assert key_fields <= texts
        if value is None:
            assert row["kind"] == "tombstone"
        elif row["type"] < 2:
            assert row["committed_offset"] == told_by_broker.value.offset
            assert row["metadata"] == told_by_broker.value.metadata
        else:
            assert row[row["kind"]].keys() == set(DECODED.arrow.field(row["kind"]).type.names)


def is_refused(key, value):
    """By the broker; or by us alone, since the text is not UTF-8 and would have to be changed."""
    try:
        told_by_broker = broker_decode(key, value)
    except WireError:
        return True
    if is_other(told_by_broker):
        return False
    row = RECORDS[int.from_bytes(key[:2])]
    try:
        codec.decoder(row.key, 0)(key, 2)
        if value is not None:
            codec.decoder(row.value, int.from_bytes(value[:2]))(value, 2)
    except UnicodeDecodeError:
        return True
    return False


@given(mixed)
@example([((20_000).to_bytes(2) + b"\0\1g", None)])
@example([((20_000).to_bytes(2) + b"\0\1\xc3", None)])
def test_what_the_broker_refuses_is_in_quarantine_and_nothing_else(entries):
    for (key, value), row in zip(entries, one_by_one(entries), strict=True):
        if key is not None:
            assert (row["kind"] == "quarantine") == is_refused(key, value)
        assert (row["kind"] == "quarantine") == (row["error"] is not None)
