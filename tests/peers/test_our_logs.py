# SPDX-License-Identifier: Apache-2.0
"""Our folders in Kafka's hands: its dump tool reads them, a real broker serves groups from them."""

import asyncio
import shutil

import pytest
from tests.client.joining import ConsumerMember, commit, coordinator, join_classic
from tests.peers.java_client import JavaConsumer, produce
from tests.peers.kafka import Kafka, dump_log, run_tool, unavailable

from kohort.client.admin import AdminClient, NewTopic
from kohort.records.causes import Cause, causes_in
from kohort.records.codec import decode
from kohort.terms import uuid_text
from kohort.testing import Broker
from kohort.wire import batch

pytestmark = [pytest.mark.java, pytest.mark.timeout(600)]

SETTINGS = {"offsets.topic.num.partitions": "4", "num.partitions": "3"}
GROUPS = {"java-classic": "classic", "java-consumer": "consumer"}
TOPIC = "orders"
MEMBER_ID = uuid_text(b"an id of a member"[:16])
# What a broker would trust instead of the log files that it finds.
TRUSTED = ("*.index", "*.timeindex", "*.txnindex", "*.snapshot", "leader-epoch-checkpoint")


async def committed(bootstrap, groups=GROUPS):
    """Every group's offsets, asked of a broker that may still be loading them."""
    async with AdminClient(bootstrap) as admin:
        answer = (await admin.list_group_offsets(dict.fromkeys(groups))).all()
    return {
        group: {tuple(partition): one.offset for partition, one in answer[group].items()}
        for group in groups
    }


async def groups_of(bootstrap):
    async with AdminClient(bootstrap) as admin:
        return {
            one.group_id: (one.state, one.type, one.protocol_type)
            for one in await admin.list_groups()
        }


async def described(bootstrap, groups):
    async with AdminClient(bootstrap) as admin:
        views = (await admin.describe_groups(groups)).all()
    return {
        group: (
            view.type,
            view.state,
            view.assignor,
            view.group_epoch,
            view.assignment_epoch,
            [(one.member_id, one.subscribed_topics, one.assignment) for one in view.members],
        )
        for group, view in views.items()
    }


async def live_groups(bootstrap):
    """A member of each protocol that stays, and offsets without any member."""
    async with coordinator(bootstrap, "live-consumer") as connection:
        member = ConsumerMember(connection, "live-consumer", MEMBER_ID)
        await member.join(TOPIC)
        offsets = {(TOPIC, 1): 11}
        codes = await commit(
            connection, "live-consumer", offsets, member_id=MEMBER_ID, epoch=member.epoch
        )
        assert codes == [0]
    async with coordinator(bootstrap, "live-classic") as connection:
        await join_classic(connection, "live-classic", TOPIC, [2, 0])
    async with coordinator(bootstrap, "no-member") as connection:
        assert await commit(connection, "no-member", {(TOPIC, 0): 7, (TOPIC, 2): 9}) == [0, 0]
    return ["live-consumer", "live-classic", "no-member"]


async def make_topic(bootstrap):
    async with AdminClient(bootstrap) as admin:
        (await admin.create_topics([NewTopic(TOPIC, 3, 1)])).all()


@pytest.fixture(scope="module")
def kafka():
    """A real broker that has been stopped. It knows the topic, and no group."""
    if reason := unavailable():
        pytest.skip(reason)
    with Kafka({"offsets.topic.num.partitions": 4}, heap="512M") as broker:
        asyncio.run(make_topic(broker.address))
        assert asyncio.run(committed(broker.address)) == {group: {} for group in GROUPS}
        broker.stop()
        yield broker


@pytest.fixture(scope="module")
def written(kafka, tmp_path_factory):
    """A stopped broker's data directory, and the offsets and groups it had.

    Its topic is the real broker's: an offset is of a topic's id, not only of its name.
    """
    directory = tmp_path_factory.mktemp("ours") / "data"
    for folder in kafka.data.glob(f"{TOPIC}-*"):
        (directory / folder.name).mkdir(parents=True)
        shutil.copy(folder / "partition.metadata", directory / folder.name)
    with Broker(SETTINGS, data_dir=directory, process=True) as broker:
        produce(broker.bootstrap, TOPIC, 30)
        for group, protocol in GROUPS.items():
            with JavaConsumer(broker.bootstrap, group, TOPIC, protocol=protocol) as reader:
                reader.until(lambda it: sum(it.committed.values()) == 30)
                reader.leave()
        offsets = asyncio.run(committed(broker.bootstrap))
        groups = asyncio.run(groups_of(broker.bootstrap))
    assert all(sum(of_group.values()) == 30 for of_group in offsets.values()), offsets
    assert set(groups) == set(GROUPS)
    return directory, offsets, groups


