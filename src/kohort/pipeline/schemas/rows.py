# SPDX-License-Identifier: Apache-2.0
"""Rows of the group log: raw as every source gives them, and decoded as the tables keep them.

A raw row is a record as it stands in the log; a batch that cannot be read is one raw row too, with
an `error` and the bytes of the batch as its value. A decoded row is a raw row with a `kind`, which
names the one silver table that it belongs to, and typed columns beside the raw ones: bronze and
silver are two ways to look at the same files, and no row can get lost between them.
"""

import re

import pyarrow as pa

from kohort.pipeline.schemas.table import TEXTS, TIME, Column, Table
from kohort.records.codec import RECORDS, RecordType

POSITION = (
    Column("partition", pa.int32(), "partition of `__consumer_offsets`"),
    Column("offset", pa.int64(), "offset in that partition"),
    Column(
        "timestamp",
        TIME,
        "when the coordinator wrote the record; null where the log holds no time (below 0, or "
        "beyond the year 9999)",
    ),
)

BATCH = (
    Column(
        "partition_leader_epoch",
        pa.int32(),
        "leader epoch of the log's partition when the batch was written: it grows each time that "
        "another broker takes over, or the same one anew",
    ),
    Column("base_offset", pa.int64(), "the first offset of the batch"),
    Column("attributes", pa.int16(), "the batch's attributes: compression, kind of time, flags"),
)
"""Of the header of the batch that a record stands in, which compaction and clients do not show
later. Null where the source does not tell, and in rows of tables that Kohort 0.1 wrote.
"""

RAW = Table(
    "raw",
    "rows",
    "What every source gives: the records of the group log, as they stand in it.",
    (
        *POSITION,
        Column("key", pa.binary(), "the record's key; null where it has none"),
        Column("value", pa.binary(), "the record's value; null is a tombstone"),
        Column("producer_id", pa.int64(), "producer of the batch, -1 for none"),
        Column("producer_epoch", pa.int16(), "its epoch, -1 for none"),
        Column("transactional", pa.bool_(), "the batch is part of a transaction"),
        Column("control", pa.bool_(), "the record is the marker that ends a transaction"),
        *BATCH,
        Column(
            "headers",
            pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
            "the record's headers, which Apache Kafka writes none of here; those of Kohort's own "
            "broker say why it wrote the record. Null where there are none, where they cannot be "
            "read, and in rows of tables that Kohort 0.1 wrote",
        ),
        Column(
            "error",
            pa.string(),
            "why the batch at this offset cannot be read; its bytes are in `value`. Null for a "
            "record",
        ),
    ),
    computed="Batches are taken apart and their checksums compared. Nothing is left out: markers "
    "of transactions and batches that cannot be read are rows too.",
    unknown="Headers, in rows of a Parquet file without such a column.",
)


