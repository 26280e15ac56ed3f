# SPDX-License-Identifier: Apache-2.0
"""A directory of logs looks another way as soon as something in it has changed."""

import os
import shutil

import pytest

pytest.importorskip("pyarrow")

from tests import golden_logs

from kohort.pipeline.sources import fingerprint as module
from kohort.pipeline.sources.fingerprint import directory_fingerprint, fingerprint, settled_or_none
from kohort.pipeline.sources.log_position import SourceError


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A log whose files count as old."""
    monkeypatch.setattr(module, "SETTLED_NS", 0)
    found = golden_logs.unpack("1-written", tmp_path)
    own = a_segment(found, "__consumer_offsets").parent
    shutil.copytree(own, found / "orders-0")
    return found


def a_segment(folder, topic):
    """A file with records of a topic."""
    return min(one for one in folder.glob(f"{topic}-*/*.log") if one.stat().st_size)


def appended(folder):
    with a_segment(folder, "__consumer_offsets").open("ab") as file:
        file.write(b"\0")


def written_over(folder):
    """Another record of the same size, and clocks set back."""
    file = a_segment(folder, "__consumer_offsets")
    before, data = file.stat(), bytearray(file.read_bytes())
    data[-1] ^= 1
    with file.open("r+b") as opened:
        opened.write(data)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def rolled(folder):
    (a_segment(folder, "__consumer_offsets").parent / "00000000000000009999.log").touch()


def removed(folder):
    a_segment(folder, "__consumer_offsets").unlink()


def cleaned(folder):
    file = a_segment(folder, "__consumer_offsets")
    file.with_name(f"{file.name}.swap").write_bytes(file.read_bytes())


def produced(folder):
    with a_segment(folder, "orders").open("ab") as file:
        file.write(b"\0")


def made(folder):
    (folder / "new-0").mkdir()
    (folder / "new-0" / "00000000000000000000.log").write_bytes(b"")


def begins_later(folder):
    (folder / "log-start-offset-checkpoint").write_text("0\n1\n__consumer_offsets 0 7\n")


def of_another_cluster(folder):
    (folder / "meta.properties").write_text("cluster.id=another\n")


def made_anew(folder):
    file = a_segment(folder, "orders").parent / "partition.metadata"
    file.write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ\n")


@pytest.mark.parametrize(
    "change",
    [
        appended,
        written_over,
        rolled,
        removed,
        cleaned,
        produced,
        made,
        begins_later,
        of_another_cluster,
        made_anew,
    ],
)
def test_whatever_changes_is_seen(folder, change):
    before = fingerprint(str(folder))
    assert before is not None
    assert fingerprint(f"file:{folder}/") == fingerprint(f"file:{folder}/")

    change(folder)

    assert fingerprint(str(folder)) != before


def test_what_says_nothing_of_a_log_is_not_looked_at(folder):
    """A broker writes these every few seconds, whatever happens."""
    before = fingerprint(str(folder))
    for name in ("replication-offset-checkpoint", "recovery-point-offset-checkpoint"):
        (folder / name).write_text("0\n1\n__consumer_offsets 0 7\n")
    index = a_segment(folder, "__consumer_offsets").with_suffix(".snapshot")
    index.write_bytes(b"x")
    assert fingerprint(str(folder)) == before


def test_what_was_written_just_now_may_be_written_again(folder, monkeypatch):
    monkeypatch.setattr(module, "SETTLED_NS", 3_600_000_000_000)
    assert fingerprint(str(folder)) is None


def test_a_directory_without_logs(tmp_path):
    with pytest.raises(SourceError, match="has no folder __consumer_offsets-0"):
        fingerprint(str(tmp_path))


def test_a_directory_that_goes_meanwhile_has_none(folder, monkeypatch):
    def gone(_):
        raise FileNotFoundError(2, "No such file or directory", str(folder))

    assert fingerprint(str(folder)) is not None
    monkeypatch.setattr(module.user_topics, "folders", gone)
    assert fingerprint(str(folder)) is None


def test_a_file_that_was_young_and_has_settled_as_it_was_tells(folder, monkeypatch):
    """On a broker's own directory the last commit is often younger than two seconds."""
    monkeypatch.setattr(module, "SETTLED_NS", 3_600_000_000_000)
    monkeypatch.setattr(module, "TICK_NS", 0)
    young = directory_fingerprint(str(folder))
    assert settled_or_none(str(folder), young) is None
    monkeypatch.setattr(module, "SETTLED_NS", 0)

    assert settled_or_none(str(folder), young._replace(age_ns=-1)) is None
    assert not young._replace(age_ns=-1).is_settled
    assert settled_or_none(str(folder), young) == fingerprint(str(folder)) == young.digest
    assert settled_or_none(str(folder), None) is None


@pytest.mark.parametrize("change", [appended, written_over, rolled, removed])
def test_a_file_that_was_young_and_has_changed_does_not(change, folder, monkeypatch):
    monkeypatch.setattr(module, "SETTLED_NS", 3_600_000_000_000)
    monkeypatch.setattr(module, "TICK_NS", 0)
    young = directory_fingerprint(str(folder))
    change(folder)
    monkeypatch.setattr(module, "SETTLED_NS", young.age_ns + 1)  # it was young then
    monkeypatch.setattr(
        module, "fingerprint", lambda path: directory_fingerprint(path).digest
    )  # and has settled

    assert settled_or_none(str(folder), young) is None


@pytest.mark.timeout(60)
def test_no_pipe_is_waited_for(folder):
    os.mkfifo(folder / "meta.properties")
    os.mkfifo(folder / "orders-0" / f"{77:020d}.log")

    assert fingerprint(str(folder)) is not None
