# SPDX-License-Identifier: Apache-2.0
"""A batch that grew record by record is the one that is built from all of them."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kohort.wire.batch import BatchBuilder, Record, build_records, records, seal

FAR = 1 << 40
blobs = st.none() | st.binary(max_size=200) | st.just(bytes(3000))
headers = st.lists(st.tuples(st.text(max_size=10), blobs), max_size=3)
entries = st.lists(st.tuples(st.integers(-1, 2**45), blobs, blobs, headers), min_size=1, max_size=8)


def sealed(grown: BatchBuilder) -> bytes:
    return seal(
        bytes(grown.body),
        grown.count,
        attributes=0,
        base_timestamp=grown.base_timestamp,
        max_timestamp=grown.max_timestamp,
        producer_id=7,
        producer_epoch=1,
        base_sequence=5,
    )


@given(entries)
def test_it_is_the_batch_of_all_records(some: list[tuple[int, Any, Any, Any]]) -> None:
    grown = BatchBuilder()
    for entry in some:
        assert grown.add(*entry, FAR)
    whole = [Record(at, *entry) for at, entry in enumerate(some)]
    assert sealed(grown) == build_records(whole, producer_id=7, producer_epoch=1, base_sequence=5)


@given(entries, st.integers(0, 500))
def test_what_does_not_fit_changes_nothing(
    some: list[tuple[int, Any, Any, Any]], limit: int
) -> None:
    grown = BatchBuilder()
    taken = []
    for entry in some:
        before = bytes(grown.body)
        if grown.add(*entry, limit):
            taken.append(entry)
            assert len(grown.body) <= limit or len(taken) == 1
        else:
            assert bytes(grown.body) == before
    found = [(one.timestamp, one.key, one.value, one.headers) for one in records(sealed(grown), 0)]
    assert found == [(time, key, value, list(some)) for time, key, value, some in taken]


def test_a_record_that_just_fits() -> None:
    one = (0, b"k", b"v", ())
    alone = BatchBuilder()
    alone.add(*one, FAR)
    size = len(alone.body)
    assert alone.add(*one, 2 * size)
    assert not alone.add(*one, 3 * size - 1)
    assert alone.add(*one, 3 * size)


def test_more_records_than_the_table_of_varints_has() -> None:
    grown = BatchBuilder()
    for number in range(3000):
        grown.add(number * 10, None, b"", (), FAR)
    assert [one.offset for one in records(sealed(grown), 0)] == list(range(3000))