def kind_of(row: RecordType) -> str:
    """The name of a record type's table: upstream's name for the record, in snake_case."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", row.key.__name__.removesuffix("Key")).lower()


KINDS = {number: kind_of(row) for number, row in RECORDS.items()}
"""Record type -> kind of its records that have a value."""

TOMBSTONE = "tombstone"
MARKER = "transaction_marker"
OTHER = "other_record"
QUARANTINE = "quarantine"
ALL_KINDS = (*KINDS.values(), TOMBSTONE, MARKER, OTHER, QUARANTINE)

_GROUP = Column("group_id", pa.string(), "the group")
_MEMBER = Column("member_id", pa.string(), "the member")
_TOPIC = Column("topic", pa.string(), "name of the topic")
_TOPIC_PARTITION = Column("topic_partition", pa.int32(), "partition of that topic")
_REGEX = Column("regular_expression", pa.string(), "the regular expression, as subscribed")
KEY_COLUMNS = (_GROUP, _TOPIC, _TOPIC_PARTITION, _MEMBER, _REGEX)

COMMIT_COLUMNS = (
    Column("committed_offset", pa.int64(), "the next offset that the group will read"),
    Column("leader_epoch", pa.int32(), "leader epoch of the last record read; -1 for unknown"),
    Column("metadata", pa.string(), "what the client stored beside the offset"),
    Column("commit_timestamp", TIME, "when the coordinator took the commit"),
    Column("expire_timestamp", TIME, "when the commit expires; null unless the client said so"),
    Column("topic_id", pa.binary(), "id of the topic, 16 bytes; null before version 4"),
)


def struct(*columns: Column) -> pa.DataType:
    """A struct column of these fields."""
    return pa.struct([(column.name, column.type) for column in columns])


TOPIC_PARTITIONS = pa.list_(
    pa.struct([("topic", pa.string()), ("partitions", pa.list_(pa.int32()))])
)
TOPIC_ID_PARTITIONS = pa.list_(
    pa.struct([("topic_id", pa.string()), ("partitions", pa.list_(pa.int32()))])
)
COMPUTATION = {
    "assignor": pa.string(),
    "member_id": pa.string(),
    "reason": pa.int8(),
    "error": pa.int8(),
    "took_ms": pa.int32(),
    "why": pa.string(),
}
"""How a target assignment came about: fields of `kohort.records.schemas.Computation`."""
CLASSIC_MEMBER = pa.struct(
    [
        ("member_id", pa.string()),
        ("group_instance_id", pa.string()),
        ("client_id", pa.string()),
        ("client_host", pa.string()),
        ("rebalance_timeout_ms", pa.int32()),
        ("session_timeout_ms", pa.int32()),
        ("subscription", pa.binary()),
        ("assignment", pa.binary()),
        ("subscribed_topics", TEXTS),
        ("owned_partitions", TOPIC_PARTITIONS),
        ("rack_id", pa.string()),
        ("assigned_partitions", TOPIC_PARTITIONS),
    ]
)

DETAILS: dict[int, tuple[Column, ...]] = {
    2: (
        Column("protocol_type", pa.string(), "`consumer`, `connect`, ...; empty for none"),
        Column("generation", pa.int32(), "the group's generation"),
        Column("protocol", pa.string(), "the assignor that was chosen; null without members"),
        Column("leader", pa.string(), "member id of the leader; null without members"),
        Column("current_state_timestamp", TIME, "since when the group is in its state"),
        Column(
            "members",
            pa.list_(CLASSIC_MEMBER),
            "the members; the last four fields are decoded from `subscription` and `assignment`, "
            "and null where those are not of the consumer protocol",
        ),
    ),
    3: (
        Column("epoch", pa.int32(), "the group epoch"),
        Column("metadata_hash", pa.int64(), "hash of the subscribed topics (KIP-1101); 0 for none"),
    ),
    4: (
        Column(
            "topics",
            pa.list_(
                pa.struct(
                    [
                        ("topic_id", pa.string()),
                        ("topic_name", pa.string()),
                        ("num_partitions", pa.int32()),
                    ]
                )
            ),
            "the subscribed topics, as written by brokers up to 4.0",
        ),
    ),
    5: (
        Column("instance_id", pa.string(), "`group.instance.id`; null for a dynamic member"),
        Column("rack_id", pa.string(), "`client.rack`"),
        Column("client_id", pa.string(), "`client.id`"),
        Column("client_host", pa.string(), "address of the client"),
        Column("subscribed_topic_names", TEXTS, "topics subscribed by name"),
        Column("subscribed_topic_regex", pa.string(), "topics subscribed by regular expression"),
        Column("rebalance_timeout_ms", pa.int32(), "-1 for unknown"),
        Column("server_assignor", pa.string(), "the assignor that the member asks for"),
        Column(
            "classic_session_timeout_ms",
            pa.int32(),
            "session timeout of a member that speaks the classic protocol; null for others",
        ),
        Column("classic_protocols", TEXTS, "its assignors; null for others"),
    ),
    6: (
        Column("assignment_epoch", pa.int32(), "the group epoch that the target is of"),
        Column("assignment_timestamp", TIME, "when the target was computed; null before 4.3"),
        Column(
            "computation",
            pa.struct([*COMPUTATION.items()]),
            "how it came about, where members offer assignors (Kohort's broker): the assignor, the "
            "member that has computed it, for which reason, with which error and in which time; "
            "without a member the broker has, and `why` tells why",
        ),
    ),
    7: (Column("target_partitions", TOPIC_ID_PARTITIONS, "what the member shall own"),),
    8: (
        Column("member_epoch", pa.int32(), "the member's epoch; -2 while a static member is away"),
        Column("previous_member_epoch", pa.int32(), "the epoch before"),
        Column(
            "state",
            pa.string(),
            "`stable`, `unrevoked_partitions` (has to give some up), `unreleased_partitions` "
            "(waits for others) or the number of a state that is not known",
        ),
        Column("assigned_partitions", TOPIC_ID_PARTITIONS, "what the member owns"),
        Column("partitions_pending_revocation", TOPIC_ID_PARTITIONS, "what it has to give up"),
    ),
    16: (
        Column("topics", TEXTS, "the topics that the expression matches"),
        Column("version", pa.int64(), "version of the metadata image it was resolved with"),
        Column("resolved_at", TIME, "when it was resolved"),
    ),
}
"""Record type -> the fields of its value, for all but committed offsets."""

DECODED = Table(
    "decoded",
    "rows",
    "Raw rows with what they say: how the tables are kept.",
    (
        *RAW.columns,
        Column("kind", pa.string(), "the silver table that the row belongs to"),
        Column("type", pa.int16(), "record type, from the key; null where there is none"),
        Column("value_version", pa.int16(), "version of the value; null without a value"),
        *KEY_COLUMNS,
        *COMMIT_COLUMNS,
        Column("commits", pa.bool_(), "of a marker: whether its transaction was committed"),
        *(
            Column(KINDS[number], struct(*columns), f"the value of a record of type {number}")
            for number, columns in DETAILS.items()
        ),
    ),
)

_PRODUCER = tuple(column for column in RAW.columns if column.name.startswith("producer"))
_TRANSACTION = (*_PRODUCER, *(column for column in RAW.columns if column.name == "transactional"))
_VERSION = Column("value_version", pa.int16(), "version of the value")
_TYPE = Column("type", pa.int16(), "record type, from the key; null where there is none")
_TEXT_ID = Column("topic_id", pa.string(), "id of the topic as text; null before version 4")
_KEYS = {
    **dict.fromkeys((0, 1), (_GROUP, _TOPIC, _TOPIC_PARTITION)),
    **dict.fromkeys((2, 3, 4, 6), (_GROUP,)),
    **dict.fromkeys((5, 7, 8), (_GROUP, _MEMBER)),
    16: (_GROUP, _REGEX),
}


def _silver(number: int) -> Table:
    is_commit = number < 2
    values = (*COMMIT_COLUMNS[:-1], _TEXT_ID) if is_commit else DETAILS[number]
    transaction = _TRANSACTION if is_commit else ()
    return Table(
        KINDS[number],
        "silver",
        f"Records of type {number}, `{RECORDS[number].key.__name__.removesuffix('Key')}`, that "
        "have a value.",
        (*POSITION, *transaction, *_KEYS[number], _VERSION, *values),
        computed="Decoded from the bytes of the record, one row per record.",
        unknown="Compaction removes a record once a newer one has the same key.",
    )


RECORDS_TABLE = Table(
    "records",
    "bronze",
    "Every row that was ever read, raw. The log is compacted and cannot be read twice, so this is "
    "kept, unless `--keep` says otherwise.",
    RAW.columns,
    computed="As the source gives them. Where a log was cut and its offsets used again, the row "
    "that was read last counts.",
    unknown="What compaction or retention had removed before the first run.",
)
END_OFFSETS = Table(
    "end_offsets",
    "bronze",
    "Samples of where the partitions of user topics ended at a time.",
    (
        Column("sampled_at", TIME, "when"),
        _TOPIC,
        Column("topic_id", pa.string(), "id of the topic as text; null for unknown"),
        _TOPIC_PARTITION,
        Column("log_start_offset", pa.int64(), "the first offset still there; null for unknown"),
        Column("end_offset", pa.int64(), "the offset that the next record gets"),
        Column(
            "origin",
            pa.string(),
            "`log` (a batch in a topic's folder: its newest timestamp and the offset behind it) or "
            "`cluster` (the brokers were asked)",
        ),
        Column(
            "samples",
            pa.int64(),
            "how many samples the row stands for: itself, and those that were left out since the "
            "row before. Null is 1",
        ),
    ),
    computed="Read from the folders of topics that lie beside the group log, or asked from the "
    "cluster by `run` and `snapshot`. A time of a batch that is yet to come when it is read is "
    "none, so that a producer whose clock runs ahead hides no later batch; batches at the end "
    "without a time have that at which their file was written, and count as several `samples`. So "
    "do samples that a later batch contradicts, whose time is earlier by more than a second. "
    "Where a whole day is more than a day old, only the last "
    "sample of every five minutes is kept; where a whole week (from Thursday on, in UTC) is more "
    "than a week old, that of every hour. The first of each day, then of each week, stays too, and "
    "so do the two samples between which an end went back. Age counts from the newest sample that "
    "is not after the moment of the run.",
    unknown="What the end was between two samples.",
)
SILVER = (
    *(_silver(number) for number in RECORDS),
    Table(
        TOMBSTONE,
        "silver",
        "Records without a value: what their key names is gone.",
        (*POSITION, *_TRANSACTION, _TYPE, *KEY_COLUMNS),
        computed="Decoded from the key. `type` tells what is gone.",
        unknown="A tombstone is removed in time, with everything before it.",
    ),
    Table(
        MARKER,
        "silver",
        "Ends of transactions: what a producer committed or aborted, with all before it.",
        (*POSITION, *_PRODUCER, Column("commits", pa.bool_(), "true for commit, false for abort")),
        computed="Control records of the log.",
    ),
    Table(
        OTHER,
        "silver",
        "Records of types that are not a consumer group's: share groups, streams groups, and what "
        "a later broker writes.",
        (*POSITION, _TYPE, _GROUP, *RAW.columns[3:5]),
        computed="Kept raw. `group_id` is read where the type is known to begin with it.",
        unknown="What the values say.",
    ),
    Table(
        QUARANTINE,
        "silver",
        "What could not be read, and why.",
        (
            *POSITION,
            _TYPE,
            *RAW.columns[3:5],
            Column("error", pa.string(), "the reason"),
        ),
        computed="A damaged record, or a damaged batch as one row with its bytes in `value`.",
        unknown="How many records a damaged batch held.",
    ),
)
