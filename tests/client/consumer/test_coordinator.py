# SPDX-License-Identifier: Apache-2.0
"""The coordinator of a group is looked up once, and again when it is another one."""

import asyncio
from typing import Any

import pytest
from tests.client.scripted import ScriptedCluster, asynchronous

from kohort.client.consumer.coordinator import Coordinator
from kohort.client.network.cluster import Node
from kohort.client.network.connection_errors import ConnectionFailedError, RequestTimeoutError
from kohort.errors import ApiError, ErrorCode


class Attempts:
    """What comes of each attempt in turn: an error that is raised, or a value."""

    def __init__(self, *outcomes: Any) -> None:
        self.outcomes = list(outcomes)
        self.nodes: list[int] = []

    async def __call__(self, node: Node) -> Any:
        self.nodes.append(node.id)
        outcome = self.outcomes.pop(0) if len(self.outcomes) > 1 else self.outcomes[0]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


def _deadline(timeout_s: float = 5) -> float:
    return asyncio.get_running_loop().time() + timeout_s


@asynchronous
async def test_it_is_remembered() -> None:
    async with ScriptedCluster(2) as script:
        coordinator = Coordinator(script.cluster(), "g")
        script.coordinators["g"] = 1
        attempts = Attempts("done")
        assert [await coordinator.settle(attempts, _deadline()) for _ in range(3)] == ["done"] * 3
        assert attempts.nodes == [1, 1, 1]
        assert script.names() == ["FindCoordinator"]


@pytest.mark.parametrize(
    "error",
    [
        ApiError(ErrorCode.NOT_COORDINATOR),
        ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE),
        ConnectionFailedError("gone", sent=True),
        RequestTimeoutError("silent"),
    ],
)
@asynchronous
async def test_it_is_looked_up_again_when_it_is_another_one_or_silent(error: ApiError) -> None:
    async with ScriptedCluster(2) as script:
        coordinator = Coordinator(script.cluster(), "g")
        attempts = Attempts("first", error, "second")
        assert await coordinator.settle(attempts, _deadline()) == "first"
        script.coordinators["g"] = 1
        assert await coordinator.settle(attempts, _deadline()) == "second"
        assert attempts.nodes == [0, 0, 1]


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
    ],
)
@asynchronous
async def test_what_passes_is_waited_for(code: ErrorCode) -> None:
    async with ScriptedCluster() as script:
        attempts = Attempts(ApiError(code), ApiError(code), "done")
        coordinator = Coordinator(script.cluster(), "g")
        assert await coordinator.settle(attempts, _deadline()) == "done"
        assert script.names() == ["FindCoordinator"]


@asynchronous
async def test_what_passes_is_not_waited_for_where_nobody_wants_that() -> None:
    async with ScriptedCluster() as script:
        attempts = Attempts(ApiError(ErrorCode.STALE_MEMBER_EPOCH), "done")
        coordinator = Coordinator(script.cluster(), "g")
        with pytest.raises(ApiError, match="STALE_MEMBER_EPOCH"):
            await coordinator.settle(attempts, _deadline(), passing=frozenset())


@asynchronous
async def test_other_errors_and_the_last_one_are_raised() -> None:
    async with ScriptedCluster() as script:
        coordinator = Coordinator(script.cluster(), "g")
        with pytest.raises(ApiError, match="FENCED_MEMBER_EPOCH"):
            await coordinator.settle(Attempts(ApiError(ErrorCode.FENCED_MEMBER_EPOCH)), _deadline())
        with pytest.raises(ApiError, match="REBALANCE_IN_PROGRESS"):
            await coordinator.settle(
                Attempts(ApiError(ErrorCode.REBALANCE_IN_PROGRESS)), _deadline(0.05)
            )
