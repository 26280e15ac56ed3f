# SPDX-License-Identifier: Apache-2.0
"""Whether a run would find anything new: if not, Spark need not start.

Any doubt is a reason to start it. So the tables remember what they were made of and what their own
files look like. Only where all of that is the same as now is nothing done. Needs no Spark.
"""

import time
from datetime import UTC, datetime

from kohort.pipeline.format.arrow_reader import Tables
from kohort.pipeline.format.code import code
from kohort.pipeline.format.log_end import log_end
from kohort.pipeline.format.manifest import DAY_MS, Basis, Manifest, RunArguments, load_or_none
from kohort.pipeline.format.summary import Summary
from kohort.pipeline.format.writer import Writer
from kohort.pipeline.sources.fingerprint import (
    DirectoryFingerprint,
    directory_fingerprint,
    fingerprint,
    settled_or_none,
)
from kohort.pipeline.stores.places import Folder, place_of
from kohort.pipeline.stores.store import store_of

_LOG = "log:"


def asked(
    source: object,
    *,
    from_time: datetime | None = None,
    to_time: datetime | None = None,
    as_of: datetime | None = None,
    retention_ms: int | None = None,
    session_timeout_ms: int | None = None,
    keep_days: float | None = None,
    cluster: str | None = None,
) -> RunArguments:
    """The arguments of a run. A source that is an object is never the same again."""
    return RunArguments(
        source=source if isinstance(source, str) else "",
        from_us=_microseconds(from_time),
        to_us=_microseconds(to_time),
        as_of_us=_microseconds(as_of),
        retention_ms=retention_ms,
        session_timeout_ms=session_timeout_ms,
        keep_days=keep_days,
        cluster=cluster,
    )


def summary_or_none(out: str | Folder, arguments: RunArguments) -> Summary | None:
    """The summary of a run that would change nothing; None where it has to run.

    Raises KohortError as the run would: the log cannot be read, or somebody else writes the tables.
    """
    began = time.monotonic()
    directory = place_of(out)
    before = load_or_none(directory)
    if before is None or not _is_same(directory, before, arguments):
        return None
    with Writer(directory) as writer:  # it may be another's turn
        if writer.manifest != before:
            return None
    return Summary(
        directory,
        {},
        before.gold_rows(),
        (),
        datetime.fromtimestamp((before.as_of_ms or 0) / 1000, UTC),
        time.monotonic() - began,
        log_end(Tables(directory)),
        unchanged=True,
    )


def seen(arguments: RunArguments) -> DirectoryFingerprint | None:
    """What there is to read looks like; None where reading is needed to tell. Look before planning:
    whatever comes later counts as new.
    """
    return (
        directory_fingerprint(arguments.source[len(_LOG) :])
        if arguments.source.startswith(_LOG)
        else None
    )


def remember(writer: Writer, arguments: RunArguments, before: DirectoryFingerprint | None) -> None:
    """Write down what the tables were made of; `before` is what `seen` returned. Without it, or
    where a file is still too young to tell, the next run looks at everything.
    """
    maker = code()
    log = settled_or_none(arguments.source[len(_LOG) :], before)
    if log is None or maker is None:
        return
    files = files_of(writer.directory, writer.manifest)
    if files is not None:
        writer.publish(writer.manifest, Basis(log=log, asked=arguments, code=maker, files=files))


def files_of(directory: Folder, manifest: Manifest) -> str | None:
    """A fingerprint of the files that count; None where one is missing."""
    return store_of(directory).file_digest(manifest.paths())


def _is_same(directory: Folder, before: Manifest, arguments: RunArguments) -> bool:
    basis = before.basis
    return (
        basis is not None
        and basis.asked == arguments
        and basis.code == code()
        and not _has_become_too_old(before, arguments)
        and basis.files == files_of(directory, before)
        and arguments.source.startswith(_LOG)
        and basis.log == fingerprint(arguments.source[len(_LOG) :])
    )


def _has_become_too_old(before: Manifest, arguments: RunArguments) -> bool:
    """Whether some rows may have to be dropped, as time has passed."""
    if arguments.keep_days is None:
        return False
    known_us = (arguments.as_of_us, arguments.to_us, int(time.time() * 1_000_000))
    moment_us = next(moment for moment in known_us if moment is not None)
    oldest = moment_us / 1000 - arguments.keep_days * DAY_MS
    return any(
        not increment.compacted and (increment.newest_ms or 0) < oldest
        for increment in before.increments
    )


def _microseconds(moment: datetime | None) -> int | None:
    return None if moment is None else round(moment.timestamp() * 1_000_000)
