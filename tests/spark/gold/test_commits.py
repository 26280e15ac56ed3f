# SPDX-License-Identifier: Apache-2.0
"""Committed offsets against what real brokers answered, and against our broker's own replay."""

import random
from collections import defaultdict

import pyarrow as pa
import pytest
from tests import golden_logs
from tests.spark import rows
from tests.spark.gold.progress_rows import BEGIN, at, commit, commits_frame, seconds

from kohort.coordinator.offsets.store import Offsets
from kohort.records.codec import Record
from kohort.records.schemas import (
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from kohort.spark.gold.commits import commits, offsets
from kohort.spark.gold.measure import Context
from kohort.spark.gold.rates import commit_rates

CONTEXT = Context(BEGIN)
APART = 10  # partitions of the log for one folder or story

FOLDERS = (
    *("1-written", "2-compacted", "3-compacted-again", "4-killed"),
    *("codec-gzip", "codec-lz4", "codec-snappy", "codec-zstd", "legacy"),
)
NOT_ANSWERED = {
    "4-killed": {"roll-0", "roll-1", "roll-2", "roll-3"},  # expired before anybody asked
    "legacy": {"before-bad-3"},  # the broker refuses the whole partition for the record after it
}
OPEN_IN = {"1-written", "2-compacted"}  # the transaction of this group, in two partitions
OPEN_GROUP = "txn-group-open"


def computed(spark, raw):
    frames = dict(rows.frames(spark, raw))
    frames["commits"] = commits(frames, CONTEXT).cache()
    return frames


def in_partition(batch, shift):
    moved = pa.compute.add(batch.column(0), pa.scalar(shift, pa.int32()))
    return pa.RecordBatch.from_arrays([moved, *batch.columns[1:]], schema=batch.schema)


def merged(batches):
    table = pa.Table.from_batches(
        [in_partition(batch, APART * index) for index, batch in enumerate(batches)]
    )
    return table.combine_chunks().to_batches()[0]


@pytest.fixture(scope="module")
def answered(spark):
    """What `offsets` says about each folder, out of one run over all of them."""
    frames = computed(spark, merged([rows.golden(name) for name in FOLDERS]))
    found = defaultdict(list)
    for row in offsets(frames, CONTEXT).collect():
        found[FOLDERS[row.partition // APART]].append(row)
    return found


def state_of(name):
    """(group, topic, partition) -> (offset, leader epoch, metadata), as OffsetFetch answered."""
    state = golden_logs.state(name)
    if name != "legacy":
        return {
            (one["group"], one["topic"], one["partition"]): (
                one["offset"],
                one["leader_epoch"],
                one["metadata"],
            )
            for one in state["offsets"]
        }
    return {
        (group["group"], topic["Name"], one["PartitionIndex"]): (
            one["CommittedOffset"],
            one["CommittedLeaderEpoch"],
            one["Metadata"],
        )
        for group in state["groups"]
        for topic in group["offset_fetch_v7"]["Topics"]
        for one in topic["Partitions"]
    }


@pytest.mark.parametrize("name", FOLDERS)
def test_offsets_are_what_the_broker_answered(answered, name):
    said = {
        (row.group_id, row.topic, row.topic_partition): (
            row.committed_offset,
            row.leader_epoch,
            row.metadata,
        )
        for row in answered[name]
        if row.committed_offset is not None and row.group_id not in NOT_ANSWERED.get(name, ())
    }
    assert said == state_of(name)
    pending = {row.group_id for row in answered[name] if row.pending}
    assert pending == ({OPEN_GROUP} if name in OPEN_IN else set())


def story(seed, length=40):
    """A random life of one group in one partition of the log: steps, in the order of offsets."""
    choose = random.Random(seed)
    steps = []
    for number in range(length):
        kind = choose.choices(["plain", "in", "remove", "end"], [3, 5, 1, 3])[0]
        index, producer = choose.randrange(2), choose.randrange(3)
        steps.append((kind, index, producer, 1000 + number, choose.random() < 0.6))
    return steps


def entry_of(step, group):
    kind, index, producer, offset, commits_it = step
    key = OffsetCommitKey(group=group, topic="t", partition=index)
    transactional = {"producer_id": producer, "producer_epoch": 0, "transactional": True}
    match kind:
        case "plain":
            return {"record": Record(key, value_of(offset))}
        case "in":
            return transactional | {"record": Record(key, value_of(offset))}
        case "remove":
            return {"record": Record(key, None)}
    marker = b"\x00\x00\x00\x01" if commits_it else b"\x00\x00\x00\x00"
    return transactional | {"control": True, "key": marker, "value": b"\x00\x00" + bytes(4)}


def value_of(offset):
    return OffsetCommitValue(offset=offset, metadata=f"at {offset}", commit_timestamp=1)


def replayed(steps):
    """What our broker has after each step: offsets by partition, and partitions that are open."""
    store = Offsets()
    for position, (kind, index, producer, offset, commits_it) in enumerate(steps):
        match kind:
            case "plain":
                store.put("g", ("t", index), value_of(offset), position)
            case "in":
                place = ("t", index)
                store.put_pending(
                    "g", place, value_of(offset), producer_id=producer, offset=position
                )
            case "remove":
                store.remove("g", "t", index)
            case "end":
                store.end_transaction(producer, commit=commits_it)
        table = store.of("g").get("t")
        held = {} if table is None else {one: table.offsets[one] for one in table.partitions()}
        yield held, {index for _, index in store.open_partitions("g")}


def test_transactions_are_resolved_as_the_broker_does_it(spark):
    """Random logs: after every record the commits that took effect are the broker's offsets."""
    stories = [story(seed) for seed in range(60)]
    raw = merged(
        [rows.raw([entry_of(step, f"g{n}") for step in steps]) for n, steps in enumerate(stories)]
    )
    frames = computed(spark, raw)
    events, last = defaultdict(list), defaultdict(dict)
    for row in frames["commits"].collect():
        events[row.partition // APART].append(row)
    for row in offsets(frames, CONTEXT).collect():
        last[row.partition // APART][row.topic_partition] = row
    for number, steps in enumerate(stories):
        after_each = list(replayed(steps))
        for position, (held, _) in enumerate(after_each):
            assert held == held_at(events[number], position), (number, position)
        held, open_ = after_each[-1]
        now = last[number]
        shown = {
            index: row.committed_offset
            for index, row in now.items()
            if row.committed_offset is not None
        }
        assert shown == held, number
        assert {index for index, row in now.items() if row.pending} == open_, number
        assert all(now[index].metadata == f"at {offset}" for index, offset in held.items())


def held_at(events, position):
    """Offsets by partition once the log is read up to a position, out of rows of `commits`."""
    newest = {}
    for row in sorted(events, key=lambda row: row.offset):
        if row.state in {"committed", "removed"} and row.effective_offset <= position:
            newest[row.topic_partition] = row.committed_offset
    return {index: offset for index, offset in newest.items() if offset is not None}


def test_every_version_and_the_oldest_key(spark):
    """Keys of type 0 and 1 are the same partition, and a tombstone of either removes it."""
    old_key = LegacyOffsetCommitKey(group="g", topic="t", partition=0)
    new_key = OffsetCommitKey(group="g", topic="t", partition=0)
    old = LegacyOffsetCommitValue(offset=5, metadata="old", commit_timestamp=7)
    frames = computed(
        spark,
        rows.raw(
            [
                Record(old_key, old),
                Record(new_key, OffsetCommitValue(offset=6, commit_timestamp=8)),
                Record(old_key, None),
                Record(old_key, old),
            ]
        ),
    )
    table = frames["commits"].orderBy("offset").collect()
    assert [(row.state, row.committed_offset) for row in table] == [
        ("committed", 5),
        ("committed", 6),
        ("removed", None),
        ("committed", 5),
    ]
    (row,) = offsets(frames, CONTEXT).collect()
    assert (row.offset, row.committed_offset, row.metadata, row.pending) == (3, 5, "old", False)


def test_rates(spark):
    """Each beside the one before it; a removal begins anew, and a step back is a reset."""
    told = [
        commit("g", 10, 0),
        commit("g", 30, 10),
        commit("g", 20, 12),
        commit("g", 20, 12, offset=13),
        commit("g", None, 14),
        commit("g", 5, 20),
        commit("g", 8, 19, offset=21),  # the clock went back, the log did not
        commit("other", 1, 1, state="aborted"),
        commit("far", -(2**63), 1),
        commit("far", 2**63 - 1, 2),
    ]
    frames = {"commits": commits_frame(spark, told)}
    found = [
        (row.group_id, row.offset, row.seconds, row.records, row.records_per_second, row.is_reset)
        for row in commit_rates(frames, CONTEXT).orderBy("group_id", "offset").collect()
    ]
    assert found == [
        ("far", 1, None, None, None, None),
        ("far", 2, 1.0, None, None, None),
        ("g", 0, None, None, None, None),
        ("g", 10, 10.0, 20, 2.0, False),
        ("g", 12, 2.0, -10, None, True),
        ("g", 13, 0.0, 0, None, False),
        ("g", 20, None, None, None, None),
        ("g", 21, -1.0, 3, None, False),
    ]


def test_rates_are_complete_behind_what_a_transaction_held_back(spark):
    """Compaction took the commit before it, and it took effect where nothing else is missing."""
    known = {"complete_from": at(10)}
    told = [
        commit("g", 30, 9, effective_at=at(20), effective_offset=20, producer_id=7, **known),
        commit("g", 40, 25, **known),
        commit("g", 10, 5, partition=1, **known),
        commit("g", 10, 12, partition=1, **known),
    ]
    rows = commit_rates({"commits": commits_frame(spark, told)}, CONTEXT).collect()

    for row in rows:
        if row.effective_at >= row.complete_from:
            assert row.seconds is not None, row
    assert {(row.partition, seconds(row.complete_from)) for row in rows} == {
        (0, 20.000001),
        (1, 10),
    }


def test_the_latest_commits_are_found_without_sorting_strings(spark, capsys):
    frames = {"commits": commits_frame(spark, [commit("g", 1, 0)])}
    offsets(frames, CONTEXT).explain()
    plan = capsys.readouterr().out
    assert "HashAggregate" in plan
    assert "SortAggregate" not in plan
