# SPDX-License-Identifier: Apache-2.0
"""A small history of a group log, by a real client."""

import confluent_kafka as ck
from confluent_kafka.admin import AdminClient, NewTopic

QUIET = {"log_level": 0}


def create(bootstrap, topic, partitions=3, **config):
    admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
    for one in admin.create_topics([NewTopic(topic, partitions, 1, config=config)]).values():
        one.result()


def commit(bootstrap, groups, times=3, partitions=3):
    """Each group commits offsets of every partition of `orders`, several times."""
    for group in groups:
        consumer = ck.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "enable.auto.commit": False,
                **QUIET,
            }
        )
        for at in range(times):
            offsets = [ck.TopicPartition("orders", one, 10 * at + one) for one in range(partitions)]
            consumer.commit(offsets=offsets, asynchronous=False)
        consumer.close()


def produce(bootstrap, topic, keys, partition=0, **settings):
    """A record for each key, in batches as the client likes."""
    producer = ck.Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, **QUIET, **settings})
    for key in keys:
        producer.produce(topic, key=key, value=b"v" * 50, partition=partition)
    assert producer.flush(20) == 0
