# SPDX-License-Identifier: Apache-2.0
"""The peer itself: a real broker starts, keeps its log over a stop and a crash, its tools run."""

import pytest
from tests.peers.kafka import Kafka, answers, dump_log, unavailable
from tests.peers.maven import PeerError

pytestmark = [pytest.mark.java, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def broker():
    if reason := unavailable():
        pytest.skip(reason)
    quick = {"broker.session.timeout.ms": 2000, "broker.heartbeat.interval.ms": 500}
    with Kafka({"offsets.topic.num.partitions": 2, **quick}, heap="512M") as running:
        yield running


def topics(broker):
    done = broker.tool("org.apache.kafka.tools.TopicCommand", "--list")
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_it_answers_and_its_tools_run_against_it(broker):
    assert answers(broker.port)
    made = broker.tool(
        "org.apache.kafka.tools.TopicCommand", "--create", "--topic", "peers", "--partitions", "3"
    )
    assert made.returncode == 0, made.stderr
    assert topics(broker) == ["peers"]


def produce_lines(broker, topic, lines):
    sent = broker.tool("org.apache.kafka.tools.ConsoleProducer", "--topic", topic, given=lines)
    assert sent.returncode == 0, sent.stderr


def consume_lines(broker, topic, count, group):
    read = broker.tool(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *("--topic", topic, "--from-beginning", "--max-messages", str(count)),
        *("--group", group, "--command-property", "group.protocol=consumer"),
    )
    assert read.returncode == 0, read.stderr
    return read.stdout


def test_topics_and_records_survive_a_stop_and_a_kill(broker):
    command = ("--create", "--topic", "kept", "--partitions", "1")
    assert broker.tool("org.apache.kafka.tools.TopicCommand", *command).returncode == 0
    lines = "".join(f"line {number}\n" for number in range(20))
    produce_lines(broker, "kept", lines)
    before = broker.pid
    broker.restart()
    assert broker.pid != before
    broker.kill()
    assert not answers(broker.port)
    broker.start()
    assert consume_lines(broker, "kept", 20, "console") == lines


def test_its_dump_tool_reads_what_a_group_left(broker):
    produce_lines(broker, "dumped", "one\n")
    assert consume_lines(broker, "dumped", 1, "dumped-group") == "one\n"
    segments = sorted(broker.data.glob("__consumer_offsets-*/*.log"))
    assert len(segments) == 2
    done = dump_log(*segments)
    assert done.returncode == 0, done.stderr
    assert '"group":"dumped-group"' in done.stdout
    assert '"topic":"dumped"' in done.stdout


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"settings": {"log.cleaner.threads": -4}}, r"could not format .*log\.cleaner\.threads"),
        ({"flags": ["-XX:+NoSuchOption"]}, r"ended before it answered: .*NoSuchOption"),
    ],
)
def test_a_failed_start_tells_why(tmp_path, options, words):
    if reason := unavailable():
        pytest.skip(reason)
    with pytest.raises(PeerError, match=words), Kafka(directory=tmp_path, **options):
        pass
