# SPDX-License-Identifier: Apache-2.0
"""The asyncio consumer: records of topics, alone or in a group.

`consumer` is its face. `group` and `member` keep it in its group, `protocols` makes the two kinds
of groups one. `ownership` is what begins and ends with a partition, `handing` what the application
was handed and has not come back from, `reading` how it asks, `committing` what it commits and
`group_offsets` how. `group_metadata` is who commits, for a producer.
`assignor` is what an application writes that computes its group's assignments, and `computing` the
member that runs it.
"""

from kohort.client.consumer.assignor import (
    AssignmentTold,
    Assignor,
    GroupMember,
    GroupToAssign,
    Share,
)
from kohort.client.consumer.consumer import Consumer
from kohort.client.consumer.group_metadata import GroupMetadata
from kohort.client.consumer.ownership import RebalanceListener

__all__ = [
    "AssignmentTold",
    "Assignor",
    "Consumer",
    "GroupMember",
    "GroupMetadata",
    "GroupToAssign",
    "RebalanceListener",
    "Share",
]
