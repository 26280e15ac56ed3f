# SPDX-License-Identifier: Apache-2.0
"""A file that is written piece by piece."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kohort.pipeline.stores.object_path import ObjectPath, Root
from kohort.pipeline.stores.parquet import ParquetFileWriter

ROWS = pa.table({"n": pa.array([1, 2, 3])})


class Objects:
    """Keeps what is put."""

    def __init__(self):
        self.there = {}

    def put(self, key, data):
        self.there[key] = data if isinstance(data, bytes) else data.read()


def test_it_is_there_with_all_pieces(tmp_path):
    file = tmp_path / "a" / "b.parquet"
    with ParquetFileWriter(file, ROWS.schema) as growing:
        growing.write(ROWS, 10)
        growing.write(ROWS, 10)
    assert pq.read_table(file)["n"].to_pylist() == [1, 2, 3, 1, 2, 3]


def test_without_pieces_there_is_none(tmp_path):
    with ParquetFileWriter(tmp_path / "a" / "b.parquet", ROWS.schema):
        pass
    assert not (tmp_path / "a").exists()


def test_of_what_has_failed_nothing_is_put():
    objects = Objects()
    file = ObjectPath(Root(objects, "tables"), "a/b.parquet")

    def cut_short():
        with ParquetFileWriter(file, ROWS.schema) as growing:
            growing.write(ROWS, 10)
            raise LookupError

    with pytest.raises(LookupError):
        cut_short()
    assert objects.there == {}
    with ParquetFileWriter(file, ROWS.schema) as growing:
        growing.write(ROWS, 10)
    (data,) = objects.there.values()
    assert pq.read_table(pa.BufferReader(data)) == ROWS
    assert file.size() == len(data)
