# SPDX-License-Identifier: Apache-2.0
"""What is known of the files of a bucket, while another thread writes."""

from kohort.pipeline.stores.object_path import ObjectPath, Root

NOBODY = None


def test_files_that_become_known_while_somebody_looks_disturb_nobody():
    root = Root(NOBODY, "tables")
    root.know({"gold/a/one": {"part-0.parquet": 1, "part-1.parquet": 2}})
    everything = ObjectPath(root)._below()
    folder = ObjectPath(root, "gold/a/one").glob("*.parquet")
    seen = [next(everything)]

    root.know({"gold/a/two": {"part-0.parquet": 3}})
    root.know({"gold/a/one": {"part-2.parquet": 4}})

    seen += everything
    assert seen == ["gold/a/one/part-0.parquet", "gold/a/one/part-1.parquet"]
    assert [path.name for path in folder][:2] == ["part-0.parquet", "part-1.parquet"]
    assert ObjectPath(root, "gold/a/one/part-2.parquet").size() == 4
    assert ObjectPath(root, "gold/a/two/part-0.parquet").size() == 3
