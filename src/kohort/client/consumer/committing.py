# SPDX-License-Identifier: Apache-2.0
"""What an application commits: offsets that it gives, or all that it was handed."""

from collections.abc import Iterable
from typing import TypeAlias

from kohort.client.admin.group_views import CommittedOffset
from kohort.client.consumer.group_offsets import OffsetsToCommit
from kohort.client.consumer.ownership import Ownership
from kohort.client.fetcher import Fetcher
from kohort.client.topic_partitions import ByPartition, by_topic_partition
from kohort.errors import ApiError, ErrorCode
from kohort.terms import TopicPartition

Offsets: TypeAlias = ByPartition[int | CommittedOffset]


def offsets_to_commit(
    fetcher: Fetcher, ownership: Ownership, offsets: Offsets | None, *, handed: bool
) -> OffsetsToCommit:
    """These offsets as things are at this moment. Without any, as far as was handed out, or only
    as far as is processed. Raises TypeError and ValueError for what is no offset.
    """
    given: Offsets = (
        ownership.processed(ownership.owned, handed=handed) if offsets is None else offsets
    )
    whole = {
        partition: offset if isinstance(offset, CommittedOffset) else CommittedOffset(offset)
        for partition, offset in by_topic_partition("offsets", given).items()
    }
    for partition, committed in whole.items():
        check_offset(partition, committed.offset)
    void = ownership.void_in_work & (ownership.owned if offsets is None else whole.keys())
    lost = ownership.lost_in_work
    if offsets is not None:
        lost = (lost | ownership.gone) & whole.keys()
    refused = void | lost
    whole = {partition: offset for partition, offset in whole.items() if partition not in refused}
    ids = {partition: fetcher.topic_id(partition) for partition in whole}
    refusal: ApiError | None = None
    if void:
        text = "their records in work are of a topic that was deleted and made anew"
        refusal = ApiError(ErrorCode.UNKNOWN_TOPIC_ID, f"{_shown(void)}: {text}")
    elif lost:
        text = "lost while their records were in work, which others may see again"
        refusal = ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"{_shown(lost)}: {text}")
    return OffsetsToCommit(whole, ids, refusal)


def check_offset(partition: TopicPartition, offset: object) -> None:
    """Raises TypeError and ValueError for what is no offset."""
    if not isinstance(offset, int):
        raise TypeError(f"offset {offset!r} of {partition}, expected a whole number")
    if not 0 <= offset < 1 << 63:
        raise ValueError(f"offset {offset} of {partition}, expected 0 or more, below 2^63")


def _shown(partitions: Iterable[TopicPartition]) -> str:
    return ", ".join(map(str, sorted(partitions)))
