# SPDX-License-Identifier: Apache-2.0
"""The tables as Arrow, without Spark: what a program asks for, and what it is told instead."""

import shutil
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc
import pytest

pytest.importorskip("pyspark")

from tests.tables.published import add_log, grow_old, publish, write

import kohort.tables
from kohort.errors import KohortError
from kohort.pipeline.format.arrow_reader import GoneError
from kohort.pipeline.format.manifest import Gold
from kohort.pipeline.format.writer import Writer
from kohort.pipeline.schemas import GOLD
from kohort.pipeline.schemas.progress import LAG, OFFSETS
from kohort.pipeline.sources.log_position import Identity

AT = datetime(2026, 11, 21, 7, tzinfo=UTC)
LAGS = [
    {"partition": 0, "group_id": group, "topic": "t", "at": AT, "lag_records": lag}
    for group, lag in [("a", 5), ("b", 7), ("b", None)]
]


@pytest.fixture
def out(tmp_path):
    state = [{"group_id": one} for one in ("a", "b", "checkout")]
    return publish(
        tmp_path,
        {"lag": LAGS, "group_state": state},
        as_of_ms=int(AT.timestamp() * 1000),
    )


def test_a_table_is_read_as_arrow_with_the_columns_and_rows_that_are_asked_for(out):
    whole = kohort.tables.read(out, "lag")
    some = kohort.tables.read(str(out), "lag", columns=["lag_records", "group_id"], group="b")
    more = kohort.tables.read(out, "lag", group=["a", "b"], where=pc.field("lag_records") > 5)

    assert whole.schema.equals(LAG.arrow.append(pa.field("cluster", pa.string())))
    assert [row["lag_records"] for row in whole.to_pylist()] == [5, 7, None]
    assert some.to_pylist() == [
        {"lag_records": 7, "group_id": "b"},
        {"lag_records": None, "group_id": "b"},
    ]
    assert [row["lag_records"] for row in more.to_pylist()] == [7]
    assert kohort.tables.read(out, "quarantine").num_rows == 0


def test_silver_is_read_by_the_columns_too(out):
    add_log(out)
    wanted = ["topic_id", "group_id"]

    whole = kohort.tables.read(out, "offset_commit")
    some = kohort.tables.read(out, "offset_commit", columns=wanted)
    of_group = kohort.tables.read(
        out, "offset_commit", columns=["committed_offset"], where=pc.field("group_id") == "nobody"
    )

    assert some.equals(whole.select(wanted))
    assert whole.num_rows > 50
    assert (of_group.num_rows, of_group.schema.names) == (0, ["committed_offset"])


def test_a_scan_gives_batches(out):
    reader = kohort.tables.scan(out, "lag", columns=["group_id"])

    assert reader.schema.names == ["group_id"]
    assert sum(batch.num_rows for batch in reader) == 3


def test_a_frame_of_pandas_is_a_call_away(out):
    frame = kohort.tables.read(out, "lag", group="a").to_pandas()

    assert frame["lag_records"].tolist() == [5]
    assert str(frame["at"].dt.tz) == "UTC"


def test_the_names_of_what_is_there(out):
    found = kohort.tables.names(out)

    assert found[:2] == ["records", "end_offsets"]
    assert "offset_commit" in found
    assert set(found) & {one.name for one in GOLD} == {"lag", "group_state"}


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"name": "lagg"}, "no table is called 'lagg': did you mean lag?"),
        ({"name": "status"}, "has no table status yet: the next `kohort pipeline run` computes"),
        ({"columns": ["lag_record"]}, "no column 'lag_record': did you mean lag_records?"),
        ({"columns": ["x"]}, "table lag has no column 'x', expected one of partition, group_id, "),
        ({"columns": "topic"}, "columns is the text 'topic', expected a list of names"),
        ({"group": "chekout"}, "no group is called 'chekout' in "),
        ({"group": "chekout"}, ": did you mean checkout?"),
        ({"name": "records", "group": "a"}, "table records has no groups"),
        ({"where": "lag > 5"}, "where is 'lag > 5', expected an expression of Arrow such as"),
        ({"where": pc.field("lagg") > 5}, "no column that can be asked for is called 'lagg'"),
    ],
)
def test_what_is_not_there_is_one_sentence(out, asked, words):
    with pytest.raises(KohortError) as told:
        kohort.tables.read(out, **{"name": "lag", **asked})

    assert words in str(told.value)


