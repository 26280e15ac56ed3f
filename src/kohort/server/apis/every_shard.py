# SPDX-License-Identifier: Apache-2.0
"""An answer in which every shard of a node, or of the cluster, has its part: a listing.

A shard that is read from its log, or will be in a moment, makes the whole answer
COORDINATOR_LOAD_IN_PROGRESS: clients ask again. One that cannot be read is left out, as upstream
leaves it out, so that the others can be listed. Metadata tells which: nobody leads its partition,
where the log could not be opened, or its leader is offline, where a record cannot be read
(`state_of` in `leaders.py`). Our own clients name it.
"""

from collections.abc import Callable, Iterable
from typing import Any

from kohort.errors import ApiError, ErrorCode
from kohort.machines.effects import Call
from kohort.runtime.driver import Condition
from kohort.server.coordinators.coordinator_partitions import Driver, TransactionDriver
from kohort.server.node import Node
from kohort.server.requests.reply_tokens import GatherToken, MappingToken, ReplyToken


def ask_every_shard(
    node: Node,
    call: Call[Any],
    shards: Iterable[Driver | TransactionDriver],
    question: Any,
    merge: Callable[[list[Any]], Any],
    code_of: Callable[[Any], int] = lambda part: part.error_code,
    change: Callable[[Any], Any] | None = None,
) -> None:
    """Ask these shards, and answer the call by what `merge` makes of the parts. The part of a shard
    that has failed meanwhile has an error, and adds nothing. `code_of` tells the error of a part.
    `change` changes each part as soon as it is there, so that others are served between two parts
    of a long answer.
    """
    asked = [shard for shard in shards if shard.condition is not Condition.FAILED]

    def merged(parts: list[Any]) -> Any:
        codes = (_code(shard, code_of(part)) for shard, part in zip(asked, parts, strict=True))
        code = next(filter(None, codes), None)
        return call.request.refused(ApiError(ErrorCode(code))) if code else merge(parts)

    if not asked:
        call.token.answer(merge([]))
        return
    gather = GatherToken(call.token, len(asked), merged)
    for index, shard in enumerate(asked):
        token: ReplyToken = gather.part(index)
        if change is not None:
            token = MappingToken(token, change)
        node.cluster.submit(shard, Call(token, question, call.version, call.client))


def _code(shard: Driver | TransactionDriver, code: int) -> int:
    """What the error of a part is to the whole answer. A shard that has failed since it was asked
    has answered NOT_COORDINATOR.
    """
    if code != ErrorCode.NOT_COORDINATOR:
        return code
    if shard.condition is Condition.FAILED:
        return ErrorCode.NONE
    return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
