# SPDX-License-Identifier: Apache-2.0
"""What became of real clients, held against who did it to them.

`tests/data/crashes.tar.xz` is the group log of a Kohort broker, with clients of librdkafka in three
groups: classic, cooperative, consumer. Each lives the same day: b is killed, c leaves, d hangs for
longer than its poll interval of 6.5 s, a is killed, d leaves. Sessions take 6 s, commits come every
second, and 20 records a second and partition are produced all the while. The thresholds of
`history.removals` were set before this was recorded.
"""

import json
import tarfile
from base64 import urlsafe_b64encode
from functools import cache
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

import pyarrow as pa
import pyarrow.compute as pc

from kohort.history import History, HistoryInputs, Names, RebalanceRow, Record
from kohort.pipeline.columns.decode import decode
from kohort.pipeline.columns.events import events
from kohort.pipeline.columns.segments import parse
from kohort.pipeline.schemas import DECODED

ARCHIVE = Path(__file__).parents[1] / "data" / "crashes.tar.xz"
GROUPS = ("classic", "coop", "new")
LIKELY = {"kill": "went silent", "hang": "went silent", "leave": "left at work"}
WRITTEN = {"kill": "session timeout", "hang": "leave", "leave": "leave"}
"""A client that has hung leaves when it notices."""


@cache
def recorded():
    """The decoded rows, and the story."""
    pieces, story = [], None
    with tarfile.open(ARCHIVE) as tar:
        for member in tar.getmembers():
            data = tar.extractfile(member).read()
            if member.name == "story.json":
                story = json.loads(data)
                continue
            partition = int(member.name.partition("/")[0].rpartition("-")[2])
            pieces += [decode(one) for one in parse(data, partition).pieces]
    return pa.Table.from_batches(pieces, DECODED.arrow), story


def removals(group, *, headers, session_ms=None):
    """The rebalances by which somebody went, in order."""
    rows, _ = recorded()
    ids = zip(rows["topic_id"].to_pylist(), rows["topic"].to_pylist(), strict=True)
    names = {urlsafe_b64encode(one).decode().rstrip("="): topic for one, topic in ids if one}
    happened = events(rows.filter(pc.equal(rows["group_id"], group)))
    if not headers:
        for one in happened:
            if isinstance(one, Record):
                one.causes = []
    history = History(HistoryInputs(Names(names), session_ms, 0))
    history.feed(happened)
    found = [*history.closed, *history.open_rows()]
    rebalances = [one for one in found if isinstance(one, RebalanceRow) and one.gone]
    return sorted(rebalances, key=lambda row: row.offset)


def done_to(group):
    return [one for one in recorded()[1] if one["group"] == group]


@pytest.mark.parametrize("session_ms", [None, 6000])
@pytest.mark.parametrize("group", GROUPS)
def test_what_is_likely_is_what_was_done(group, session_ms):
    found = removals(group, headers=False, session_ms=session_ms)
    assert [(one.client_id, one.likely) for row in found for one in row.likely] == [
        (one["client"], LIKELY[one["what"]]) for one in done_to(group)
    ]
    for row in found:
        if row.likely[0].likely == "went silent":
            assert row.trigger == "unknown"  # likely is no proof


@pytest.mark.parametrize("group", GROUPS)
def test_what_the_broker_wrote_is_proof(group):
    assert [(row.trigger, row.possible) for row in removals(group, headers=True)] == [
        (WRITTEN[one["what"]], []) for one in done_to(group)
    ]


@pytest.mark.parametrize("group", GROUPS)
def test_a_kill_costs_what_its_clients_felt(group):
    """From the kill on nobody reads, until the session has ended and the next one commits."""
    for row, one in zip(removals(group, headers=True), done_to(group), strict=True):
        found = [part for part in row.unread if part.seconds is not None]
        if one["what"] == "leave":
            assert all(part.seconds < 2 for part in found)
            continue
        assert found
        for part in found:
            assert abs(part.since / 1000 - one["at"]) < 3500  # commits are a second apart
            assert 5 < part.seconds < 14
        unowned = max((part.seconds or 0 for part in row.unowned), default=0)
        assert row.longest_unread_seconds > 4 * unowned
