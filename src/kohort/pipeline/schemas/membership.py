# SPDX-License-Identifier: Apache-2.0
"""Tables of membership: which groups there are, who was in them, who owned what, and what each
rebalance was about.
"""

import pyarrow as pa

from kohort.history import TRIGGERS
from kohort.pipeline.schemas.rows import KEY_COLUMNS, POSITION
from kohort.pipeline.schemas.table import TEXTS, TIME, Column, Table

_PARTITION = POSITION[0]
_GROUP, _TOPIC, _TOPIC_PARTITION, _MEMBER, _ = KEY_COLUMNS
_TOPIC_ID = Column(
    "topic_id",
    pa.string(),
    "id of the topic as text; for a classic group, whose records have names, null unless exactly "
    "one id of that name is known",
)
_TOPIC_NAME = Column(
    "topic",
    pa.string(),
    "name of the topic. The records of a consumer group have ids only: the name is that of the "
    "commits and end offsets with this id, or of the one topic that a member subscribes to while "
    "it is meant to have partitions of one id. Null where none of them tells",
)
_COMPLETE_FROM = Column(
    "complete_from",
    TIME,
    "from when on compaction and retention have hidden nothing of this partition of the log: what "
    "lies before may be missing, or be a part of the story",
)
_GROUP_TYPE = Column(
    "group_type", pa.string(), "`classic` or `consumer` (KIP-848): the protocol of the group"
)
_HOLES = (
    "What compaction removed: before `complete_from` rows may be missing, or begin too late. A log "
    "that was only read from some moment on does not tell who was there before."
)

GROUP_STATE = Table(
    "group_state",
    "gold",
    "Every group that the log tells of, as it is after the last record: what a broker that loads "
    "this log knows. Groups that were deleted stay as rows, state `Dead`, as long as the log has "
    "their tombstones.",
    (
        _PARTITION,
        _GROUP,
        Column(
            "group_type",
            pa.string(),
            "`classic`, `consumer`, `share` or `streams`; of a `Dead` group, what it was last",
        ),
        Column(
            "state",
            pa.string(),
            "as ListGroups shows it: `Empty`, `Stable`, `Assigning`, `Reconciling`, or `Dead` for "
            "a deleted one. Null for a streams group with members",
        ),
        Column(
            "protocol_type",
            pa.string(),
            "`consumer`, `connect`, ...; empty for a group that only holds offsets; null when dead",
        ),
        Column(
            "protocol",
            pa.string(),
            "the assignor: of a classic group the one that was chosen, of a consumer group the one "
            "with most votes. Null without members, and where nobody votes or votes are tied: the "
            "broker's own order of assignors decides then",
        ),
        Column(
            "epoch",
            pa.int32(),
            "the group epoch of a consumer group, the generation of a classic one; null for other "
            "kinds, for groups that only hold offsets and for dead ones",
        ),
        Column("assignment_epoch", pa.int32(), "the epoch of the target; consumer groups only"),
        Column("members", pa.int32(), "how many members it has; 0 when dead"),
        Column(
            "classic_members",
            pa.int32(),
            "how many of them speak the classic protocol; null for share and streams groups",
        ),
        Column("leader", pa.string(), "member id of the leader of a classic group"),
        Column("offset", pa.int64(), "offset of its last record other than a committed offset"),
        Column("timestamp", TIME, "the time of that record"),
        _COMPLETE_FROM,
    ),
    computed="From the newest record of each key, so that a compacted log gives the same rows. A "
    "group that only has committed offsets is an `Empty` classic one, also while they are in an "
    "open transaction.",
    unknown="A rebalance of a classic group that is under way: nothing is written before its end, "
    "so the group shows as `Stable`. The name of the default assignor. A consumer group without an "
    "epoch record is at epoch 1, as brokers since 4.3 have it. Tombstones are removed in time, and "
    "the dead with them; a group whose offsets were all deleted stays `Empty` until it is deleted "
    "itself or its tombstones go.",
)

