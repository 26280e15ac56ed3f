# SPDX-License-Identifier: Apache-2.0
"""`format("kohort.offsets")`: what the groups of a live cluster have committed, and their lag."""

import time
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from kohort.client.admin import (
    AdminClient,
    CommittedOffset,
    FoundOffset,
    GroupOffsets,
    Outcomes,
    TopicPartition,
)
from kohort.errors import ApiError
from kohort.pipeline.schemas.snapshots import OFFSETS_NOW
from kohort.pipeline.sources.admin_query import ask
from kohort.pipeline.sources.columns import of_rows
from kohort.spark.sources.snapshot import SnapshotPartition, SnapshotSource

Ends = Mapping[TopicPartition, FoundOffset | ApiError]


class KohortOffsets(SnapshotSource):
    """Options as those of `kohort.groups`. What goes wrong with one group is a row with an `error`
    and no topic; with one partition, the `error` of its row.
    """

    table = OFFSETS_NOW

    def rows(self, share: SnapshotPartition) -> pa.RecordBatch:
        ids = [listing.group_id for listing in share.listings]
        asked_at = time.time()
        rows = ask(self.wanted.bootstrap, lambda admin: _rows(admin, ids)) if ids else []
        sampled_at = int((asked_at + time.time()) / 2 * 1e6)
        if share.error is not None:
            rows.append({"error": share.error})
        return of_rows(OFFSETS_NOW, [{**row, "sampled_at": sampled_at} for row in rows])


async def _rows(admin: AdminClient, ids: list[str]) -> list[dict[str, Any]]:
    """All commits, and then the ends: a group that reads on meanwhile never seems to be ahead."""
    committed: Outcomes[str, GroupOffsets] = await admin.list_group_offsets(dict.fromkeys(ids))
    places = {place: None for offsets in committed.succeeded.values() for place in offsets}
    ends = dict((await admin.end_offsets(places)).items())
    rows: list[dict[str, Any]] = []
    for group_id, outcome in committed.items():
        if isinstance(outcome, ApiError):
            rows.append({"group_id": group_id, "error": str(outcome)})
        else:
            rows.extend({"group_id": group_id, **row} for row in partition_rows(outcome, ends))
    return rows


def partition_rows(offsets: GroupOffsets, ends: Ends) -> Iterator[dict[str, Any]]:
    """A row for each partition that has a commit, or whose commit is not told."""
    for place, commit in offsets.items():
        row: dict[str, Any] = {"topic": place.topic, "topic_partition": place.partition}
        if isinstance(commit, ApiError):
            yield {**row, "error": str(commit)}
        elif commit is not None:
            yield {**row, **_commit(commit), **_behind(commit, ends[place])}


def _commit(commit: CommittedOffset) -> dict[str, Any]:
    return {
        "committed_offset": commit.offset,
        "leader_epoch": commit.leader_epoch,
        "metadata": commit.metadata,
    }


def _behind(commit: CommittedOffset, end: FoundOffset | ApiError) -> dict[str, Any]:
    if isinstance(end, ApiError):
        return {"error": str(end)}
    if end.offset is None:
        return {"error": "the partition's end is not known to its leader"}
    return {"end_offset": end.offset, "lag_records": max(0, end.offset - commit.offset)}
