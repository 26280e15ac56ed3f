# SPDX-License-Identifier: Apache-2.0
"""`kohort produce` and `kohort consume`: data goes in and comes out; what goes wrong is told."""

import asyncio
import itertools
import json
import select
import signal
import subprocess
import sys
from argparse import ArgumentParser

import pytest
from tests.client.admin.test_topics import found as first_and_last
from tests.client.scripted import ScriptedCluster, asynchronous, in_turn
from tests.client.test_topic_reader import giving
from tests.interruptible import started
from tests.waiting import SOON_S

from kohort.cli.consume import COMMAND, Printer, _read
from kohort.cli.main import main
from kohort.testing import Broker
from kohort.wire.batch import build
from kohort.wire.messages.fetch import FetchRequest
from kohort.wire.messages.list_offsets import ListOffsetsRequest

NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def broker():
    with Broker(in_memory=True, nodes=2) as broker:
        yield broker


@pytest.fixture
def topic(run):
    name = f"topic-{next(NUMBERS)}"
    assert run("topics", "create", name, "--partitions", "3").returncode == 0
    return name


@pytest.fixture
def run(broker, capfdbinary, monkeypatch, tmp_path):
    """Runs a command in this process, with bytes on its stdin and bytes from it."""
    monkeypatch.setenv("KOHORT_BOOTSTRAP_SERVER", broker.bootstrap)

    def run(*argv, data=b""):
        (tmp_path / "stdin").write_bytes(data)
        with (tmp_path / "stdin").open() as stdin:
            monkeypatch.setattr(sys, "stdin", stdin)
            code = main(argv)
            out, err = capfdbinary.readouterr()
        return subprocess.CompletedProcess(argv, code, out, err)

    return run


@pytest.fixture
def consumed(run):
    def consumed(topic, *argv):
        done = run("consume", topic, "--from-beginning", "--until-end", *argv)
        assert (done.returncode, done.stderr) == (0, b"")
        return done.stdout

    return consumed


def command(broker, *argv):
    return [sys.executable, "-m", "kohort", *argv, "--bootstrap-server", broker.bootstrap]


def test_lines_go_in_and_come_out(topic, consumed, run):
    done = run("produce", topic, data="größe\n\nlast without an end".encode())
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == f"3 records to {topic}\n".encode()
    assert consumed(topic) == "größe\n\nlast without an end\n".encode()


def test_keys_go_with_their_values(topic, consumed, run):
    lines = b"a=1\nb=2\na=3=4\n=5\n"
    assert run("produce", topic, "--key-separator", "=", data=lines).returncode == 0
    shown = consumed(topic, "--key-separator", "=").splitlines()
    assert sorted(shown) == sorted(lines.splitlines())
    assert shown.index(b"a=1") < shown.index(b"a=3=4")
    rows = [json.loads(line) for line in consumed(topic, "--format", "json").splitlines()]
    places = {row["partition"] for row in rows if row["key"] == "a"}
    assert len(places) == 1
    assert [row["value"] for row in rows if row["key"] == "a"] == ["1", "3=4"]
    (empty,) = [row for row in rows if row["key"] == ""]
    assert list(empty) == [
        *("topic", "partition", "offset", "timestamp", "timestamp_type", "key", "value", "headers"),
    ]
    assert empty["headers"] == []


def test_json_has_the_headers_of_a_record(topic, consumed, broker):
    headers = {"kohort.cause": "join", "none": None, "bytes": b"\xff"}
    broker.produce(topic, "x", headers=headers)
    (row,) = [json.loads(line) for line in consumed(topic, "--format", "json").splitlines()]
    assert row["headers"] == [
        {"key": "kohort.cause", "value": "join"},
        {"key": "none", "value": None},
        {"key": "bytes", "value_bytes": "ff"},
    ]


def test_what_is_no_text_comes_as_it_is_and_in_json_in_hexadecimal(topic, consumed, run):
    assert run("produce", topic, data=b"\xff\x00\x1b[2J\n").returncode == 0
    assert consumed(topic) == b"\xff\x00\x1b[2J\n"
    (row,) = [json.loads(line) for line in consumed(topic, "--format", "json").splitlines()]
    assert (row["key"], row["value_bytes"]) == (None, "ff001b5b324a")


def test_much_is_split_and_all_of_it_arrives(topic, consumed, run):
    data = b"".join(b"%d\n" % one for one in range(100_000)) + b"x" * 900_000
    done = run("produce", topic, data=data)
    assert done.stdout == f"100,001 records to {topic}\n".encode()
    lines = consumed(topic).splitlines()
    assert len(lines) == 100_001
    assert set(lines) == set(data.splitlines())


def test_a_line_without_the_separator_is_named_and_those_before_it_are_written(
    topic, consumed, run
):
    done = run("produce", topic, "--key-separator", ":", data=b"a:1\nb:2\nnothing\nc:3\n")
    assert done.returncode == 1
    assert done.stdout == f"2 records to {topic}\n".encode()
    assert done.stderr == b"kohort: line 3 has no ':', expected a key before it\n"
    assert sorted(consumed(topic).splitlines()) == [b"1", b"2"]


def test_a_line_that_the_broker_refuses_is_named(topic, consumed, run):
    done = run("produce", topic, data=b"fine\n" + b"x" * 2_000_000 + b"\n")
    assert done.returncode == 1
    assert done.stdout == f"1 record to {topic}\n".encode()
    assert done.stderr.startswith(f"kohort: line 2 is not in {topic}: ".encode())
    assert done.stderr.endswith(b"(MESSAGE_TOO_LARGE)\n")
    assert consumed(topic) == b"fine\n"


