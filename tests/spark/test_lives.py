# SPDX-License-Identifier: Apache-2.0
"""Membership over logs of every kind: as it is written down, and the same in whatever pieces."""

import random
from collections import Counter
from itertools import pairwise

import pytest

pytest.importorskip("pyspark")

import pyarrow.compute as pc
from tests.spark.histories import lives

from kohort.history import History, HistoryInputs, Names
from kohort.pipeline.columns.events import events
from kohort.spark.gold.completeness import complete_from
from kohort.spark.gold.names import topic_names


@pytest.fixture(scope="module")
def everything():
    return lives.everything()


@pytest.fixture(scope="module")
def frames(spark, everything):
    return lives.frames_of(spark, everything)


def test_the_tables_are_as_they_are_written_down(frames):
    found, wanted = Counter(lives.told(frames)), Counter(lives.written())
    assert found.total() == wanted.total() > 3000
    assert found - wanted == wanted - found == Counter()


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
        told = HistoryInputs(names, None, complete.get(partition))
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
