"""A full disk: which one it may be, and that the tables are whole."""

import errno

import pytest

pytest.importorskip("pyspark")

from kohort.errors import KohortError
from kohort.spark import jobs
from kohort.spark.engine.no_room import no_room_or_none
from kohort.spark.sources.standing import Identity


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

    text = no_room_or_none(error, None, tmp_path / "out")

    assert text.startswith(words)
    for place in (f"in {tmp_path}/out for the tables", f"in {tmp_path}/b for what Spark sorts"):
        assert place in text
    assert text.endswith(f"The tables in {tmp_path}/out are whole, and as they were before")


def test_no_other_error_is_one():
    assert no_room_or_none(OSError(errno.EACCES, "x"), None, "/out") is None
    assert no_room_or_none(RuntimeError("no space between them"), None, "/out") is None


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
