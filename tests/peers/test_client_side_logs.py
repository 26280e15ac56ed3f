# SPDX-License-Identifier: Apache-2.0
"""The log of a group whose members compute, in a real broker's hands and back in ours."""

import asyncio
import shutil

import pytest
from tests.client.joining import ConsumerMember, commit, coordinator, soon
from tests.coordinator.assigning import offer, share
from tests.peers.kafka import Kafka, dump_log, unavailable
from tests.peers.test_our_logs import SETTINGS, committed, make_topic, take_over

from kohort.client.admin import AdminClient
from kohort.errors import ErrorCode
from kohort.terms import uuid_text
from kohort.testing import Broker
from kohort.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kohort.wire.messages.consumer_group_install_assignment import (
    ConsumerGroupInstallAssignmentRequest,
)
from kohort.wire.messages.consumer_group_prepare_assignment import (
    ConsumerGroupPrepareAssignmentRequest,
)

pytestmark = [pytest.mark.java, pytest.mark.timeout(600)]

GROUP, TOPIC = "assigning", "orders"
FIRST, SECOND = uuid_text(b"the first member"), uuid_text(b"another member..")


async def compute(member: ConsumerMember, said: bytes) -> None:
    prepared = await member.connection.ask(
        ConsumerGroupPrepareAssignmentRequest(
            group_id=GROUP, member_id=member.member_id, member_epoch=member.epoch
        ),
        deadline=soon(),
    )
    assert prepared.error_code == 0, prepared.error_message
    installed = await member.connection.ask(
        ConsumerGroupInstallAssignmentRequest(
            group_id=GROUP,
            member_id=member.member_id,
            member_epoch=member.epoch,
            group_epoch=prepared.group_epoch,
            error=0,
            members=share(prepared, said),
        ),
        deadline=soon(),
    )
    assert installed.error_code == 0, installed.error_message


async def enter(member: ConsumerMember, said: bytes) -> None:
    """Join with an assignor, and compute what the group is asked for."""
    answer = await member.heartbeat(
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=[TOPIC],
        topic_partitions=[],
        client_assignors=[offer("mine", -1, 3, reason=2, version=1, metadata=said)],
    )
    assert answer.error_code == ErrorCode.COMPUTE_ASSIGNMENT, answer
    member.epoch = answer.member_epoch
    await compute(member, b"plan of " + said)
    await member.heartbeat()


async def group_at_work(bootstrap: str) -> None:
    """Two members; the first one has been told to give something up, and has not yet."""
    async with coordinator(bootstrap, GROUP) as connection:
        first = ConsumerMember(connection, GROUP, FIRST)
        await enter(first, b"first")
        assert [one.partitions for one in first.owned] == [[0, 1, 2]]
        second = ConsumerMember(connection, GROUP, SECOND)
        await enter(second, b"second")
        await first.heartbeat()
        assert [one.partitions for one in first.owned] in ([[1]], [[0, 2]])
        codes = await commit(connection, GROUP, {(TOPIC, 0): 5}, member_id=FIRST, epoch=first.epoch)
        assert codes == [0]


async def described(bootstrap: str) -> dict[str, object]:
    """The group as any client sees it."""
    async with AdminClient(bootstrap) as admin:
        [view] = (await admin.describe_groups([GROUP])).all().values()
    return {
        "state": view.state,
        "epochs": (view.group_epoch, view.assignment_epoch),
        "members": sorted(
            (one.member_id, one.subscribed_topics, one.assignment, one.target_assignment)
            for one in view.members
        ),
    }


async def ours_alone(bootstrap: str) -> list[object]:
    """What only our tags say."""
    async with coordinator(bootstrap, GROUP) as connection:
        answer = await connection.ask(
            ConsumerGroupDescribeRequest(group_ids=[GROUP], include_authorized_operations=False),
            deadline=soon(),
        )
    [group] = answer.groups
    members = sorted(group.members, key=lambda one: one.member_id)
    return [
        group.assignor_name,
        group.client_side,
        *((one.client_assignors, one.assignment.attachment) for one in members),
        *(one.target_assignment.attachment for one in members),
    ]


def test_a_real_broker_loads_the_log_and_leaves_what_is_ours(tmp_path):
    """K848-080, K848-123."""
    if reason := unavailable():
        pytest.skip(reason)
    with Kafka({"offsets.topic.num.partitions": 4}, heap="512M") as kafka:
        asyncio.run(make_topic(kafka.address))
        asyncio.run(committed(kafka.address, [GROUP]))
        kafka.stop()
        ours = tmp_path / "ours"
        for folder in kafka.data.glob(f"{TOPIC}-*"):
            (ours / folder.name).mkdir(parents=True)
            shutil.copy(folder / "partition.metadata", ours / folder.name)
        with Broker(SETTINGS, data_dir=ours, process=True) as broker:
            asyncio.run(group_at_work(broker.bootstrap))
            before = asyncio.run(described(broker.bootstrap))
            said = asyncio.run(ours_alone(broker.bootstrap))
            offsets = asyncio.run(committed(broker.bootstrap, [GROUP]))
        assert said[0] == "mine"

        done = dump_log(*sorted(ours.glob("__consumer_offsets-*/*.log")))
        assert done.returncode == 0, done.stderr
        assert "isvalid: false" not in done.stdout
        assert f'"groupId":"{GROUP}"' in done.stdout

        take_over(ours, kafka.data)
        kafka.start()
        assert asyncio.run(described(kafka.address)) == before
        assert asyncio.run(committed(kafka.address, [GROUP])) == offsets
        kafka.stop()
        theirs = tmp_path / "theirs"
        shutil.copytree(kafka.data, theirs)
    with Broker(SETTINGS | {"node.id": "1"}, data_dir=theirs, process=True) as broker:
        assert asyncio.run(described(broker.bootstrap)) == before
        assert asyncio.run(ours_alone(broker.bootstrap)) == said
