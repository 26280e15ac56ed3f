# SPDX-License-Identifier: Apache-2.0
"""The admin client for programs without asyncio: the same calls, which wait."""

import asyncio
import errno
import gc
import inspect
import os
import signal
import sys
import threading
import warnings
from subprocess import PIPE

import pytest
from tests.client.admin.test_answers import CALLS, GROUPS, SILENT, three_nodes
from tests.client.scripted import asynchronous
from tests.interruptible import started
from tests.waiting import SOON_S, eventually

from kohort import AdminClient, ApiError, ErrorCode, NewTopic, SyncAdminClient
from kohort.client.admin.synchronous import Iterations
from kohort.testing import Broker


@pytest.fixture(scope="module")
def bootstrap():
    with Broker(in_memory=True) as broker:
        broker.create_topic("orders", partitions=2)
        yield broker.bootstrap


def silent(asked):
    """A broker that never answers."""

    async def serve(reader, writer):
        asked.set()
        await reader.read()
        writer.close()

    return serve


def public(kind):
    """The methods of a class that callers know, with their parameters."""
    return {
        name: list(inspect.signature(value).parameters.values())
        for name, value in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_")
    }


def test_every_call_is_there_with_the_same_parameters():
    ours, theirs = public(SyncAdminClient), public(AdminClient)
    missing = sorted(theirs.keys() - ours.keys())
    assert missing == [], "add a line for each to SyncAdminClient"
    assert ours == theirs
    made = inspect.signature(SyncAdminClient).parameters
    assert list(made.values()) == list(inspect.signature(AdminClient).parameters.values())
    for name in ours:
        assert not inspect.iscoroutinefunction(getattr(SyncAdminClient, name))
        if name != "close":
            assert getattr(SyncAdminClient, name).__doc__ == getattr(AdminClient, name).__doc__


def test_calls_wait_for_what_the_asynchronous_client_returns(bootstrap):
    async def ask():
        async with AdminClient(bootstrap) as admin:
            return await admin.describe_topics("orders"), await admin.describe_cluster()

    topics, nodes = asyncio.run(ask())
    with SyncAdminClient(bootstrap, client_id="me", timeout=20) as admin:
        assert admin.describe_topics("orders").all() == topics.all()
        assert admin.describe_cluster() == nodes
        created = admin.create_topics([NewTopic("short", 1)])
        assert created["short"].partitions == 1
        (admin.delete_topics("short")).all()
        assert repr(admin) == f"<SyncAdminClient client_id='me' at {bootstrap}, open>"
    assert repr(admin).endswith("closed>")


def test_errors_are_those_of_the_asynchronous_client(bootstrap):
    with pytest.raises(ValueError, match="timeout"):
        SyncAdminClient(bootstrap, timeout=0)
    with SyncAdminClient(bootstrap) as admin:
        with pytest.raises(TypeError, match="names is 3, expected a text"):
            admin.describe_topics(3)
        with pytest.raises(ValueError, match="'stabel' is not a group state"):
            admin.list_groups(states=["stabel"])
        with pytest.raises(ApiError, match="GROUP_ID_NOT_FOUND"):
            admin.delete_groups("nobody").all()
        assert admin.delete_groups(["nobody"]).failed["nobody"].code is ErrorCode.GROUP_ID_NOT_FOUND
    with SyncAdminClient("127.0.0.1:1", timeout=1) as nowhere, pytest.raises(ApiError):
        nowhere.list_topics()


def test_a_client_that_is_not_used_has_no_thread_and_one_that_is_closed_has_none(bootstrap):
    before = threading.active_count()
    admin = SyncAdminClient(bootstrap)
    assert threading.active_count() == before
    assert "not started" in repr(admin)
    admin.list_topics()
    assert threading.active_count() == before + 1
    admin.close()
    admin.close()
    assert threading.active_count() == before
    for call in (admin.list_topics, admin.__enter__):
        with pytest.raises(ValueError, match="the admin client is closed: make another one"):
            call()
    SyncAdminClient(bootstrap).close()


def test_several_threads_share_one_client(bootstrap):
    found, failed = [], []

    def ask(number):
        try:
            for _ in range(5):
                described = admin.describe_topics(["orders", f"t-{number}"])
                found.append(list(described.succeeded))
        except Exception as error:  # noqa: BLE001  (it is looked at below)
            failed.append(error)

    with SyncAdminClient(bootstrap) as admin:
        threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(SOON_S)
    assert failed == []
    assert found == [["orders"]] * 40


def test_who_waits_when_another_thread_closes_the_client_is_told():
    ready, over, outcome = threading.Event(), threading.Event(), []

    async def serve():
        server = await asyncio.start_server(silent(ready), "127.0.0.1", 0)
        async with server:
            address.append(server.sockets[0].getsockname()[1])
            await asyncio.to_thread(over.wait, SOON_S)

    def wait():
        with pytest.raises(ValueError, match="closed"):
            admin.list_topics()
        outcome.append("told")

    address = []
    server = threading.Thread(target=lambda: asyncio.run(serve()))
    server.start()
    port = eventually(lambda: address, "a server")[0]
    admin = SyncAdminClient(f"127.0.0.1:{port}")
    waiting = threading.Thread(target=wait)
    waiting.start()
    assert ready.wait(SOON_S)
    admin.close()
    waiting.join(SOON_S)
    over.set()
    server.join(SOON_S)
    assert outcome == ["told"]


def test_one_that_nobody_closes_is_said_and_ends_its_thread(bootstrap):
    before = threading.active_count()

    def leave():
        SyncAdminClient(bootstrap).list_topics()

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        leave()
        gc.collect()
        eventually(lambda: threading.active_count() == before, "the end of its thread")
        gc.collect()
    (warning,) = [text for one in caught if "AdminClient" in (text := str(one.message))]
    assert warning.startswith("unclosed <SyncAdminClient client_id='kohort-admin'")
    assert warning.endswith("use `with`, or close()")


