# SPDX-License-Identifier: Apache-2.0
"""`kohort pipeline export --format iceberg`."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyiceberg")

from tests.tables.published import grow_old, publish

from kohort.tables import iceberg


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
    grow_old(monkeypatch)
    stage = iceberg._stage
    flips = iter([False, True])

    def meet(*arguments):
        if next(flips, False):
            publish(out, {"lag": [{"group_id": "new"}], "status": [{"group_id": "new"}]})
        return stage(*arguments)

    monkeypatch.setattr(iceberg, "_stage", meet)

    ran = export(f"--to={tmp_path / 'lake'}", "--table=lag", "--table=status")

    assert [row[:2] for row in ran.rows[1:]] == [["lag", "1"], ["status", "1"]]
    assert len([*(tmp_path / "lake").rglob("*.parquet")]) == 2


def test_an_interrupt_while_tables_change_says_so(export, tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(iceberg.Lake, "_commit", interrupted)
    ran = export(f"--to={tmp_path / 'lake'}", "--table=lag")
    assert ran.code == 130
    assert ran.complaints == [
        "kohort: interrupted while writing tables: it may be done all the same"
    ]


def test_a_wrong_call_leaves_nothing_behind(export, kohort, tmp_path):
    to = tmp_path / "lake"
    assert export(f"--to={to}", "--table=lagg").code == 1
    assert export(f"--to={to}", "--namespace=a..b").code == 1
    argv = ("pipeline", "export", f"--out={tmp_path / 'missing'}", "--format=iceberg")
    assert kohort(*argv, f"--to={to}").code == 1
    assert not to.exists()


def test_settings_of_pyiceberg_that_cannot_be_read_are_one_sentence(out, tmp_path):
    (tmp_path / ".pyiceberg.yaml").write_text("a: [")
    command = [sys.executable, "-m", "kohort", "pipeline", "export", f"--out={out}"]
    command += ["--format=iceberg", f"--to={tmp_path / 'lake'}"]

    ran = subprocess.run(
        command,
        env={**os.environ, "PYICEBERG_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (ran.returncode, ran.stdout) == (1, "")
    (line,) = ran.stderr.splitlines()
    assert line.startswith("kohort: pyiceberg does not start: ")


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
