# SPDX-License-Identifier: Apache-2.0
"""Which tables there can be, and which a directory has: names, columns and what they mean."""

from collections.abc import Sequence
from difflib import get_close_matches

from kohort.pipeline.format.cluster import CLUSTER
from kohort.pipeline.format.manifest import Manifest, TablesError, load
from kohort.pipeline.schemas import (
    END_OFFSETS,
    GOLD,
    OBSERVED_HISTORY,
    RECORDS_TABLE,
    SILVER,
    Table,
)
from kohort.pipeline.stores.places import Folder, place_of

SHORT = {"deletable_groups": "deletable"}  # what people type


def known_tables() -> dict[str, Table]:
    """Every table that there can be, by name."""
    return {
        table.name: table
        for table in (RECORDS_TABLE, END_OFFSETS, *SILVER, *GOLD, *OBSERVED_HISTORY)
    }


def known_table(name: str) -> Table:
    """What a table is, whether a directory has it or not. Raises TablesError: no such table."""
    long = {short: name for name, short in SHORT.items()}
    found = known_tables().get(long.get(name, name))
    if found is None:
        raise unknown_table(name)
    return found


def tables(directory: str | Folder) -> dict[str, Table]:
    """The tables that a directory holds, with what they mean. Raises TablesError."""
    return there(load(place_of(directory)))


def there(manifest: Manifest) -> dict[str, Table]:
    """The tables that a manifest has."""
    return {name: table for name, table in known_tables().items() if _has(manifest, table)}


def table_of(directory: Folder, manifest: Manifest, name: str) -> Table:
    """A table of a directory, by name. Raises TablesError when there is none such."""
    found = known_table(name)
    if not _has(manifest, found):
        raise TablesError(
            f"{directory} has no table {name} yet: the next `kohort pipeline run` computes it"
        )
    return found


def _has(manifest: Manifest, table: Table) -> bool:
    """Whether a run has computed it, if it is one that is computed."""
    if table.layer == "past":
        return manifest.past.as_of_us is not None
    return table.layer != "gold" or table.name in manifest.gold


def chosen_columns(table: Table, wanted: Sequence[str] | None) -> list[str]:
    """The columns that are asked for, each once; None for all. Raises TablesError."""
    if isinstance(wanted, str):
        raise TablesError(f"columns is the text {wanted!r}, expected a list of names")
    known = [*table.names, CLUSTER]
    names = known if wanted is None else list(dict.fromkeys(wanted))
    for name in names:
        if name not in known:
            near = did_you_mean(name, known)
            there = near or f", expected one of {', '.join(known)}"
            raise TablesError(f"table {table.name} has no column {name!r}{there}")
    return names


def unknown_table(name: str) -> TablesError:
    """What is to be said of a name that no table has."""
    known = [SHORT.get(table, table) for table in known_tables()]
    there = did_you_mean(name, known) or f", expected one of {', '.join(known)}"
    return TablesError(f"no table is called {name!r}{there}")


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """The end of a sentence about a name that is not known: the one that is most like it."""
    near = get_close_matches(name, known, 1)
    return f": did you mean {near[0]}?" if near else ""
