"""One step decides between two writers, and what a store turns away is tried again."""

import pytest
from tests.spark.stores.bucket import NAME

from kohort.spark.stores import objects
from kohort.spark.stores.arrow_files import ObjectFile
from kohort.spark.stores.failures import ConflictError, MissingError, StoreError


@pytest.fixture
def key(place):
    return f"{place.key}/one"


def test_an_object_is_written_once_for_each_tag(key):
    first = objects.swap(NAME, key, b"1", None)
    with pytest.raises(ConflictError, match=f"s3://{NAME}/{key}: it was written meanwhile"):
        objects.swap(NAME, key, b"other", None)
    second = objects.swap(NAME, key, b"2", first)
    with pytest.raises(ConflictError):
        objects.swap(NAME, key, b"3", first)
    assert objects.get(NAME, key)[:2] == (b"2", second)
    objects.delete(NAME, [key])
    with pytest.raises(ConflictError):
        objects.swap(NAME, key, b"3", second)
    with pytest.raises(MissingError):
        objects.get(NAME, key)


def test_what_was_done_and_not_answered_is_not_taken_for_anothers(server, key, quick):
    tag = objects.swap(NAME, key, b"1", None)
    lost = iter(["lost"])
    with server.failing(lambda method, _: next(lost, None) if method == "PUT" else None):
        after = objects.swap(NAME, key, b"2", tag)
    assert objects.get(NAME, key)[:2] == (b"2", after)
    assert sum(method == "PUT" and path.endswith(key) for method, path in server.asked) == 3


def test_a_store_that_is_busy_for_a_while_is_asked_again(server, key, quick):
    away = iter(["away"] * (objects.TRIES - 1))
    with server.failing(lambda *_: next(away, None)):
        objects.put(NAME, key, b"1")
    away = iter(["away"] * objects.TRIES)
    with (
        server.failing(lambda *_: next(away, None)),
        pytest.raises(StoreError, match="the store answered 503"),
    ):
        objects.put(NAME, key, b"2")
    assert objects.get(NAME, key).data == b"1"


def test_many_are_deleted_and_a_range_is_read(key):
    names = [f"{key}/{number:04}" for number in range(1001)]
    for one in (names[0], names[1000]):
        objects.put(NAME, one, b"0123456789")
    assert objects.get_end(NAME, names[0], 4) == (10, b"6789")
    assert objects.get_end(NAME, names[0], 40) == (10, b"0123456789")
    assert objects.get(NAME, names[0], "bytes=2-3").data == b"23"
    assert [one.key for one in objects.listed(NAME, f"{key}/")] == [names[0], names[1000]]
    objects.delete(NAME, names)
    assert list(objects.listed(NAME, f"{key}/")) == []


@pytest.mark.parametrize("end_bytes", [1, 4, 9, 10, 100])
def test_a_file_is_read_at_any_place(key, end_bytes):
    data = b"0123456789"
    objects.put(NAME, key, data)
    file = ObjectFile(NAME, key, end_bytes)
    for begin in range(11):
        for count in (0, 1, 3, 20, -1):
            file.seek(begin)
            until = len(data) if count < 0 else min(begin + count, len(data))
            assert file.read(count) == data[begin:until]
            assert file.tell() == until
    assert (file.seek(-2, 2), file.seek(1, 1), file.size()) == (8, 9, 10)


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
