# SPDX-License-Identifier: Apache-2.0
"""Ask the right broker for each thing, and ask again for what may still succeed.

Groups have coordinators, partitions have leaders, topics have the controller; the round is the
same. Look up who has what, ask every broker once for everything that it has, keep the answers, and
go round again for the rest. The failure of one thing does not affect the others, nor does a broker
that is silent.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

from kohort.client.admin.answers import Arrived
from kohort.client.network.cluster import Cluster, Node, answered, unanswered
from kohort.client.network.connection_errors import ConnectionFailedError, RequestTimeoutError
from kohort.client.network.denials import explained
from kohort.errors import (
    ApiError,
    AuthenticationError,
    ErrorCode,
    UnsupportedVersionError,
    WireError,
)

Key = TypeVar("Key")
Value = TypeVar("Value")

Locate = Callable[[Sequence[Key], float], Awaitable[Mapping[Key, Node | ApiError]]]
Ask = Callable[[Node, Sequence[Key], float], Awaitable[Mapping[Key, Value | ApiError]]]

# It has moved, or nobody has it yet: look it up again.
_MOVED = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.BROKER_NOT_AVAILABLE,  # no controller is elected yet
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.NETWORK_EXCEPTION,
    }
)
# It is the right one, and has done nothing: ask it again.
_BUSY = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
        ErrorCode.OFFSET_NOT_AVAILABLE,  # a new leader that does not know its high watermark yet
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,  # KIP-599: the change was not made
        ErrorCode.CONCURRENT_TRANSACTIONS,  # the one before it is still ending
    }
)
# How often to try a code that may stay for hours: the caller's time is for the others.
_ATTEMPTS = {
    ErrorCode.NETWORK_EXCEPTION: 3,
    ErrorCode.LEADER_NOT_AVAILABLE: 5,
    ErrorCode.REPLICA_NOT_AVAILABLE: 5,
    ErrorCode.KAFKA_STORAGE_ERROR: 5,
}


async def settle(
    cluster: Cluster,
    keys: Iterable[Key],
    locate: Locate[Key],
    ask: Ask[Key, Value],
    *,
    deadline: float,
    repeatable: bool = True,
    unfinished: Callable[[Value], bool] | None = None,
    final: Collection[ErrorCode] = (),
    arrived: Arrived[Key, Value] | None = None,
) -> dict[Key, Value | ApiError]:
    """One outcome for each key, in the order given: its broker's answer, or the reason for none.

    A key is tried again until the deadline for codes that pass (a coordinator that loads or moves),
    three times for a broker that cannot be reached, and five times, which is most of a second, for
    a partition without a leader. A request that is not `repeatable` is not sent again once it may
    have arrived. `unfinished` says whether a value is worth asking again, and `final` has codes
    that are not, for this caller. `arrived` hears of each outcome as soon as it is certain.

    Raises the error where the cluster could not be reached, so that nothing was looked up.
    """
    rounds = _RequestRounds(cluster, list(dict.fromkeys(keys)), locate, ask, deadline)
    rounds.repeatable = repeatable
    rounds.unfinished = unfinished
    rounds.final = final
    rounds.arrived = arrived
    return await rounds.outcomes()


class _RequestRounds(Generic[Key, Value]):
    """What is known of each key, and the steps that are under way.

    Each step is a task of its own, and says which ones follow. So the share of a broker that is
    silent holds up no other share, however often that one has to be asked again.
    """

    def __init__(
        self,
        cluster: Cluster,
        keys: Sequence[Key],
        locate: Locate[Key],
        ask: Ask[Key, Value],
        deadline: float,
    ) -> None:
        self.repeatable = True
        self.unfinished: Callable[[Value], bool] | None = None
        self.final: Collection[ErrorCode] = ()
        self.arrived: Arrived[Key, Value] | None = None
        self._cluster = cluster
        self._locate = locate
        self._ask = ask
        self._deadline = deadline
        self._outcomes: dict[Key, Value | ApiError] = dict.fromkeys(keys, unanswered("it", ""))
        self._located: dict[Key, Node] = {}
        self._tried: Counter[tuple[Key, ErrorCode]] = Counter()
        self._reached = False
        self._unheard: list[Key] = []  # that are certain, while nobody was reached

    async def outcomes(self) -> dict[Key, Value | ApiError]:
        """Take all steps. Raises as `settle` does."""
        first: Step = partial(self._look_up, list(self._outcomes), 0)
        under_way = {asyncio.ensure_future(first())} if self._outcomes else set()
        try:
            while under_way:
                done, under_way = await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)
                for step in done:
                    under_way |= {asyncio.ensure_future(follows()) for follows in step.result()}
        finally:
            for step in under_way:
                step.cancel()
            await asyncio.gather(*under_way, return_exceptions=True)
        if self._outcomes and not self._reached:
            silence = next(iter(self._outcomes.values()))
            assert isinstance(silence, ApiError)
            raise silence
        self._report([])
        return {key: self._outcome(key) for key in self._outcomes}

    def _outcome(self, key: Key) -> Value | ApiError:
        outcome = self._outcomes[key]
        if isinstance(outcome, ApiError):
            return explained(outcome, self._cluster.principal, key)
        return outcome

    def _report(self, keys: Iterable[Key]) -> None:
        """Where nobody is reached at all, the call raises, and no outcome is heard of."""
        if self.arrived is None:
            return
        self._unheard += keys
        if self._reached:
            for key in self._unheard:
                self.arrived(key, self._outcome(key))
            self._unheard.clear()

    async def _look_up(self, keys: Sequence[Key], attempt: int) -> list["Step"]:
        """Find the brokers that are not known, and go on with the share of each by itself."""
        refused: dict[Key, Value | ApiError] = {}
        missing = [key for key in keys if key not in self._located]
        if missing:
            try:
                found = await self._locate(missing, self._deadline)
            except (ApiError, UnsupportedVersionError, WireError) as error:
                found = dict.fromkeys(missing, _unsent(failure(error)))
            for key, place in answered("the place of", missing, found).items():
                if isinstance(place, ApiError):
                    refused[key] = place
                else:
                    self._located[key] = place
        shares: dict[Node, list[Key]] = {}
        for key in keys:
            if key not in refused:
                shares.setdefault(self._located[key], []).append(key)
        if shares or not all(map(_is_silence, refused.values())):
            self._reached = True
        steps: list[Step] = [
            partial(self._ask_share, node, share, attempt) for node, share in shares.items()
        ]
        if refused:
            steps.append(partial(self._record, refused, attempt))
        return steps

    async def _ask_share(self, node: Node, share: list[Key], attempt: int) -> list["Step"]:
        try:
            if asyncio.get_running_loop().time() >= self._deadline:
                text = f"the time was up before {node} was asked"
                raise RequestTimeoutError(text, sent=False)
            answer = await self._ask(node, share, self._deadline)
        except (ApiError, UnsupportedVersionError, WireError) as error:
            answer = dict.fromkeys(share, failure(error))
        return await self._record(answered("an entry for", share, answer), attempt)

    async def _record(self, outcomes: Mapping[Key, Value | ApiError], attempt: int) -> list["Step"]:
        """Record these outcomes. After a pause ask again for those that may get a better one."""
        again, certain = [], []
        for key, outcome in outcomes.items():
            late = isinstance(outcome, RequestTimeoutError)
            if not (late and attempt and self.repeatable):  # what was tried again tells more
                self._outcomes[key] = outcome
            if self._is_worth_asking_again(key, self._outcomes[key]):
                again.append(key)
            else:
                certain.append(key)
        self._report(certain)
        if not again:
            return []
        if await self._cluster.pause(attempt, self._deadline):
            return [partial(self._look_up, again, attempt + 1)]
        for key in again:
            self._outcomes[key] = _still(self._outcomes[key], attempt + 1)
        self._report(again)
        return []

    def _is_worth_asking_again(self, key: Key, outcome: Value | ApiError) -> bool:
        if not isinstance(outcome, ApiError):
            return self.unfinished is not None and self.unfinished(outcome)
        if outcome.code in self.final:
            return False
        self._tried[key, outcome.code] += 1
        if isinstance(outcome, RequestTimeoutError) and not outcome.sent:  # no connection in time
            self._located.pop(key, None)
            return True
        if isinstance(outcome, ConnectionFailedError) and outcome.sent and not self.repeatable:
            return False
        if self._tried[key, outcome.code] == _ATTEMPTS.get(outcome.code):
            return False
        if outcome.code in _MOVED:
            self._located.pop(key, None)
            return True
        return outcome.code in _BUSY


Step = Callable[[], Coroutine[Any, Any, list[Any]]]
"""A part of the work, which says what follows from it: a list of steps."""


def _unsent(error: ApiError) -> ApiError:
    """The error of a look-up: whatever became of that, the request itself was not sent."""
    if isinstance(error, ConnectionFailedError | RequestTimeoutError):
        return type(error)(error.message, sent=False)
    return error


def _is_silence(outcome: object) -> bool:
    """Whether nothing was looked up at all."""
    return isinstance(outcome, ConnectionFailedError | RequestTimeoutError | AuthenticationError)


def failure(error: Exception) -> ApiError:
    """The error of a whole request, as the outcome of each thing in it."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, UnsupportedVersionError):
        return ApiError(ErrorCode.UNSUPPORTED_VERSION, str(error))
    return ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, f"an answer could not be read: {error}")


def _still(outcome: Value | ApiError, attempts: int) -> Value | ApiError:
    """The outcome when time is up. A bare code gets a text with the number of attempts."""
    if isinstance(outcome, ApiError) and not outcome.message:
        times = "once" if attempts == 1 else f"{attempts} times"
        return ApiError(outcome.code, f"unchanged when the time was up, asked {times}")
    return outcome
