# SPDX-License-Identifier: Apache-2.0
"""Topics that somebody waits for and that do not exist, or must not be seen. They are looked for
until they come.

Those that the consumer subscribes to are logged, once, and once more when they come. Nobody else
says it: a coordinator assigns what there is, and a misspelled name never comes. The leader of a
classic group looks on behalf of all members, as nobody else would see that a topic has come.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from typing import Any

from kohort.client.network.metadata import Metadata
from kohort.errors import ApiError, ErrorCode, KohortError

logger = logging.getLogger(__name__)

_FIRST_LOOK_S = 1.0  # a topic may be about to be made
_NEXT_LOOK_S = 1.0


class MissingTopics:
    """`names` says which topics are subscribed to now, and `of_others` which other ones are waited
    for. `metadata` tells whoever wants to know what has come (`Metadata.on_count`). `on_denied`
    hears of a topic that is subscribed to and must not be seen, at each look.
    """

    def __init__(
        self,
        metadata: Metadata,
        names: Callable[[], Collection[str]],
        of_others: Callable[[], Collection[str]] = tuple,
        *,
        timeout_s: float,
        on_denied: Callable[[ApiError], None] = lambda _error: None,
    ) -> None:
        self._on_denied = on_denied
        self._metadata = metadata
        self._names = names
        self._of_others = of_others
        self._timeout_s = timeout_s
        self._logged: set[str] = set()

    async def watch(self) -> None:
        """Look for as long as this runs."""
        await asyncio.sleep(_FIRST_LOOK_S)
        known: set[str] = set()
        while True:
            wanted = [name for name in self._names() if name not in known]
            others = [name for name in self._of_others() if name not in wanted]
            try:
                found = await self._look([*wanted, *others])
            except KohortError as error:  # the cluster is away, of which others tell
                logger.debug("topics are not looked for: %s", error)
            else:
                found = {name: found[name] for name in wanted}
                self.note(found)
                known.update(name for name, why in found.items() if why is None)
                denied = [why for why in found.values() if why is not None and _is_denied(why)]
                if denied:
                    self._on_denied(denied[0])
            await asyncio.sleep(_NEXT_LOOK_S)

    def note(self, found: Mapping[str, ApiError | None]) -> None:
        """Log each topic that is missing or denied, with the reason, and each that has come."""
        for name, why in found.items():
            if why is None and name in self._logged:
                self._logged.discard(name)
                logger.warning("topic %s is there now", name)
            elif why is not None and name not in self._logged:
                self._logged.add(name)
                what = "may not be described" if _is_denied(why) else "is not there"
                logger.warning("subscribed to topic %s, which %s: %s", name, what, why)

    async def _look(self, names: Collection[str]) -> dict[str, ApiError | None]:
        if not names:
            return {}
        deadline = asyncio.get_running_loop().time() + self._timeout_s
        topics: Mapping[str, Any] = await self._metadata.topics(names, deadline)
        return {
            name: topic if isinstance(topic, ApiError) and _is_missing(topic) else None
            for name, topic in topics.items()
        }


def _is_denied(error: ApiError) -> bool:
    return error.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED


def _is_missing(error: ApiError) -> bool:
    return error.code in (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
    )
