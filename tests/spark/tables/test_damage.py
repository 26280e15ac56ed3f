# SPDX-License-Identifier: Apache-2.0
"""A file that is damaged, one among many: one sentence, whatever reads it. Needs no Spark."""

import gzip
import json

import pytest

pytest.importorskip("pyspark")

from tests.spark.feeding import FedDecoded
from tests.tables.published import publish

from kohort.pipeline.format.manifest import TablesError, load
from kohort.pipeline.format.server_logs import _write
from kohort.pipeline.format.writer import Writer
from kohort.pipeline.sources.server_lines import MemberRemoval
from kohort.spark import jobs

LINE = MemberRemoval("g", "m", "leave", None, 0, 1)


@pytest.fixture
def log(tmp_path):
    """A broker's log file, and tables that have a line of an earlier one, which is damaged."""
    out = tmp_path / "out"
    with Writer(out) as writer:
        part = _write(writer, [(*LINE, "server.log")])
        writer.publish(writer.manifest.with_(server_log=(part,)))
    (file,) = (out / part.path).glob("*.parquet")
    file.write_bytes(file.read_bytes()[:-9])
    given = tmp_path / "server.log.gz"
    given.write_bytes(gzip.compress(b"nothing\n"))
    return out, given


def test_a_run_over_damaged_tables_is_one_sentence_and_changes_nothing(log):
    out, given = log
    before = load(out)

    with pytest.raises(
        TablesError, match=r"brought up to date: .*`kohort pipeline verify` says what"
    ):
        jobs.run(FedDecoded({}), out, server_logs=[given])

    assert load(out) == before
    assert len(jobs.verify(out).findings) == 1


@pytest.mark.parametrize(
    "sums", [b"", b"crc\0", b"crc\0\0\0\2\0\1\2\3", b"crc\0\0\0\2\0" + b"\0" * 8]
)
def test_damaged_checksums_are_a_finding_and_hide_no_other(tmp_path, sums):
    publish(tmp_path, {"lag": [{"group_id": "a"}], "status": [{"group_id": "a"}]})
    for table in ("lag", "status"):
        (file,) = (tmp_path / "gold" / table).rglob("*.parquet")
        file.with_name(f".{file.name}.crc").write_bytes(sums)

    assert len([one for one in jobs.verify(tmp_path).findings if "gold/" in one.file]) == 2


@pytest.mark.parametrize("path", ["../kept", "gold/../../kept", "{}/kept", "gold", "gold//lag", ""])
def test_a_forged_manifest_removes_nothing_that_is_not_of_the_tables(tmp_path, path):
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "letter").write_text("dear")
    publish(tmp_path / "out", {"lag": [{"group_id": "a"}]})
    manifest = tmp_path / "out" / "manifest.json"
    told = json.loads(manifest.read_text())
    told["retired"] = [{"path": path.format(tmp_path), "since_ms": 0}]
    manifest.write_text(json.dumps(told))

    with pytest.raises(TablesError, match="is no folder of rows in here"):
        publish(tmp_path / "out", {"lag": [{"group_id": "b"}]})

    assert (kept / "letter").exists()


@pytest.mark.parametrize("data", ['{"schema_version": 1, "number": NaN}', "utf-16"])
def test_what_one_reader_of_json_takes_and_the_other_does_not_is_no_manifest(tmp_path, data):
    publish(tmp_path, {"lag": [{"group_id": "a"}]})
    manifest = tmp_path / "manifest.json"
    text = manifest.read_text().encode("utf-16") if data == "utf-16" else data.encode()
    manifest.write_bytes(text)
    with pytest.raises(TablesError, match="is not a manifest of tables"):
        load(tmp_path)
