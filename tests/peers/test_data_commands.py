# SPDX-License-Identifier: Apache-2.0
"""`kohort consume`, `produce` and `topics` against a real Apache Kafka, beside its own tools."""

import json
import subprocess
import sys

import pytest
from tests.peers.kafka import Kafka, run_tool, unavailable
from tests.waiting import eventually

pytestmark = [
    pytest.mark.java,
    pytest.mark.prove,
    pytest.mark.timeout(900),
    pytest.mark.skipif(unavailable() is not None, reason=str(unavailable())),
]


@pytest.fixture(scope="module")
def apache():
    settings = {"group.initial.rebalance.delay.ms": 0, "offsets.topic.num.partitions": 1}
    with Kafka(settings, heap="512M") as broker:
        yield broker


@pytest.fixture
def kohort(apache):
    def run(*argv, data=b"", code=0):
        done = subprocess.run(
            [sys.executable, "-m", "kohort", *argv, "--bootstrap-server", apache.address],
            input=data,
            capture_output=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == code, done.stderr
        return done.stderr if code else done.stdout

    return run


def test_records_go_round_and_kafkas_consumer_reads_them(kohort, apache):
    kohort("topics", "create", "orders", "copy", "--partitions", "2")
    lines = b"a=1\nb=\n=3\nnone=4\n"
    argv = ("--key-separator", "=", "--null", "", "--header", "h=x", "--compression", "zstd")
    assert kohort("produce", "orders", *argv, data=lines) == b"4 records to orders\n"
    shown = run_tool(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *("--bootstrap-server", apache.address, "--topic", "orders", "--from-beginning"),
        *("--max-messages", "4", "--formatter-property", "print.key=true"),
        *("--formatter-property", "print.headers=true"),
    ).stdout
    assert {"h:x\ta\t1", "h:x\tb\tnull", "h:x\tnull\t3"} <= set(shown.splitlines())
    assert kohort("produce", "orders", *argv, data=b"\xff=\x00\n") == b"1 record to orders\n"
    everything = ("--from-beginning", "--until-end", "--format", "json")
    first = kohort("consume", "orders", *everything)
    assert kohort("produce", "copy", "--format", "json", data=first) == b"5 records to copy\n"
    second = kohort("consume", "copy", *everything)
    assert sorted(second.replace(b'"copy"', b'"orders"').splitlines()) == sorted(first.splitlines())


def test_bounds_by_offset_time_and_count(kohort):
    kohort("topics", "create", "bounds", "--partitions", "1", "--config", "retention.ms=-1")
    for time_ms in (1000, 2000, 3000, 4000):
        argv = ("--timestamp", f"@{1_795_244_400_000 + time_ms}")
        kohort("produce", "bounds", *argv, data=b"%d\n" % time_ms)
    for bounds, values in {
        ("--from", "1", "--until", "3"): b"2000\n3000\n",
        ("--from", "-1", "--until", "end"): b"4000\n",
        ("--from", "@1795244402000", "--until", "@1795244404000"): b"2000\n3000\n",
        ("--from-beginning", "--max", "1", "--isolation-level", "read_committed"): b"1000\n",
    }.items():
        assert kohort("consume", "bounds:0", *bounds) == values


def test_a_group_commits_what_was_printed(kohort):
    kohort("topics", "create", "grouped", "--partitions", "1")
    kohort("produce", "grouped", data=b"a\nb\nc\n")
    member = ("grouped", "--group", "audit", "--from-beginning")
    assert kohort("consume", *member, "--max", "2") == b"a\nb\n"
    assert kohort("consume", *member, "--until-end") == b"c\n"
    described = json.loads(kohort("groups", "describe", "audit", "--format", "json"))
    (offset,) = described["groups"][0]["offsets"]
    assert (offset["committed_offset"], offset["lag"]) == (3, 0)


def test_a_refused_record_is_named(kohort):
    kohort("topics", "create", "small", "--partitions", "1", "--config", "max.message.bytes=1000")
    said = kohort("produce", "small", data=b"fine\n" + b"x" * 5000 + b"\n", code=1)
    assert said.startswith(b"kohort: line 2 is not in small: ")
    assert said.endswith(b"(MESSAGE_TOO_LARGE)\n")
    assert kohort("consume", "small", "--from-beginning", "--until-end") == b"fine\n"


def test_topics_grow_and_go(kohort):
    kohort("topics", "create", "growing", "--partitions", "1")
    alter = ("topics", "alter", "growing", "--yes", "--partitions")
    assert b"would be altered" in kohort(*alter, "3", "--dry-run")
    assert b"altered" in kohort(*alter, "3")
    assert kohort(*alter, "2", code=1).endswith(b"(INVALID_PARTITIONS)\n")
    (topic,) = json.loads(kohort("topics", "describe", "growing", "--format", "json"))["topics"]
    assert len(topic["partitions"]) == 3
    assert b"deleted" in kohort("topics", "delete", "growing", "--yes")


def test_a_change_of_settings_that_can_delete_records_is_known_by_what_a_broker_tells(kohort):
    """What holds without the value of a topic comes from the synonyms that its broker tells. A
    broker follows the controller in its own time.
    """

    def changed(noun, given, *change, shown):
        kohort(noun, "config", given, *change)
        eventually(lambda: shown in kohort(noun, "config", given), f"{given} has {shown}")

    kohort("topics", "create", "kept", "--config", "retention.ms=1209600000")
    topic = ("topics", "config", "kept")
    compact = ("--set", "cleanup.policy=compact")
    assert b"nobody is at a terminal to be asked" in kohort(*topic, *compact, code=2)
    changed("topics", "kept", *compact, "--yes", shown=b"compact")
    assert b"nobody" in kohort(*topic, "--unset", "retention.ms", code=2)
    kohort(*topic, "--set", "retention.ms=-1")
    kohort(*topic, "--unset", "cleanup.policy", "--yes")

    limit = ("--set", "log.retention.bytes=1000000000")
    assert b"nobody" in kohort("brokers", "config", "all", *limit, code=2)
    changed("brokers", "all", *limit, "--yes", shown=b"1000000000")
    kohort("brokers", "config", "all", "--unset", "log.retention.bytes")  # then all is kept
