# SPDX-License-Identifier: Apache-2.0
"""The columns of what runs have seen: lag and status as they were. No later run can compute them
again, so they are kept as the records are.
"""

import pyarrow as pa

from kohort.pipeline.schemas.table import TEXTS, TIME, Column, Table

_PARTITION = Column("partition", pa.int32(), "partition of `__consumer_offsets`")
_GROUP = Column("group_id", pa.string(), "the group")

LAG_HISTORY = Table(
    "lag_history",
    "past",
    "How far each group was behind, at every moment for which a run has computed it: per "
    "partition, topic and group. Older rows stand for all moments of five minutes or of an hour.",
    (
        _PARTITION,
        _GROUP,
        Column("level", pa.string(), "`partition`, `topic` or `group`: what the row is about"),
        Column("topic", pa.string(), "name of the topic; null for a group"),
        Column("topic_partition", pa.int32(), "partition of that topic; null for the others"),
        Column("first_at", TIME, "the first moment that the row is about"),
        Column("at", TIME, "the last one; of a single moment the same"),
        Column("moments", pa.int32(), "how many moments it is about"),
        Column("committed_offset", pa.int64(), "as committed at `at`; null for none"),
        Column("end_offset", pa.int64(), "end of the partition, by the last sample by then"),
        Column("end_sampled_at", TIME, "the time of that sample; of several, the oldest"),
        Column("lag_records", pa.int64(), "records behind at `at`; null where unknown"),
        Column("lag_records_min", pa.int64(), "the least of all moments; null where none is known"),
        Column("lag_records_max", pa.int64(), "the most of all moments; null where none is known"),
        Column("records_lost", pa.int64(), "at `at`, as in `lag`; null where unknown"),
        Column("lag_seconds", pa.float64(), "the lag at `at` in seconds; null where unknown"),
        Column("lag_seconds_min", pa.float64(), "the least of all moments; null for none known"),
        Column("lag_seconds_max", pa.float64(), "the most of all moments; null for none known"),
        Column("lag_seconds_error", pa.float64(), "of `lag_seconds`, as in `lag`"),
        Column(
            "reason",
            pa.string(),
            "as in `lag`, of the last of the moments that has one; null where none has",
        ),
        Column("moments_unknown", pa.int32(), "how many of the moments have no `lag_records`"),
        Column("moments_timeless", pa.int32(), "how many of the moments have no `lag_seconds`"),
        Column("partitions", pa.int32(), "how many partitions the row is about, at `at`"),
        Column(
            "partitions_unknown",
            pa.int32(),
            "how many of them had no `lag_records`: the most of all moments",
        ),
    ),
    computed="Each run adds the rows that `lag` has for its own moment, and those for the times of "
    "samples since the run before: of many, the latest in each of at most 200 equal steps, of "
    "fewer where more than 5,000,000 rows would come of it. Where a whole day is more than a day "
    "old, its rows of every five minutes become one; where a whole week (from Thursday on, in UTC) "
    "is more than a week old, those of every hour. Minimum, maximum and counts are those of all "
    "moments, the other values those of the last. A moment is added once: a run for one that is "
    "there leaves it, and so does one for a moment within a row that stands for several.",
    unknown="What happened between two moments. A row says what was known when it was computed: "
    "commits and samples that came to light later, as from a newer copy of a log, change `lag` and "
    "leave it as it is; `end_sampled_at` says how old the end was that it rests on.",
)

STATUS_HISTORY = Table(
    "status_history",
    "past",
    "How each group was judged: a row for each stretch of time in which its status was the same.",
    (
        _PARTITION,
        _GROUP,
        Column("rules", pa.string(), "`burrow` or `kohort`: who judges, as in `status`"),
        Column("status", pa.string(), "the status, as in `status`"),
        Column("valid_from", TIME, "the first run's moment at which it was so"),
        Column(
            "valid_to",
            TIME,
            "the first moment at which it was otherwise, or the group gone; null while it lasts",
        ),
        Column(
            "started_after",
            TIME,
            "the last moment before at which it was otherwise, or the group was not there; null "
            "where there was none",
        ),
        Column("last_seen_at", TIME, "the last moment at which it was so"),
        Column("runs", pa.int32(), "how many runs have seen it so"),
        Column("runs_unknown", pa.int32(), "how many of them did not know the lag"),
        Column("reasons", TEXTS, "the rules that decided, as in `status`, each once, first first"),
        Column(
            "worst_lag_records",
            pa.int64(),
            "the largest lag of the group meanwhile, in records, at any moment that `lag_history` "
            "was told of; null where it was never known",
        ),
        Column("worst_lag_seconds", pa.float64(), "the same in seconds"),
    ),
    computed="Each run compares the status of every group with that of the run before. Where it is "
    "the same the row goes on; where not it ends, and another one begins.",
    unknown="How a group was judged between two runs: a change happened between `started_after` "
    "and `valid_from`, and a status that came and went meanwhile left nothing. A run for a moment "
    "before that of an earlier run (`--as-of`) adds nothing. Where the clock was set back, rows "
    "end at `last_seen_at` and others begin.",
)
