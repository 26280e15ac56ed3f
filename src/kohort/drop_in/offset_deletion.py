# SPDX-License-Identifier: Apache-2.0
"""`kafka-consumer-groups --delete-offsets`: offsets of topics that nobody in the group reads."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from kohort.drop_in.java import JavaError, in_future, of_code
from kohort.drop_in.options import Options
from kohort.drop_in.orders import by_partition, sorted_names
from kohort.drop_in.running import ask, line, no_node, print_error
from kohort.drop_in.tables import MISSING, filled, widest
from kohort.drop_in.topic_arguments import partitions_in, split
from kohort.errors import ApiError, ErrorCode
from kohort.terms import TopicPartition

if TYPE_CHECKING:  # the client is imported when a tool asks
    from kohort.client.admin import AdminClient

_OF_THE_GROUP = (
    ErrorCode.INVALID_GROUP_ID,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.NON_EMPTY_GROUP,
)
_OF_PARTITIONS = (
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
)
_NO_INDEX = -1
_Errors = dict[TopicPartition, ApiError | None]


def delete_offsets(options: Options, timeout_ms: int) -> bool:
    """Whether all are deleted. Raises JavaError and UsageError."""
    group = options.value("group") or ""
    named, topics = split(options.values("topic"))
    given = [partition for text in named for partition in partitions_in(text)]

    async def asked(admin: "AdminClient") -> tuple[_Errors, _Errors, int]:
        missing, errors = await _deleted(admin, group, given, topics)
        return missing, errors, 0 if errors else await _refusal_of(admin, group)

    missing, errors, refusal = ask(options, asked, timeout_ms=timeout_ms, unreachable=_unreachable)
    ordered = (errors[each] for each in by_partition(errors))
    first = next((int(error.code) for error in ordered if error is not None), refusal)
    if not first:
        line(f"Request succeeded for deleting offsets from group {group}.")
    elif first in _OF_THE_GROUP:
        print_error(of_code(first).text)
    elif first in _OF_PARTITIONS:
        print_error("Encountered some partition-level error, see the follow-up details.")
    else:
        print_error(f"Encountered some unknown error: {ErrorCode(first).name}")
    _print_statuses({**missing, **errors})
    return not any((first, *missing.values()))


async def _deleted(
    admin: "AdminClient", group: str, given: Sequence[TopicPartition], topics: Sequence[str]
) -> tuple[_Errors, _Errors]:
    """The topics that are not there, and the error of each partition: None where it is deleted."""
    wanted = dict.fromkeys(given)
    missing: _Errors = {}
    described = await admin.describe_topics(topics)
    for topic, error in described.failed.items():
        missing[TopicPartition(topic, _NO_INDEX)] = error
    for topic, found in described.succeeded.items():
        wanted |= dict.fromkeys(TopicPartition(topic, each.partition) for each in found.partitions)
    failed = (await admin.delete_group_offsets(group, wanted)).failed
    return missing, {each: failed.get(each) for each in wanted}


async def _refusal_of(admin: "AdminClient", group: str) -> int:
    """The code with which the group refuses to have offsets deleted, or 0. Where no partition is
    left to ask about, the Java tool still asks its coordinator.
    """
    from kohort.client.admin import AclOperation

    described = await admin.describe_groups([group], include_authorized_operations=True)
    if group in described.failed:
        return int(described.failed[group].code)
    allowed = described[group].authorized_operations
    may_delete = allowed is None or AclOperation.DELETE in allowed
    return 0 if may_delete else ErrorCode.GROUP_AUTHORIZATION_FAILED


def _print_statuses(errors: Mapping[TopicPartition, ApiError | None]) -> None:
    width = widest(15, (partition.topic for partition in errors))
    line(filled(("TOPIC", "PARTITION", "STATUS"), (width, 10, 15)), before="\n", end="")
    by_text = {f"{partition.topic}{partition.partition}": partition for partition in errors}
    for text in sorted_names(by_text):
        partition = by_text[text]
        error = errors[partition]
        index = MISSING if partition.partition == _NO_INDEX else partition.partition
        status = "Successful" if error is None else f"Error: {_cause(partition, error)}"
        line(filled((partition.topic, index, status), (width, 10, 15)), before="\n", end="")
    line()


def _cause(partition: TopicPartition, error: ApiError) -> JavaError:
    from kohort.client.network.cluster import MissingEntryError

    if not isinstance(error, MissingEntryError):
        return of_code(error.code)
    place = f'partition "{partition.topic}-{partition.partition}"'
    text = f"Offset deletion result for {place} was not included in the response"
    return JavaError("java.lang.IllegalArgumentException", text)


def _unreachable(why: JavaError | None) -> JavaError:
    return in_future(no_node("describeTopics", why))
