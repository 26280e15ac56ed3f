# SPDX-License-Identifier: Apache-2.0
"""`kohort produce`: what becomes a record, and what is said of what does not."""

import itertools
import signal
import subprocess
import sys
from typing import NamedTuple

import pytest
from tests.interruptible import started
from tests.waiting import SOON_S

from kohort.cli.main import main
from kohort.testing import Broker

NUMBERS = itertools.count()


class Run(NamedTuple):
    code: int
    out: bytes
    err: str


@pytest.fixture(scope="module")
def broker():
    with Broker(in_memory=True) as broker:
        yield broker


@pytest.fixture
def topic(broker):
    name = f"topic-{next(NUMBERS)}"
    broker.create_topic(name, 2)
    return name


@pytest.fixture
def run(broker, capfdbinary, monkeypatch, tmp_path):
    monkeypatch.setenv("KOHORT_BOOTSTRAP_SERVER", broker.bootstrap)

    def run(*argv, data=b""):
        (tmp_path / "stdin").write_bytes(data)
        with (tmp_path / "stdin").open() as stdin:
            monkeypatch.setattr(sys, "stdin", stdin)
            try:
                code = main(argv)
            except SystemExit as leaving:
                code = leaving.code
        out, err = capfdbinary.readouterr()
        return Run(code, out, err.decode())

    return run


@pytest.fixture
def read(run, topic):
    """What is in the topic, by a template."""

    def read(template, *argv):
        end = ("--from-beginning", "--until-end", "--null", "NULL", "--template", template)
        done = run("consume", topic, *end, *argv)
        assert (done.code, done.err) == (0, "")
        return done.out

    return read


def test_every_record_has_what_the_arguments_say(topic, run, read):
    done = run(
        *("produce", topic, "--key", "k", "--header", "a=1", "--header", "b=", "--partition", "1"),
        *("--timestamp", "2026-11-21T07:00Z", "--compression", "zstd"),
        data=b"x\ny\n",
    )
    assert done == (0, f"2 records to {topic}\n".encode(), "")
    assert read(r"%p %k=%s %T %h\n") == (
        b"1 k=x 1795244400000 a=1,b=\n1 k=y 1795244400000 a=1,b=\n"
    )


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_compression_is_read_again(topic, run, read, codec):
    assert run("produce", topic, "--compression", codec, data=b"x" * 5000).code == 0
    assert read("%s") == b"x" * 5000


def test_delimiters_keys_and_tombstones(topic, run, read):
    data = rb"a\t1;b\t;;"
    argv = ("--key-separator", r"\\t", "--delimiter", ";", "--null", "", "--partition", "0")
    done = run("produce", topic, *argv, data=data)
    assert done.code == 1
    assert done.err == "kohort: line 3 has no '\\\\t', expected a key before it\n"
    assert done.out == f"2 records to {topic}\n".encode()
    assert read(r"%k=%s(%S)\n") == b"a=1(1)\nb=NULL(-1)\n"