def test_every_call_that_can_be_iterated_can_be_iterated_here():
    """K518-27."""
    theirs = public(AdminClient)
    answers = {
        name
        for name in theirs
        if "Answers[" in str(inspect.signature(getattr(AdminClient, name)).return_annotation)
    }
    assert {"list_groups", "describe_groups", "list_offsets"} <= answers
    assert public(Iterations) == {name: theirs[name] for name in answers}


@pytest.mark.parametrize("name", CALLS)
@asynchronous
async def test_outcomes_come_before_a_silent_node_has_answered_and_a_break_ends_the_rest(name):
    """K518-27. A thread takes them, and the cluster is played here."""
    call, keys = CALLS[name]
    heard = []

    def take(admin):
        for key, _ in call(admin.iterate):
            heard.append(key)
            if len(heard) == len(keys) - 1:
                assert calls_under_way(admin)
                break  # the silent one would answer after a minute

    async with three_nodes() as scripted:
        with SyncAdminClient(scripted.bootstrap, timeout=60) as admin:
            async with asyncio.timeout(SOON_S):
                await asyncio.to_thread(take, admin)
                while calls_under_way(admin):  # noqa: ASYNC110  (nobody tells)
                    await asyncio.sleep(0.01)
    assert sorted(heard) == sorted(key for key in keys if key != keys[SILENT])


def calls_under_way(admin):
    """Requests for which the loop of a client waits: the share of a node each."""
    return [task for task in asyncio.all_tasks(admin._loop) if "_ask_share" in repr(task)]


@asynchronous
async def test_what_an_iteration_gives_and_raises_is_what_the_call_gives_and_raises():
    async with three_nodes(lambda answer: answer) as scripted:
        with SyncAdminClient(scripted.bootstrap, timeout=20) as admin:
            whole = await asyncio.to_thread(admin.describe_groups, GROUPS)
            entries = admin.iterate.describe_groups(GROUPS)
            found = await asyncio.to_thread(lambda: dict(entries))
            assert found == dict(whole.items())
            assert await asyncio.to_thread(list, entries) == []
            with pytest.raises(TypeError, match="ids is 3"):
                admin.iterate.describe_groups(3)
    with SyncAdminClient("127.0.0.1:1", timeout=1) as nowhere, pytest.raises(ApiError):
        list(nowhere.iterate.list_groups())


@asynchronous
async def test_several_threads_take_from_one_iteration_and_each_entry_goes_to_one():
    groups = [f"g{number}" for number in range(60)]
    async with three_nodes(lambda answer: answer) as scripted:
        scripted.coordinators = {name: at % 3 for at, name in enumerate(groups)}
        with SyncAdminClient(scripted.bootstrap, timeout=20) as admin:
            entries = admin.iterate.describe_groups(groups)
            parts = await asyncio.gather(*(asyncio.to_thread(list, entries) for _ in range(4)))
    assert sorted(key for part in parts for key, _ in part) == sorted(groups)


@asynchronous
async def test_who_iterates_when_another_thread_closes_the_client_is_told():
    heard = []

    def take():
        with pytest.raises(ValueError, match="the admin client was closed while a call waited"):
            heard.extend(key for key, _ in entries)
        with pytest.raises(ValueError, match="the admin client is closed"):
            next(entries)

    async with three_nodes() as scripted:
        admin = SyncAdminClient(scripted.bootstrap, timeout=60)
        entries = admin.iterate.describe_groups(GROUPS)
        taking = asyncio.create_task(asyncio.to_thread(take))
        async with asyncio.timeout(SOON_S):
            while len(heard) < 2:  # noqa: ASYNC110  (nobody tells)
                await asyncio.sleep(0.01)
            await asyncio.to_thread(admin.close)
            await taking
    with pytest.raises(ValueError, match="the admin client is closed"):
        admin.iterate.describe_groups(GROUPS)
    assert sorted(heard) == ["a", "c"]


PROGRAM = """
import sys
from kohort import SyncAdminClient
admin = SyncAdminClient(sys.argv[1], timeout=600)
try:
    admin.list_topics()
except KeyboardInterrupt:
    print("interrupted")
admin.close()
"""


def test_ctrl_c_ends_a_call():
    async def program():
        """A broker that interrupts whoever asks it, and never answers."""
        asked = asyncio.Event()
        server = await asyncio.start_server(silent(asked), "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            argv = [sys.executable, "-c", PROGRAM, f"127.0.0.1:{port}"]
            process = started(argv, stdout=PIPE, stderr=PIPE, text=True)
            async with asyncio.timeout(SOON_S):
                await asked.wait()
            process.send_signal(signal.SIGINT)
            said = await asyncio.to_thread(process.communicate, timeout=SOON_S)
            return process.returncode, *said

    assert asyncio.run(program()) == (0, "interrupted\n", "")


def test_a_call_for_which_there_is_no_loop_raises_and_the_next_one_is_answered(
    bootstrap, monkeypatch
):
    """In a thread, so that a call that waits fails this test instead of blocking it."""
    raised = []

    def refuse():
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    def call():
        try:
            admin.list_topics()
        except OSError as error:
            raised.append(error.errno)

    admin = SyncAdminClient(bootstrap)
    with monkeypatch.context() as patches:
        patches.setattr("asyncio.events.new_event_loop", refuse)
        caller = threading.Thread(target=call, daemon=True)
        caller.start()
        caller.join(SOON_S)
    assert raised == [errno.EMFILE]
    with admin:
        assert [topic.name for topic in admin.list_topics()] == ["orders"]
