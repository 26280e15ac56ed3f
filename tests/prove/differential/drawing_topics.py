# SPDX-License-Identifier: Apache-2.0
"""Requests about topics, settings and records, with their edge values."""

from __future__ import annotations

from typing import Any

from tests.prove.differential import batches
from tests.prove.differential.drawing import ADMIN, TOPICS, Draw
from tests.prove.differential.steps import (
    UNKNOWN_ID,
    BatchOf,
    IdOf,
    Name,
    ProducerOf,
    SessionOf,
    Step,
    TimeOf,
)

NEW_TOPICS = ("t4", "t5")
BAD_NAMES = ("a/b", "", " ", ".", "..", "x" * 250, "größe")
TOPIC_KEYS = ("retention.ms", "cleanup.policy", "max.message.bytes", "segment.bytes")
GIVEN_KEYS = ("group.max.size", "group.initial.rebalance.delay.ms", "auto.create.topics.enable")
ZSTD_SINCE = 7
TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32


class DrawTopics(Draw):
    """What administrators and producers ask for."""

    def new_topic(self) -> Any:
        return self.but(Name(self.one(*NEW_TOPICS)), Name("t1"), *BAD_NAMES)

    def any_topic(self) -> Any:
        known = Name(self.one(*TOPICS, *NEW_TOPICS))
        return self.but(known, Name("t9"), *BAD_NAMES, odd=self.odd * 1.5)

    def create_topics(self) -> Step:
        topics = [self._wanted() for _ in range(self.but(1, 0, 2))]
        timeout_ms = self.but(60000, 0, -1, odd=self.odd / 2)
        if topics and timeout_ms > 0 and self.chance(self.odd / 2):
            topics.append(dict(topics[0]))
        return self.step(
            ADMIN,
            "CreateTopics",
            topics=topics,
            timeout_ms=timeout_ms,
            validate_only=self.chance(0.15),
        )

    def _wanted(self) -> dict[str, Any]:
        assigned = self.chance(self.odd / 2)
        return {
            "name": self.new_topic(),
            "num_partitions": -1 if assigned else self.but(self.one(1, 2, 3), -1, 0, -2),
            "replication_factor": -1 if assigned else self.but(1, -1, 0, 2, -2),
            "assignments": self._assignments() if assigned else [],
            "configs": [self._config() for _ in range(self.but(0, 1, 2, odd=0.3))],
        }

    def _assignments(self) -> list[dict[str, Any]]:
        nodes = self.but([1], [], [1, 1], [2])
        return [{"partition_index": self.but(index, 1), "broker_ids": nodes} for index in range(2)]

    def _config(self) -> dict[str, Any]:
        name, value = self.setting()
        return {"name": name, "value": value}

    def setting(self) -> tuple[str, str | None]:
        good = self.one(
            ("retention.ms", "3600000"),
            ("cleanup.policy", "compact"),
            ("cleanup.policy", "delete"),
            ("max.message.bytes", "2000"),
            ("min.insync.replicas", "1"),
        )
        bad = self.one(
            ("retention.ms", "soon"),
            ("retention.ms", "-2"),
            ("cleanup.policy", "keep"),
            ("no.such.setting", "1"),
            ("retention.ms", None),
            ("retention.ms", " 3600000 "),
        )
        return self.but(good, bad)

    def delete_topics(self) -> Step:
        version = self.version("DeleteTopics")
        names = [self.any_topic() for _ in range(self.but(1, 0, 2))]
        if names and self.chance(self.odd / 2):
            names.append(names[0])
        by_id = [
            {"name": None, "topic_id": IdOf(self.but(self.one(*TOPICS, *NEW_TOPICS), "t9", ""))}
            for _ in range(self.one(0, 1))
        ]
        states = [{"name": name, "topic_id": bytes(16)} for name in names] + by_id
        if states and self.chance(self.odd / 3):
            states[0] = {"name": Name("t1"), "topic_id": IdOf("t1")}
        return self.step(
            ADMIN, "DeleteTopics", version, topics=states, topic_names=names, timeout_ms=60000
        )

    def create_partitions(self) -> Step:
        topics = [self._grown() for _ in range(self.but(1, 0, 2))]
        timeout_ms = self.but(60000, 0, odd=self.odd / 3)
        if topics and timeout_ms > 0 and self.chance(self.odd / 2):
            topics.append(dict(topics[0]))
        return self.step(
            ADMIN,
            "CreatePartitions",
            topics=topics,
            timeout_ms=timeout_ms,
            validate_only=self.chance(0.15),
        )

    def _grown(self) -> dict[str, Any]:
        nodes = self.but([1], [], [2], [1, 1])
        assignments = self.but(None, [{"broker_ids": nodes}], [], odd=0.2)
        count = self.but(self.one(3, 4, 5), 0, -1, 1)
        return {"name": self.any_topic(), "count": count, "assignments": assignments}

    # --- looking at topics

    def metadata(self) -> Step:
        version = self.version("Metadata")
        topics: Any = [{"name": self.any_topic()} for _ in range(self.but(1, 2, 3))]
        if version >= 12 and self.chance(0.3):
            ids = [IdOf(self.one(*TOPICS, "t4", "t9")) for _ in range(self.one(1, 2))]
            topics = [{"name": None, "topic_id": one} for one in ids]
        if version >= 1 and self.chance(0.2):
            topics = self.one(None, [])
        return self.step(
            self.one("a", ADMIN),
            "Metadata",
            version,
            topics=topics,
            allow_auto_topic_creation=False,
            include_cluster_authorized_operations=self.chance(0.2),
            include_topic_authorized_operations=self.chance(0.3),
        )

    def describe_topics(self) -> Step:
        cursor = None
        if self.chance(0.3):
            index = self.but(self.one(0, 1, 2), 7, -1)
            cursor = {"topic_name": self.any_topic(), "partition_index": index}
        names = [{"name": self.but(Name(self.one(*TOPICS)), Name("t9"), "a/b")} for _ in range(2)]
        return self.step(
            ADMIN,
            "DescribeTopicPartitions",
            topics=names,
            response_partition_limit=self.one(2000, 1, 2, 3, 0, -1),
            cursor=cursor,
        )

    def describe_cluster(self) -> Step:
        return self.step(
            ADMIN,
            "DescribeCluster",
            include_cluster_authorized_operations=self.chance(0.3),
            endpoint_type=self.but(1, 2, 0, 3),
            include_fenced_brokers=self.chance(0.3),
        )

    # --- settings

    def describe_configs(self) -> Step:
        resources = [self._resource() for _ in range(self.but(1, 0, 2))]
        return self.step(
            ADMIN,
            "DescribeConfigs",
            resources=resources,
            include_synonyms=self.chance(0.4),
            include_documentation=self.chance(0.1),
        )

    def _resource(self) -> dict[str, Any]:
        kind = self.but(TOPIC, BROKER, odd=0.3)
        if kind == BROKER:
            name: Any = self.but("1", "", "2", "x")
            keys: Any = list(GIVEN_KEYS)
        else:
            name = self.any_topic()
            keys = self.one(None, list(TOPIC_KEYS), [*TOPIC_KEYS, "no.such.setting"], [])
        return {"resource_type": kind, "resource_name": name, "configuration_keys": keys}

    def alter_configs(self) -> Step:
        changes = []
        for _ in range(self.but(1, 0, 2)):
            name, value = self.setting()
            operation = self.but(0, 1, 2, 3, 4, -1, odd=0.3)
            changes.append({"name": name, "config_operation": operation, "value": value})
        resources = [
            {"resource_type": TOPIC, "resource_name": self.any_topic(), "configs": changes}
        ]
        if self.chance(self.odd / 3):
            resources *= 2
        return self.step(
            ADMIN,
            "IncrementalAlterConfigs",
            resources=resources,
            validate_only=self.chance(0.15),
        )

    # --- records

    def places(self) -> list[int]:
        """Partitions, each once: of what is named twice upstream drops one without a word."""
        found = [self.but(0, 1, 2, 7, -1) for _ in range(self.but(1, 2, 0, 3))]
        return list(dict.fromkeys(found))

    def init_producer(self) -> Step:
        return self.step(
            "a",
            "InitProducerId",
            transactional_id=None,
            transaction_timeout_ms=60000,
            producer_id=self.but(-1, ProducerOf(0), odd=0.1),
            producer_epoch=self.but(-1, ProducerOf(0, epoch=True), odd=0.1),
        )

    def batch(self) -> BatchOf:
        good = self.one(
            *(("plain", (1,)), ("plain", (3,)), ("plain", (2, 1)), ("plain", (2, 2))),
            *(("plain", (2, 3)), ("plain", (2, 4)), ("keyless", (3,)), ("timed", (0, 5, 2))),
            *(("of_producer", (0, self.one(0, 1, 2, 3))), ("of_producer", (0, 0, 2))),
        )
        bad = self.one(
            *(("two", ()), ("zeros", (20,)), ("zeros", (0,)), ("zeros", (61,)), ("bad_crc", ())),
            *(("counting", (2**31 - 1, 2**31 - 2, 0)), ("counting", (5, 4, 3))),
            *(("counting", (2, 1, 3)), ("counting", (0, 0, 0)), ("counting", (-1, -2, 1))),
            *(("counting", (2, 5, 2)), ("compressed_counting", (5, 3))),
            *(("compressed_counting", (2, 3)), ("deltas", (0, 2)), ("deltas", (1, 0))),
            *(("deltas", (0, 0)), ("junk", ()), ("junk", (0, 1, 0)), ("trailing", ())),
            *(("trailing", (1,)), ("cut", ()), ("cut", (1,)), ("headers", (1,))),
            *(("headers", (2,)), ("headers", (-1,)), ("old", (1,)), ("old", (0,)), ("old", (3,))),
            *(("based", (7,)), ("based", (-1,)), ("flagged", (8,)), ("flagged", (32,))),
            *(("flagged", (64,)), ("flagged", (128,)), ("late", (7_200_000,)), ("late", (-1,))),
            *(("short", (3,)), ("short", (20,)), ("of_producer", (0, 7))),
            *(("of_producer", (0, -1)), ("of_producer", (0, 0, 1, 1)), ("plain", (1, 0, 3000))),
            *(("junk", (codec,)) for codec in (1, 2, 3, 4, 5, 6, 7)),
        )
        make, arguments = self.but(good, bad, odd=self.odd * 2)
        assert make in batches.MAKERS
        return BatchOf(make, arguments)

    def produce(self) -> Step:
        version = self.version("Produce")
        topics: list[dict[str, Any]] = []
        for topic in self.random.sample([*TOPICS, self.but("t4", "t9")], self.but(1, 2)):
            batches = {index: self.batch() for index in self.places()}
            if version < ZSTD_SINCE:  # there Kafka fails at a codec that it does not know
                batches = {index: one for index, one in batches.items() if not _odd_codec(one)}
            data = [{"index": index, "records": one} for index, one in batches.items()]
            if version >= 13:
                topics.append({"topic_id": IdOf(topic), "partition_data": data})
            else:
                topics.append({"name": Name(topic), "partition_data": data})
        return self.step(
            "a",
            "Produce",
            version,
            acks=self.but(-1, 1, -2, 2),
            timeout_ms=30000,
            topic_data=topics,
        )

    def fetch(self) -> Step:
        version = self.version("Fetch")
        sessions = version >= 7 and self.chance(0.4)
        topics: list[dict[str, Any]] = []
        for topic in self.random.sample([*TOPICS, "t9"], self.but(1, 0, 2)):
            partitions = [
                {
                    "partition": index,
                    "current_leader_epoch": self.but(-1, 0, 1, -2),
                    "fetch_offset": self.but(self.one(0, 0, 1, 2), 99, -1, 2**62),
                    "log_start_offset": -1,
                    "partition_max_bytes": self.but(1 << 20, 1, 0, 150),
                }
                for index in self.places()
            ]
            if version >= 13:
                topics.append({"topic_id": IdOf(topic), "partitions": partitions})
            else:
                topics.append({"topic": Name(topic), "partitions": partitions})
        return self.step(
            "a",
            "Fetch",
            version,
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=1 << 20,
            isolation_level=self.but(0, 1),
            session_id=self.one(0, SessionOf("a")) if sessions else 0,
            session_epoch=self.one(0, 1, 2) if sessions else -1,
            topics=topics,
        )

    def list_offsets(self) -> Step:
        version = self.version("ListOffsets")
        topics = []
        for _ in range(self.but(1, 0, 2)):
            partitions = [
                {
                    "partition_index": self.but(0, 1, 7, -1),
                    "current_leader_epoch": self.but(-1, 0, 1, -2),
                    "timestamp": self.one(
                        -1, -2, TimeOf(0), TimeOf(3), TimeOf(10**6), *_special(version)
                    ),
                }
                for _ in range(self.but(1, 2, 0))
            ]
            name = self.but(Name(self.one(*TOPICS)), Name("t9"), "a/b")
            topics.append({"name": name, "partitions": partitions})
        return self.step(
            "a",
            "ListOffsets",
            version,
            replica_id=-1,
            isolation_level=self.but(0, 1),
            topics=topics,
            timeout_ms=1000,
        )

    def epoch_ends(self) -> Step:
        topics = []
        for _ in range(self.but(1, 0, 2)):
            partitions = [
                {
                    "partition": self.but(0, 1, 7, -1),
                    "current_leader_epoch": self.but(-1, 0, 1, -2),
                    "leader_epoch": self.but(0, 1, -1, -2, 5),
                }
                for _ in range(self.but(1, 2, 0))
            ]
            topics.append({"topic": self.but(Name("t1"), Name("t9")), "partitions": partitions})
        return self.step("a", "OffsetForLeaderEpoch", replica_id=-1, topics=topics)

    def delete_records(self) -> Step:
        topics = []
        for topic in self.random.sample(["t1", "t2", "t9"], self.but(1, 0, 2)):
            partitions = [
                {"partition_index": index, "offset": self.one(0, 1, 2, -1, 99, -2)}
                for index in self.places()
            ]
            topics.append({"name": Name(topic), "partitions": partitions})
        return self.step(ADMIN, "DeleteRecords", topics=topics, timeout_ms=30000)


def _odd_codec(batch: BatchOf) -> bool:
    return batch.make == "junk" and bool(batch.arguments) and batch.arguments[0] > 4


def _special(version: int) -> list[int]:
    """Special times by the versions that may name them."""
    allowed = {-3: 7, -4: 8, -5: 9, -6: 11}
    return [time for time, first in allowed.items() if version >= first]


__all__ = ["UNKNOWN_ID", "DrawTopics"]
