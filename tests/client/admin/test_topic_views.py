# SPDX-License-Identifier: Apache-2.0
"""What the admin client returns about brokers and topics."""

from kohort.client.admin import CreatedTopic, Nodes, TopicDescription, TopicListing
from kohort.errors import ErrorCode


def test_a_cluster_names_the_brokers_that_are_away():
    assert Nodes((), away=()).complete
    assert Nodes((), away=(3,)).missing[3].code is ErrorCode.BROKER_NOT_AVAILABLE


def test_the_id_of_a_topic_is_shown_as_the_tools_of_kafka_write_it():
    shown = "topic_id=AAAAAAAAAAAAAAAAAAAAAQ"
    topic_id = (1).to_bytes(16, "big")
    assert shown in repr(CreatedTopic("orders", topic_id, 1, 1))
    assert shown in repr(TopicListing("orders", topic_id, internal=False, partitions=1))
    assert shown in repr(TopicDescription("orders", topic_id, internal=False, partitions=()))
    assert "topic_id=None" in repr(CreatedTopic("orders", None, None, None))
