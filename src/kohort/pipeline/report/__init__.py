# SPDX-License-Identifier: Apache-2.0
"""The report: gold tables as one page that opens anywhere, with nothing loaded from anywhere.

No Spark and no Java are needed to write it: tables come as Arrow.
"""

import os
import secrets
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from kohort.pipeline.format.arrow_reader import Tables
from kohort.pipeline.format.catalog import known_tables, there
from kohort.pipeline.format.log_end import later_end as end_behind
from kohort.pipeline.format.log_end import log_end as end_of
from kohort.pipeline.format.manifest import TablesError
from kohort.pipeline.format.report_mark import FILE, mark_of
from kohort.pipeline.report import groups as by_group
from kohort.pipeline.report import lag, members, owners, page, rebalances, stale, summary
from kohort.pipeline.report.picks import Read, Rows, when
from kohort.pipeline.stores.object_path import ObjectPath
from kohort.pipeline.stores.places import Folder, place_of

TITLE = "Consumer groups"
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)


def write(
    read: Read,
    path: str | Folder,
    groups: Iterable[str] | None = None,
    *,
    title: str = TITLE,
    log_end: datetime | None = None,
    later_end: datetime | None = None,
    source: str = "",
    mark: str = "",
) -> Folder:
    """Write the page, in the place of an earlier one; returns where it is.

    Args:
        read: gives a gold table by its name, as a `pyarrow.Table` or a `pyarrow.dataset.Dataset`;
            of a dataset only the columns and rows are read that are shown. It is asked for
            `group_state`, `lag`, `lag_history`, `status`, `rebalances`, `assignments`, `members`
            and `deletable_groups`.
        path: the file, also on an object store.
        groups: only these, in this order. Otherwise each chart shows the groups with the most of
            what it is about, and says how many there are.
        title: the heading.
        log_end: where the log ends, if that is long before the moment of the tables: charts end
            there too, and the page says so.
        later_end: where the rows that were read end, if that is later than the moment of the
            tables; the page says which of its tables tell of which.
        source: where the tables come from.
        mark: says what the page was made of; not shown.

    Raises TablesError: it cannot be written; an earlier one is as it was.
    """
    chosen = None if groups is None else tuple(dict.fromkeys(groups))
    until = summary.until(read)
    now = log_end or until or _NEVER
    notes = (
        summary.origin(source, until),
        summary.completeness(read),
        summary.ended(log_end, until),
        summary.later_end_notice(later_end, until),
    )
    top = [summary.figures(read, chosen), *(note for note in notes if note is not None)]
    sections = [
        summary.status(read, chosen),
        lag.section(read, chosen, log_end),
        rebalances.section(read, chosen),
        owners.section(read, chosen, now),
        members.section(read, chosen, now),
        by_group.section(read, chosen),
        stale.section(read, chosen),
    ]
    foot = f"Kohort. As of {when(until)} UTC. All times are in UTC." if until else "Kohort."
    document = page.document(title, top, sections, foot, mark)
    target = place_of(path)
    if isinstance(target, ObjectPath):
        target.write_bytes(document.encode(), "text/html; charset=utf-8")
        return target
    _replace(target, document)
    return target


def _replace(target: Path, document: str) -> None:
    unfinished = target.with_name(f"{target.name}.{secrets.token_hex(4)}.new")  # others write too
    try:
        unfinished.write_text(document, encoding="utf-8")
        os.replace(unfinished, target)  # noqa: PTH105  (over an earlier one, on every system)
    except OSError as error:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise TablesError(
            f"the report {target} cannot be written: {error.strerror or error}"
        ) from error


def write_into(out: str | Folder, groups: Sequence[str] | None = None) -> Folder:
    """Write `report.html` into the directory of tables, of these groups or of those that there is
    most to tell of; returns where it is. Raises KohortError.
    """
    tables = Tables(out)
    if not tables.manifest.gold:
        raise TablesError(
            f"{tables.directory} has samples only, and no run has read a log yet: `kohort pipeline "
            "run` does so"
        )
    if groups is not None:
        tables.check_groups(groups)
    mark = mark_of(tables.manifest) if groups is None else ""
    names = there(tables.manifest)

    def read(name: str) -> Rows:
        """Tables of an earlier Kohort have no observed history yet."""
        return tables(name) if name in names else known_tables()[name].arrow.empty_table()

    return write(
        read,
        tables.directory / FILE,
        groups,
        log_end=end_of(tables),
        later_end=end_behind(tables.manifest),
        source=tables.manifest.source,
        mark=mark,
    )


__all__ = ["TITLE", "Read", "write", "write_into"]