def test_a_topic_that_is_not_there_is_not_made(run):
    done = run("produce", "nowhere", data=b"x\n")
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr == (
        b"kohort: topic nowhere does not exist, create it first: kohort topics create nowhere "
        b"(UNKNOWN_TOPIC_OR_PARTITION)\n"
    )
    done = run("consume", "nowhere", "--format", "json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["error"] == "UNKNOWN_TOPIC_OR_PARTITION"


def test_the_end_may_be_a_number(topic, run):
    assert run("produce", topic, data=b"a\nb\nc\n").returncode == 0
    done = run("consume", topic, "--from-beginning", "--max", "2")
    assert (done.returncode, done.stdout) == (0, b"a\nb\n")
    done = run("consume", topic, "--until-end")  # from the end to the end
    assert (done.returncode, done.stdout) == (0, b"")


@asynchronous
async def test_the_end_comes_nearer_where_a_log_is_cut(capfdbinary):
    """Records of a topic were lost with its leader, and nobody writes any more."""
    ends = iter([100, 2, 2])

    def offsets(asked):
        answer = first_and_last(asked)
        for partition in answer.topics[0].partitions:
            if partition.offset:
                partition.offset = next(ends)
        return answer

    records = giving((0, build([(None, b"a"), (None, b"b")], 1000)))
    answers = {FetchRequest: in_turn(records, giving()), ListOffsetsRequest: offsets}
    async with ScriptedCluster(answers=answers) as scripted, asyncio.timeout(SOON_S):
        scripted.topics = {"orders": [0]}
        parser = ArgumentParser()
        COMMAND.configure(parser)
        args = parser.parse_args(["orders", "--from-beginning", "--until-end", "--timeout", "5"])
        cluster = scripted.cluster()
        await _read(cluster, ["orders"], args, Printer(args))
        await cluster.close()
    assert capfdbinary.readouterr().out == b"a\nb\n"


def test_what_is_typed_is_seen_at_once_by_who_waits(broker, topic, run):
    """Each line is sent as it comes; a consumer begins with what comes from now on."""
    assert run("produce", topic, data=b"before\n").returncode == 0
    with (
        started(
            command(broker, "produce", topic),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as typing,
        started(
            command(broker, "consume", topic),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as reading,
    ):
        try:
            seen = b""
            for number in range(200):  # until the consumer has begun, its first lines are unseen
                typing.stdin.write(b"line %d\n" % number)
                typing.stdin.flush()
                if select.select([reading.stdout], [], [], 0.25)[0]:
                    seen = reading.stdout.readline()
                    break
            assert seen.startswith(b"line ")
            for process in (reading, typing):
                process.send_signal(signal.SIGINT)
                assert process.wait(SOON_S) == 130
            assert reading.stderr.read() == b""
            assert b"records to" in typing.stdout.read()
        finally:
            typing.kill()
            reading.kill()


def test_a_broker_that_restarts_is_waited_for():
    """Who looks at a topic looks on."""
    with Broker() as broker:
        broker.create_topic("t", 2)
        broker.produce("t", "before")
        with started(
            command(broker, "consume", "t", "--from-beginning", "--max", "2"),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as reading:
            try:
                assert reading.stdout.readline() == b"before\n"
                broker.stop()
                said = reading.stderr.readline()
                assert b"cannot connect to " in said or b"closed the connection" in said
                assert said.endswith(b"; waiting for 10 s\n")
                broker.start()
                broker.produce("t", "after", partition=1)
                assert reading.stdout.readline() == b"after\n"
                assert reading.wait(SOON_S) == 0
                assert reading.stderr.read() == b""
            finally:
                reading.kill()


def test_a_broker_that_stays_away_ends_it():
    with Broker() as broker:
        broker.create_topic("t")
        broker.produce("t", "before")
        with started(
            command(broker, "consume", "t", "--from-beginning", "--timeout", "0.5"),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as reading:
            try:
                assert reading.stdout.readline() == b"before\n"
                broker.stop()
                assert reading.wait(SOON_S) == 1
                waits, why = reading.stderr.read().splitlines()
                assert waits.endswith(b"; waiting for 0.5 s")
                assert b"cannot connect to " in why
            finally:
                reading.kill()


@pytest.mark.parametrize("argv", [("produce", "t"), ("consume", "t")])
def test_nobody_there(kohort, argv, monkeypatch):
    monkeypatch.delenv("KOHORT_BOOTSTRAP_SERVER", raising=False)
    ran = kohort(*argv, "--bootstrap-server", "127.0.0.1:1")
    assert (ran.code, ran.out) == (1, "")
    assert ran.complaints == ["kohort: cannot connect to 127.0.0.1:1: refused"]


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("produce", "t", "--key-separator", ""), "--key-separator: it is empty, expected a text"),
        (("produce", "t", "--bootstrap-server", "x:y"), "--bootstrap-server: 'x:y' is not an addr"),
        (("consume", "t", "--max", "0"), "0 is too small, expected at least 1"),
    ],
)
def test_wrong_calls(kohort, argv, words):
    ran = kohort(*argv)
    assert (ran.code, ran.out) == (2, "")
    assert words in ran.err
