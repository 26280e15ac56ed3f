"""Samples of where the topics of a live cluster end, taken beside the runs. Needs no Spark."""

import time
from collections.abc import Callable

from kohort.errors import KohortError
from kohort.spark.sources.fetching import cluster_id
from kohort.spark.sources.sampling import sample_cluster
from kohort.spark.sources.standing import Identity, SourceError
from kohort.spark.stores.places import Folder, place_of
from kohort.spark.tables.end_samples import append_samples
from kohort.spark.tables.writer import BusyError, Writer, claim

PATIENCE_S = 60.0


def snapshot(
    bootstrap: str,
    out: str | Folder,
    *,
    every_s: float | None = None,
    count: int | None = None,
    told: Callable[[int], None] | None = None,
    failed: Callable[[KohortError], None] | None = None,
) -> int:
    """Add samples of where the topics of a cluster end, once or every so often; returns how many
    times. They make the lag in seconds exact.

    While somebody else writes the tables the samples are kept, and added when he has ended. `told`
    gets the number of samples each time. With `every_s` a cluster that does not answer is asked
    again the next time, and `failed` gets the error. Raises KohortError: it did not answer the
    first time, the tables are those of another cluster.
    """
    directory, taken, waiting = place_of(out), 0, []
    identity = Identity(cluster_id(bootstrap), None)
    due = time.monotonic()
    while True:
        try:
            samples = sample_cluster(bootstrap)
        except SourceError as error:
            if every_s is None or not taken:
                raise
            if failed is not None:
                failed(error)
        else:
            waiting.append(samples)
            taken += 1
            if told is not None:
                told(samples.num_rows)
        last = every_s is None or taken == count
        try:
            with _patient_writer(directory, PATIENCE_S if last else 0.0) as writer:
                claim(writer, out, identity)
                for batch in waiting:
                    append_samples(writer, batch)
            waiting.clear()
        except BusyError:
            if last:
                raise
        if every_s is None or last:
            return taken
        due = max(due + every_s, time.monotonic())
        time.sleep(max(0.0, due - time.monotonic()))


def _patient_writer(directory: Folder, patience_s: float) -> Writer:
    until = time.monotonic() + patience_s
    while True:
        try:
            return Writer(directory)
        except BusyError:
            if time.monotonic() >= until:
                raise
            time.sleep(0.2)
