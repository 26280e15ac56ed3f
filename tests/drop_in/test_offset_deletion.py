# SPDX-License-Identifier: Apache-2.0
"""`--delete-offsets` without the rights for it, and with an answer that is not whole."""

import asyncio

import pytest
from tests.client.admin.test_acls import AUTHORIZER
from tests.client.scripted import ScriptedCluster, asynchronous
from tests.drop_in.recorded_runs import run

from kohort import AclBinding, AclOperation, AdminClient, ResourceType
from kohort.drop_in import consumer_groups
from kohort.testing import Broker
from kohort.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

TABLE = (
    "\nTOPIC           PARTITION  STATUS         \n"
    "t               -          Error: org.apache.kafka.common.errors.TopicAuthorizationException: "
    "Topic authorization failed.\n"
)


@pytest.fixture
def broker():
    """ANONYMOUS is the super user; bob may do what `allow` lets him."""
    both = ("PLAINTEXT", "SASL_PLAINTEXT")
    with Broker(AUTHORIZER, security=both, users={"bob": "secret"}) as broker:
        broker.create_topic("t")
        broker.groups["g"].commit("t", 3)
        yield broker


@pytest.fixture
def as_bob(broker, tmp_path):
    settings = broker.client_settings("java", protocol="SASL_PLAINTEXT", user="bob")
    server = settings.pop("bootstrap.servers")
    path = tmp_path / "bob.properties"
    path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    path.chmod(0o600)
    call = ("--delete-offsets", "--group", "g", "--topic", "t", "--command-config", str(path))
    return lambda: run(consumer_groups.main, ["--bootstrap-server", server, *call])


def allow(broker, operation):
    async def main():
        async with AdminClient(broker.bootstrap_of("PLAINTEXT")) as admin:
            rule = AclBinding(ResourceType.GROUP, "g", "User:bob", operation)
            (await admin.create_acls([rule])).all()

    asyncio.run(main())


def test_a_group_without_the_right_to_it_is_an_error(broker, as_bob):
    """Nothing was left to ask about, as the topic was refused: a success was told above the table
    of errors.
    """
    refused = f"\nError: Group authorization failed.\n{TABLE}"
    assert as_bob() == (1, refused, "")
    allow(broker, AclOperation.DESCRIBE)
    assert as_bob() == (1, refused, ""), "who may look at a group may not delete from it"
    assert list(broker.groups["g"].committed().values()) == [3]


def test_a_refused_topic_of_a_group_that_may_be_changed_is_told_as_by_java(broker, as_bob):
    """The request for no partition succeeds; the table and the exit code say what is wrong."""
    allow(broker, AclOperation.DELETE)
    told = f"Request succeeded for deleting offsets from group g.\n{TABLE}"
    assert as_bob() == (1, told, "")


STATUSES = {  # what an answer has of a partition, and what the Java tool makes of that
    None: 'Error: java.lang.IllegalArgumentException: Offset deletion result for partition "t-1" '
    "was not included in the response\n",
    -1: "Error: org.apache.kafka.common.errors.UnknownServerException: The server experienced an "
    "unexpected error when processing the request.\n",
}


@pytest.mark.parametrize("code", STATUSES)
@asynchronous
async def test_a_partition_that_an_answer_lacks_is_told_so(code):
    """The other one is deleted, and the code says that one is not."""

    def answer(_asked):
        codes = {0: 0, **({} if code is None else {1: code})}
        partitions = [
            OffsetDeleteResponsePartition(partition_index=index, error_code=found)
            for index, found in codes.items()
        ]
        topics = [OffsetDeleteResponseTopic(name="t", partitions=partitions)]
        return OffsetDeleteResponse(topics=topics)

    async with ScriptedCluster(1, {OffsetDeleteRequest: answer}) as scripted:
        scripted.topics["t"] = [0, 0]
        call = ("--delete-offsets", "--group", "g", "--topic", "t:0,1")
        ran = await asyncio.to_thread(
            run, consumer_groups.main, ["--bootstrap-server", scripted.bootstrap, *call]
        )
    told = (
        "\nError: Encountered some unknown error: UNKNOWN_SERVER_ERROR\n"
        "\nTOPIC           PARTITION  STATUS         \n"
        "t               0          Successful     \n"
        f"t               1          {STATUSES[code]}"
    )
    assert ran == (1, told, "")
