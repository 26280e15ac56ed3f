# SPDX-License-Identifier: Apache-2.0
"""When groups have committed last: read from `__consumer_offsets`, as no request tells it.

A commit is a record of the group's partition, with the time of its coordinator. Compaction removes
one only where a newer commit to the same partition of a topic follows, or its deletion. So what
stands in the log from a moment on says whether a group has committed since that moment.
"""

import asyncio
from collections.abc import Iterable, Mapping

from kohort.client.admin.topics import When, describe_topics, list_offsets
from kohort.client.admin.views import OFFSETS_TOPIC, Outcomes
from kohort.client.network.cluster import Cluster
from kohort.client.topic_reader import TopicReader, offsets_of
from kohort.errors import ApiError, ErrorCode, WireError
from kohort.java import coordinator_partition
from kohort.records.codec import decode_commit_key
from kohort.terms import TopicPartition

_COMMIT_KEYS = (b"\x00\x00", b"\x00\x01")
_WAIT_MS = 100


async def commit_times(
    cluster: Cluster, group_ids: Iterable[str], *, since: When | None, deadline: float
) -> Outcomes[str, int | None]:
    """See `AdminClient.commit_times`."""
    ids = list(dict.fromkeys(group_ids))
    described = (await describe_topics(cluster, [OFFSETS_TOPIC], deadline=deadline))[OFFSETS_TOPIC]
    count = len(described.partitions)
    homes = {one: TopicPartition(OFFSETS_TOPIC, coordinator_partition(one, count)) for one in ids}
    places = sorted(set(homes.values()))
    begins: Mapping[TopicPartition, int] = await _begins(cluster, places, since, deadline)
    ends = await offsets_of(cluster, places, "latest", deadline, read_committed=True)
    ids_of_topics = {OFFSETS_TOPIC: described.topic_id}
    reader = TopicReader(cluster, begins, ids_of_topics, read_committed=True)
    times: dict[str, int] = {}
    error = await _read(reader, ends, times, ids, deadline)
    outcomes: dict[str, int | ApiError | None] = {}
    for one, home in homes.items():
        is_whole = reader.places[home] >= ends[home]
        outcomes[one] = times.get(one) if is_whole else error
    return Outcomes(outcomes)


async def _begins(
    cluster: Cluster, places: Iterable[TopicPartition], since: When | None, deadline: float
) -> dict[TopicPartition, int]:
    if since is None:
        return await offsets_of(cluster, places, "earliest", deadline)
    found = await list_offsets(
        cluster, dict.fromkeys(places, since), read_committed=False, deadline=deadline
    )
    late = [place for place, offset in found.all().items() if offset.offset is None]
    begins = {place: one.offset for place, one in found.all().items() if one.offset is not None}
    return begins | (await offsets_of(cluster, late, "latest", deadline) if late else {})


async def _read(
    reader: TopicReader,
    ends: Mapping[TopicPartition, int],
    times: dict[str, int],
    ids: Iterable[str],
    deadline: float,
) -> ApiError:
    """Read up to the ends; the error is that of the partitions which were not read so far."""
    wanted = set(ids)
    late = ApiError(
        ErrorCode.REQUEST_TIMED_OUT, f"{OFFSETS_TOPIC} could not be read to its end in time"
    )
    left = [place for place in ends if reader.places[place] < ends[place]]
    while left and asyncio.get_running_loop().time() < deadline:
        try:
            found = await reader.read(wait_ms=_WAIT_MS, deadline=deadline, of=left)
        except ApiError as error:
            return error
        except WireError as error:
            return ApiError(ErrorCode.CORRUPT_MESSAGE, f"{OFFSETS_TOPIC}: {error}")
        for record in found:
            key = record.key
            if key is None or key[:2] not in _COMMIT_KEYS or record.value is None:
                continue
            try:
                group_id = str(decode_commit_key(key).group)
            except WireError:  # of another program: it is no commit
                continue
            if group_id in wanted:
                times[group_id] = max(times.get(group_id, 0), record.timestamp_ms)
        left = [place for place in left if reader.places[place] < ends[place]]
    return late
