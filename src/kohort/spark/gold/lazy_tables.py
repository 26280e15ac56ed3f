# SPDX-License-Identifier: Apache-2.0
"""Tables that are made when somebody asks for them.

Spark analyses a plan at each step to a DataFrame. There are fifty tables, and a measure takes two
or three of them: making them all would cost a small run more than its own work.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from pyspark.sql import DataFrame


class LazyTables(Mapping[str, DataFrame]):
    """Tables by name. Each is made when it is first asked for, and then kept. Threads may ask: two
    that do so at the same time may each make it.
    """

    def __init__(self, makers: Mapping[str, Callable[[], DataFrame]]) -> None:
        self._makers = dict(makers)
        self._made: dict[str, DataFrame] = {}

    def __getitem__(self, name: str) -> DataFrame:
        if name not in self._made:
            self._made[name] = self._makers[name]()
        return self._made[name]

    def __contains__(self, name: object) -> bool:
        return name in self._makers

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)

    def __or__(self, others: Mapping[str, DataFrame]) -> "LazyTables":
        """Both, as with dicts: of a name that both have, the table of the others. Makes none."""
        return LazyTables({**_makers(self), **_makers(others)})


def _makers(tables: Mapping[str, DataFrame]) -> Mapping[str, Callable[[], DataFrame]]:
    return {name: partial(tables.__getitem__, name) for name in tables}
