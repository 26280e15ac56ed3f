# SPDX-License-Identifier: Apache-2.0
"""The fetcher: from partitions and offsets to records, ahead of whoever takes them.

`fetcher` asks the brokers, each by a `session`, and `partition_lookup` finds out whom to ask and
from where on. A `partition_state` is what is known of a partition, its `buffer` what waits to be
handed out, and `decoding` makes records of it.
"""

from kohort.client.fetcher.decoding import RecordError
from kohort.client.fetcher.fetcher import Fetcher
from kohort.client.fetcher.record import AnyRecord, ConsumerRecord, OffsetAndEpoch
from kohort.client.fetcher.settings import FetchOptions, FetchSettings

__all__ = [
    "AnyRecord",
    "ConsumerRecord",
    "FetchOptions",
    "FetchSettings",
    "Fetcher",
    "OffsetAndEpoch",
    "RecordError",
]
