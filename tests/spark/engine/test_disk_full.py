# SPDX-License-Identifier: Apache-2.0
"""A full disk: which one it may be, and that the tables are whole."""

import errno

import pyarrow.compute as pc
import pytest

pytest.importorskip("pyspark")

from tests import golden_logs
from tests.spark.feeding import Fed
from tests.spark.killed import AS_OF
from tests.spark.measures import compute_only
from tests.spark.rows import golden

from kohort.errors import KohortError
from kohort.pipeline.format import delta_log_writer, up_to_date
from kohort.pipeline.format.arrow_reader import Tables
from kohort.pipeline.format.manifest import TablesError
from kohort.pipeline.sources.log_position import Identity
from kohort.spark import jobs, streaming
from kohort.spark.engine.disk_full import disk_full_or_none
from kohort.spark.gold import MEASURES
from kohort.spark.tables import ingest


def caused(error, cause):
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(errno.ENOSPC, "x", "/out/part-0"), "No space left on device: /out/part-0 (free: "),
        (OSError(errno.EDQUOT, "x"), "Disk quota exceeded (free: "),
        (RuntimeError("java.io.IOException: No space left on device"), "No space left on device"),
        (caused(RuntimeError("task 3"), OSError(errno.ENOSPC, "x")), "No space left on device"),
    ],
)
def test_a_full_disk_is_told_with_both_places_and_what_is_left(error, words, tmp_path, monkeypatch):
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path}/a,{tmp_path}/b")

    text = disk_full_or_none(error, None, tmp_path / "out")

    assert text.startswith(words)
    for place in (f"in {tmp_path}/out for the tables", f"in {tmp_path}/b for what Spark sorts"):
        assert place in text
    assert text.endswith(f"The tables in {tmp_path}/out are whole, and as they were before")


def test_no_other_error_is_one():
    assert disk_full_or_none(OSError(errno.EACCES, "x"), None, "/out") is None
    assert disk_full_or_none(RuntimeError("no space between them"), None, "/out") is None


class Full:
    """A log whose reading needs room."""

    def identity(self):
        return Identity(None, None)

    def plan(self, *_, **__):
        raise OSError(errno.ENOSPC, "x", "/tmp/spill")


def test_a_run_says_where_there_is_no_room(tmp_path):
    with pytest.raises(KohortError) as failed:
        jobs.run(Full(), tmp_path / "out")

    text = str(failed.value)
    assert f"{tmp_path}/out cannot be brought up to date: No space left on device: /tmp/sp" in text
    assert "are whole, and as they were before" in text


def full(*_, **__):
    raise OSError(errno.ENOSPC, "No space left on device")


def records(out):
    return Tables(out).table("records").num_rows


@pytest.fixture
def one_measure(monkeypatch):
    compute_only(monkeypatch, [one for one in MEASURES if one.table.name == "commits"])


BEHIND = "and have all that was published until then"
FOR_DELTA = "is up to date, but not for readers of Delta, whose logs cannot be written: No space le"


@pytest.mark.usefixtures("one_measure")
@pytest.mark.parametrize(
    ("where", "what", "words"),
    [
        (delta_log_writer, "commit", FOR_DELTA),
        (jobs, "merge_and_expire", BEHIND),
        (up_to_date, "remember", BEHIND),
    ],
    ids=["the logs of Delta", "what tidies up", "what tells that nothing is new"],
)
def test_a_disk_that_is_full_behind_a_flip_says_what_has_become_of_the_tables(
    spark, tmp_path, monkeypatch, where, what, words
):
    rows = golden("1-written")
    rows = rows.filter(pc.equal(rows["partition"], 0))
    monkeypatch.setattr(where, what, full)

    with pytest.raises(TablesError) as failed:
        jobs.run(Fed({0: rows}), tmp_path, spark=spark, as_of=AS_OF)

    assert records(tmp_path) > 0
    assert words in str(failed.value)
    assert "as they were before" not in str(failed.value)


@pytest.mark.usefixtures("one_measure")
@pytest.mark.parametrize("fails_at", [0, 1], ids=["at once", "later"])
def test_a_stream_says_where_there_is_no_room_and_what_has_become_of_the_tables(
    spark, tmp_path, monkeypatch, fails_at
):
    """What its first micro-batch has added is there."""
    log, flips = golden_logs.unpack("1-written", tmp_path / "log"), []

    def add(*args, **more):
        if len(flips) == fails_at:
            full()
        flips.append(ingest.add(*args, **more))
        return flips[-1]

    monkeypatch.setattr(streaming, "add", add)
    with pytest.raises(TablesError) as failed:
        jobs.stream(f"log:{log}", tmp_path / "out", spark=spark, as_of=AS_OF, max_records=200)

    text = str(failed.value)
    assert text.startswith("No space left on device (free: ")
    assert text.endswith(f"The tables in {tmp_path}/out are whole, {BEHIND}")
    if fails_at:
        assert records(tmp_path / "out") == sum(flips[0].rows.values())
