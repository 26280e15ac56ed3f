# SPDX-License-Identifier: Apache-2.0
"""Where nothing is new, nothing is done; wherever there is a doubt, everything."""

import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyarrow")

from tests import golden_logs

from kohort.pipeline.format import up_to_date
from kohort.pipeline.format.manifest import Gold, Increment, Part, load
from kohort.pipeline.format.up_to_date import asked, remember, seen, summary_or_none
from kohort.pipeline.format.writer import BusyError, Writer
from kohort.pipeline.rollup.end_samples import append_samples
from kohort.pipeline.schemas import END_OFFSETS
from kohort.pipeline.sources import fingerprint
from kohort.pipeline.sources.log_position import SourceError

AS_OF = datetime(2026, 11, 22, tzinfo=UTC)
SAMPLE = {"sampled_at": AS_OF, "topic": "t", "topic_partition": 0, "end_offset": 1, "origin": "log"}
DAY = timedelta(days=1)


@pytest.fixture
def source(tmp_path, monkeypatch):
    monkeypatch.setattr(fingerprint, "SETTLED_NS", 0)
    return f"log:{golden_logs.unpack('1-written', tmp_path)}"


@pytest.fixture
def out(tmp_path, source):
    """Tables that a run has made of the log."""
    directory = tmp_path / "out"
    made(directory, asked(source))
    return directory


def made(directory, told, **more):
    with Writer(directory) as writer:
        place, rows = f"gold/counts/{writer.new_name('')}", f"increment={writer.new_name('')}"
        for path in (place, f"rows/{rows}/kind=tombstone"):
            (directory / path).mkdir(parents=True)
            pq.write_table(pa.table({"rows": [1, 2]}), directory / path / "part.parquet")
        times = {"oldest_ms": ms(AS_OF - DAY), "newest_ms": ms(AS_OF - DAY)}
        one = Increment(name=rows, ranges={0: (0, 2)}, counts={"tombstone": 2}, **times)
        following = writer.manifest.with_(
            source=told.source,
            gold={"counts": Gold(columns="", parts=(Part(path=place, rows=2),))},
            increments=(one,),
            as_of_ms=ms(AS_OF),
            **more,
        )
        writer.publish(following)
        remember(writer, told, seen(told))


def ms(moment):
    return int(moment.timestamp() * 1000)


def test_nothing_is_new(out, source):
    before = load(out)
    found = summary_or_none(out, asked(source))

    assert found is not None
    assert (found.rows, found.gold, found.notes) == ({}, {"counts": 2}, ())
    assert (found.unchanged, found.as_of, found.directory) == (True, AS_OF, out)
    assert found.log_end == AS_OF - DAY
    assert load(out) == before


def test_pyspark_is_not_imported():
    code = (
        "import sys, kohort.pipeline.format.up_to_date;print({'pyspark', 'py4j'} & {*sys.modules})"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert found.stdout == "set()\n"


@pytest.mark.parametrize(
    "other",
    [
        {"as_of": AS_OF},
        {"to_time": AS_OF},
        {"from_time": AS_OF},
        {"retention_ms": 1000},
        {"session_timeout_ms": 1000},
        {"keep_days": 900.0},
    ],
)
def test_another_order_is_another_run(out, source, other, tmp_path):
    assert summary_or_none(out, asked(source, **other)) is None
    made(tmp_path / "other", asked(source, **other))
    assert summary_or_none(tmp_path / "other", asked(source, **other)) is not None
    assert summary_or_none(tmp_path / "other", asked(source)) is None


@pytest.mark.parametrize("which", ["gold/counts", "rows"])
@pytest.mark.parametrize(
    "damage", [lambda file: file.unlink(), lambda file: file.write_bytes(b""), lambda file: None]
)
def test_files_that_are_not_as_they_were(out, source, which, damage):
    (file,) = (out / which).rglob("*.parquet")
    damage(file)
    assert (summary_or_none(out, asked(source)) is None) == (
        not file.exists() or not file.stat().st_size
    )


def test_a_directory_of_files_that_is_missing(out, source):
    (file,) = (out / "gold" / "counts").rglob("*.parquet")
    file.unlink()
    file.parent.rmdir()
    assert summary_or_none(out, asked(source)) is None


def test_a_log_that_goes_on(out, source, tmp_path):
    with next((tmp_path / "1-written").glob("__consumer_offsets-*/*.log")).open("ab") as file:
        file.write(b"\0")
    assert summary_or_none(out, asked(source)) is None


def test_a_log_that_is_gone(out, source, tmp_path):
    (tmp_path / "1-written").rename(tmp_path / "elsewhere")
    with pytest.raises(SourceError, match="there is no directory"):
        summary_or_none(out, asked(source))


def test_another_kohort(out, source, monkeypatch):
    monkeypatch.setattr(up_to_date, "code", lambda: "of tomorrow")
    assert summary_or_none(out, asked(source)) is None


def test_code_that_cannot_be_read_proves_nothing(source, tmp_path, monkeypatch):
    monkeypatch.setattr(up_to_date, "code", lambda: None)
    made(tmp_path / "other", asked(source))
    assert load(tmp_path / "other").basis is None
    assert summary_or_none(tmp_path / "other", asked(source)) is None


def test_whoever_writes_without_saying_so_is_a_doubt(out, source):
    with Writer(out) as writer:
        append_samples(writer, pa.Table.from_pylist([SAMPLE], schema=END_OFFSETS.arrow))
    assert load(out).basis is None
    assert summary_or_none(out, asked(source)) is None


def test_somebody_else_is_writing(out, source):
    with Writer(out), pytest.raises(BusyError):
        summary_or_none(out, asked(source))


def test_no_tables_yet(tmp_path, source):
    assert summary_or_none(tmp_path / "other", asked(source)) is None
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("source", ["cluster:127.0.0.1:9092", "parquet:/d", object()])
def test_of_other_sources_nothing_is_known(source, tmp_path):
    assert seen(asked(source)) is None
    made(tmp_path / "other", asked(source))
    assert load(tmp_path / "other").basis is None


@pytest.mark.parametrize(("days", "same"), [(2.0, True), (0.5, False)])
def test_rows_become_too_old_as_time_passes(source, tmp_path, days, same):
    told = asked(source, keep_days=days, as_of=AS_OF)
    made(tmp_path / "other", told)
    assert (summary_or_none(tmp_path / "other", told) is not None) == same


def test_rows_are_never_too_old_for_a_run_that_keeps_all(source, tmp_path, monkeypatch):
    monkeypatch.setattr(up_to_date.time, "time", lambda: 4e9)
    made(tmp_path / "other", asked(source))
    assert summary_or_none(tmp_path / "other", asked(source)) is not None
    made(tmp_path / "third", asked(source, keep_days=900.0))
    assert summary_or_none(tmp_path / "third", asked(source, keep_days=900.0)) is None
