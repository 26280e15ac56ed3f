# SPDX-License-Identifier: Apache-2.0
"""Our broker, or Apache Kafka, for tests that ask the same of both."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest
from tests.peers.kafka import Kafka

from kohort.testing import Broker

WHOSE = ["ours", pytest.param("Kafka", marks=pytest.mark.prove)]
"""What these tests ask of ours holds of Kafka: `make prove` looks whether it still does."""


@contextmanager
def either(whose: str, settings: Mapping[str, str]) -> Iterator[str]:
    """The address of one of them while it runs, in a process of its own."""
    if whose == "ours":
        with Broker(settings, process=True) as broker:
            yield broker.bootstrap
        return
    with Kafka(settings, heap="512M") as broker:
        yield broker.address
