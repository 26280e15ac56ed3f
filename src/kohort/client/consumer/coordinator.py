# SPDX-License-Identifier: Apache-2.0
"""The coordinator of one group, asked until it answers, and looked up again when it has changed."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from kohort.client.members.request_state import ELSEWHERE
from kohort.client.network.cluster import Cluster, Node
from kohort.client.network.connection_errors import ConnectionFailedError, RequestTimeoutError
from kohort.errors import ApiError, ErrorCode

# A rebalance or a new epoch passes; the next attempt is made as the member of then.
PASSING = frozenset(
    {
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
    }
)

Answer = TypeVar("Answer")


class Coordinator:
    """Remembers which broker the coordinator is, until that one denies it or does not answer."""

    def __init__(self, cluster: Cluster, group_id: str) -> None:
        self._cluster = cluster
        self._group_id = group_id
        self._node: Node | None = None

    async def settle(
        self,
        attempt: Callable[[Node], Awaitable[Answer]],
        deadline: float,
        *,
        passing: frozenset[ErrorCode] = PASSING,
    ) -> Answer:
        """The result of an attempt, which is made again for errors that pass. Raises the last
        error. The attempt must be one that may be repeated: its answer may have been lost.
        """
        tried = 0
        while True:
            try:
                return await attempt(await self._find(deadline))
            except ApiError as error:
                lost = isinstance(error, ConnectionFailedError | RequestTimeoutError)
                if lost or error.code in ELSEWHERE:
                    self._node = None
                elif error.code not in passing and not error.code.retriable:
                    raise
                if not await self._cluster.pause(tried, deadline):
                    raise
                tried += 1

    async def _find(self, deadline: float) -> Node:
        if self._node is None:
            found = (await self._cluster.coordinators([self._group_id], deadline))[self._group_id]
            if isinstance(found, ApiError):
                raise found
            self._node = found
        return self._node
