# SPDX-License-Identifier: Apache-2.0
"""Log files as proof however they come, gold anew, and damage of every kind found."""

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")

from tests.archives import unpack_into
from tests.spark.feeding import FedDecoded
from tests.spark.histories import replay
from tests.spark.measures import compute_only

from kohort.pipeline.format.arrow_reader import Tables
from kohort.pipeline.format.manifest import TablesError, load
from kohort.pipeline.format.writer import Writer
from kohort.pipeline.sources.server_log import ServerLogError
from kohort.spark import jobs
from kohort.spark.gold import MEASURES
from kohort.spark.gold.history_replay import TABLES
from kohort.spark.tables import verification

DATA = Path(__file__).parents[2] / "data" / "server_logs"
NAMES = sorted(path.name.removesuffix(".tar.xz") for path in DATA.glob("*.tar.xz"))
AS_OF = replay.AS_OF
CAUSES = {
    "classic-life": ["leave", "leave", "session timeout"],
    "classic-stall": ["rebalance timeout"],
    "consumer-life": ["leave", "leave", "session timeout"],
    "consumer-stall": ["rebalance timeout"],
    "consumer-static": [],
    "kicked": ["leave"],
    "kicked-consumer": ["leave"],
    "kicked-static": ["leave"],
}

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module", autouse=True)
def only_histories():
    """All that is asked here is the same for tables that cost more."""
    names = [table.name for table in TABLES.values()]
    with pytest.MonkeyPatch.context() as patch:
        compute_only(patch, [one for one in MEASURES if one.table.name in names])
        yield


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Partition -> rows of real groups, and what their brokers have said, in a zone of its own."""
    folder = tmp_path_factory.mktemp("server-logs")
    rows, files = {}, []
    for number, name in enumerate(NAMES):
        unpack_into(folder / name, DATA / f"{name}.tar.xz")
        files.append(folder / name / "server.log")
        found = [
            replay.decode(piece)
            for path in sorted((folder / name).glob("__consumer_offsets-*/*.log"))
            for piece in replay.parse(
                path.read_bytes(), 10 * number + int(path.parent.name.rpartition("-")[2])
            ).pieces
        ]
        table = pa.Table.from_batches(found, replay.DECODED.arrow)
        for partition in table["partition"].unique().to_pylist():
            mask = pa.compute.equal(table["partition"], partition)
            rows[partition] = table.filter(mask).sort_by("offset")
    return rows, files


@pytest.fixture(scope="module")
def made(spark, recorded, tmp_path_factory):
    """Tables that have seen the rows and the files at once."""
    rows, files = recorded
    out = tmp_path_factory.mktemp("made")
    summary = jobs.run(FedDecoded(rows), out, spark=spark, as_of=AS_OF, server_logs=files)
    return out, summary


@pytest.fixture
def copy(made, tmp_path):
    return Path(shutil.copytree(made[0], tmp_path / "copy"))


def rebalances(out):
    return sorted(map(repr, Tables(out).table("rebalances").to_pylist()))


def causes(out):
    """Name of a recording -> the causes of rebalances in which somebody was gone."""
    found = {name: [] for name in NAMES}
    for row in Tables(out).table("rebalances").to_pylist():
        if row["gone"]:
            name = row["group_id"].removesuffix("-kafka-g")
            found[name].append(row["trigger"])
    return {name: sorted(those) for name, those in found.items()}


def test_the_cause_is_what_the_broker_has_said(made):
    out, summary = made
    assert causes(out) == CAUSES
    assert sum(one.lines for one in summary.server_logs) == 11
    said = [row["evidence"] for row in Tables(out).table("rebalances").to_pylist() if row["gone"]]
    assert all("server.log says at 2026-11-24" in one and "+05:45" in one for one in said)


def test_a_file_that_comes_later_changes_what_is_over(spark, made, recorded, tmp_path):
    rows, files = recorded
    half = {one: table.slice(0, table.num_rows // 2) for one, table in rows.items()}
    jobs.run(FedDecoded(half), tmp_path, spark=spark, as_of=AS_OF, server_logs=files[:3])
    jobs.run(FedDecoded(rows), tmp_path, spark=spark, as_of=AS_OF)
    assert any("unknown" in those for those in causes(tmp_path).values())
    last = jobs.run(FedDecoded(rows), tmp_path, spark=spark, as_of=AS_OF, server_logs=files)
    assert [one.fresh for one in last.server_logs[:3]] == [0, 0, 0]
    assert rebalances(tmp_path) == rebalances(made[0])
    again = jobs.run(FedDecoded(rows), tmp_path, spark=spark, as_of=AS_OF, server_logs=files)
    assert not any(one.fresh for one in again.server_logs)
    assert len(load(tmp_path).server_log) == 2


def test_a_missing_file_changes_nothing(spark, copy, recorded):
    before = load(copy)
    with pytest.raises(ServerLogError, match=r"nothing\.log does not exist"):
        jobs.run(FedDecoded(recorded[0]), copy, spark=spark, server_logs=[copy / "nothing.log"])
    assert load(copy) == before


def test_a_rebuild_is_as_good_as_new(spark, made, copy):
    shutil.rmtree(next((copy / "gold" / "rebalances").glob("0*")))
    for one in load(copy).gold["assignments"].parts:
        shutil.rmtree(copy / one.path)
    found = jobs.rebuild(copy, spark=spark)
    before, after = load(made[0]), load(copy)
    assert rebalances(copy) == rebalances(made[0])
    assert found.tables == {name: (rows, rows) for name, rows in before.gold_rows().items()}
    assert (after.as_of_ms, after.settings, after.increments) == (
        before.as_of_ms,
        before.settings,
        before.increments,
    )
    assert jobs.verify(copy, every=True, spark=spark).findings == ()


def test_a_rebuild_without_all_rows_changes_nothing(spark, copy):
    before = load(copy)
    next(copy.glob("rows/*/kind=*/*.parquet")).unlink()
    with pytest.raises(TablesError, match=r"verify .* says what is wrong; nothing was changed"):
        jobs.rebuild(copy, spark=spark)
    assert load(copy) == before


def test_there_is_nothing_to_rebuild_where_there_are_no_tables(spark, tmp_path):
    with pytest.raises(TablesError, match="holds no tables"):
        jobs.rebuild(tmp_path, spark=spark)
    assert [*tmp_path.iterdir()] == []


def test_what_is_well_is_said_so(spark, made):
    found = jobs.verify(made[0], spark=spark)
    assert (found.findings, len(found.partitions)) == ((), verification.SAMPLE)


def a_file(copy, pattern):
    return max(copy.glob(pattern), key=lambda file: file.stat().st_size)


def flip_a_bit(file):
    data = bytearray(file.read_bytes())
    data[len(data) // 3] ^= 1
    file.write_bytes(data)


def foreign(copy):
    file = copy / "gold" / "assignments" / "foreign" / "x.parquet"
    file.parent.mkdir()
    file.write_bytes(b"x")


DAMAGE = {
    "missing": (
        lambda copy: a_file(copy, "rows/*/kind=tombstone/*.parquet").unlink(),
        "rows, found 0",
    ),
    "truncated": (
        lambda copy: (file := a_file(copy, "gold/rebalances/*/*.parquet")).write_bytes(
            file.read_bytes()[:-100]
        ),
        "gold/rebalances/",
    ),
    "flipped": (lambda copy: flip_a_bit(a_file(copy, "gold/members/*/*.parquet")), "gold/members/"),
    "flipped rows": (
        lambda copy: flip_a_bit(a_file(copy, "rows/*/kind=tombstone/*.parquet")),
        "kind=tombstone/",
    ),
    "flipped lines": (
        lambda copy: flip_a_bit(a_file(copy, "server_logs/*/*.parquet")),
        "lines.par",
    ),
    "a part is gone": (
        lambda copy: shutil.rmtree(a_file(copy, "gold/assignments/*/*.parquet").parent),
        "found no such directory",
    ),
    "foreign": (
        foreign,
        "gold/assignments/foreign: expected nothing that the manifest does not know",
    ),
    "beside the tables": (
        lambda copy: (copy / "gold" / "notes.txt").write_text("x"),
        "gold/notes.txt: expected nothing that the manifest does not know, found a file of 1 bytes",
    ),
    "foreign file": (
        lambda copy: (a_file(copy, "gold/assignments/*/*.parquet").parent / "x.txt").write_text(
            "x"
        ),
        "x.txt: expected nothing but files of Parquet, found a file of 1 bytes",
    ),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_of_files_is_named(copy, kind):
    harm, words = DAMAGE[kind]
    harm(copy)
    found = jobs.verify(copy)  # needs no Spark
    (one,) = found.findings
    assert words in str(one)
    assert found.partitions is None


def test_other_versions_are_named(copy):
    with Writer(copy) as writer:
        writer.publish(writer.manifest.with_(code="another"))
    found = jobs.verify(copy)
    assert found.why_not == "another Kohort has computed it"
    (one,) = found.findings
    assert "expected gold that this Kohort has computed, found that of another" in str(one)
    text = (copy / "manifest.json").read_text()
    (copy / "manifest.json").write_text(text.replace('"schema_version": 2', '"schema_version": 0'))
    with pytest.raises(TablesError, match="schema version 0"):
        jobs.verify(copy)


def test_a_hole_that_no_note_tells_of_is_named(copy):
    with Writer(copy) as writer:
        (one,) = writer.manifest.increments
        partition, (_, end) = next(iter(one.ranges.items()))
        later = type(one)(
            name=one.name, ranges={partition: (end + 5, end + 9)}, counts={}, planned=True
        )
        writer.manifest = writer.manifest.with_(increments=(one, later))
        found = [*verification.holes(writer.manifest)]
    (only,) = map(str, found)
    assert only.startswith(f"rows: expected offsets {end} to {end + 4} of partition {partition},")


@pytest.mark.parametrize("every", [True, False])
def test_a_row_of_gold_that_was_altered_is_shown(spark, copy, every):
    file = a_file(copy, "gold/members/*/*.parquet")
    rows = pq.read_table(file)
    index = rows.column_names.index("client_id")
    altered = pa.array(["somebody else"] * rows.num_rows, pa.string())
    pq.write_table(rows.set_column(index, "client_id", altered), file)
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)  # where Spark wrote it
    found = jobs.verify(copy, every=every, spark=spark)
    assert [one.file for one in found.findings] == ["gold/members", "gold/members"]
    assert "client_id=somebody else" in found.findings[0].found
