# SPDX-License-Identifier: Apache-2.0
"""The settings of fetching, under upstream's names with underscores for dots."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, TypedDict

from kohort.client.settings import checked_field, choice, flag, function, short_repr, text, whole

ISOLATION_LEVELS = ("read_uncommitted", "read_committed")
RESETS = ("earliest", "latest", "none")
DURATION = "by_duration:"
_NUMBER = r"[0-9]+(?:\.[0-9]+)?"
_SPELLED = re.compile(
    rf"P(?:(?P<days>{_NUMBER})D)?"
    rf"(?:T(?=.)(?:(?P<hours>{_NUMBER})H)?(?:(?P<minutes>{_NUMBER})M)?(?:(?P<seconds>{_NUMBER})S)?)?"
)


def _reset(name: str, value: Any) -> str:
    if isinstance(value, str) and value in RESETS:
        return value
    if isinstance(value, str) and value.startswith(DURATION):
        try:
            duration_of(value)
        except ValueError as error:
            raise ValueError(f"{name} is {short_repr(value)}: {error}") from None
        return value
    raise ValueError(
        f"{name} is {short_repr(value)}, expected {', '.join(RESETS)} or {DURATION} with a duration"
    )


def duration_of(reset: str) -> timedelta:
    """The duration of `by_duration:P…` (KIP-1106), as ISO 8601 writes it: days, hours, minutes and
    seconds. Raises ValueError.
    """
    spelled = reset.removeprefix(DURATION)
    found = _SPELLED.fullmatch(spelled)
    parts = (
        {}
        if found is None
        else {unit: number for unit, number in found.groupdict().items() if number}
    )
    if parts:
        try:
            return timedelta(**{unit: float(number) for unit, number in parts.items()})
        except OverflowError:
            raise ValueError(f"{spelled!r} is no duration that can be reckoned with") from None
    raise ValueError(f"{spelled!r} is no duration, expected one such as PT1H or P1DT30M")


class FetchOptions(TypedDict, total=False):
    """What `FetchSettings` is made of, for type checkers."""

    fetch_min_bytes: int
    fetch_max_bytes: int
    fetch_max_wait_ms: int
    max_partition_fetch_bytes: int
    queued_max_bytes: int
    isolation_level: Literal["read_uncommitted", "read_committed"]
    auto_offset_reset: str
    client_rack: str | None
    check_crcs: bool
    request_timeout_ms: int
    key_deserializer: Callable[[bytes], Any] | None
    value_deserializer: Callable[[bytes], Any] | None


@dataclass(frozen=True, kw_only=True)
class FetchSettings:
    """`fetch_max_bytes` bounds an answer and `max_partition_fetch_bytes` the part of a partition
    in it. `queued_max_bytes` (a name of our own) is what may wait to be handed out, beyond which
    nothing more is asked for: as it came over the network, so compressed records count as such.

    `auto_offset_reset` says where a partition begins that has no committed offset, or none that is
    still there: `earliest`, `latest`, `by_duration:PT1H` (KIP-1106), or `none` for an error.
    Deserializers are called with bytes, never with None.
    """

    fetch_min_bytes: int = whole(1)
    fetch_max_bytes: int = whole(50 << 20)
    fetch_max_wait_ms: int = whole(500)
    max_partition_fetch_bytes: int = whole(1 << 20)
    queued_max_bytes: int = whole(64 << 20, 1)
    isolation_level: str = choice("read_uncommitted", ISOLATION_LEVELS)
    auto_offset_reset: str = checked_field("latest", _reset)
    client_rack: str | None = text()
    check_crcs: bool = flag(default=True)
    request_timeout_ms: int = whole(30_000, 1)
    key_deserializer: Callable[[bytes], Any] | None = function()  # noqa: RUF009  (a field)
    value_deserializer: Callable[[bytes], Any] | None = function()  # noqa: RUF009  (a field)

    @property
    def reads_committed(self) -> bool:
        """Whether records of open and aborted transactions are left out."""
        return self.isolation_level == "read_committed"
