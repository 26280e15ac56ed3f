# SPDX-License-Identifier: Apache-2.0
"""Which cluster tables belong to, so that those of several clusters can stand in one table.

A directory belongs to one cluster. Its name is not in the files: readers add it as a column.
"""

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from kohort.pipeline.format.manifest import Manifest, TablesError
from kohort.pipeline.format.writer import Writer
from kohort.pipeline.stores.places import Folder

CLUSTER = "cluster"
"""The last column of every table that is read."""


def cluster_of(manifest: Manifest) -> str | None:
    """The name that somebody gave the cluster, or its own id; None where neither is known."""
    return manifest.cluster or manifest.identity.cluster_id


def name(writer: Writer, out: str | Folder, wanted: str | None) -> None:
    """Give the cluster a name. Raises TablesError where it has another one."""
    there = writer.manifest.cluster
    if wanted is None or wanted == there:
        return
    if not wanted.strip():
        raise TablesError(f"the name of the cluster is {wanted!r}, expected some letters")
    if there is not None:
        raise TablesError(
            f"{out} has the tables of cluster {there}, not of {wanted}: write into another "
            "directory"
        )
    writer.manifest = writer.manifest.with_(cluster=wanted)


def check_apart(clusters: Iterable[tuple[Folder, str | None]]) -> None:
    """Raises TablesError where rows of several directories could not be told apart."""
    known: dict[str, Folder] = {}
    for directory, cluster in clusters:
        if cluster is None:
            raise TablesError(
                f"{directory} does not know of which cluster it is: `kohort pipeline run --cluster "
                "NAME` tells it"
            )
        if cluster in known:
            raise TablesError(
                f"{known[cluster]} and {directory} are both of cluster {cluster}, expected one "
                "directory of each"
            )
        known[cluster] = directory


def inner(names: Sequence[str], stored: Sequence[str]) -> list[str]:
    """The columns to read from files for these. When only the number of rows is asked for, it is
    one.
    """
    return [column for column in names if column != CLUSTER] or [stored[0]]


def with_cluster(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, cluster: str | None
) -> Iterator[pa.RecordBatch]:
    """Rows with the columns of a schema; one of these may be the cluster."""
    for batch in batches:
        clusters = pa.repeat(pa.scalar(cluster, pa.string()), batch.num_rows)
        columns = [
            clusters if column == CLUSTER else batch.column(column) for column in schema.names
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)
