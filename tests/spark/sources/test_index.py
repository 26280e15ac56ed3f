# SPDX-License-Identifier: Apache-2.0
"""Kafka's index files: where they are there, and as far as they are right, nothing is walked."""

from struct import pack

import pytest
from tests import golden_logs
from tests.spark.sources.logs import Writer, read

from kohort.pipeline.sources.files import ReadOnlyFile, Walk, index_entries
from kohort.spark.sources.registry import source

SPARSE = 7  # an entry for every seventh batch
BATCHES = 200


def heads(path):
    walk = Walk(str(path))
    found = list(walk.heads(0, walk.size()))
    walk.close()
    return found


def written(folder):
    """A log, and where its index goes."""
    writer = Writer(folder)
    writer.append("a", "b", times=BATCHES)
    (path,) = writer.files()
    return path, path.with_suffix(".index")


def entries(path):
    return [(one.following - 1, one.position) for one in heads(path)[SPARSE::SPARSE]]


def packed(pairs):
    return b"".join(pack(">II", *one) for one in pairs)


def test_entries_of_a_real_kafka_point_to_batches(tmp_path):
    folder = golden_logs.unpack("1-written", tmp_path)
    found = 0
    for path in folder.glob("*/*.log"):
        places = {one.position: one for one in heads(path)}
        for last, position in index_entries(str(path)):
            assert places[position].following - 1 == last
            found += 1
    assert found == 5


def test_an_offset_is_found_near_its_batch(tmp_path):
    path, index = written(tmp_path)
    index.write_bytes(packed(entries(path)) + bytes(800))  # preallocated
    batches = heads(path)
    for offset in range(2 * BATCHES):
        walk = Walk(str(path))
        position, before = walk.near(offset)
        walk.close()
        holding = next(one for one in batches if offset < one.following)
        assert position <= holding.position < position + (2 * SPARSE) * holding.length
        assert next(one.base for one in batches if one.position == position) == before
    assert index_entries(str(path)) == entries(path)


def test_what_the_index_passes_over_is_not_read(tmp_path, monkeypatch):
    path, index = written(tmp_path)
    pairs = entries(path)
    index.write_bytes(packed(pairs))
    positions = []
    real = ReadOnlyFile.read

    def read_at(file, position, size):
        positions.append(position)
        return real(file, position, size)

    monkeypatch.setattr(ReadOnlyFile, "read", read_at)
    assert source(f"log:{tmp_path}").plan({}).ranges == {0: (0, 2 * BATCHES)}
    assert min(positions) >= pairs[-1][1]


@pytest.mark.parametrize(
    "damage",
    [
        lambda pairs: [(last, position + 1) for last, position in pairs],
        lambda pairs: [(last // 2, position) for last, position in pairs],
        lambda pairs: [(last, position + (1 << 24)) for last, position in pairs],
        lambda pairs: pairs[::-1],
        lambda _: [(0, 0)],
        lambda _: [((1 << 32) - 1, (1 << 32) - 1)],
    ],
    ids=["positions", "offsets", "behind the end", "order", "zeros", "all ones"],
)
def test_an_index_that_lies_changes_nothing(tmp_path, damage):
    path, index = written(tmp_path)
    expected = read(source(f"log:{tmp_path}"))
    index.write_bytes(packed(damage(entries(path))) + b"\x01\x02")

    assert read(source(f"log:{tmp_path}")) == expected
    walk = Walk(str(path))
    for offset in range(0, 2 * BATCHES, 17):
        assert walk.near(offset)[0] <= next(
            one.position for one in heads(path) if offset < one.following
        )
    walk.close()


def test_an_index_that_nobody_may_read_is_none(tmp_path):
    path, index = written(tmp_path)
    index.mkdir()
    assert index_entries(str(path)) == []
    assert len(read(source(f"log:{tmp_path}"))) == 2 * BATCHES
