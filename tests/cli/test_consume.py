# SPDX-License-Identifier: Apache-2.0
"""`kohort consume`: what is printed, from where to where, and what a group commits."""

import asyncio
import itertools
import signal
import subprocess
import sys

import pytest
from tests.interruptible import started
from tests.waiting import SOON_S

from kohort import Producer
from kohort.cli.main import main
from kohort.testing import Broker

NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def broker():
    with Broker(in_memory=True, settings={"group.initial.rebalance.delay.ms": "0"}) as broker:
        yield broker


@pytest.fixture
def topic(broker):
    name = f"topic-{next(NUMBERS)}"
    broker.create_topic(name, 2)
    return name


@pytest.fixture
def consume(broker, capfdbinary, monkeypatch):
    monkeypatch.setenv("KOHORT_BOOTSTRAP_SERVER", broker.bootstrap)

    def consume(*argv, code=0):
        try:
            ended = main(("consume", *argv))
        except SystemExit as leaving:
            ended = leaving.code
        out, err = capfdbinary.readouterr()
        assert ended == code, err
        return (out, err.decode()) if code else out

    return consume


def test_single_partitions_of_several_topics(broker, topic, consume):
    broker.produce(topic, "a0", partition=0)
    broker.produce(topic, "a1", partition=1)
    other = f"{topic}.other"
    broker.create_topic(other)
    broker.produce(other, "b")
    end = ("--from-beginning", "--until", "end", "--template", r"%t[%p]=%s\n")
    named = consume(f"{topic}:1", other, *end).splitlines()
    assert sorted(named) == sorted([f"{topic}[1]=a1".encode(), f"{other}[0]=b".encode()])
    matching = consume("--matching", rf"{topic}(\.other)?", *end).splitlines()
    assert len(matching) == 3
    out, err = consume(f"{topic}:5", code=1)
    assert out == b""
    assert f"topic {topic} has no partition 5, it has 2 partitions" in err
    assert "no topic matches 'nothing'" in consume("--matching", "nothing", code=1)[1]


@pytest.mark.parametrize(
    ("where", "values"),
    [
        (("--from", "beginning", "--until", "end"), "abcdef"),
        (("--from", "2", "--until", "4"), "cd"),
        (("--from", "-2", "--until", "end"), "ef"),
        (("--from", "-200", "--until", "1"), "a"),
        (("--from", "@3000", "--until", "@5000"), "cd"),
        (("--from", "1970-01-01T00:00:05Z", "--until", "2999-01-01"), "ef"),
        (("--from", "end", "--until", "end"), ""),
        (("--from", "2999-01-01", "--until", "end"), ""),
        (("--from", "4", "--max-messages", "1"), "e"),
    ],
)
def test_from_where_to_where(broker, topic, consume, where, values):
    for number, value in enumerate("abcdef", 1):
        broker.produce(topic, value, partition=0, timestamp_ms=number * 1000)
    assert consume(f"{topic}:0", *where, "--delimiter", "") == values.encode()


