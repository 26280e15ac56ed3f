# SPDX-License-Identifier: Apache-2.0
"""One step decides between two writers, and what a store turns away is tried again."""

import pytest
from tests.pipeline.stores import bucket as buckets
from tests.pipeline.stores.faulty import once

from kohort.pipeline.stores import s3
from kohort.pipeline.stores.arrow_files import ObjectFile
from kohort.pipeline.stores.failures import ConflictError, MissingError, StoreError


def test_an_object_is_written_once_for_each_tag(server, objects, key):
    with pytest.raises(MissingError):
        objects.current(key)
    first = objects.swap(key, b"1", None)
    with pytest.raises(ConflictError, match=f"{server.start}{key}: it was written meanwhile"):
        objects.swap(key, b"other", None)
    second = objects.swap(key, b"2", first)
    for tag in (first, objects.no_such_tag):
        with pytest.raises(ConflictError):
            objects.swap(key, b"3", tag)
    there = objects.current(key)
    assert (there.data, there.tag) == (b"2", second)
    assert abs((there.now() - there.written_at).total_seconds()) < 60
    server.remove(objects, key)
    with pytest.raises(ConflictError):
        objects.swap(key, b"3", second)
    with pytest.raises(MissingError):
        objects.current(key)


@pytest.mark.parametrize("fault", ["lost", "cut"])
def test_what_was_done_and_not_answered_is_not_taken_for_anothers(
    server, objects, key, quick, fault
):
    tag = objects.swap(key, b"1", None)
    del server.asked[:]
    with server.failing(once(server.swapping, fault)):
        after = objects.swap(key, b"2", tag)
    there = objects.current(key)
    assert (there.data, there.tag) == (b"2", after)
    assert [asked for asked, _ in server.asked].count(server.swapping) == 2


def test_what_was_done_is_found_by_who_was_never_told(server, objects, key, quick):
    """As a writer that renews its lease once the store answers again."""
    tag = objects.swap(key, b"1", None)
    lost = once(server.swapping, "lost")
    asked = []

    def away(*what):
        asked.append("away" if "lost" in asked else lost(*what))
        return asked[-1]

    with server.failing(away), pytest.raises(StoreError) as raised:
        objects.swap(key, b"2", tag)
    assert not isinstance(raised.value, ConflictError)
    assert objects.swap(key, b"2", tag) == objects.current(key).tag
    with pytest.raises(ConflictError):
        objects.swap(key, b"3", tag)


def test_a_store_that_is_busy_for_a_while_is_asked_again(server, objects, key, quick):
    away = iter(["away"] * (s3.TRIES - 1))
    with server.failing(lambda *_: next(away, None)):
        objects.put(key, b"1")
    away = iter(["away"] * s3.TRIES)
    with (
        server.failing(lambda *_: next(away, None)),
        pytest.raises(StoreError, match="the store answered 503"),
    ):
        objects.put(key, b"2")
    assert objects.read(key) == b"1"


@pytest.mark.parametrize("code", ["PreconditionFailed", "WordsOfAnotherStore"])
def test_a_condition_that_failed_is_a_conflict_whatever_a_bucket_calls_it(bucket, code):
    body = f"<Error><Code>{code}</Code><Message>No.</Message></Error>".encode()
    refused = bucket.failing(lambda *_: ("412 Precondition Failed", body))
    with refused, pytest.raises(ConflictError, match="it was written meanwhile"):
        s3.Bucket(buckets.NAME).create("what/ever", b"1")


def test_many_are_deleted_and_a_range_is_read(place, objects, key):
    names = [f"{key}/{number:04}" for number in range(1001)]
    for one in (names[0], names[1000]):
        objects.put(one, b"0123456789")
    assert objects.read_end(names[0], 4) == (10, b"6789")
    assert objects.read_end(names[0], 40) == (10, b"0123456789")
    assert objects.read(names[0], 2, 4) == b"23"
    assert [(one.key, one.size) for one in objects.listed(key)] == [
        (names[0], 10),
        (names[1000], 10),
    ]
    objects.delete(names, place.key)
    assert list(objects.listed(key)) == []
    assert list(objects.listed(place.key)) == []


def test_what_is_written_anew_is_told_from_what_was_there(objects, key):
    tags = []
    for data in (b"1", b"2"):
        objects.put(key, data, "text/plain")
        tags += [one.tag for one in objects.listed(key.rpartition("/")[0])]
    assert objects.read(key) == b"2"
    assert len({*tags}) == len(tags) == 2


@pytest.mark.parametrize("name", ["a b", "50%25 off", "é", "kind=x+y", "a&b;c", "what?#"])
def test_any_name_is_a_name(place, objects, name):
    key = f"{place.key}/{name}/{name}"
    tag = objects.swap(f"{key}.s", b"1", None)
    objects.swap(f"{key}.s", b"2", tag)
    objects.put(key, b"0123")
    assert (objects.current(f"{key}.s").data, objects.read(key, 1, 3)) == (b"2", b"12")
    assert key in [one.key for one in objects.listed(place.key)]


@pytest.mark.parametrize("end_bytes", [1, 4, 9, 10, 100])
def test_a_file_is_read_at_any_place(objects, key, end_bytes):
    data = b"0123456789"
    objects.put(key, data)
    file = ObjectFile(objects, key, end_bytes)
    for begin in range(11):
        for count in (0, 1, 3, 20, -1):
            file.seek(begin)
            until = len(data) if count < 0 else min(begin + count, len(data))
            assert file.read(count) == data[begin:until]
            assert file.tell() == until
    assert (file.seek(-2, 2), file.seek(1, 1), file.size()) == (8, 9, 10)


@pytest.mark.parametrize("server", ["s3"], indirect=True)
def test_what_is_known_twice_is_there_once(place):
    """A writer knows the files of a kind, and the manifest those of the whole increment."""
    place.root.know({"rows/1/kind=a": {"part-0.parquet": 7}})
    place.root.know({"rows/1/kind=b": {"part-0.parquet": 8}})
    place.root.know({"rows/1/kind=b": {"part-1.parquet": 9}})
    place.root.know({"rows/1": {"kind=a/part-0.parquet": 7}, "rows/2": {}})
    folder = place / "rows" / "1"
    assert [one.name for one in folder.glob("kind=*")] == ["kind=a", "kind=b"]
    assert [one.size() for one in folder.rglob("*.parquet")] == [7, 8, 9]
    assert [one.name for one in (folder / "kind=a").glob("*.parquet")] == ["part-0.parquet"]
    assert [(place / "rows" / one).is_dir() for one in ("1", "2", "3")] == [True, True, False]
