# SPDX-License-Identifier: Apache-2.0
"""A question with one answer: about the cluster as a whole, or about one thing.

It is asked as `settle` asks, and its error is raised.
"""

from collections.abc import Awaitable, Callable, Sequence
from itertools import count
from typing import Any, TypeVar

from kohort.client.admin.request_rounds import Locate, settle
from kohort.client.network.cluster import Cluster, Node
from kohort.errors import ApiError, ErrorCode, UnsupportedVersionError

Key = TypeVar("Key")
Value = TypeVar("Value")


async def settle_one(
    cluster: Cluster,
    key: Key,
    locate: Locate[Key],
    ask: Callable[[Node, float], Awaitable[Value]],
    *,
    deadline: float,
    repeatable: bool = True,
) -> Value:
    """The answer of the broker that `locate` finds. `key` is what errors of rights name.

    Raises the ApiError of the broker or of the way to it, and UnsupportedVersionError.
    """

    async def ask_each(
        node: Node, keys: Sequence[Key], deadline: float
    ) -> dict[Key, Value | ApiError]:
        return dict.fromkeys(keys, await ask(node, deadline))

    found = await settle(cluster, [key], locate, ask_each, deadline=deadline, repeatable=repeatable)
    outcome = found[key]
    if not isinstance(outcome, ApiError):
        return outcome
    if outcome.code is ErrorCode.UNSUPPORTED_VERSION:
        raise UnsupportedVersionError(outcome.message)
    raise outcome


def anybody(cluster: Cluster) -> Locate[Any]:
    """A broker by its place in the order of ids: the next one, when one has not answered."""
    return broker_by_id(cluster, lambda _: None)


def broker_by_id(cluster: Cluster, broker_of: Callable[[Any], int | None]) -> Locate[Any]:
    """The broker that a thing belongs to, by its id. None leaves it to anybody."""
    turn = count()

    async def locate(keys: Sequence[Any], deadline: float) -> dict[Any, Node | ApiError]:
        nodes = await cluster.nodes(deadline)
        found: dict[Any, Node | ApiError] = dict.fromkeys(
            keys, nodes[sorted(nodes)[next(turn) % len(nodes)]]
        )
        for key in keys:
            node_id = broker_of(key)
            if node_id is not None:
                found[key] = nodes.get(node_id) or _missing(node_id, nodes)
        return found

    return locate


def _missing(node_id: int, nodes: dict[int, Node]) -> ApiError:
    there = ", ".join(map(str, sorted(nodes)))
    text = f"broker {node_id} is not in the cluster, expected one of {there}"
    return ApiError(ErrorCode.BROKER_ID_NOT_REGISTERED, text)
