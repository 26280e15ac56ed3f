"""Our folders in Kafka's hands: its dump tool reads them, a real broker serves groups from them."""

import asyncio
import shutil

import pytest
from tests.peers.java_client import JavaConsumer, produce
from tests.peers.kafka import Kafka, dump_log, run_tool, unavailable

from kohort.client.admin import AdminClient, NewTopic
from kohort.testing import Broker

pytestmark = [pytest.mark.java, pytest.mark.timeout(600)]

SETTINGS = {"offsets.topic.num.partitions": "4", "num.partitions": "3"}
GROUPS = {"java-classic": "classic", "java-consumer": "consumer"}
TOPIC = "orders"
# What a broker would trust instead of the log files that it finds.
TRUSTED = ("*.index", "*.timeindex", "*.txnindex", "*.snapshot", "leader-epoch-checkpoint")


async def committed(bootstrap):
    """Every group's offsets, asked of a broker that may still be loading them."""
    async with AdminClient(bootstrap) as admin:
        answer = (await admin.list_group_offsets(dict.fromkeys(GROUPS))).all()
    return {
        group: {tuple(partition): one.offset for partition, one in answer[group].items()}
        for group in GROUPS
    }


async def groups_of(bootstrap):
    async with AdminClient(bootstrap) as admin:
        return {
            one.group_id: (one.state, one.type, one.protocol_type)
            for one in await admin.list_groups()
        }


async def make_topic(bootstrap):
    async with AdminClient(bootstrap) as admin:
        (await admin.create_topics([NewTopic(TOPIC, 3, 1)])).all()


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A stopped broker's data directory, and the offsets and groups it had."""
    if reason := unavailable():
        pytest.skip(reason)
    directory = tmp_path_factory.mktemp("ours") / "data"
    with Broker(SETTINGS, data_dir=directory) as broker:
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
    directory, *_ = written
    segments = sorted(directory.glob("__consumer_offsets-*/*.log"))
    assert len(segments) == 4
    done = dump_log(*segments)
    assert done.returncode == 0, done.stderr
    assert "isvalid: false" not in done.stdout
    for group in GROUPS:
        assert f'"group":"{group}"' in done.stdout


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


def test_a_real_broker_serves_the_same_groups_from_our_files(written):
    directory, offsets, groups = written
    with Kafka({"offsets.topic.num.partitions": 4}, heap="512M") as kafka:
        asyncio.run(make_topic(kafka.address))
        assert asyncio.run(committed(kafka.address)) == {group: {} for group in GROUPS}
        kafka.stop()
        take_over(directory, kafka.data)
        kafka.start()
        assert asyncio.run(committed(kafka.address)) == offsets
        assert asyncio.run(groups_of(kafka.address)) == groups


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