MEMBERS = Table(
    "members",
    "gold",
    "Who was in which group, from when to when. A member has a new row whenever what it says of "
    "itself changes, or when it becomes leader or is it no longer.",
    (
        _PARTITION,
        _GROUP,
        _GROUP_TYPE,
        _MEMBER,
        Column("group_instance_id", pa.string(), "`group.instance.id`; null for a dynamic member"),
        Column("client_id", pa.string(), "`client.id`"),
        Column("client_host", pa.string(), "address of the client"),
        Column("rack_id", pa.string(), "`client.rack`"),
        Column(
            "protocol",
            pa.string(),
            "`classic` or `consumer`: what the member speaks. While a group migrates, some speak "
            "one and some the other",
        ),
        Column(
            "assignors",
            TEXTS,
            "of a classic group, the chosen one; in a consumer group the one that the member asks "
            "for, or those that a classic member offers. Null for no wish",
        ),
        Column("subscribed_topics", TEXTS, "topics subscribed by name, sorted; null for unknown"),
        Column("subscribed_topic_regex", pa.string(), "by regular expression; null for none"),
        Column(
            "session_timeout_ms",
            pa.int32(),
            "null for a member that speaks the consumer protocol: the broker's or the group's "
            "configuration has it",
        ),
        Column("rebalance_timeout_ms", pa.int32(), "-1 for unknown"),
        Column("is_leader", pa.bool_(), "leads a classic group; null in a consumer group"),
        Column("valid_from", TIME, "time of the first record that says so"),
        Column("valid_to", TIME, "time of the first that no longer does; null: it still holds"),
        Column("from_offset", pa.int64(), "offset of the first record"),
        Column("to_offset", pa.int64(), "offset of the record that ends it; null: it still holds"),
        _COMPLETE_FROM,
    ),
    computed="Of a consumer group from records of type 5. Of a classic group from records of type "
    "2: a row goes on for as long as the member is in each of them with the same description.",
    unknown=f"{_HOLES} Classic groups are written at the end of a rebalance: a member came, or "
    "went, at some time since the record before. Members that came and went within one rebalance.",
)

ASSIGNMENTS = Table(
    "assignments",
    "gold",
    "Who owned which partition, from when to when. A partition that a member has to give up is "
    "owned until it has done so.",
    (
        _PARTITION,
        _GROUP,
        _GROUP_TYPE,
        _MEMBER,
        _TOPIC_ID,
        _TOPIC_NAME,
        _TOPIC_PARTITION,
        Column(
            "epoch",
            pa.int32(),
            "the member's epoch, or the generation, when it got the partition; -2 while the "
            "partition is kept for a static member that is away",
        ),
        Column("last_epoch", pa.int32(), "the last one in which it had the partition"),
        Column("valid_from", TIME, "time of the first record that says so"),
        Column("valid_to", TIME, "time of the first that no longer does; null: it still holds"),
        Column(
            "revoked_at",
            TIME,
            "when it was told to give the partition up; null if it was not, and in classic groups",
        ),
        Column("from_offset", pa.int64(), "offset of the first record"),
        Column("to_offset", pa.int64(), "offset of the record that ends it; null: it still holds"),
        Column(
            "gained_by",
            pa.int64(),
            "the rebalance that gave it: `offset` in `rebalances`; null for none, as when a static "
            "member comes back",
        ),
        Column("lost_by", pa.int64(), "the rebalance that took it, likewise"),
        _COMPLETE_FROM,
    ),
    computed="Of a consumer group from records of type 8: `assigned_partitions` and "
    "`partitions_pending_revocation`. Of a classic group of protocol type `consumer` from the "
    "assignments in records of type 2.",
    unknown=f"{_HOLES} When a client of a classic group really stopped and began to read: with "
    "eager assignors nobody owns anything while the group rebalances, of which the log has the end "
    "only. What members of other protocol types own.",
)

