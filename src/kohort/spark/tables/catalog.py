"""Which tables there can be, and which a directory has: names, columns and what they mean."""

from collections.abc import Sequence
from difflib import get_close_matches

from kohort.spark.schemas import END_OFFSETS, GOLD, RECORDS_TABLE, SILVER, Table
from kohort.spark.stores.places import Folder, place_of
from kohort.spark.tables.manifest import Manifest, TablesError, load

SHORT = {"deletable_groups": "deletable"}  # what people type


def known_tables() -> dict[str, Table]:
    """Every table that there can be, by name."""
    return {table.name: table for table in (RECORDS_TABLE, END_OFFSETS, *SILVER, *GOLD)}


def tables(directory: str | Folder) -> dict[str, Table]:
    """The tables that a directory holds, with what they mean. Raises TablesError."""
    return there(load(place_of(directory)))


def there(manifest: Manifest) -> dict[str, Table]:
    """The tables that a manifest has."""
    return {
        name: table
        for name, table in known_tables().items()
        if table.layer != "gold" or name in manifest.gold
    }


def table_of(directory: Folder, manifest: Manifest, name: str) -> Table:
    """A table of a directory, by name. Raises TablesError when there is none such."""
    long = {short: name for name, short in SHORT.items()}
    found = known_tables().get(long.get(name, name))
    if found is None:
        raise unknown_table(name)
    if found.layer == "gold" and found.name not in manifest.gold:
        raise TablesError(
            f"{directory} has no table {name} yet: the next `kohort pipeline run` computes it"
        )
    return found


def chosen_columns(table: Table, wanted: Sequence[str] | None) -> list[str]:
    """The columns that are asked for, each once; None for all. Raises TablesError."""
    if isinstance(wanted, str):
        raise TablesError(f"columns is the text {wanted!r}, expected a list of names")
    names = table.names if wanted is None else list(dict.fromkeys(wanted))
    for name in names:
        if name not in table.names:
            near = did_you_mean(name, table.names)
            there = near or f", expected of {', '.join(table.names)}"
            raise TablesError(f"table {table.name} has no column {name!r}{there}")
    return names


def unknown_table(name: str) -> TablesError:
    """What is to be said of a name that no table has."""
    known = [SHORT.get(one, one) for one in known_tables()]
    there = did_you_mean(name, known) or f", expected one of {', '.join(known)}"
    return TablesError(f"no table is called {name!r}{there}")


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """The end of a sentence about a name that is not known: the one that is most like it."""
    near = get_close_matches(name, known, 1)
    return f": did you mean {near[0]}?" if near else ""
