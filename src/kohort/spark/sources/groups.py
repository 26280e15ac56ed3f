# SPDX-License-Identifier: Apache-2.0
"""`format("kohort.groups")`: the groups of a live cluster and their members, a row a group."""

import time
from typing import Any

import pyarrow as pa

from kohort.client.admin import (
    AdminClient,
    Assignment,
    GroupDescription,
    GroupListing,
    MemberDescription,
)
from kohort.errors import ApiError
from kohort.pipeline.schemas.snapshots import GROUPS_NOW
from kohort.pipeline.sources.admin_query import ask
from kohort.pipeline.sources.columns import of_rows
from kohort.spark.sources.snapshot import SnapshotPartition, SnapshotSource


class KohortGroups(SnapshotSource):
    """Options: `bootstrap.servers`; `groups`, `states`, `types` (names with commas between them);
    `groupsPerTask`. What goes wrong with one group is the `error` of its row.
    """

    table = GROUPS_NOW

    def rows(self, share: SnapshotPartition) -> pa.RecordBatch:
        ids = [listing.group_id for listing in share.listings]
        asked_at = time.time()
        found = ask(self.wanted.bootstrap, lambda admin: _described(admin, ids)) if ids else {}
        sampled_at = int((asked_at + time.time()) / 2 * 1e6)
        rows = [_row(listing, found[listing.group_id]) for listing in share.listings]
        if share.error is not None:
            rows.append({"coordinator_id": share.broker, "error": share.error})
        return of_rows(GROUPS_NOW, [{**row, "sampled_at": sampled_at} for row in rows])


async def _described(admin: AdminClient, ids: list[str]) -> dict[str, GroupDescription | ApiError]:
    return dict((await admin.describe_groups(ids)).items())


def _row(listing: GroupListing, outcome: GroupDescription | ApiError) -> dict[str, Any]:
    if isinstance(outcome, ApiError):
        return {
            "group_id": listing.group_id,
            "type": listing.type,
            "state": listing.state,
            "protocol_type": listing.protocol_type,
            "error": str(outcome),
        }
    return {
        "group_id": outcome.group_id,
        "type": outcome.type,
        "state": outcome.state,
        "protocol_type": outcome.protocol_type,
        "coordinator_id": outcome.coordinator_id,
        "coordinator": f"{outcome.coordinator_host}:{outcome.coordinator_port}",
        "group_epoch": outcome.group_epoch,
        "assignment_epoch": outcome.assignment_epoch,
        "assignor": outcome.assignor,
        "members": [_member(member) for member in outcome.members],
    }


def _member(member: MemberDescription) -> dict[str, Any]:
    return {
        "member_id": member.member_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "instance_id": member.instance_id,
        "rack_id": member.rack_id,
        "type": member.type,
        "member_epoch": member.member_epoch,
        "subscribed_topics": member.subscribed_topics,
        "subscribed_regex": member.subscribed_regex,
        "assignment": _partitions(member.assignment),
        "target_assignment": _partitions(member.target_assignment),
    }


def _partitions(assignment: Assignment | None) -> list[dict[str, Any]] | None:
    if assignment is None:
        return None
    return [{"topic": topic, "partitions": each} for topic, each in assignment.items()]