_WHO = pa.list_(
    pa.struct(
        [
            ("member_id", pa.string()),
            ("client_id", pa.string()),
            ("group_instance_id", pa.string()),
            ("client_host", pa.string()),
        ]
    )
)
_MOVES = pa.list_(
    pa.struct(
        [
            ("topic_id", pa.string()),
            ("topic", pa.string()),
            ("topic_partition", pa.int32()),
            ("from_member_id", pa.string()),
            ("to_member_id", pa.string()),
        ]
    )
)
_UNOWNED = pa.list_(
    pa.struct(
        [
            ("topic_id", pa.string()),
            ("topic", pa.string()),
            ("topic_partition", pa.int32()),
            ("seconds", pa.float64()),
        ]
    )
)

_UNREAD = pa.list_(
    pa.struct(
        [
            ("topic_id", pa.string()),
            ("topic", pa.string()),
            ("topic_partition", pa.int32()),
            ("seconds", pa.float64()),
            ("since", TIME),
            ("until", TIME),
            ("unknown", pa.string()),
            ("error_seconds", pa.float64()),
        ]
    )
)
_COMPUTED = pa.struct(
    [
        ("assignor", pa.string()),
        ("member_id", pa.string()),
        ("seconds", pa.float64()),
        ("error", pa.int32()),
        ("reason", pa.int32()),
        ("why", pa.string()),
    ]
)
_LIKELY = pa.list_(
    pa.struct(
        [
            ("member_id", pa.string()),
            ("client_id", pa.string()),
            ("client_host", pa.string()),
            ("likely", pa.string()),
            ("silent_seconds", pa.float64()),
            ("usual_seconds", pa.float64()),
        ]
    )
)

