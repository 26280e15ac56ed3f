# SPDX-License-Identifier: Apache-2.0
"""Whole brokers to ask: ours on one node, on three and with old versions, and Apache Kafka."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.client.scripted import asynchronous
from tests.peers.kafka import OLDER, VERSION, Kafka, unavailable

from kohort.client.admin import AdminClient, NewTopic
from kohort.testing.broker import Broker

OLD = {"ListGroups": 3, "OffsetFetch": 7, "FindCoordinator": 3, "DescribeGroups": 5}
OPTIONS = {"one": {}, "three": {"nodes": 3}, "old": {"versions": OLD}}
RELEASES = {  # of Apache Kafka, and the settings that it needs
    "kafka": (VERSION, {}),
    "kafka-older": (OLDER, {"group.coordinator.rebalance.protocols": "classic,consumer"}),
}
_OF_KAFKA = [pytest.mark.java, pytest.mark.timeout(600)]
WHOLE_BROKERS = [
    pytest.param("one", id="kohort"),
    pytest.param("three", id="kohort-3-nodes"),
    pytest.param("old", id="kohort-old-versions"),
    pytest.param("kafka", id="kafka", marks=_OF_KAFKA),
    pytest.param("kafka-older", id="kafka-3.9", marks=[pytest.mark.prove, *_OF_KAFKA]),
]
"""The parameters of a fixture of a module."""
CURRENT_BROKERS = [each for each in WHOLE_BROKERS if each.id != "kafka-3.9"]
"""Those with all that 4.3.1 has. 3.9 has neither levels of groups among its features, nor fenced
brokers to look at, cordoned directories, resources of all types or patterns of transactional ids.
"""


@contextmanager
def whole_broker(name: str) -> Iterator[str]:
    """The addresses of one of them while it runs."""
    if name in OPTIONS:
        with Broker(in_memory=True, **OPTIONS[name]) as broker:
            yield broker.bootstrap
        return
    version, settings = RELEASES[name]
    if reason := unavailable(version):
        pytest.skip(reason)
    settings = {"offsets.topic.num.partitions": 4, **settings}
    with Kafka(settings, heap="512M", version=version) as broker:
        yield broker.address


@asynchronous
async def create_topic(bootstrap: str, name: str, partitions: int) -> None:
    """Create a topic, and wait until its partitions are led: Kafka may need a while for that."""
    async with AdminClient(bootstrap) as admin:
        (await admin.create_topics([NewTopic(name, partitions, 1)])).all()
        places = [(name, index) for index in range(partitions)]
        while (await admin.end_offsets(places)).failed:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
