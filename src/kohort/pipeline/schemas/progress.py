# SPDX-License-Identifier: Apache-2.0
"""Tables of progress: what groups have committed, how far behind they are, and who may go."""

import pyarrow as pa

from kohort.pipeline.schemas.rows import COMMIT_COLUMNS, KEY_COLUMNS, POSITION, RAW
from kohort.pipeline.schemas.table import TEXTS, TIME, Column, Table

COMMITTED = "committed"
PENDING = "pending"
ABORTED = "aborted"
SUPERSEDED = "superseded"
REMOVED = "removed"

_GROUP, _TOPIC, _TOPIC_PARTITION = KEY_COLUMNS[:3]
_PARTITION = POSITION[0]
_PRODUCER_ID = RAW.columns[RAW.names.index("producer_id")]
_COMMITTED_OFFSET, _LEADER_EPOCH, _METADATA, _COMMIT_TIMESTAMP, _EXPIRE_TIMESTAMP, _ = (
    COMMIT_COLUMNS
)
_TOPIC_ID = Column("topic_id", pa.string(), "id of the topic as text; null before version 4")
COMPLETE_FROM = Column(
    "complete_from",
    TIME,
    "from when on compaction and retention hid nothing of this partition of the log; earlier rows "
    "may be missing",
)

COMMITS = Table(
    "commits",
    "gold",
    "Every offset that was committed or removed, in the order of the log, with what became of "
    "those in transactions.",
    (
        *POSITION,
        _PRODUCER_ID,
        _GROUP,
        _TOPIC,
        _TOPIC_PARTITION,
        Column(
            "state",
            pa.string(),
            "`committed` (took effect), `pending` (its transaction is open), `aborted`, "
            "`superseded` (when its transaction ended, a later record had set or removed the "
            "offset, so it never took effect) or `removed` (a tombstone: the offset was deleted or "
            "expired, or its group or topic was deleted)",
        ),
        Column(
            "effective_offset",
            pa.int64(),
            "the offset in the log at which it took effect: its own, or that of the marker that "
            "ended its transaction; null if it has not",
        ),
        Column("effective_at", TIME, "the time of that record"),
        *COMMIT_COLUMNS[:-1],
        _TOPIC_ID,
        COMPLETE_FROM,
    ),
    computed="One row per record of types 0 and 1. A commit in a transaction takes effect at the "
    "next marker of its producer, unless that aborts. If a later record of the same group and "
    "partition has set or removed the offset by then, it is superseded: the order of records "
    "decides, as it does in the broker.",
    unknown="Which member committed: the log does not say. Commits that compaction has removed. "
    "Why an offset was removed.",
)

OFFSETS = Table(
    "offsets",
    "gold",
    "The committed offset of every group for every partition, as OffsetFetch would answer.",
    (
        *POSITION,
        _GROUP,
        _TOPIC,
        _TOPIC_PARTITION,
        Column(
            "committed_offset",
            pa.int64(),
            "the next offset that the group will read; null where only an open transaction has one",
        ),
        _LEADER_EPOCH,
        _METADATA,
        Column("committed_at", TIME, "when it took effect, by the log; null without an offset"),
        _COMMIT_TIMESTAMP,
        _EXPIRE_TIMESTAMP,
        _TOPIC_ID,
        Column(
            "pending",
            pa.bool_(),
            "an open transaction has an offset for it: with `require_stable` OffsetFetch answers "
            "UNSTABLE_OFFSET_COMMIT",
        ),
    ),
    computed="The record with the largest offset in the log among those that took effect; a "
    "partition whose last such record is a tombstone has no row. The same after any legal "
    "compaction.",
    unknown="Whether the broker has expired an offset since the log was read.",
)

COMMIT_RATES = Table(
    "commit_rates",
    "gold",
    "How each commit moved its partition on. Older rows stand for all commits of five minutes, or "
    "of an hour.",
    (
        *POSITION[:2],
        _GROUP,
        _TOPIC,
        _TOPIC_PARTITION,
        Column("first_at", TIME, "when the first of its commits took effect"),
        Column("effective_at", TIME, "when the last one did; of a single commit the same"),
        Column("commits", pa.int64(), "how many commits the row stands for"),
        _COMMITTED_OFFSET,
        Column(
            "seconds",
            pa.float64(),
            "seconds since the commit before; null for the first, and after a removal. Of several, "
            "the sum",
        ),
        Column(
            "records",
            pa.int64(),
            "offsets moved on since the commit before; below zero after a reset; null as "
            "`seconds`. Of several, the sum",
        ),
        Column(
            "records_per_second",
            pa.float64(),
            "`records` by `seconds`; null after a reset, and when no time went by",
        ),
        Column(
            "records_per_second_min", pa.float64(), "the least of its commits; null where none has"
        ),
        Column(
            "records_per_second_max", pa.float64(), "the most of its commits; null where none has"
        ),
        Column("is_reset", pa.bool_(), "the offset went back; null as `seconds`"),
        Column(
            "complete_from",
            TIME,
            "from when on compaction and retention hid nothing of this partition of the log, nor "
            "the commit before one that a transaction held back until then; earlier rows may be "
            "missing, or have nothing beside them",
        ),
    ),
    computed="From `commits` that took effect, each beside the one before it in the log. Where a "
    "whole day is more than a day older than the newest commit of its partition of the log (those "
    "later than the moment of the run do not count), the commits of every five minutes become one "
    "row; where a whole week (from Thursday on, in UTC) is more than a week older, those of "
    "every hour. Resets are not merged with other commits, nor "
    "are those without one before them, nor what is before `complete_from` with what is not. "
    "`offset` and `committed_offset` are those of the last one in the log.",
    unknown="How many records were read: offsets of a compacted topic and markers of transactions "
    "count as records. A jump forward may be a reset too.",
)

