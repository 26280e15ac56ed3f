# SPDX-License-Identifier: Apache-2.0
"""`kohort pipeline export`: what it writes, and what it will not write over."""

import pytest

pytest.importorskip("pyspark")

from tests.tables.published import grow_old, publish

import kohort.tables


@pytest.fixture
def export(kohort, tmp_path):
    publish(tmp_path / "tables", {"lag": [{"group_id": "a"}] * 3, "status": []})
    out = ("--out", str(tmp_path / "tables"), "--to", str(tmp_path / "files"))
    return lambda *argv: kohort("pipeline", "export", *out, *argv)


def test_all_tables_or_some(export, tmp_path):
    every = export()
    some = export("--format", "csv", "--table", "lag", "--table", "deletable")

    assert (every.code, every.err) == (0, "")
    assert ["lag", "3", str(tmp_path / "files" / "lag.parquet")] in every.rows
    assert len(list((tmp_path / "files").glob("*.parquet"))) == len(every.rows) - 1 > 15
    assert (some.code, some.out) == (1, "")
    assert export("--format", "csv", "--table", "lag").rows[1][:2] == ["lag", "3"]


def test_it_does_not_overwrite_unless_it_shall(export, tmp_path):
    assert export("--table", "lag").code == 0

    ran = export("--table", "lag")

    assert (ran.code, ran.out) == (1, "")
    assert ran.complaints == [
        f"kohort: {tmp_path}/files/lag.parquet is there already: --force overwrites it"
    ]
    assert export("--table", "lag", "--force").code == 0


def test_tables_that_are_replaced_meanwhile_are_exported_anew(export, tmp_path, monkeypatch):
    grow_old(monkeypatch)
    opened = kohort.tables.snapshot
    flips = iter([True, False])

    def meet(directory):
        found = opened(directory)
        if next(flips):
            publish(directory, {"lag": [{"group_id": "b"}]})
        return found

    monkeypatch.setattr(kohort.tables, "snapshot", meet)

    assert export("--table", "lag").rows[1][:2] == ["lag", "1"]


def test_a_wrong_name_is_one_line(export):
    ran = export("--table", "lagg")
    assert (ran.code, ran.out) == (1, "")
    assert ran.complaints == ["kohort: no table is called 'lagg': did you mean lag?"]


def test_several_clusters_are_in_one_file_without_the_one_that_is_damaged(kohort, tmp_path):
    for name in ("east", "north", "west"):
        publish(tmp_path / name, {"lag": [{"group_id": "g"}] * 2}, cluster=name)
    (file,) = (tmp_path / "north" / "gold").rglob("*.parquet")
    file.write_bytes(b"nothing")
    directories = [f"--out={tmp_path / name}" for name in ("east", "north", "west")]

    ran = kohort(
        *("pipeline", "export", *directories, "--to", str(tmp_path / "files")),
        *("--format", "csv", "--table", "lag"),
    )

    assert ran.code == 1
    assert ran.rows[1][:2] == ["lag", "4"]
    (line,) = ran.complaints
    assert line.startswith(f"kohort: {tmp_path / 'north'}/gold/lag/")
    assert "part-0.parquet cannot be read: " in line
    lines = (tmp_path / "files" / "lag.csv").read_text().splitlines()
    assert [one.rpartition(",")[2] for one in lines] == ["cluster", *["east"] * 2, *["west"] * 2]