def test_no_tables_and_no_pyarrow(tmp_path, monkeypatch):
    with pytest.raises(KohortError, match="does not exist: write some with"):
        kohort.tables.names(tmp_path / "nowhere")
    monkeypatch.setattr("kohort.tables.find_spec", lambda _: None)
    with pytest.raises(KohortError, match=r"pyarrow is not installed: pip install '.\[tables\]'"):
        kohort.tables.names(tmp_path)


def test_a_snapshot_is_of_one_moment_whatever_is_written_meanwhile(out):
    before = kohort.tables.snapshot(out)
    publish(out, {"lag": LAGS[:1], "offsets": [{"group_id": "a"}]})
    after = kohort.tables.snapshot(out)

    assert before.as_of == AT
    assert before.written_at <= after.written_at
    assert before.read("lag").num_rows == 3
    assert after.read("lag").num_rows == 1
    assert "offsets" not in before.names
    assert "offsets" in after.names
    with pytest.raises(KohortError, match="has no table offsets yet"):
        before.read("offsets")


def test_rows_of_other_partitions_in_a_part_do_not_count(tmp_path):
    with Writer(tmp_path) as writer:
        rows = [{"partition": one, "group_id": "g", "committed_offset": one} for one in range(4)]
        parts = (write(writer, OFFSETS, rows, (1, 3)), write(writer, OFFSETS, rows[:1]))
        gold = {"offsets": Gold(columns="", parts=parts)}
        writer.publish(writer.manifest.with_(gold=gold))

    found = kohort.tables.read(tmp_path, "offsets", columns=["committed_offset"])

    assert sorted(found.column(0).to_pylist()) == [0, 1, 3]


def test_a_snapshot_that_is_too_old_says_so_and_gives_no_fewer_rows(out, monkeypatch):
    old = kohort.tables.snapshot(out)
    under_way = old.scan("lag")
    grow_old(monkeypatch)
    publish(out, {"lag": LAGS[:1]})

    with pytest.raises(GoneError, match="was written anew since its tables were opened"):
        old.read("lag")
    with pytest.raises(GoneError, match="while they were read, and a file of theirs is gone"):
        under_way.read_all()
    assert kohort.tables.read(out, "lag").num_rows == 1


def test_a_file_that_is_gone_is_told_and_not_left_out(out):
    place = next((out / "gold" / "lag").glob("0*"))
    shutil.rmtree(place)

    with pytest.raises(GoneError, match=f"{place} is gone, which the tables are made of"):
        kohort.tables.read(out, "lag")


def test_a_read_that_meets_a_flip_reads_anew(out, monkeypatch):
    grow_old(monkeypatch)
    opened = kohort.tables.snapshot
    flips = iter([True, True, False])

    def meet(directory):
        found = opened(directory)
        if next(flips):
            publish(directory, {"lag": LAGS[:2]})
        return found

    monkeypatch.setattr(kohort.tables, "snapshot", meet)

    assert kohort.tables.read(out, "lag").num_rows == 2
    flips = iter([True] * 9)
    with pytest.raises(GoneError):
        kohort.tables.read(out, "lag")


def test_what_is_read_is_arrow(out):
    assert isinstance(kohort.tables.read(out, "lag"), pa.Table)


@pytest.fixture
def two(tmp_path):
    """The tables of two clusters, one by a name and one by its id."""
    west = publish(tmp_path / "west", {"lag": LAGS}, cluster="west", identity=Identity("id-w", "t"))
    rows = [{"group_id": "b", "lag_records": 9}, {"group_id": "only-here", "lag_records": 1}]
    return west, publish(tmp_path / "east", {"lag": rows}, identity=Identity("id-e", "t"))