REBALANCES = Table(
    "rebalances",
    "gold",
    "What each rebalance cost and what it was about: a row per new epoch of a consumer group, and "
    "per new generation of a classic one.",
    (
        _PARTITION,
        _GROUP,
        _GROUP_TYPE,
        Column("epoch", pa.int32(), "the group epoch, or the generation, that it led to"),
        Column(
            "offset",
            pa.int64(),
            "of the record that names the epoch (type 3: the begin) or the generation (type 2: the "
            "end)",
        ),
        Column(
            "started_at",
            TIME,
            "when the epoch was raised; null in a classic group, where the log has bounds only",
        ),
        Column(
            "started_after",
            TIME,
            "not before this: in a classic group, the time of the record before; null where there "
            "is none",
        ),
        Column(
            "started_before",
            TIME,
            "not after this: in a classic group, when all had joined (`current_state_timestamp`)",
        ),
        Column("assigned_at", TIME, "when the target was there; null if it never was"),
        Column(
            "ended_at",
            TIME,
            "when the last member had reached the epoch with nothing to give up or to wait for; in "
            "a classic group when the leader's assignment was written. Null unless `completed`",
        ),
        Column("seconds", pa.float64(), "from start to end; null where one is not known"),
        Column(
            "seconds_at_least",
            pa.float64(),
            "of a completed one: how long it took at least; equal to `seconds` where that is known",
        ),
        Column("seconds_at_most", pa.float64(), "and at most; null for unknown"),
        Column(
            "outcome",
            pa.string(),
            "`completed`, `superseded` (the next epoch, or the end of the group, came first) or "
            "`open`. A rebalance of a classic group that was superseded has no row",
        ),
        Column(
            "trigger",
            pa.string(),
            "why: the first of `triggers` in the order "
            f"{', '.join(f'`{name}`' for name in TRIGGERS)}. `unknown` where neither the group log "
            "nor a broker's log file tells",
        ),
        Column("triggers", TEXTS, "all causes that the log proves, and `unknown` for the others"),
        Column(
            "possible",
            TEXTS,
            "where it is unknown why a member is gone, what the log does not rule out, likelier "
            "ones first; otherwise empty",
        ),
        Column(
            "likely",
            _LIKELY,
            "of each member that is gone, what is likely, which is no proof: `went silent` (a "
            "crash, a hang, a lost network), `left at work`, `coordinator away`; null where "
            "neither is. `silent_seconds` is for how long it had committed nothing, "
            "`usual_seconds` how far its commits were apart; null without such a rhythm",
        ),
        Column(
            "evidence",
            pa.string(),
            "the facts that this rests on, in words and numbers; members by client, host and id",
        ),
        Column("joined", _WHO, "members that have come"),
        Column("gone", _WHO, "members that are gone"),
        Column(
            "changed",
            _WHO,
            "members whose subscription, or whose wish for an assignor, has changed",
        ),
        Column("members", pa.int32(), "how many members the group had then"),
        Column("members_involved", pa.int32(), "how many of them got or lost partitions"),
        Column("partitions_moved", pa.int32(), "how many partitions went from one to another"),
        Column(
            "moves",
            _MOVES,
            "every partition that got an owner, and the owner before; null for one that it is the "
            "first of",
        ),
        Column(
            "unowned",
            _UNOWNED,
            "for how many seconds each partition had no owner, for those that lost theirs here and "
            "did not get the next one with the same record; null seconds: it has none yet",
        ),
        Column(
            "unread",
            _UNREAD,
            "for how many seconds nobody read each partition that lost its owner here: from the "
            "last commit before to the first after, less the usual distance of its commits, "
            "which is from `since` to `until`. That distance is `error_seconds`: the length is "
            "right to plus or minus it, and both ends may have been earlier by as much. Null where "
            "that cannot be known, and `unknown` says why: too few commits before, none since, an "
            "idle topic, an offset that somebody else has set, a coordinator that may have been "
            "away, another clock, or commits that may be missing. Where the first commit after is "
            "of few records, it is `idle` until later ones go ahead further than the rate promises"
            ". A new partition of a topic that the group had before has no `seconds` either: it "
            "was there `since` the rebalance began, and had its first owner from `until` on, so it "
            "was unread at least for the time between",
        ),
        Column(
            "unread_seconds",
            pa.float64(),
            "their sum, of those that are known, and of the least time of new partitions: a lower "
            "bound where one of `unread` has null `seconds`; null where none is known",
        ),
        Column(
            "longest_unread_seconds",
            pa.float64(),
            "the longest that is known, likewise; null where none is known",
        ),
        Column(
            "computed",
            _COMPUTED,
            "who has computed the assignment, where members offer assignors: `member_id`, by the "
            "`assignor`, in so many `seconds` from when it was asked, with what its assignor told "
            "(`error`, 0 for none), for the `reason` that a member had given (0 for none); null "
            "`member_id`: the broker, and `why`. Null where the log does not say, or the "
            "epoch was superseded before its assignment came",
        ),
        _COMPLETE_FROM,
    ),
    computed="Of a consumer group, what the coordinator writes together with a new epoch: members "
    "that come, change or are removed, regular expressions that are resolved; nothing of that, and "
    "another metadata hash, is a change of topics. Of a classic group, what differs between the "
    "generation and the one before. A member that is gone has left if it showed signs of life a "
    "shorter time ago than its session takes to end: records that its own requests caused, or "
    "commits of partitions that it owned. In a consumer group the length of a session is not in "
    "the log: a cluster tells it, or `--session-timeout`; commits do not prolong it, so those of "
    "its last two thirds count. Where nobody tells, 45 s (the least that a broker allows by "
    "default) only say which cause is likelier. A member is put out by its "
    "rebalance timeout if it had partitions to give up for just that long. Who committed nothing "
    "for more than three times the usual distance of its commits, while what the next commits "
    "cover shows that there was work and others went on, is likely to have gone silent; who "
    "committed until just before has left at work; where all members are put out at once, and none "
    "was heard of since the leader epoch of the log's partition changed, the coordinator was away.",
    unknown=f"{_HOLES} Why a member was removed, where neither applies: the same tombstones are "
    "written when it leaves, when an administrator removes it, and when its session ends. Kohort's "
    "own broker writes the cause into headers of these records, Apache Kafka into its log file, "
    "which `--server-log` reads: both are proof. When a rebalance of a classic group began, and "
    "those that ended without a generation. For how long a member that keeps a partition did not "
    "read it in an eager rebalance. The owner before, of a partition that nobody owned at "
    "`complete_from`. Time without an owner is seen from the coordinator: clients learn of it with "
    "their next heartbeat. `unread` is seen from the commits, so it is as exact as they are "
    "frequent.",
)
