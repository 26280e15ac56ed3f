# SPDX-License-Identifier: Apache-2.0
"""The topics of the coordinators."""

from tests.server.desk import Desk
from tests.server.transactional import Producing

from kohort.config import BrokerConfig
from kohort.server.catalog import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from kohort.server.internal_topics import create_transactions_topic, internal_configs
from kohort.sim.disk import SimulatedFiles


def test_their_logs_are_compacted():
    config = BrokerConfig.of({"transaction.state.log.segment.bytes": "2000000"})

    for name in (OFFSETS_TOPIC, TRANSACTIONS_TOPIC):
        assert internal_configs(name, config)["cleanup.policy"] == "compact"
    assert internal_configs(TRANSACTIONS_TOPIC, config)["segment.bytes"] == "2000000"
    assert internal_configs("orders", config) == {}


def test_the_topic_of_transactions_is_made_once():
    desk = Desk(transaction_state_log_num_partitions="7")
    told = []
    create_transactions_topic(desk.cluster, told.append)
    create_transactions_topic(desk.cluster, told.append)
    desk.settle()

    assert told == [None, None]
    assert desk.cluster.catalog.by_name[TRANSACTIONS_TOPIC].partitions == 7
    assert sorted(desk.cluster.transaction_coordinators) == list(range(7))


def test_without_a_disk_there_are_no_transactions_yet():
    files = SimulatedFiles()
    desk = Desk(files=files)
    told = []
    files.room_bytes = 0
    create_transactions_topic(desk.cluster, told.append)
    desk.settle()
    files.room_bytes = None
    create_transactions_topic(desk.cluster, told.append)
    desk.settle()

    assert told[0].code.name == "COORDINATOR_NOT_AVAILABLE"
    assert told[1] is None
    assert Producing(desk).state() == "Empty"