def test_the_last_column_says_of_which_cluster_a_row_is(out, two):
    west, east = two
    assert set(kohort.tables.read(out, "lag")["cluster"].to_pylist()) == {None}
    assert set(kohort.tables.read(east, "lag")["cluster"].to_pylist()) == {"id-e"}
    assert kohort.tables.snapshot(west).cluster == "west"
    alone = kohort.tables.read(west, "lag", columns=["cluster"], where=pc.field("lag_records") > 5)
    assert alone.to_pylist() == [{"cluster": "west"}]
    empty = kohort.tables.read(west, "quarantine")
    assert (empty.num_rows, empty.schema.names[-1]) == (0, "cluster")


def test_of_silver_too_the_cluster_alone_is_a_column(out):
    add_log(out)
    of_all = kohort.tables.read(out, "offset_commit", columns=["offset"])
    told = kohort.tables.read(out, "offset_commit", columns=["cluster"])
    assert (told.num_rows, told.schema.names) == (of_all.num_rows, ["cluster"])


def test_tables_of_an_older_kohort_have_no_past_yet(out):
    assert "lag_history" not in kohort.tables.names(out)
    with pytest.raises(KohortError, match="has no table lag_history yet: the next"):
        kohort.tables.read(out, "lag_history")


def test_several_directories_are_one_table(two):
    columns = ["cluster", "group_id", "lag_records"]
    found = kohort.tables.read(two, "lag", columns=columns, group="b").to_pylist()

    assert found == [
        {"cluster": "west", "group_id": "b", "lag_records": 7},
        {"cluster": "west", "group_id": "b", "lag_records": None},
        {"cluster": "id-e", "group_id": "b", "lag_records": 9},
    ]
    assert "lag" in kohort.tables.names(two)
    of_two = kohort.tables.scan(two, "lag", group=["only-here", "a"]).read_all()
    assert of_two["lag_records"].to_pylist() == [5, 1]
    with pytest.raises(KohortError, match="no group is called 'onlyhere'"):
        kohort.tables.read(two, "lag", group="onlyhere")


def test_rows_of_several_directories_can_be_told_apart(out, two, tmp_path):
    west, _ = two
    with pytest.raises(KohortError, match=f"{out} does not know of which cluster it is"):
        kohort.tables.read([west, out], "lag")
    with pytest.raises(KohortError, match="are both of cluster west"):
        kohort.tables.read([west, west], "lag")
    with pytest.raises(KohortError, match="no directory of tables is given"):
        kohort.tables.read([], "lag")
    late = publish(tmp_path / "late", {}, cluster="late")
    with pytest.raises(KohortError, match="late has no table lag yet"):
        kohort.tables.read([west, late], "lag")
    assert "lag" not in kohort.tables.names([west, late])


def test_fewer_files_are_never_fewer_rows(tmp_path):
    """One file of several has gone, or one has come that no run has written."""
    publish(tmp_path, {"lag": LAGS, "status": [{"group_id": "a"}]})
    (file,) = (tmp_path / "gold" / "lag").rglob("*.parquet")
    foreign = file.with_name("copy of part-0.parquet")
    shutil.copy(file, foreign)
    with pytest.raises(KohortError, match="has 6 rows and not 3, as it was written"):
        kohort.tables.read(tmp_path, "lag")
    foreign.unlink()
    assert kohort.tables.read(tmp_path, "lag").num_rows == 3
    file.unlink()
    with pytest.raises(KohortError, match="has 0 rows and not 3, as it was written"):
        kohort.tables.read(tmp_path, "lag")
    assert kohort.tables.read(tmp_path, "status").num_rows == 1  # the others are served


def test_rows_of_the_log_that_are_gone_are_told(tmp_path):
    add_log(tmp_path)
    file, *_ = sorted((tmp_path / "rows").rglob("kind=offset_commit/*.parquet"))
    file.unlink()
    with pytest.raises(KohortError, match="as it was written"):
        kohort.tables.read(tmp_path, "offset_commit")
    assert kohort.tables.read(tmp_path, "tombstone").num_rows > 0
