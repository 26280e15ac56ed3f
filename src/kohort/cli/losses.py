# SPDX-License-Identifier: Apache-2.0
"""Which changes of settings can delete what a log has. The settings are named here, each with what
makes a change of it one: a limit that is lowered, a policy that deletes, an election that gives up
records. A value that is not known may have been any.
"""

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, NamedTuple

from kohort.errors import ApiError, ErrorCode
from kohort.figures import duration

if TYPE_CHECKING:
    from kohort.client.admin import ConfigEntry

UNLIMITED = -1
_UNITS_MS = {"minutes": 60_000, "hours": 3_600_000}  # of synonyms, such as log.retention.hours


class SettingChange(NamedTuple):
    """A setting before and after. None is a value that is not known, or not set."""

    name: str
    before: str | None
    after: str | None

    @property
    def loses(self) -> bool:
        """Whether the change can delete records, or tombstones before all have read them."""
        return self.name in LOSSES and LOSSES[self.name](self.before, self.after)

    @property
    def text(self) -> str:
        """`retention.ms 604800000 (7 d) -> 60000 (1 min)`."""
        after = "(what holds without it)" if self.after is None else self._shown(self.after)
        return f"{self.name} {self._shown(self.before)} -> {after}"

    def since(self, now: "SettingChange") -> ApiError | None:
        """Why a yes to this change does not count any more; None where it does."""
        if now.before == self.before:
            return None
        was, is_now = self._shown(self.before), self._shown(now.before)
        text = f"its {self.name} was {was} when it was shown and is {is_now} now: it is left alone"
        return ApiError(ErrorCode.INVALID_REQUEST, text)

    def _shown(self, value: str | None) -> str:
        number = _number(value)
        if self.name.endswith(".ms") and number is not None and number > 0:
            return f"{number} ({duration(number / 1000)})"
        return "(not known)" if value is None else value or '""'


def value_without(entry: "ConfigEntry", sources: Collection[str]) -> str | None:
    """What holds once the values of these sources are taken back; None where no synonym says it."""
    for synonym in entry.synonyms or ():
        if synonym.source.name not in sources:
            unit = _UNITS_MS.get(synonym.name.rpartition(".")[2], 1)
            number = _number(synonym.value)
            return synonym.value if number is None or number < 0 else str(number * unit)
    return None


def _number(value: str | None) -> int | None:
    digits = (value or "").removeprefix("-")
    return int(value or "") if digits.isascii() and digits.isdigit() and len(digits) < 20 else None


def _is_lower(before: str | None, after: str | None) -> bool:
    old, new = _number(before), _number(after)
    if new == UNLIMITED or (before is not None and before == after):
        return False
    if new is None:  # a text that is no number is refused
        return after is None
    return old is None or old < 0 or new < old


def _has_more(before: str | None, after: str | None) -> bool:
    """Whether a policy does something that it did not do before."""
    old, new = ({part.strip() for part in (value or "").split(",")} for value in (before, after))
    return before is None or after is None or not new <= old | {""}


def _becomes_true(before: str | None, after: str | None) -> bool:
    return after != "false" and (before is None or before != after)


_Loses = Callable[[str | None, str | None], bool]
LOSSES: Mapping[str, _Loses] = {
    **dict.fromkeys(
        (
            *("retention.ms", "retention.bytes", "delete.retention.ms", "min.compaction.lag.ms"),
            *("local.retention.ms", "local.retention.bytes"),
            *("log.retention.ms", "log.retention.bytes", "log.cleaner.delete.retention.ms"),
            *("log.local.retention.ms", "log.local.retention.bytes"),
            "log.cleaner.min.compaction.lag.ms",
        ),
        _is_lower,
    ),
    **dict.fromkeys(("cleanup.policy", "log.cleanup.policy"), _has_more),
    **dict.fromkeys(
        ("unclean.leader.election.enable", "remote.log.delete.on.disable"), _becomes_true
    ),
}
"""The settings of topics and brokers by which records are deleted. Groups have none."""
