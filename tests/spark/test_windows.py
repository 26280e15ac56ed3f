"""The replayed histories say what the windows of the first gold said, cell by cell.

The windows were held against real clients for long. They stay here as the second opinion: on
recorded lives, on what cleaners leave of them, on logs with holes, on real brokers' logs.
"""

import random
from collections import Counter
from itertools import pairwise

import pytest

pytest.importorskip("pyspark")

import pyarrow as pa
import pyarrow.compute as pc
from tests.spark import rows
from tests.spark.gold import stories
from tests.spark.histories import compaction, replay
from tests.spark.windows.assignments import assignments
from tests.spark.windows.members import members
from tests.spark.windows.rebalances import NEW, rebalances

from kohort.history import History, Names, Told
from kohort.spark.columns.decode import decode
from kohort.spark.columns.events import events
from kohort.spark.columns.located import InColumns
from kohort.spark.gold import Context, membership
from kohort.spark.gold.completeness import complete_from
from kohort.spark.gold.names import topic_names
from kohort.spark.gold.replayed import with_histories
from kohort.spark.schemas import DECODED, END_OFFSETS
from kohort.spark.tables.silver import views

APART = 10_000  # partitions between one set of logs and the next
FOLDERS = ("1-written", "2-compacted", "3-compacted-again", "4-killed", "codec-zstd", "legacy")
SESSIONS = (None, 4000)
CONTEXT = Context(replay.AS_OF)
TABLES = {"members": members, "assignments": assignments, "rebalances": rebalances}


def logs():
    """Decoded rows of all of them, side by side."""
    recorded = [history.rows for history in replay.histories().values()]
    yield from recorded
    for variant, (name, history) in enumerate(replay.histories().items()):
        part = compaction.compacted(history.rows, f"{name} windows")
        yield replay.renamed(part, "~compacted", APART)
        chance = random.Random(variant)
        loss = chance.choice([0.03, 0.15, 0.4])
        left = [one for one in range(history.rows.num_rows) if chance.random() > loss]
        yield replay.renamed(history.rows.take(left), "~holes", 2 * APART)
    for number, name in enumerate(FOLDERS):
        yield replay.renamed(decoded(rows.golden(name)), "", 3 * APART + 100 * number)
    yield replay.renamed(decoded(stories.all_rows()), "", 4 * APART)


def decoded(raw):
    return pa.Table.from_batches([decode(InColumns(raw))], DECODED.arrow)


@pytest.fixture(scope="module")
def everything():
    return replay.merged(list(logs()))


@pytest.fixture(scope="module")
def frames(spark, everything):
    ends = replay.merged([history.end_offsets for history in replay.histories().values()])
    frame = spark.createDataFrame(everything).cache()
    found = {**views(frame), END_OFFSETS.name: spark.createDataFrame(ends)}
    yield found
    frame.unpersist()


@pytest.fixture(scope="module")
def expected(frames, spark):
    """Session -> table -> its rows by the windows."""
    found = {}
    for session_ms in SESSIONS:
        context = CONTEXT._replace(session_timeout_ms=session_ms)
        known = dict(frames)
        for name, compute in TABLES.items():
            kept = compute(known, context).toArrow()
            known[name] = spark.createDataFrame(kept)
            found[session_ms, name] = counted(kept)
    return found


def counted(table):
    """Each row, and how often it is there; without what the windows could not tell."""
    names = sorted({*table.column_names} - {*NEW, "complete_from"})
    columns = [table[name] for name in names]
    plain = pa.table(
        [one.cast(pa.int64()) if pa.types.is_timestamp(one.type) else one for one in columns],
        names=names,
    )
    return Counter(map(repr, plain.to_pylist()))


@pytest.mark.parametrize("session_ms", SESSIONS)
def test_the_tables_are_those_of_the_windows(frames, expected, session_ms):
    context = CONTEXT._replace(session_timeout_ms=session_ms)
    replayed = with_histories(frames, context)
    for name in TABLES:
        found = counted(getattr(membership, name)(replayed, context).toArrow())
        wanted = expected[session_ms, name]
        assert found.total() == wanted.total() > 500
        assert found - wanted == wanted - found == Counter(), name


def by_group(everything):
    """(partition, group) -> its rows."""
    there = everything.filter(pc.is_valid(everything["group_id"]))
    keys = zip(there["partition"].to_pylist(), there["group_id"].to_pylist(), strict=True)
    places = {}
    for place, key in enumerate(keys):
        places.setdefault(key, []).append(place)
    return {key: there.take(found) for key, found in places.items()}


def test_cut_anywhere_they_are_the_whole(frames, everything):
    """Real lives too, commit by commit, put aside and gone on with."""
    names = Names({row["topic_id"]: row["topic"] for row in topic_names(frames).collect()})
    complete = {row["partition"]: row["complete_offset"] for row in complete_from(frames).collect()}
    cuts = 0
    for (partition, group_id), found in by_group(everything).items():
        told = Told(names, None, complete.get(partition))
        happened = events(found)
        chance = random.Random(f"{partition} {group_id}")
        for _ in range(2):
            places = sorted(chance.choices(range(len(happened) + 1), k=chance.randint(1, 4)))
            cuts += len(places)
            bounds = [0, *places, len(happened)]
            pieces = [happened[low:high] for low, high in pairwise(bounds)]
            assert fed(told, pieces) == fed(told, [happened]), (partition, group_id, places)
    assert cuts > 1000


def fed(told, pieces):
    closed, state = [], None
    for piece in pieces:
        history = History(told, state)
        history.feed(piece)
        closed += history.closed
        state = history.state()
    return Counter(map(repr, [*closed, *History(told, state).open_rows()]))
