# SPDX-License-Identifier: Apache-2.0
"""Samples of where the topics of a live cluster end, taken beside the runs. Needs no Spark."""

import time
from collections.abc import Callable

import pyarrow as pa

from kohort.errors import KohortError
from kohort.pipeline.format.manifest import TablesError
from kohort.pipeline.format.writer import BusyError, Writer, claim
from kohort.pipeline.rollup.end_samples import append_samples
from kohort.pipeline.sources.log_position import Identity, SourceError
from kohort.pipeline.sources.sampling import sample_cluster
from kohort.pipeline.sources.topic_client import cluster_id
from kohort.pipeline.stores.failures import StoreError
from kohort.pipeline.stores.places import Folder, place_of
from kohort.security.settings import NO_SECURITY, Security

PATIENCE_S = 60.0
MOST_ROWS = 1_000_000
"""How many samples wait in memory for somebody else to end: some 100 MB."""


def snapshot(
    bootstrap: str,
    out: str | Folder,
    *,
    security: Security = NO_SECURITY,
    every_s: float | None = None,
    count: int | None = None,
    told: Callable[[int], None] | None = None,
    failed: Callable[[KohortError], None] | None = None,
) -> int:
    """Add samples of where the topics of a cluster end, once or every so often; returns how many
    times. They make the lag in seconds exact.

    While somebody else writes the tables the samples are kept, and added when he has ended; where
    that takes long, every second time is given up, and again, so that they stay few. `told` gets
    the number of samples each time. With `every_s` a cluster that does not answer is asked again
    the next time, tables that cannot be written are tried again, and `failed` gets the error; that
    somebody else writes it gets once. Raises KohortError: the cluster did not answer the first
    time, the tables are those of another one, or cannot be written the first time or at the end.
    """
    directory, taken = place_of(out), 0
    waiting: list[pa.Table] = []
    is_known = is_busy = False
    identity = Identity(cluster_id(bootstrap, security), None)
    due = time.monotonic()
    while True:
        try:
            samples = sample_cluster(bootstrap, security)
        except SourceError as error:
            if every_s is None or not taken:
                raise
            if failed is not None:
                failed(error)
        else:
            waiting = _bounded([*waiting, samples])
            taken += 1
            if told is not None:
                told(samples.num_rows)
        last = every_s is None or taken == count
        try:
            if waiting:
                _add(waiting, directory, identity, PATIENCE_S if last else 0.0)
            is_known, is_busy = True, False
        except (TablesError, StoreError) as error:
            was_busy, is_busy = is_busy, isinstance(error, BusyError)
            if last or not (is_known or is_busy):
                raise
            if failed is not None and not (is_busy and was_busy):
                failed(error)
        if every_s is None or last:
            return taken
        due = max(due + every_s, time.monotonic())
        time.sleep(max(0.0, due - time.monotonic()))


def _add(waiting: list[pa.Table], directory: Folder, identity: Identity, wait_s: float) -> None:
    """Write what waits; what counts waits no more, also where its logs of Delta lag behind."""
    try:
        with _patient_writer(directory, wait_s) as writer:
            claim(writer, directory, identity)
            while waiting:
                before = writer.manifest
                try:
                    append_samples(writer, waiting[0])
                finally:
                    if writer.manifest is not before:
                        waiting.pop(0)
    except StoreError:
        raise
    except OSError as error:
        raise TablesError(f"{directory} cannot be written: {error.strerror or error}") from error


def _bounded(waiting: list[pa.Table]) -> list[pa.Table]:
    """Samples that are not too many: the newest stay, and every second one before them."""
    while len(waiting) > 2 and sum(samples.num_rows for samples in waiting) > MOST_ROWS:
        waiting = [*waiting[:-1:2], waiting[-1]]
    return waiting


def _patient_writer(directory: Folder, patience_s: float) -> Writer:
    until = time.monotonic() + patience_s
    while True:
        try:
            return Writer(directory)
        except BusyError:
            if time.monotonic() >= until:
                raise
            time.sleep(0.2)