def test_the_dump_tool_reads_the_offsets_without_a_complaint(written):
    """K848-122."""
    directory, *_ = written
    segments = sorted(directory.glob("__consumer_offsets-*/*.log"))
    assert len(segments) == 4
    done = dump_log(*segments)
    assert done.returncode == 0, done.stderr
    assert "isvalid: false" not in done.stdout
    for group in GROUPS:
        assert f'"group":"{group}"' in done.stdout


def test_causes_stand_in_the_log_that_a_real_broker_serves_from(written):
    """The tool shows the headers; the next tests have a broker load the records that have them."""
    directory, *_ = written
    segments = sorted(directory.glob("__consumer_offsets-*/*.log"))
    done = dump_log(*segments)
    assert done.returncode == 0, done.stderr
    assert "kohort.cause" in done.stdout
    causes = {
        (cause.cause, type(decode(one.key, one.value).key).__name__)
        for path in segments
        for data in batches_of(path.read_bytes())
        for one in batch.records(data)
        for cause in causes_in(one.headers)
    }
    assert causes >= {
        (Cause.JOIN, "ConsumerGroupMetadataKey"),
        (Cause.LEAVE, "ConsumerGroupMetadataKey"),
        (Cause.LEAVE, "ConsumerGroupMemberMetadataKey"),
        (Cause.JOIN, "GroupMetadataKey"),
        (Cause.LEAVE, "GroupMetadataKey"),
    }


def batches_of(data):
    at = 0
    while at < len(data):
        size = batch.header_at(data, at).length
        yield data[at : at + size]
        at += size


def test_the_dump_tool_reads_a_topic_without_a_complaint(written):
    directory, *_ = written
    segments = sorted(directory.glob(f"{TOPIC}-*/*.log"))
    assert len(segments) == 3
    done = run_tool(
        "org.apache.kafka.tools.DumpLogSegments",
        *("--print-data-log", "--files", ",".join(map(str, segments))),
    )
    assert done.returncode == 0, done.stderr
    assert "isvalid: false" not in done.stdout
    assert sum(line.count(" payload: ") for line in done.stdout.splitlines()) == 30


def test_a_real_broker_serves_the_same_groups_from_our_files_and_we_from_its(
    kafka, written, tmp_path
):
    directory, offsets, groups = written
    take_over(directory, kafka.data)
    kafka.start()
    assert asyncio.run(committed(kafka.address)) == offsets
    assert asyncio.run(groups_of(kafka.address)) == groups

    names = [*GROUPS, *asyncio.run(live_groups(kafka.address))]
    theirs = answers(kafka.address, names)
    kafka.stop()
    shutil.copytree(kafka.data, tmp_path / "theirs")
    settings = SETTINGS | {"node.id": "1"}
    with Broker(settings, data_dir=tmp_path / "theirs", process=True) as broker:
        assert answers(broker.bootstrap, names) == theirs
        broker.kill()
        broker.restart()
        assert answers(broker.bootstrap, names) == theirs


def answers(bootstrap, names):
    return [
        asyncio.run(committed(bootstrap, names)),
        asyncio.run(groups_of(bootstrap)),
        asyncio.run(described(bootstrap, names)),
    ]


def take_over(ours, theirs):
    """Put our log files in the place of a stopped broker's, and take away what it would trust."""
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        (theirs / name).unlink(missing_ok=True)
    for name in ("log-start-offset-checkpoint", ".kafka_cleanshutdown"):
        (theirs / name).unlink(missing_ok=True)
    for folder in sorted(theirs.glob("__consumer_offsets-*")):
        for pattern in ("*.log", *TRUSTED):
            for file in folder.glob(pattern):
                file.unlink()
        for file in (ours / folder.name).glob("*.log"):
            shutil.copy(file, folder)