LAG = Table(
    "lag",
    "gold",
    "How far each group is behind, in records and in seconds: per partition, topic and group.",
    (
        _PARTITION,
        _GROUP,
        Column("level", pa.string(), "`partition`, `topic` or `group`: what the row is about"),
        Column("topic", pa.string(), "name of the topic; null for a group"),
        Column("topic_partition", pa.int32(), "partition of that topic; null for the others"),
        Column("at", TIME, "the moment that the row is about"),
        Column("committed_offset", pa.int64(), "as committed at that moment; null for none"),
        Column("committed_at", TIME, "when that took effect; of several, the newest"),
        Column("end_offset", pa.int64(), "end of the partition, by the last sample by then"),
        Column("end_sampled_at", TIME, "the time of that sample; of several, the oldest"),
        Column(
            "lag_records",
            pa.int64(),
            "records from the committed offset, or from the first one still there, to the end; "
            "never below zero; null where unknown. Of several, the sum of what is known",
        ),
        Column(
            "records_lost",
            pa.int64(),
            "records that retention removed before the group read them; null where unknown",
        ),
        Column(
            "lag_seconds",
            pa.float64(),
            "for how long the next record to be read has been there; 0 without lag. Of several, "
            "the largest",
        ),
        Column(
            "lag_seconds_error",
            pa.float64(),
            "`lag_seconds` is right to plus or minus this; null where only a lower bound is known",
        ),
        Column(
            "reason",
            pa.string(),
            "why a value is null, or not what it seems: `no_end_offset` (no sample by then), "
            "`never_committed` (no commit is known by then, and before `complete_from` of "
            "`commits` compaction may hide one; lag is 0 if the partition is empty), "
            "`topic_recreated` (the commit is for a topic of the same name that is gone), "
            "`beyond_end` (committed more than is there, by a sample newer than the commit; lag is "
            "0), `lost` (below the start of the log, see `records_lost`), `before_samples` "
            "(waiting since before the first sample: `lag_seconds` is a lower bound). Of several, "
            "the one that tells the least. Null otherwise",
        ),
        Column("partitions", pa.int32(), "how many partitions the row is about"),
        Column("partitions_unknown", pa.int32(), "how many of them have no `lag_records`"),
    ),
    computed="The end offset passed the committed one between two samples of `end_offsets`: the "
    "last that was not beyond it, and the first that was. Between them the time is interpolated; "
    "the error is the distance to the farther one. A sample that stands for a batch of a topic's "
    "folder gives the time exactly, at the granularity of batches; one that stands for "
    "several (`samples`) does not. Where a group has caught up, "
    "the error is the time since the last sample, of a folder since its newest batch; it is 0 "
    "where the next sample shows that nothing was appended until then. Rows for the latest sample "
    "time in each of at most 200 equal steps of the sampled time (of fewer, down to ten, where "
    "more than 500,000 rows of partitions would come of it; steps double as time goes on), and for "
    "the moment of the run; `run --as-of` gives any other moment. Of a topic that a group has "
    "committed for, or that a member subscribes to by name, every partition has a row.",
    unknown="What was appended, or committed, after the last that was read: of a copy read long "
    "after it was made, ask for a moment before that with `--as-of`. Times of batches are those of "
    "the producers where the topic has CreateTime, and they may be wrong: where a batch is of an "
    "earlier time than one before it, `lag_seconds_error` is never 0 up to that time, and within a "
    "stretch of several batches whose clock ran ahead it is too small. Markers of transactions "
    "and compacted records count as lag. A partition without samples has no lag at all.",
)

