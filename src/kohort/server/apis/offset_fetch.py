# SPDX-License-Identifier: Apache-2.0
"""OffsetFetch on its way to the shards of its groups. Whatever its version, it gets there in the
shape of version 8 (KIP-709).
"""

from collections.abc import Callable, Iterator
from typing import Any

from kohort.errors import ApiError, ErrorCode
from kohort.machines.effects import Call, Client
from kohort.machines.topics import Topics
from kohort.server.access import DESCRIBE, TOPIC, everyone_may
from kohort.server.apis.named_topics import TOPIC_IDS_FROM, name_topics
from kohort.server.coordinators.coordinator_partitions import Driver
from kohort.server.node import Node
from kohort.server.requests.reply_tokens import (
    GatherToken,
    MappingToken,
    ReplyToken,
    ask_in_sequence,
)
from kohort.server.requests.steps import StepBudget, Steps, continue_in_steps, has_gone
from kohort.terms import NO_TOPIC_ID, GroupId
from kohort.wire.messages import offset_fetch as fetch_wire
from kohort.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)

AT_ONCE = 2000  # topics and partitions, and a few for each group
GROUP = 8  # a group takes as long as so many partitions
PIECED_WITH_AN_ELEMENT = 16  # elements that are put into a part, which is little work


def fetch_offsets(node: Node, call: Call[OffsetFetchRequest]) -> None:
    request = call.request
    token = call.token
    if call.version < 8:
        _one_group_shape(call)
    repeats, elements = _counted(node, request.groups)
    if repeats or elements > AT_ONCE:
        asked = Call(token, request, call.version, call.client)
        continue_in_steps(node, asked, _fetch_in_steps(node, call, elements, has_gone(asked)))
    else:
        _fetch(node, call)


def _fetch(node: Node, call: Call[OffsetFetchRequest]) -> None:
    """Ask the shards of the groups; one that is large goes there as a whole."""
    request = call.request
    _take_refused(node, call)
    if len(request.groups) == 1:
        try:
            driver = node.driver_for(call.client, DESCRIBE, GroupId(request.groups[0].group_id))
        except ApiError as error:
            call.token.answer(request.refused(error))
        else:
            node.cluster.submit(driver, call)
        return
    by_driver: dict[Driver, list[int]] = {}
    refused: dict[int, ApiError] = {}
    client, driver_for = call.client, node.driver_for
    for index, group in enumerate(request.groups):
        group_id: Any = group.group_id  # a call of GroupId for each would be felt
        try:
            driver = driver_for(client, DESCRIBE, group_id)
            by_driver.setdefault(driver, []).append(index)
        except ApiError as error:
            refused[index] = error.without_frames()
    if len(by_driver) == 1 and not refused:
        (driver,) = by_driver
        node.cluster.submit(driver, call)
    else:
        _fetch_from_many(node, call, by_driver, refused)


def _counted(node: Node, groups: list[OffsetFetchRequestGroup]) -> tuple[bool, int]:
    """Whether something is named again, since an answer may be a thousand times as large as a name;
    and about how many elements the answer has. Of many groups no more is looked at.
    """
    named = len(groups)
    count = GROUP * named
    repeats = named > 1 and len({group.group_id for group in groups}) < named
    if count > AT_ONCE:
        return repeats, count
    asked = [group.topics for group in groups if group.topics is not None]
    if len(asked) < named:
        count += sum(_offsets_of(node, group) for group in groups if group.topics is None)
    topics = [topic for some in asked for topic in some]
    if len(topics) > 1 and max(map(len, asked)) > 1:
        keys = [{(topic.name, topic.topic_id) for topic in some} for some in asked]
        repeats = repeats or sum(map(len, keys)) < len(topics)
    indexes = [topic.partition_indexes for topic in topics]
    size = sum(map(len, indexes))
    repeats = repeats or sum(map(len, map(set, indexes))) < size
    return repeats, count + len(topics) + size


def _offsets_of(node: Node, group: OffsetFetchRequestGroup) -> int:
    """About how many offsets the answer has about a group that is asked for all of them."""
    group_id: Any = group.group_id
    driver = node.cluster.drivers.get(node.cluster.placement.shard_of(group_id))
    count = 0
    if driver is not None:
        for table in driver.machine.offsets.of(group_id).values():  # sum() takes twice as long
            count += table.count
    return count


def _distinct(groups: list[OffsetFetchRequestGroup]) -> Steps[list[OffsetFetchRequestGroup]]:
    """Each group, each of its topics and each partition once, with all that is asked of it. The
    first to name a group says who asks.

    A group that is asked for all that it has as well is there once more for that: a partition that
    is named is answered without an offset, too.
    """
    found: dict[tuple[str, bool], OffsetFetchRequestGroup] = {}
    step_budget = StepBudget()
    for group in groups:
        if step_budget.is_over():
            yield
        known = found.setdefault((group.group_id, group.topics is None), group)
        if known is not group and known.topics is not None and group.topics is not None:
            known.topics += group.topics
    for group in found.values():
        if group.topics is not None:
            topics: dict[tuple[str, bytes], dict[int, None]] = {}
            for topic in group.topics:
                indexes = topics.setdefault((topic.name, topic.topic_id), {})
                indexes.update(dict.fromkeys(topic.partition_indexes))
                if step_budget.is_over(1 + len(topic.partition_indexes)):
                    yield
            group.topics = [
                OffsetFetchRequestTopics(name=name, topic_id=uuid, partition_indexes=[*indexes])
                for (name, uuid), indexes in topics.items()
            ]
    return [*found.values()]


