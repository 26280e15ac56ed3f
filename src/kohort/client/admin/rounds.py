"""Ask the right broker for each thing, and ask again for what may still succeed.

Groups have coordinators, partitions have leaders, topics have the controller; the round is the
same. Look up who has what, ask every broker once for everything that it has, keep the answers, and
go round again for the rest. The failure of one thing does not affect the others.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from kohort.client.cluster import Cluster, Node, unanswered
from kohort.client.connection import ConnectionFailedError, RequestTimeoutError
from kohort.errors import ApiError, ErrorCode, UnsupportedVersionError, WireError

Key = TypeVar("Key")
Value = TypeVar("Value")

Locate = Callable[[Sequence[Key], float], Awaitable[Mapping[Key, Node | ApiError]]]
Ask = Callable[[Node, Sequence[Key], float], Awaitable[Mapping[Key, Value | ApiError]]]

# It has moved, or nobody has it yet: look up anew.
_MOVED = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
    }
)
_BUSY = frozenset({ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.UNSTABLE_OFFSET_COMMIT})
# How often to try a code that may stay for hours: the caller's time is for the others.
_ATTEMPTS = {ErrorCode.NETWORK_EXCEPTION: 3, ErrorCode.LEADER_NOT_AVAILABLE: 5}


async def settle(
    cluster: Cluster,
    keys: Iterable[Key],
    locate: Locate[Key],
    ask: Ask[Key, Value],
    *,
    deadline: float,
    repeatable: bool = True,
    unfinished: Callable[[Value], bool] | None = None,
) -> dict[Key, Value | ApiError]:
    """One outcome for each key, in the order given: its broker's answer, or the reason for none.

    A key is tried again until the deadline for codes that pass (a coordinator that loads or moves),
    three times for a broker that cannot be reached, and five times, which is most of a second, for
    a partition without a leader. A request that is not `repeatable` is not sent again once it may
    have arrived. `unfinished` says whether a value is worth asking again.

    Raises the error where the cluster could not be reached, so that nothing was looked up.
    """
    outcomes: dict[Key, Value | ApiError] = dict.fromkeys(keys, unanswered("it", ""))
    waiting = list(outcomes)
    located: dict[Key, Node] = {}
    tried: Counter[tuple[Key, ErrorCode]] = Counter()
    reached = False
    attempt = 0
    while waiting:
        fresh = await _round(waiting, located, locate, ask, deadline)
        if attempt and repeatable:  # what was tried again tells more
            late = [
                key for key, outcome in fresh.items() if isinstance(outcome, RequestTimeoutError)
            ]
            fresh.update({key: outcomes[key] for key in late})
        outcomes.update(fresh)
        reached = reached or bool(located) or not all(map(_is_silence, fresh.values()))
        again = []
        for key, outcome in fresh.items():
            if not isinstance(outcome, ApiError):
                if unfinished is not None and unfinished(outcome):
                    again.append(key)
                continue
            tried[key, outcome.code] += 1
            lost = isinstance(outcome, ConnectionFailedError) and outcome.sent and not repeatable
            if lost or tried[key, outcome.code] == _ATTEMPTS.get(outcome.code):
                continue
            if outcome.code in _MOVED:
                located.pop(key, None)
                again.append(key)
            elif outcome.code in _BUSY:
                again.append(key)
        attempt += 1
        waiting = again
        if waiting and not await cluster.pause(attempt - 1, deadline):
            break
    if outcomes and not reached:
        silence = next(iter(outcomes.values()))
        assert isinstance(silence, ApiError)
        raise silence
    for key in waiting:
        outcomes[key] = _still(outcomes[key], attempt)
    return outcomes


async def _round(
    keys: Sequence[Key],
    located: dict[Key, Node],
    locate: Locate[Key],
    ask: Ask[Key, Value],
    deadline: float,
) -> dict[Key, Value | ApiError]:
    """Look up those that are not in `located`, then ask every broker concerned, all at once."""
    outcomes: dict[Key, Value | ApiError] = {}
    missing = [key for key in keys if key not in located]
    if missing:
        try:
            found = await locate(missing, deadline)
        except ConnectionFailedError as error:  # only the look-up was lost
            found = dict.fromkeys(missing, ConnectionFailedError(error.message, sent=False))
        except (ApiError, UnsupportedVersionError, WireError) as error:
            found = dict.fromkeys(missing, failure(error))
        for key in missing:
            place = found.get(key, unanswered("the place of", key))
            if isinstance(place, ApiError):
                outcomes[key] = place
            else:
                located[key] = place
    shares: dict[Node, list[Key]] = {}
    for key in keys:
        if key not in outcomes:
            shares.setdefault(located[key], []).append(key)

    async def asked(node: Node, share: list[Key]) -> Mapping[Key, Value | ApiError]:
        try:
            return await ask(node, share, deadline)
        except (ApiError, UnsupportedVersionError, WireError) as error:
            return dict.fromkeys(share, failure(error))

    answers = await asyncio.gather(*(asked(node, share) for node, share in shares.items()))
    for share, answer in zip(shares.values(), answers, strict=True):
        for key in share:
            outcomes[key] = answer.get(key, unanswered("an entry for", key))
    return outcomes


def _is_silence(outcome: object) -> bool:
    return isinstance(outcome, ConnectionFailedError | RequestTimeoutError)


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
