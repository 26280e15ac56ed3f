"""From a data directory, or from nothing, to a cluster that can be started.

Folders that the catalog does not know are taken in: the directory may be a copy of a real Kafka's,
or a part of one. Their topics keep the id that `partition.metadata` names.
"""

from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

from kohort.config import BrokerConfig
from kohort.runtime.observers import Observer
from kohort.server.catalog import OFFSETS_TOPIC, Catalog, MemoryStore, Topic
from kohort.server.cluster import Cluster
from kohort.server.logs import DirectoryLogs, DirectoryStore, MemoryLogs
from kohort.storage.directory import LogDirectory
from kohort.storage.files import DiskFiles
from kohort.terms import TopicId, uuid_text


def new_uuid() -> bytes:
    """16 random bytes for an id whose text does not begin with a dash: tools would read an
    option.
    """
    while True:
        value = uuid4().bytes
        if not uuid_text(value).startswith("-"):
            return value


def open_cluster(config: BrokerConfig, data_dir: Path | None, observe: Observer) -> Cluster:
    """Open what is there and make what is missing. Raises StorageError when the directory cannot
    be used.
    """
    if data_dir is None:
        catalog = Catalog(MemoryStore(), lambda: uuid_text(new_uuid()))
        create_offsets_topic(catalog, config, new_uuid)
        return Cluster(config, catalog, MemoryLogs(), new_uuid, observe)
    files = DiskFiles()
    directory = LogDirectory(str(data_dir), files, node_id=config.node_id, new_uuid=new_uuid)
    try:
        store = DirectoryStore(directory.path, files)
        catalog = Catalog(store, lambda: directory.cluster_id)
        adopt_folders(catalog, directory, new_uuid)
        create_offsets_topic(catalog, config, new_uuid)
    except BaseException:
        directory.close()
        raise
    return Cluster(config, catalog, DirectoryLogs(directory, files), new_uuid, observe)


def adopt_folders(catalog: Catalog, directory: LogDirectory, new_id: Callable[[], bytes]) -> None:
    """Make topics of folders that the catalog has never heard of."""
    leaving = {topic.name for topic in catalog.deleting}
    for name, partitions in directory.partitions().items():
        if name in catalog.by_name or name in leaving:
            continue
        named = [topic_id for topic_id in partitions.values() if topic_id is not None]
        catalog.create(
            Topic(
                name=name,
                topic_id=named[0] if named else TopicId(new_id()),
                partitions=max(partitions) + 1,
                replication_factor=1,
                configs=offsets_topic_configs(None) if name == OFFSETS_TOPIC else {},
            )
        )


def create_offsets_topic(
    catalog: Catalog, config: BrokerConfig, new_id: Callable[[], bytes]
) -> None:
    """The topic that the coordinator keeps its log in, unless it is there already."""
    if OFFSETS_TOPIC not in catalog.by_name:
        catalog.create(
            Topic(
                name=OFFSETS_TOPIC,
                topic_id=TopicId(new_id()),
                partitions=config.offsets_topic_num_partitions,
                replication_factor=1,
                configs=offsets_topic_configs(config),
            )
        )


def offsets_topic_configs(config: BrokerConfig | None) -> dict[str, str]:
    size = (config or BrokerConfig()).offsets_topic_segment_bytes
    return {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": str(size),
    }
