# SPDX-License-Identifier: Apache-2.0
"""What requests that change topics have in common. Each topic is judged by itself, against the
topics as they are when the catalog is written next; the answer waits for that write.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

from kohort.errors import ApiError, ErrorCode, StorageError
from kohort.machines.effects import Call
from kohort.server.catalog import INTERNAL_TOPICS, Draft, Topic
from kohort.server.node import Node
from kohort.server.partitions.disk_work import Finish
from kohort.server.requests.reply_tokens import ContinuationToken, ReplyToken, ask_in_sequence
from kohort.server.requests.steps import slices
from kohort.wire.messages.create_partitions import CreatePartitionsTopic
from kohort.wire.messages.create_topics import CreatableTopic

Asked = TypeVar("Asked", CreatableTopic, CreatePartitionsTopic)
Named = TypeVar("Named", bound=Hashable)
Done = TypeVar("Done")
AskedFor = TypeVar("AskedFor")

JUDGED_AT_ONCE = 500


def change_topics(
    node: Node,
    call: Call[Any],
    judge: Callable[[Draft], dict[Named, Done | ApiError]],
    answer: Callable[[dict[Named, Done | ApiError]], Any],
    *,
    validate_only: bool = False,
) -> None:
    """Judge topics, or whatever else is in the catalog, and change them in the draft of its next
    write; answer when that is durable. With `validate_only` nothing is changed.
    """

    def change(draft: Draft) -> Finish:
        try:
            judged = judge(draft.scratch() if validate_only else draft)
        except Exception as error:  # noqa: BLE001  (whatever it is, it is this client's alone)
            call.token.fail(error)
            return _nobody

        def finish(error: StorageError | None) -> None:
            if error is not None and not validate_only:
                refused = ApiError(ErrorCode.KAFKA_STORAGE_ERROR, str(error))
                passed = [
                    key for key, outcome in judged.items() if not isinstance(outcome, ApiError)
                ]
                judged.update(dict.fromkeys(passed, refused))
            call.token.answer(answer(judged))

        return finish

    node.cluster.table.change(change)


def change_in_parts(
    node: Node,
    call: Call[Any],
    asked: Sequence[AskedFor],
    judge: Callable[[Draft, Sequence[AskedFor]], dict[Named, Done | ApiError]],
    answer: Callable[[dict[Named, Done | ApiError]], None],
    *,
    validate_only: bool = False,
) -> None:
    """As `change_topics`, a part of what is asked for after the other: others are served in
    between. Each part is durable before the next one is judged. `answer` is called with what has
    become of all of them, and answers the call.
    """
    parts = slices(asked, JUDGED_AT_ONCE)
    scratch: list[Draft] = []  # of all parts, where nothing is changed
    request, version, client = call.request, call.version, call.client

    def change(token: ReplyToken, number: int) -> None:
        def judge_part(draft: Draft) -> dict[Named, Done | ApiError]:
            if validate_only and not scratch:
                scratch.append(draft)
            return judge(scratch[0] if validate_only else draft, parts[number])

        own = Call(token, request, version, client)
        change_topics(node, own, judge_part, dict, validate_only=validate_only)

    def merge(judged: list[dict[Named, Done | ApiError]]) -> dict[Named, Done | ApiError]:
        return {named: done for part in judged for named, done in part.items()}

    token = ContinuationToken(call.token, answer)
    ask_in_sequence(node.cluster.scheduler, token, len(parts), change, merge)


def _nobody(_error: StorageError | None) -> None:
    """An answer for which no client waits."""


def judged_topics(
    node: Node,
    draft: Draft,
    asked: Sequence[Asked],
    counts: Counter[str],
    check_allowed: Callable[[str], None],
    judge: Callable[[Node, Draft, Asked], Topic],
) -> dict[str, Topic | ApiError]:
    """The result for each topic that is asked for, by name. A topic that its request names twice,
    by these `counts`, is refused, once, and so is one for which `check_allowed` raises ApiError.
    Topics that pass are put into the draft.
    """
    judged: dict[str, Topic | ApiError] = {}
    for wanted in asked:
        if wanted.name not in judged:
            try:
                check_once(counts[wanted.name], "name")
                check_allowed(wanted.name)
                judged[wanted.name] = topic = judge(node, draft, wanted)
                draft.put(topic)
            except ApiError as error:
                judged[wanted.name] = error.without_frames()
    return judged


def check_room(node: Node, draft: Draft, name: str, more: int) -> None:
    """Raises ApiError where the broker has no room for this number of further partitions of a
    topic.
    """
    limit = node.cluster.config.max_partitions
    if draft.partitions + more > limit:
        raise ApiError(
            ErrorCode.INVALID_PARTITIONS,
            f"There are {draft.partitions} partitions, and {more} more would be "
            f"above max.partitions, which is {limit}.",
        )
    if name in INTERNAL_TOPICS:
        shares = node.cluster.shares_with(more)
        if shares.missing:
            raise ApiError(
                ErrorCode.INVALID_PARTITIONS,
                f"The {more} logs of {name} would always be open: {shares}.",
            )


def check_time(timeout_ms: int, asked: Sequence[Any]) -> None:
    """Raises ApiError for a timeout that is over: upstream's controller then does nothing. It does
    not check topics that are named twice.
    """
    if timeout_ms <= 0 and 1 in Counter(topic.name for topic in asked).values():
        raise ApiError(
            ErrorCode.REQUEST_TIMED_OUT, f"the timeout is {timeout_ms} ms, expected more than 0"
        )


def check_once(count: int, what: str) -> None:
    """Raises ApiError for a topic named twice: upstream answers it once, with an error."""
    if count > 1:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Duplicate topic {what}.")


def checked_assignment(node: Node, assignment: Sequence[Sequence[int]], factor: int | None) -> int:
    """The replication factor of an assignment, which is the same for all its partitions."""
    for replicas in assignment:
        if not replicas or len(set(replicas)) < len(replicas):
            raise ApiError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"The manual partition assignment has nodes {replicas}, expected each node once.",
            )
        for node_id in replicas:
            if node_id not in node.cluster.placement.node_ids:
                raise ApiError(
                    ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                    f"The manual partition assignment includes broker {node_id}, "
                    "but no such broker is registered.",
                )
        if factor is None:
            factor = len(replicas)
        if len(replicas) != factor:
            raise ApiError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"The manual partition assignment has {len(replicas)} nodes for a partition, "
                f"expected {factor} as for the others.",
            )
    return factor or 1