def test_an_offset_that_is_not_there_is_said(broker, topic, consume, capfdbinary):
    broker.produce(topic, "a", partition=0)
    assert main(("consume", f"{topic}:0", "--from", "7", "--until", "1")) == 0
    assert capfdbinary.readouterr().out == b""
    with started(
        [
            *(sys.executable, "-m", "kohort", "consume", f"{topic}:0", "--from", "7", "--max", "1"),
            *("--bootstrap-server", broker.bootstrap),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as reading:
        said = reading.stderr.readline().decode()
        assert said == f"kohort: {topic}:0 has no offset 7, going on at 1\n"
        broker.produce(topic, "b", partition=0)
        assert reading.stdout.readline() == b"b\n"
        assert reading.wait(SOON_S) == 0


def test_keys_nulls_and_headers(broker, topic, consume):
    broker.produce(topic, None, key="k", partition=0, headers={"h": b"1", "n": None})
    end = (f"{topic}:0", "--from-beginning", "--until-end")
    shown = consume(*end, "--key-separator", r"\t", "--null", "NULL", "--delimiter", r";\n")
    assert shown == b"k\tNULL;\n"
    assert consume(*end, "--template", "%k=%s %S %h|") == b"k= -1 h=1,n=|"


def test_only_what_is_committed(broker, topic, consume):
    async def write():
        async with Producer(bootstrap_servers=broker.bootstrap, transactional_id=topic) as producer:
            async with producer.transaction():
                await producer.send(topic, b"yes", partition=0)
            await producer.begin_transaction()
            await producer.send_and_wait(topic, b"no", partition=0)
            await producer.abort_transaction()

    asyncio.run(write())
    end = (f"{topic}:0", "--from-beginning", "--until-end")
    assert consume(*end, "--isolation-level", "read_committed") == b"yes\n"
    assert consume(*end) == b"yes\nno\n"
    group = ("--group", topic, "--isolation-level", "read_committed")
    assert consume(topic, "--from-beginning", "--until-end", *group) == b"yes\n"


def test_a_big_value_comes_whole(topic, broker, consume):
    broker.produce(topic, b"x" * 1_000_000, partition=1)
    assert consume(topic, "--from-beginning", "--max", "1") == b"x" * 1_000_000 + b"\n"


def test_a_group_goes_on_where_it_has_printed(broker, topic, consume):
    for value in "abcde":
        broker.produce(topic, value, partition=0)
    member = (topic, "--group", topic, "--from-beginning")
    assert consume(*member, "--max", "2") == b"a\nb\n"
    assert broker.groups[topic].committed() == {(topic, 0): 2}
    assert consume(*member, "--until-end") == b"c\nd\ne\n"
    broker.groups[topic].wait("Empty")
    assert broker.groups[topic].committed()[topic, 0] == 5
    assert consume(*member, "--until-end") == b""


def test_a_group_that_has_members_is_named_before_it_is_joined(broker, topic):
    """A name of a live group that was mistyped takes partitions from its members: nobody saw it."""
    argv = ("consume", topic, "--group", topic, "--from-beginning")
    with started(command(broker, *argv), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as first:
        broker.groups[topic].wait("Stable", members=1)
        broker.produce(topic, "a", partition=0)
        assert first.stdout.readline() == b"a\n"
        with started(command(broker, *argv), stderr=subprocess.PIPE) as second:
            assert second.stderr.readline().decode() == (
                f"kohort: joins group {topic}, which has 1 member: it will rebalance, and its "
                "partitions are shared with this one\n"
            )
            broker.groups[topic].wait("Stable", members=2)
            second.send_signal(signal.SIGTERM)
            assert second.wait(SOON_S) == 130
        first.send_signal(signal.SIGTERM)
        assert first.wait(SOON_S) == 130
        assert first.stderr.read() == b"", "there was nobody before it"


def test_a_group_of_topics_that_match(broker, topic, consume):
    broker.produce(topic, "a", partition=0)
    argv = ("--matching", topic, "--group", topic, "--from-beginning", "--max", "1")
    assert consume(*argv) == b"a\n"


def command(broker, *argv):
    return [sys.executable, "-m", "kohort", *argv, "--bootstrap-server", broker.bootstrap]


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_member_has_committed_what_it_has_printed(broker, topic, ending):
    """SIGTERM and SIGHUP ended it at once: the next member printed the same records again."""
    argv = ("consume", topic, "--group", topic, "--from-beginning")
    broker.produce(topic, "a", partition=0)
    with started(command(broker, *argv), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as reading:
        assert reading.stdout.readline() == b"a\n"
        reading.send_signal(ending)
        assert reading.wait(SOON_S) == 130
        assert reading.stderr.read() == b""
    assert broker.groups[topic].committed() == {(topic, 0): 1}
    broker.groups[topic].wait("Empty")


def test_a_member_that_ignores_a_closed_terminal_reads_on(broker, topic):
    """As behind `nohup`."""
    argv = ("consume", topic, "--group", topic, "--from-beginning")
    broker.produce(topic, "a", partition=0)
    reader = ["sh", "-c", 'trap "" HUP; exec "$@"', "sh", *command(broker, *argv)]
    with started(reader, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as reading:
        assert reading.stdout.readline() == b"a\n"
        reading.send_signal(signal.SIGHUP)
        broker.produce(topic, "b", partition=0)
        assert reading.stdout.readline() == b"b\n"
        reading.send_signal(signal.SIGTERM)
        assert reading.wait(SOON_S) == 130


def test_what_nobody_reads_any_more_is_not_committed(broker, topic):
    """The end of a pipe, as of `head -1`: no complaint, and the next member gets the records."""
    argv = ("consume", topic, "--group", topic, "--from-beginning")
    with started(command(broker, *argv), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as reading:
        broker.groups[topic].wait("Stable", members=1)
        reading.stdout.close()
        broker.produce(topic, "a", partition=0)
        assert reading.wait(SOON_S) == 1
        assert reading.stderr.read() == b""
    assert broker.groups[topic].committed() == {}


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        ((), "expected names of topics, or --matching"),
        (("t", "--matching", "x"), "expected names of topics, or --matching, not both"),
        (("--matching", "("), "is not a regular expression of RE2"),
        (("t", "--from", "start"), "'start' is no position"),
        (("t", "--from", "1", "--from-beginning"), "not allowed with argument"),
        (("t:0", "--group", "g"), "expected topics without partitions"),
        (("t", "--group", "g", "--from", "5"), "expected --from beginning or --from end"),
        (("t", "--group", "g", "--until", "5"), "expected --until end"),
        (("t", "--template", "%q"), "'%q' is no token"),
        (("t", "--template", "%s", "--format", "json"), "not allowed with argument"),
        (("t", "--delimiter", r"\q"), r"is no escape, expected \n, \t"),
    ],
)
def test_wrong_calls(consume, argv, words):
    out, err = consume(*argv, code=2)
    assert out == b""
    assert words in err
