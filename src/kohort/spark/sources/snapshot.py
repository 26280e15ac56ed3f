# SPDX-License-Identifier: Apache-2.0
"""What the two snapshot sources share: their options, and which task asks for which groups.

The driver asks every broker for its groups and then who coordinates each; a task gets some hundred
groups of one coordinator, so that it needs a request or two of each kind and a cluster's brokers
are asked in parallel. Nothing but names goes from the driver to the tasks.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from kohort.client.admin import GroupListing, TopicPartition, listings
from kohort.client.network.cluster import Cluster
from kohort.errors import ApiError
from kohort.pipeline.schemas import Table
from kohort.pipeline.sources.admin_query import CLIENT_ID, TIMEOUT_S, run_query
from kohort.pipeline.sources.cluster_place import cluster_place
from kohort.pipeline.sources.log_position import SourceError
from kohort.pipeline.sources.options import required
from kohort.spark.engine.frames import struct_of

BOOTSTRAP = "bootstrap.servers"
_OPTIONS = (BOOTSTRAP, "groups", "states", "types", "groupsPerTask")


@dataclass(frozen=True)
class SnapshotOptions:
    """The options of a snapshot: whom to ask, and for which groups (None filters nothing)."""

    bootstrap: str
    groups: tuple[str, ...] | None = None
    states: tuple[str, ...] | None = None
    types: tuple[str, ...] | None = None
    groups_per_task: int = 500

    @classmethod
    def of(cls, name: str, options: Mapping[str, str]) -> Self:
        """Out of Spark's options, whose names have no case. Raises SourceError."""
        known = {spelled.lower(): spelled for spelled in _OPTIONS}
        given = {option.lower(): value for option, value in options.items()}
        for option in given:
            if option not in known:
                raise SourceError(
                    f"{name} has no option {option!r}, expected {', '.join(known.values())}"
                )
        bootstrap = required(given, BOOTSTRAP, "host:9092")
        size = given.get("groupspertask", "500")
        if not (size.isascii() and size.isdigit() and int(size)):
            raise SourceError(f"{name}: groupsPerTask is {size!r}, expected a number from 1")
        names = {option: _names(name, given, option) for option in ("groups", "states", "types")}
        return cls(bootstrap, **names, groups_per_task=int(size))


def _names(source: str, given: Mapping[str, str], option: str) -> tuple[str, ...] | None:
    if option not in given:
        return None
    names = tuple(part.strip() for part in given[option].split(",") if part.strip())
    if not names:
        raise SourceError(f"{source}: {option} is empty, expected names with commas between them")
    return names


@dataclass(frozen=True)
class SnapshotPartition(InputPartition):
    """What a task asks for: groups of one coordinator, or why those of a broker or of a coordinator
    are missing.
    """

    listings: tuple[GroupListing, ...] = ()
    broker: int | None = None
    error: str | None = None


def shares(wanted: SnapshotOptions) -> list[SnapshotPartition]:
    """Who asks for what: the groups by coordinator, in tasks of `groups_per_task` at most.

    A broker that cannot list its groups is a share of its own, which tells so, and so is a
    coordinator that nobody is: their groups are missing. Raises SourceError when nobody can be
    asked.
    """
    return run_query(wanted.bootstrap, lambda: _shares(wanted))


async def _shares(wanted: SnapshotOptions) -> list[SnapshotPartition]:
    cluster = cluster_place(wanted.bootstrap).cluster(CLIENT_ID)
    deadline = asyncio.get_running_loop().time() + TIMEOUT_S
    try:
        listed, errors = await _listed(cluster, wanted, deadline)
        ids = [listing.group_id for listing in listed]
        places = await cluster.coordinators(ids, deadline) if ids else {}
    finally:
        await cluster.close()
    by_broker = defaultdict(list)
    for listing in listed:
        place = places[listing.group_id]
        by_broker[-1 if isinstance(place, ApiError) else place.id].append(listing)
    size = wanted.groups_per_task
    return [
        *(
            SnapshotPartition(broker=part, error=f"node {part} cannot list its groups: {error}")
            if isinstance(part, int)
            else SnapshotPartition(
                error=f"the groups of the coordinator at {part} are missing: {error}"
            )
            for part, error in errors.items()
        ),
        *(
            SnapshotPartition(tuple(by_broker[broker][start : start + size]))
            for broker in sorted(by_broker)
            for start in range(0, len(by_broker[broker]), size)
        ),
    ]


async def _listed(
    cluster: Cluster, wanted: SnapshotOptions, deadline: float
) -> tuple[list[GroupListing], Mapping[int | TopicPartition, ApiError]]:
    """The groups that are wanted. Those asked for by name need not be listed."""
    if wanted.groups is not None and wanted.states is None and wanted.types is None:
        return [
            GroupListing(group_id, "", None, None) for group_id in dict.fromkeys(wanted.groups)
        ], {}
    found = await listings.list_groups(
        cluster, states=wanted.states, types=wanted.types, deadline=deadline
    )
    named = None if wanted.groups is None else set(wanted.groups)
    return [
        listing for listing in found if named is None or listing.group_id in named
    ], found.errors


class SnapshotSource(DataSource):
    """A data source whose rows are a table, asked from a live cluster in shares of groups."""

    table: ClassVar[Table]

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self.wanted = SnapshotOptions.of(self.name(), options)

    @classmethod
    def name(cls) -> str:
        return cls.table.name

    def schema(self) -> StructType:
        schema: StructType = struct_of(self.table)
        return schema

    def reader(self, schema: StructType) -> "SnapshotReader":
        return SnapshotReader(self, schema)

    def rows(self, share: SnapshotPartition) -> pa.RecordBatch:
        """The rows of one share, all columns of the table. Runs in a task."""
        raise NotImplementedError


class SnapshotReader(DataSourceReader):
    """Gives the columns that the user's schema names, which is the only way to ask for fewer."""

    def __init__(self, source: SnapshotSource, schema: StructType) -> None:
        self._source = source
        self._columns = schema.fieldNames()
        for name in self._columns:
            if name not in source.table.names:
                raise SourceError(
                    f"{source.name()} has no column {name!r}, "
                    f"expected {', '.join(source.table.names)}"
                )

    def partitions(self) -> Sequence[SnapshotPartition]:
        return shares(self._source.wanted) or [SnapshotPartition()]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, SnapshotPartition)
        yield self._source.rows(partition).select(self._columns)
