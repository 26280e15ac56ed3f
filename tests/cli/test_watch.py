# SPDX-License-Identifier: Apache-2.0
"""`kohort groups watch` in a pipe and on a terminal."""

import asyncio
import os
import pty
import re
import subprocess
import sys

import pytest
from tests.client.joining import ConsumerMember, commit, coordinator
from tests.client.scripted import asynchronous
from tests.serve.talk import Talk
from tests.waiting import SOON_S, eventually

from kohort.client.admin import AdminClient, Listings
from kohort.errors import ApiError, ErrorCode
from kohort.testing.broker import Broker


@pytest.fixture
def broker():
    @asynchronous
    async def populate():
        async with coordinator(broker.bootstrap, "idle") as connection:
            assert await commit(connection, "idle", {("orders", 0): 2}) == [0]
        async with coordinator(broker.bootstrap, "modern") as connection:
            await ConsumerMember(connection, "modern", "member-1").join("orders")

    with Broker(in_memory=True) as broker:
        with Talk(broker.bootstrap) as client:
            client.create_topic("orders")
            client.produce("orders", *[b"x"] * 5)
        populate()
        yield broker


def untimed(text):
    return [re.sub(r"^\d\d:\d\d:\d\d ", "", line) for line in text.splitlines()]


def watching(broker, *options, **streams):
    program = (sys.executable, "-m", "kohort", "groups", "watch", *options)
    where = ("--bootstrap-server", broker.bootstrap, "--every", "0.1")
    return subprocess.Popen([*program, *where], **streams)


def test_a_pipe_has_a_line_for_each_thing_that_happens(broker):
    with watching(broker, stdout=subprocess.PIPE, text=True) as process:
        try:
            lines = [process.stdout.readline() for _ in range(2)]
            assert untimed("".join(lines)) == [
                "idle: is Empty, 0 members, lag 3",
                "modern: is Stable, 1 member",
            ]
            with Talk(broker.bootstrap) as client:
                assert client.commit("new", "orders", 0) == 0
            assert untimed(process.stdout.readline()) == ["new: is there: Empty"]
        finally:
            process.terminate()


def test_some_groups_and_some_looks(kohort, broker):
    where = ("--bootstrap-server", broker.bootstrap, "--every", "0.1", "--looks", "2")
    ran = kohort("groups", "watch", "--match", "^i", *where)
    assert (ran.code, ran.err, untimed(ran.out)) == (0, "", ["idle: is Empty, 0 members, lag 3"])
    ran = kohort("groups", "watch", "nobody", *where)
    told = "Group nobody not found. (GROUP_ID_NOT_FOUND)"
    assert (ran.code, untimed(ran.out)) == (1, [f"nobody: {told}"])
    assert ran.complaints == [f"kohort: group nobody: {told}"]


def test_a_named_group_that_comes_into_being_meanwhile_is_there(kohort, broker, monkeypatch):
    """The code is that of the last look."""
    real = asyncio.sleep

    async def meanwhile(_seconds):
        async with coordinator(broker.bootstrap, "later") as connection:
            assert await commit(connection, "later", {("orders", 0): 2}) == [0]
        await real(0)

    monkeypatch.setattr(asyncio, "sleep", meanwhile)
    where = ("--bootstrap-server", broker.bootstrap, "--looks", "2")
    ran = kohort("groups", "watch", "later", *where)
    assert (ran.code, ran.err) == (0, "")
    assert untimed(ran.out)[-1] == "later: can be looked at again: Empty"


def test_a_group_is_not_gone_while_a_broker_does_not_answer(kohort, broker, monkeypatch):
    real, looks = AdminClient.list_groups, []

    async def partly(self, **options):
        looks.append(await real(self, **options))
        if len(looks) == 1:
            return looks[0]
        return Listings((), {1: ApiError(ErrorCode.NETWORK_EXCEPTION)})

    monkeypatch.setattr(AdminClient, "list_groups", partly)
    where = ("--bootstrap-server", broker.bootstrap, "--every", "0.1", "--looks", "3")
    ran = kohort("groups", "watch", *where)
    assert (ran.code, len(looks)) == (0, 3)
    assert "is gone" not in ran.out


def test_a_terminal_is_drawn_anew_and_q_ends_it(broker):
    master, slave = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80", "LINES": "20"}
    with watching(broker, stdin=slave, stdout=slave, env=environment) as process:
        os.close(slave)
        shown = bytearray()

        def drawn():
            shown.extend(os.read(master, 65536))
            return shown.count(b"LAG/S") >= 2

        try:
            eventually(drawn, "the screen is drawn twice")
            text = shown.decode()
            assert "modern" in text
            assert "q ends it" in text
            assert "2 groups" in text
            os.write(master, b"jG\x1b[6~q")
            assert process.wait(SOON_S) == 0
        finally:
            process.kill()
            os.close(master)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("g", "--match", "x"), "'g' and --match are given"),
        (("--every", "0"), "'0' is no time to wait, expected 0.1 to 3600 seconds"),
        (("--looks", "0"), "0 is too small"),
    ],
)
def test_wrong_calls(kohort, options, words):
    ran = kohort("groups", "watch", *options, "--bootstrap-server", "127.0.0.1:1")
    assert (ran.code, ran.out) == (2, "")
    assert words in ran.err


def test_a_pipe_goes_on_when_nobody_answers_for_a_while(kohort, broker, monkeypatch):
    real, looks = AdminClient.list_groups, []

    async def away(self, **options):
        looks.append(None)
        if len(looks) in (2, 3):
            raise ApiError(ErrorCode.NETWORK_EXCEPTION, "nobody is there")
        return await real(self, **options)

    monkeypatch.setattr(AdminClient, "list_groups", away)
    where = ("--bootstrap-server", broker.bootstrap, "--every", "0.1", "--looks", "4")
    ran = kohort("groups", "watch", "--match", "idle", *where)
    assert (ran.code, untimed(ran.out)) == (
        0,
        [
            "idle: is Empty, 0 members, lag 3",
            "no answer: nobody is there",
            "the cluster answers again",
        ],
    )


@pytest.mark.parametrize("option", [("--lag-seconds",), ("--sort", "lag-seconds")])
def test_the_lag_in_seconds_on_request(kohort, broker, option):
    ran = kohort(
        *("groups", "watch", *option, "--looks", "1"),
        *("--bootstrap-server", broker.bootstrap),
    )
    idle, modern = untimed(ran.out)
    assert re.fullmatch(
        r"idle: is Empty, 0 members, lag 3, in time [\d.]+ (ms|s|min)( \d+ s)?", idle
    )
    assert modern == "modern: is Stable, 1 member"