STATUS = Table(
    "status",
    "gold",
    "Whether each group keeps up, judged by two sets of rules over its last commits.",
    (
        _PARTITION,
        _GROUP,
        Column("rules", pa.string(), "`burrow` or `kohort`: who judges"),
        Column("level", pa.string(), "`partition` or `group`"),
        Column("topic", pa.string(), "name of the topic; null for a group"),
        Column("topic_partition", pa.int32(), "partition of that topic; null for a group"),
        Column("at", TIME, "the moment that is judged"),
        Column(
            "status",
            pa.string(),
            "`OK`, `WARN`, `STALL`, `STOP`, `REWIND`; of a group, `ERR` for anything worse than "
            "`WARN`. Where the lag is not known `burrow` says `NOTFOUND` and `kohort` `UNKNOWN`, "
            "which adds `LOST` too",
        ),
        Column(
            "rule",
            pa.string(),
            "the rule that decided. `burrow`, in this order: `lag_unknown` (NOTFOUND), "
            "`lag_allowed` (no lag now, OK), "
            "`stopped` (silent for longer than the window spans, and not caught up with any of the "
            "last end offsets, STOP), `rewound` (an offset went back and was not reached again, "
            "REWIND), `caught_up` (no lag at some commit, OK), `stalled` (all offsets equal, "
            "STALL), `slowing` (lag never went down, WARN), `progress` (OK). `kohort`: "
            "`lag_unknown` (UNKNOWN), `beyond_end` (committed more than there is, WARN), "
            "`records_lost` (retention was faster, LOST), `lag_allowed` (OK), `no_members` (lag, "
            "and nobody to read it, STOP), `rewound` (as above, REWIND), `stopped` (records have "
            "waited, without a commit, for longer than twice the longest pause in the window and a "
            "minute, STOP), `stalled` (commits go on, all at one offset, and a record has waited "
            "there since before the first of them, STALL), `slowing` (lag grew, was nothing at no "
            "commit, and never went down, or, where a record has waited for a minute, went down in "
            "one of five pairs of commits at most, WARN), `single_commit` (a record has waited for "
            "a minute since the only commit, which tells no pace: UNKNOWN, and after ten minutes "
            "`stopped`), `progress` (OK). Of a group, that of its worst partition",
        ),
        Column("commits", pa.int32(), "commits in the window"),
        Column("complete", pa.float64(), "share of the window that is filled; 1 when it is full"),
        Column("first_commit_at", TIME, "the first commit in the window"),
        Column("last_commit_at", TIME, "the last commit"),
        Column("lag_records", pa.int64(), "lag at that moment, as in `lag`"),
        Column("lag_seconds", pa.float64(), "the same in seconds"),
        Column("lag_seconds_error", pa.float64(), "of `lag_seconds`, as in `lag`"),
        Column("reason", pa.string(), "of the lag, as in `lag`"),
        Column("partitions", pa.int32(), "how many partitions the row is about"),
        Column("partitions_unknown", pa.int32(), "how many of them have no `lag_records`"),
    ),
    computed="The window is the last ten commits of a partition. Burrow's rules in the order in "
    "which its code applies them, over stored history instead of memory. The end at a commit is "
    "interpolated between the samples before and behind it that are kept; behind the last sample "
    "it is that one, and `slowing` of `kohort` leaves such commits out. The set "
    "`kohort` leaves out what is known to raise false alarms: it "
    "judges lag as of the moment, not of the last commit, so a silent consumer's lag grows; it "
    "counts silence only from when there was something to read, so idle and drained topics and "
    "slow committers are not stopped; it does not call a constant lag slow.",
    unknown="Whether a consumer that does not commit is alive. Without end offsets there is "
    "nothing to judge; Burrow itself takes the lag for 0 then.",
)

DELETABLE_GROUPS = Table(
    "deletable_groups",
    "gold",
    "Every group, whether it may be deleted, and why not.",
    (
        _PARTITION,
        _GROUP,
        Column("type", pa.string(), "`classic`, `consumer`, `share`, `streams`; null for unknown"),
        Column("state", pa.string(), "the state of the group, as in `group_state`"),
        Column("deletable", pa.bool_(), "nothing speaks against it"),
        Column("reason", pa.string(), "one sentence: why it may be deleted, or why not"),
        Column(
            "blockers",
            TEXTS,
            "all that speaks against it: `members`, `pending_transaction`, `recent_commit`, "
            "`recently_active` (its state changed lately), `not_a_consumer_group`, "
            "`state_unknown`; empty for nothing",
        ),
        Column("members", pa.int32(), "members of the group; null for unknown"),
        Column("last_commit_at", TIME, "the last commit still there; null without one"),
        Column(
            "days_idle",
            pa.float64(),
            "days since its last commit or change of state, whichever is later; null for unknown",
        ),
        Column(
            "expires_at",
            TIME,
            "when the broker will delete it by itself, if nobody comes back; null for unknown, "
            "or never",
        ),
        Column(
            "offsets",
            pa.list_(
                pa.struct(
                    [
                        ("topic", pa.string()),
                        ("topic_partition", pa.int32()),
                        ("committed_offset", pa.int64()),
                    ]
                )
            ),
            "its committed offsets, so that `kohort groups delete --from` can see whether it has "
            "committed since",
        ),
    ),
    computed="From `group_state` and `offsets`. A group may go when it has no members, no open "
    "transaction, and was idle for seven days. It expires when its last offset does: by the "
    "commit's own time if it has one, else by the cluster's retention (or `--retention`) from the "
    "commit on, of an empty classic group from when it became empty.",
    unknown="Consumers that read without committing, and tools that come once a month. The exact "
    "time of expiry: the broker looks every ten minutes, and its retention may change. Where the "
    "log was only read from some moment on, a group whose members came before it may look empty: "
    "`kohort groups delete --from` asks the cluster again.",
)