def _fetch_in_steps(
    node: Node, call: Call[OffsetFetchRequest], elements: int, gone: Callable[[], bool]
) -> Steps[None]:
    """A part of what is asked after the other, so that others are served in between."""
    request = call.request
    request.groups = yield from _distinct(request.groups)
    if elements <= AT_ONCE:
        _fetch(node, call)
        return
    parts = yield from _parts(node, request.groups)
    version, client = call.version, call.client

    def ask(token: ReplyToken, number: int) -> None:
        own = OffsetFetchRequest(groups=parts[number], require_stable=request.require_stable)
        _fetch(node, Call(token, own, version, client))

    ask_in_sequence(node.cluster.scheduler, call.token, len(parts), ask, _joined, gone)


def _parts(
    node: Node, groups: list[OffsetFetchRequestGroup]
) -> Steps[list[list[OffsetFetchRequestGroup]]]:
    """The groups in parts of a bounded size; a large group is in several of them."""
    parts: list[list[OffsetFetchRequestGroup]] = [[]]
    left = AT_ONCE
    step_budget = StepBudget()
    for group in groups:
        for piece, elements in _pieces(node, group):
            if step_budget.is_over(elements // PIECED_WITH_AN_ELEMENT + 1):
                yield
            if elements > left and parts[-1]:
                parts.append([])
                left = AT_ONCE
            parts[-1].append(piece)
            left -= elements
    return parts


def _pieces(
    node: Node, group: OffsetFetchRequestGroup
) -> Iterator[tuple[OffsetFetchRequestGroup, int]]:
    """What is asked of a group in pieces of a bounded size, each with its size."""
    if group.topics is None:
        yield group, GROUP + _offsets_of(node, group)
        return

    def piece() -> OffsetFetchRequestGroup:
        return OffsetFetchRequestGroup(
            group_id=group.group_id,
            member_id=group.member_id,
            member_epoch=group.member_epoch,
            topics=topics,
        )

    topics: list[OffsetFetchRequestTopics] = []
    elements = GROUP
    for topic in group.topics:
        indexes = topic.partition_indexes
        for at in range(0, len(indexes) or 1, AT_ONCE):
            own = indexes[at : at + AT_ONCE]
            if topics and elements + 1 + len(own) > AT_ONCE:
                yield piece(), elements
                topics, elements = [], GROUP
            topics.append(
                OffsetFetchRequestTopics(
                    name=topic.name, topic_id=topic.topic_id, partition_indexes=own
                )
            )
            elements += 1 + len(own)
    yield piece(), elements


def _joined(parts: list[OffsetFetchResponse]) -> OffsetFetchResponse:
    """The answers of all parts, in which a group, and a topic of it, may be in several. An error of
    a group is the answer about it, whichever part it is in.
    """
    found: dict[str, fetch_wire.OffsetFetchResponseGroup] = {}
    for part in parts:
        for group in part.groups:
            known = found.setdefault(group.group_id, group)
            if known is group or known.error_code:
                continue
            if group.error_code:
                found[group.group_id] = group
            elif known.topics and group.topics and _is_same(known.topics[-1], group.topics[0]):
                known.topics[-1].partitions += group.topics[0].partitions
                known.topics += group.topics[1:]
            else:
                known.topics += group.topics
    return OffsetFetchResponse(groups=[*found.values()])


def _is_same(
    one: fetch_wire.OffsetFetchResponseTopics, other: fetch_wire.OffsetFetchResponseTopics
) -> bool:
    return one.name == other.name and one.topic_id == other.topic_id


def _fetch_from_many(
    node: Node,
    call: Call[OffsetFetchRequest],
    by_driver: dict[Driver, list[int]],
    refused: dict[int, ApiError],
) -> None:
    """One call per shard, with all its groups; the answer has the order of the request."""
    request = call.request
    groups: list[Any] = [None] * len(request.groups)
    for index, error in refused.items():
        own = OffsetFetchRequest(groups=[request.groups[index]])
        (groups[index],) = own.refused(error).groups
    order = list(by_driver.values())

    def merge(parts: list[OffsetFetchResponse]) -> OffsetFetchResponse:
        for indexes, part in zip(order, parts, strict=True):
            for index, group in zip(indexes, part.groups, strict=True):
                groups[index] = group
        return OffsetFetchResponse(groups=groups)

    if not by_driver:
        call.token.answer(merge([]))
        return
    gather = GatherToken(call.token, len(by_driver), merge)
    for number, (driver, indexes) in enumerate(by_driver.items()):
        own = OffsetFetchRequest(
            groups=[request.groups[index] for index in indexes],
            require_stable=request.require_stable,
        )
        part = Call(gather.part(number), own, call.version, call.client)
        node.cluster.submit(driver, part)


def _one_group_shape(call: Call[OffsetFetchRequest]) -> None:
    """Versions 1 to 7 ask for one group at the top level; its answer is there too."""
    request = call.request
    asked = request.topics
    topics = None
    if asked is not None:
        topics = [
            fetch_wire.OffsetFetchRequestTopics(
                name=topic.name, partition_indexes=topic.partition_indexes
            )
            for topic in asked
        ]
    request.groups = [fetch_wire.OffsetFetchRequestGroup(group_id=request.group_id, topics=topics)]
    version = call.version

    def flat(response: OffsetFetchResponse) -> OffsetFetchResponse:
        group = response.groups[0]
        if group.error_code and version < 2:
            return _refused_partitions(asked or [], group.error_code)
        topics = [
            fetch_wire.OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    fetch_wire.OffsetFetchResponsePartition(
                        partition_index=partition.partition_index,
                        committed_offset=partition.committed_offset,
                        committed_leader_epoch=partition.committed_leader_epoch,
                        metadata=partition.metadata,
                        error_code=partition.error_code,
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in group.topics
        ]
        return OffsetFetchResponse(topics=topics, error_code=group.error_code)

    call.token = MappingToken(call.token, flat)


def _refused_partitions(
    asked: list[fetch_wire.OffsetFetchRequestTopic], code: int
) -> OffsetFetchResponse:
    """Version 1 has no place for an error but the partitions."""
    topics = [
        fetch_wire.OffsetFetchResponseTopic(
            name=topic.name,
            partitions=[
                fetch_wire.OffsetFetchResponsePartition(
                    partition_index=index, committed_offset=-1, error_code=code
                )
                for index in topic.partition_indexes
            ],
        )
        for topic in asked
    ]
    return OffsetFetchResponse(topics=topics)


def _take_refused(node: Node, call: Call[OffsetFetchRequest]) -> None:
    """Topics that the client may not describe are not asked for; nor are ids that nobody knows.
    They are refused behind the others. Offsets of a topic that is gone are told by its name, so
    long as they are kept. Who asks for all topics is shown those he may see.
    """
    by_id = call.version >= TOPIC_IDS_FROM
    topics, may = node.cluster.topics, node.cluster.may
    if may is everyone_may and not by_id:
        return
    refused: dict[int, dict[int, Any]] = {}  # by the topic that is asked for
    for index, group in enumerate(call.request.groups):
        if group.topics is None:
            refused[index] = {}
            continue
        if by_id:
            name_topics(group.topics, topics)
        for topic in group.topics:
            if by_id and topic.name not in topics.by_name:
                code = ErrorCode.UNKNOWN_TOPIC_ID  # whether an id exists is no secret
            elif may(call.client, DESCRIBE, TOPIC, topic.name):
                continue
            else:
                code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            refused.setdefault(index, {})[id(topic)] = _refused_topic(topic, code)
        if index in refused:
            gone = refused[index]
            group.topics = [topic for topic in group.topics if id(topic) not in gone]
    if by_id or refused:
        everything = [group.topics is None for group in call.request.groups]
        client = call.client  # the call would hold its token, and that this function

        def whole(response: OffsetFetchResponse) -> OffsetFetchResponse:
            for index, group in enumerate(response.groups):
                if everything[index]:
                    _hide(node, client, group)
                if by_id:
                    _put_ids(topics, group)
                if not group.error_code:
                    group.topics += refused.get(index, {}).values()
            return response

        call.token = MappingToken(call.token, whole)


def _refused_topic(
    topic: fetch_wire.OffsetFetchRequestTopics, code: ErrorCode
) -> fetch_wire.OffsetFetchResponseTopics:
    partitions = [
        fetch_wire.OffsetFetchResponsePartitions(
            partition_index=index, committed_offset=-1, error_code=code
        )
        for index in topic.partition_indexes
    ]
    return fetch_wire.OffsetFetchResponseTopics(
        name=topic.name, topic_id=topic.topic_id, partitions=partitions
    )


def _hide(node: Node, client: Client, group: fetch_wire.OffsetFetchResponseGroup) -> None:
    may = node.cluster.may
    group.topics = [topic for topic in group.topics if may(client, DESCRIBE, TOPIC, topic.name)]


def _put_ids(topics: Topics, group: fetch_wire.OffsetFetchResponseGroup) -> None:
    """Version 10: names become ids again, and unknown ids get their error."""
    for topic in group.topics:
        known = topics.by_name.get(topic.name)
        topic.topic_id = known.id if known is not None else NO_TOPIC_ID
    group.topics = [topic for topic in group.topics if topic.topic_id != NO_TOPIC_ID]
