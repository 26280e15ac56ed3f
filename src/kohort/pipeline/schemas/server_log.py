# SPDX-License-Identifier: Apache-2.0
"""Lines of brokers' log files about members that are gone, as they are kept beside the rows."""

import pyarrow as pa

from kohort.pipeline.schemas.table import Column, Table

SERVER_LOG = Table(
    "server_log",
    "rows",
    "What brokers have said in their log files about members that are gone.",
    (
        Column("group_id", pa.string(), "the group"),
        Column("member_id", pa.string(), "the member"),
        Column("trigger", pa.string(), "what `rebalances` calls the cause"),
        Column("reason", pa.string(), "what the client gave as its reason; null for nothing"),
        Column("clock_us", pa.int64(), "the clock of the line in microseconds, in no known zone"),
        Column("number", pa.int32(), "epoch or generation that the file names next; null for none"),
        Column("file", pa.string(), "name of the file"),
    ),
)
