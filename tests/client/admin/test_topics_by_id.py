# SPDX-License-Identifier: Apache-2.0
"""Topics by their ids, also where a name is another topic's by now."""

import pytest
from tests.client.scripted import ScriptedCluster, asynchronous

from kohort import AdminClient, ApiError, ErrorCode, NewTopic, UnsupportedVersionError
from kohort.terms import uuid_text
from kohort.testing import Broker
from kohort.wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from kohort.wire.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseTopic

ID, OTHER = bytes(range(16)), bytes(range(1, 17))


def test_a_topic_that_was_made_anew_is_not_deleted_by_its_former_id():
    @asynchronous
    async def talk(bootstrap):
        async with AdminClient(bootstrap) as admin:
            former = (await admin.create_topics([NewTopic("orders", 1)]))["orders"].topic_id
            (await admin.delete_topics_by_id(former)).all()
            newer = (await admin.create_topics([NewTopic("orders", 2)]))["orders"].topic_id
            deleted = await admin.delete_topics_by_id([former])
            assert deleted.failed[former].code is ErrorCode.UNKNOWN_TOPIC_ID
            assert uuid_text(former) in deleted.failed[former].message
            described = await admin.describe_topics_by_id([former, newer])
            assert list(described.succeeded) == [newer]
            assert len(described[newer].partitions) == 2

    with Broker(in_memory=True) as broker:
        talk(broker.bootstrap)


@asynchronous
async def test_an_outcome_has_the_id_in_the_form_in_which_it_was_given():
    def answer(asked):
        told = [
            DeletableTopicResult(name=None, topic_id=each.topic_id) for each in asked.request.topics
        ]
        return DeleteTopicsResponse(responses=told)

    answers = {DeleteTopicsRequest: answer}
    async with ScriptedCluster(1, answers) as scripted, scripted.admin() as admin:
        deleted = await admin.delete_topics_by_id([uuid_text(ID), uuid_text(OTHER)])
        assert list(deleted.succeeded) == [uuid_text(ID), uuid_text(OTHER)]
        assert (await admin.delete_topics_by_id([])).all() == {}
        assert (await admin.describe_topics_by_id([])).all() == {}
    (sent,) = scripted.sent("DeleteTopics")
    assert [(each.name, each.topic_id) for each in sent.request.topics] == [
        (None, ID),
        (None, OTHER),
    ]


@asynchronous
async def test_an_old_broker_is_asked_nothing():
    async with ScriptedCluster(1) as scripted, scripted.admin() as admin:
        scripted.offer("DeleteTopics", "1-5")
        scripted.offer("Metadata", "0-11")
        deleted = await admin.delete_topics_by_id(ID)
        assert "needs v6 (KIP-516, Apache Kafka 2.8)" in deleted.failed[ID].message
        with pytest.raises(UnsupportedVersionError, match="a look-up of topics by id needs v12"):
            await admin.describe_topics_by_id(ID)
    assert scripted.names() == []


@asynchronous
async def test_a_topic_that_may_not_be_seen_is_named_by_its_id():
    denied = MetadataResponseTopic(
        topic_id=ID, name=None, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED
    )
    answers = {MetadataRequest: lambda _: MetadataResponse(topics=[denied])}
    async with ScriptedCluster(1, answers) as scripted, scripted.admin() as admin:
        described = await admin.describe_topics_by_id([ID, OTHER])
    with pytest.raises(ApiError, match=f"not authorized for topic with id {uuid_text(ID)}"):
        described[ID]
    assert described.failed[OTHER].code is ErrorCode.UNKNOWN_TOPIC_ID