def test_files_by_line_and_whole(topic, run, read, tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_bytes(b"1\n2")
    two.write_bytes(b"3\n\xff")
    argv = ("produce", topic, "--partition", "0", "--file", str(one), str(two))
    assert run(*argv).out == f"4 records to {topic}\n".encode()
    assert run(*argv, "--whole").out == f"2 records to {topic}\n".encode()
    assert run("produce", topic, "--whole", "--partition", "0", data=b"a\nb\n").code == 0
    assert read("%s;") == b"1;2;3;\xff;1\n2;3\n\xff;a\nb\n;"


def test_a_file_that_cannot_be_read_is_found_before_anything_is_sent(topic, run, read, tmp_path):
    (tmp_path / "one").write_bytes(b"1\n")
    done = run("produce", topic, "--file", str(tmp_path / "one"), "--file", str(tmp_path / "none"))
    assert (done.code, done.out) == (1, b"")
    assert done.err == f"kohort: cannot read {tmp_path / 'none'}: No such file or directory\n"
    assert read("%s") == b""


def test_a_line_of_a_file_is_named_with_the_file(topic, run, tmp_path):
    (tmp_path / "one").write_bytes(b'{"value": "x"}\n{"vlaue": "y"}\n')
    done = run("produce", topic, "--format", "json", "--file", str(tmp_path / "one"))
    assert done.code == 1
    assert done.out == f"1 record to {topic}\n".encode()
    assert done.err.startswith(f"kohort: {tmp_path / 'one'}, line 2 has the unknown field 'vlaue'")


def test_what_consume_writes_is_written_again_byte_for_byte(broker, topic, run):
    values = [b"text", b"", None, b"\xff\x00", "größe\u2028".encode(), b'{"a": "\\n"}']
    for number, value in enumerate(values):
        headers = [("h", value), ("h", b"again"), ("", None)]
        broker.produce(
            topic,
            value,
            key=values[-number],
            partition=number % 2,
            headers=headers,
            timestamp_ms=1_795_244_400_000 + number,
        )
    copy = f"{topic}.copy"
    broker.create_topic(copy, 2)
    everything = ("--from-beginning", "--until-end", "--format", "json")
    first = run("consume", topic, *everything)
    done = run("produce", copy, "--format", "json", data=first.out)
    assert done == (0, f"{len(values)} records to {copy}\n".encode(), "")
    second = run("consume", copy, *everything)
    assert sorted(second.out.replace(copy.encode(), topic.encode()).splitlines()) == sorted(
        first.out.splitlines()
    )


def test_a_topic_with_fewer_partitions_gets_them_by_their_keys(broker, topic, run, read):
    line = b'{"topic": "t", "partition": 7, "key": "k", "value": "v"}\n'
    done = run("produce", topic, "--format", "json", data=line)
    assert (done.code, done.out) == (1, b"")
    assert done.err == (
        f"kohort: line 1 is not in {topic}: {topic} has 2 partitions, partition 7 is not among "
        "them (UNKNOWN_TOPIC_OR_PARTITION)\n"
    )
    assert run("produce", topic, "--format", "json", "--repartition", data=line).code == 0
    assert read("%k=%s") == b"k=v"


def test_the_first_refused_line_ends_it_and_all_that_is_there_is_counted(topic, run, read):
    lines = [b"%d" % number for number in range(3)] + [b"x" * 2_000_000]
    more = [b"more %d" % number for number in range(20_000)]
    done = run("produce", topic, "--partition", "0", data=b"\n".join([*lines, *more, b""]))
    assert done.code == 1
    refused, *rest = done.err.splitlines()
    assert refused.startswith(f"kohort: line 4 is not in {topic}: ")
    assert refused.endswith("(MESSAGE_TOO_LARGE)")
    written = read(r"%s\n").splitlines()
    assert written[:3] == lines[:3]
    assert done.out == f"{len(written):,} records to {topic}\n".encode()
    if len(written) < len(lines) + len(more) - 1:
        (nothing,) = rest
        after = int(nothing.split()[4].replace(",", ""))
        assert (nothing, after) == (
            f"kohort: nothing after line {after:,} was sent",
            len(written) + 1,
        )


def test_nobody_acknowledges_anything_where_nobody_is_asked_to(topic, run):
    done = run("produce", topic, "--acks", "0", data=b"x\n")
    assert (done.code, done.out) == (0, f"1 record to {topic}, acknowledged by nobody\n".encode())
    assert run("produce", topic, "--acks", "1", "--no-idempotence", data=b"x\n").code == 0


def test_a_lost_answer_is_no_acknowledgement(broker, topic, run):
    with broker.faults.error("Produce", "REQUEST_TIMED_OUT", times=None):
        done = run("produce", topic, "--timeout", "0.5", data=b"x\ny\n")
    assert (done.code, done.out) == (1, b"")
    assert done.err.startswith(
        f"kohort: lines 1 to 2 are not in {topic}, or may be, as the broker has not answered: "
    )


def test_a_refusal_ends_it_while_it_waits_for_a_person(broker, topic):
    argv = [sys.executable, "-m", "kohort", "produce", topic]
    argv += ["--bootstrap-server", broker.bootstrap]
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with started(argv, **streams) as typing:
        typing.stdin.write(b"x" * 2_000_000 + b"\n")
        typing.stdin.flush()
        assert typing.wait(SOON_S) == 1
        refused, nothing = typing.stderr.read().decode().splitlines()
        assert refused.startswith(f"kohort: line 1 is not in {topic}: ")
        assert nothing == "kohort: nothing after line 1 was sent"
    with started(argv, **streams) as typing:
        typing.stdin.write(b"a\nhalf")
        typing.stdin.flush()
        while not broker.read(topic):
            pass
        typing.send_signal(signal.SIGINT)
        assert typing.wait(SOON_S) == 130
        assert typing.stdout.read() == f"1 record to {topic}\n".encode()


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("--format", "json", "--key", "k"), "--key is for text, not for --format json"),
        (("--format", "json", "--null", ""), "--null is for text, not for --format json"),
        (("--repartition",), "--repartition is for --format json"),
        (("--format", "json", "--repartition", "--partition", "1"), "contradict each other"),
        (("--key", "k", "--key-separator", ":"), "contradict each other: give one"),
        (("--whole", "--delimiter", ":"), "--whole takes all there is as one value"),
        (("--partition", "-1"), "'-1' is no partition, expected a number from 0 on"),
        (("--partition", "2147483648"), "is no partition, expected a number from 0 on"),
        (("--timestamp", "now"), "'now' is no position"),
        (("--delimiter", ""), "it is empty, expected a text"),
        (("--header", "x"), "expected NAME=VALUE"),
    ],
)
def test_wrong_calls(run, argv, words):
    done = run("produce", "t", *argv)
    assert (done.code, done.out) == (2, b"")
    assert words in done.err
