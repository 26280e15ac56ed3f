# SPDX-License-Identifier: Apache-2.0
"""What `format("kohort.groups")` and `format("kohort.offsets")` give: groups of a live cluster as
they are now.
"""

import pyarrow as pa

from kohort.pipeline.schemas.rows import TOPIC_PARTITIONS
from kohort.pipeline.schemas.table import TEXTS, TIME, Column, Table

_SAMPLED_AT = Column(
    "sampled_at",
    TIME,
    "when: the middle between question and answer, by the clock of the machine that asked",
)
_GROUP = Column(
    "group_id",
    pa.string(),
    "the group; null in a row that tells of a broker which could not list its groups",
)
_ERROR = Column(
    "error",
    pa.string(),
    "why something is missing in this row, as `CODE: text`; null where nothing is",
)

MEMBER = pa.struct(
    [
        ("member_id", pa.string()),
        ("client_id", pa.string()),
        ("client_host", pa.string()),
        ("instance_id", pa.string()),
        ("rack_id", pa.string()),
        ("type", pa.string()),
        ("member_epoch", pa.int32()),
        ("subscribed_topics", TEXTS),
        ("subscribed_regex", pa.string()),
        ("assignment", TOPIC_PARTITIONS),
        ("target_assignment", TOPIC_PARTITIONS),
    ]
)

GROUPS_NOW = Table(
    "kohort.groups",
    "rows",
    "The groups of a live cluster and their members, as their coordinators describe them now.",
    (
        _SAMPLED_AT,
        _GROUP,
        Column("type", pa.string(), "`classic`, `consumer`, ...; null where the broker is too old"),
        Column("state", pa.string(), "`Stable`, `Empty`, ... as the coordinator names it"),
        Column("protocol_type", pa.string(), "`consumer`, `connect`, ...; empty for none"),
        Column("coordinator_id", pa.int32(), "node id of the coordinator; null for unknown"),
        Column("coordinator", pa.string(), "its `host:port`; null for unknown"),
        Column("group_epoch", pa.int32(), "the group's epoch; null for a classic group"),
        Column(
            "assignment_epoch",
            pa.int32(),
            "the epoch that the target assignment is of; null for a classic group",
        ),
        Column(
            "assignor", pa.string(), "the chosen assignor; empty while a classic one rebalances"
        ),
        Column(
            "members",
            pa.list_(MEMBER),
            "the members; `assignment` is what one has (null where its bytes are no consumer's), "
            "`target_assignment` what it shall have and `member_epoch` its epoch (both null in a "
            "classic group)",
        ),
        _ERROR,
    ),
    computed="ListGroups and FindCoordinator of the driver, then ConsumerGroupDescribe and "
    "DescribeGroups of the executors, some hundred groups a task.",
    unknown="What was before, and what a group of a type that Kohort does not know consists of.",
)

OFFSETS_NOW = Table(
    "kohort.offsets",
    "rows",
    "What the groups of a live cluster have committed, and how far behind the end that is, now. A "
    "group without committed offsets has no row.",
    (
        _SAMPLED_AT,
        _GROUP,
        Column("topic", pa.string(), "name of the topic; null in a row about a whole group"),
        Column("topic_partition", pa.int32(), "partition of that topic; null likewise"),
        Column("committed_offset", pa.int64(), "the next offset that the group will read"),
        Column("leader_epoch", pa.int32(), "leader epoch of the last record read; null for none"),
        Column("metadata", pa.string(), "what the client stored beside the offset"),
        Column(
            "end_offset",
            pa.int64(),
            "the offset that the next record of the partition gets, asked after the commit",
        ),
        Column(
            "lag_records",
            pa.int64(),
            "`end_offset` minus `committed_offset`, 0 if the group is ahead; null without both",
        ),
        _ERROR,
    ),
    computed="OffsetFetch for all groups of a task in one request (KIP-709), then ListOffsets for "
    "their partitions. So the lag is never too small: what was committed meanwhile is not counted.",
    unknown="Lag in seconds, which needs a history: see `lag`.",
)
