"""`kohort pipeline export --format iceberg`."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyiceberg")

from tests.tables.published import grow_old, publish

from kohort.tables.iceberg import Lake


@pytest.fixture
def out(tmp_path):
    return publish(tmp_path / "tables", {"lag": [{"group_id": "a"}] * 2, "status": []})


@pytest.fixture
def export(kohort, out, tmp_path):
    argv = ("pipeline", "export", "--out", str(out), "--format", "iceberg")
    return lambda *more: kohort(*argv, *more)


def test_the_command(export, tmp_path):
    to = f"--to={tmp_path / 'lake'}"
    first = export(to, "--table=lag")
    second = export(to, "--table=lag")
    third = export(to, "--table=lag", "--force")

    assert first.rows[1] == ["lag", "2", (tmp_path / "lake" / "kohort" / "lag").as_uri()]
    assert second.complaints == [
        "kohort: the table kohort.lag is there already: --force overwrites it"
    ]
    assert (first.code, second.code, third.code) == (0, 1, 0)


def test_tables_that_are_replaced_meanwhile_are_exported_anew(export, out, tmp_path, monkeypatch):
    """Also those that have been committed before."""
    grow_old(monkeypatch)
    staged = Lake._staged
    flips = iter([False, True])

    def meet(self, snapshot, name, identifier):
        if next(flips, False):
            publish(out, {"lag": [{"group_id": "new"}], "status": [{"group_id": "new"}]})
        return staged(self, snapshot, name, identifier)

    monkeypatch.setattr(Lake, "_staged", meet)

    ran = export(f"--to={tmp_path / 'lake'}", "--table=lag", "--table=status")

    assert [row[:2] for row in ran.rows[1:]] == [["lag", "1"], ["status", "1"]]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--format=iceberg"], "needs either --catalog or --to"),
        (["--format=iceberg", "--to=x", "--catalog=y"], "needs either --catalog or --to"),
        (["--format=csv"], "--to is missing"),
        (["--to=x", "--catalog=y"], "are for --format iceberg, not parquet"),
        (["--to=x", "--namespace=y"], "are for --format iceberg, not parquet"),
    ],
)
def test_options_that_do_not_fit(kohort, out, options, complaint):
    ran = kohort("pipeline", "export", f"--out={out}", *options)
    assert ran.code == 2
    assert complaint in ran.err


def test_a_missing_library_is_named(export, tmp_path, monkeypatch):
    monkeypatch.setattr("kohort.spark.find_spec", lambda name: None if "ice" in name else name)
    ran = export(f"--to={tmp_path / 'lake'}")
    assert ran.code == 1
    assert ran.complaints == [
        "kohort: pyiceberg is not installed: pip install '.[iceberg]' in a clone of Kohort"
    ]


def test_a_catalog_that_pyiceberg_is_configured_for(out, tmp_path):
    """It looks at its environment when it is imported."""
    there = {
        "PYICEBERG_CATALOG__OURS__TYPE": "sql",
        "PYICEBERG_CATALOG__OURS__URI": f"sqlite:///{tmp_path}/c.db",
        "PYICEBERG_CATALOG__OURS__WAREHOUSE": (tmp_path / "files").as_uri(),
    }
    command = [sys.executable, "-m", "kohort", "pipeline", "export", f"--out={out}"]
    command += ["--format=iceberg", "--catalog=ours", "--namespace=groups", "--table=lag"]

    ran = subprocess.run(
        command, env={**os.environ, **there}, capture_output=True, text=True, check=False
    )

    assert (ran.returncode, ran.stderr) == (0, "")
    place = (tmp_path / "files" / "groups" / "lag").as_uri()
    assert ran.stdout.splitlines()[1].split() == ["lag", "2", place]
