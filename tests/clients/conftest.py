# SPDX-License-Identifier: Apache-2.0
"""Brokers and members for tests with real clients. Everything here is another process."""

import pytest
from tests.clients.member_processes import crew

from kohort.testing import Broker

__all__ = ["crew"]

SETTINGS = {
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.initial.rebalance.delay.ms": "300",
}


@pytest.fixture
def broker():
    with Broker(SETTINGS, process=True) as running:
        yield running


@pytest.fixture
def cluster():
    with Broker(SETTINGS, nodes=3, process=True) as running:
        yield running
