# SPDX-License-Identifier: Apache-2.0
"""From a data directory, or from nothing, to a cluster that can be started.

Folders that the catalog does not know become topics: the directory may be a copy of a real Kafka's,
or a part of one. They keep the id that `partition.metadata` names.
"""

from collections.abc import Callable, Iterable, Mapping
from os import urandom
from uuid import UUID

from kohort.assignors import Assign
from kohort.config import BrokerConfig
from kohort.errors import KohortError, StorageError
from kohort.runtime.clocks import perf_counter_ns
from kohort.runtime.observers import Observer
from kohort.server.access import May
from kohort.server.background.plugin_assignors import load_plugin_assignors
from kohort.server.catalog import (
    OFFSETS_TOPIC,
    PARTITIONS_MAX,
    Catalog,
    MemoryStore,
    Topic,
)
from kohort.server.cluster import Cluster
from kohort.server.descriptors import Limit
from kohort.server.internal_topics import internal_configs
from kohort.server.partitions.logs import CATALOG_FILE, DirectoryLogs, DirectoryStore, MemoryLogs
from kohort.storage.directory import LogDirectory
from kohort.storage.files import DiskFiles, Files
from kohort.terms import TopicId, uuid_text


def new_uuid() -> bytes:
    """16 random bytes. The id's text does not begin with a dash, as options of tools do."""
    while True:
        value = UUID(bytes=urandom(16), version=4).bytes  # as uuid4 does
        if not uuid_text(value).startswith("-"):
            return value


def open_cluster(
    config: BrokerConfig,
    observe: Observer,
    *,
    data_dir: str | None = None,
    files: Files | None = None,
    new_id: Callable[[], bytes] = new_uuid,
    may: May | None = None,
    assignors: Callable[[Iterable[str]], Mapping[str, Assign]] = load_plugin_assignors,
    stopwatch: Callable[[], int] = perf_counter_ns,
    limit: Limit = Limit(),  # noqa: B008  (a constant)
) -> Cluster:
    """Open what exists and create what is missing; call `start` on it then. Without a `data_dir`
    nothing is kept. The caller provides the disk, the ids, and the time of every later call;
    `stopwatch` counts the nanoseconds that work takes, `limit` says how many descriptors the broker
    may have, and `assignors` finds those that the settings name and that are not of Kohort. `may`
    takes the place of the authorizer that the settings ask for.

    Raises StorageError when the directory cannot be used, KohortError when an assignor is missing
    or there are too few descriptors.
    """
    plugin_assignors = assignors(config.group_consumer_assignors)
    if data_dir is None:
        catalog = Catalog(MemoryStore(), lambda: uuid_text(new_id()), observe)
        create_offsets_topic(catalog, config, new_id)
        memory = MemoryLogs()
        return _check_descriptors(
            Cluster(
                config, catalog, memory, new_id, observe, may, plugin_assignors, stopwatch, limit
            )
        )
    files = files or DiskFiles()
    directory = LogDirectory(data_dir, files, node_id=config.node_id, new_uuid=new_id)
    try:
        store = DirectoryStore(directory.path, files, observe)
        catalog = Catalog(store, lambda: directory.cluster_id, observe)
        adopt_folders(catalog, directory, config, new_id, observe)
        directory.expect_only(catalog.by_name)
        for notice in directory.notices:
            observe.warning(notice)
        create_offsets_topic(catalog, config, new_id)
        logs = DirectoryLogs(directory, files, observe, catalog.producer_ids_below)
        return _check_descriptors(
            Cluster(config, catalog, logs, new_id, observe, may, plugin_assignors, stopwatch, limit)
        )
    except BaseException:
        directory.close()
        raise


def _check_descriptors(cluster: Cluster) -> Cluster:
    """Raises KohortError for one that could serve nobody for want of descriptors."""
    if cluster.shares.missing:
        raise KohortError(str(cluster.shares))
    return cluster


def adopt_folders(
    catalog: Catalog,
    directory: LogDirectory,
    config: BrokerConfig,
    new_id: Callable[[], bytes],
    observe: Observer,
) -> None:
    """Make topics of folders that the catalog has never heard of, where they may be a topic's."""
    leaving = {topic.name for topic in catalog.deleting}
    adopted = False
    for name, indexes in directory.partitions().items():
        if name in catalog.by_name or name in leaving:
            continue
        try:
            _check_adoption(catalog, config, name, max(indexes) + 1)
            named = [directory.topic_id(name, index) for index in indexes]
            highest = max(directory.adopt(name, index) for index in indexes)
        except KohortError as error:
            observe.warning(f"the folders of {name} are left alone: {error}")
            continue
        if highest < catalog.producer_ids_below:
            catalog.note_producer_id(highest)
        else:
            catalog.begin_producer_ids_far_off(new_id())
        known = [topic_id for topic_id in named if topic_id is not None]
        catalog.create(
            Topic(
                name=name,
                topic_id=known[0] if known else TopicId(new_id()),
                partitions=max(indexes) + 1,
                replication_factor=1,
                configs=internal_configs(name, config),
            )
        )
        adopted = True
        observe.warning(f"{name} is taken in from its folders, with the settings of a new topic")
    if adopted and catalog.is_new:
        observe.warning(
            f"{directory.path} has logs and no {CATALOG_FILE}: settings that were changed for "
            "topics and for brokers, rules (ACLs) and credentials of users are not known any more, "
            "if there were any"
        )


def _check_adoption(catalog: Catalog, config: BrokerConfig, name: str, partitions: int) -> None:
    """Raises KohortError where folders of this name make no topic that anybody could have made."""
    draft = catalog.draft()
    draft.refuse_name(name)
    if partitions > PARTITIONS_MAX:
        raise StorageError(f"{partitions} partitions, expected {PARTITIONS_MAX} at most")
    if draft.partitions + partitions > config.max_partitions:
        raise StorageError(
            f"{partitions} partitions beside {draft.partitions} others, "
            f"expected {config.max_partitions} at most"
        )


def create_offsets_topic(
    catalog: Catalog, config: BrokerConfig, new_id: Callable[[], bytes]
) -> None:
    """Create the topic of the coordinator's log, unless it exists."""
    if OFFSETS_TOPIC not in catalog.by_name:
        catalog.create(
            Topic(
                name=OFFSETS_TOPIC,
                topic_id=TopicId(new_id()),
                partitions=config.offsets_topic_num_partitions,
                replication_factor=1,
                configs=internal_configs(OFFSETS_TOPIC, config),
            )
        )
