"""Fetching: from partitions and places to records, ahead of whoever takes them.

`fetcher` asks the brokers, each by a `session`, and `finding` finds out whom to ask and from where
on. A `track` is what is known of a partition, its `buffer` what waits to be handed out, and
`decoding` makes records of it.
"""

from kohort.client.fetching.decoding import RecordError
from kohort.client.fetching.fetcher import Fetcher
from kohort.client.fetching.record import AnyRecord, ConsumerRecord, OffsetAndEpoch
from kohort.client.fetching.settings import FetchOptions, FetchSettings

__all__ = [
    "AnyRecord",
    "ConsumerRecord",
    "FetchOptions",
    "FetchSettings",
    "Fetcher",
    "OffsetAndEpoch",
    "RecordError",
]
