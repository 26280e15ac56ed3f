# SPDX-License-Identifier: Apache-2.0
"""Quotas of users, client ids and addresses as the admin client takes and returns them (KIP-546).

`None` in the place of a name means the default: what counts for everybody without a quota.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import EllipsisType
from typing import TypeAlias

NameMatch: TypeAlias = str | EllipsisType | None
"""Which names a filter finds: this one, with `...` every one and the default, with None only the
default.
"""


@dataclass(frozen=True, init=False, slots=True)
class ClientQuotaEntity:
    """Who has a quota: `ClientQuotaEntity({"user": "alice", "client-id": None})`.

    The types are `user`, `client-id` and `ip`. One of the default name is less than any other when
    sorted.
    """

    _names: tuple[tuple[str, str | None], ...]

    def __init__(self, names: Mapping[str, str | None]) -> None:
        object.__setattr__(self, "_names", tuple(sorted(names.items(), key=lambda item: item[0])))

    @property
    def names(self) -> dict[str, str | None]:
        """The name by type, sorted by type; None for the default."""
        return dict(self._names)

    def __lt__(self, other: "ClientQuotaEntity") -> bool:
        return list(self._sortable()) < list(other._sortable())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.names!r})"

    def _sortable(self) -> Iterator[tuple[str, bool, str]]:
        for kind, name in self._names:
            yield kind, name is not None, name or ""
