# SPDX-License-Identifier: Apache-2.0
"""A process that the test forks keeps nothing of what the broker owns."""

import multiprocessing
import os
import select
import socket
import subprocess
import sys
import time

import pytest
from tests.serve.talk import Talk
from tests.waiting import SOON_S, eventually

from kohort.errors import KohortError
from kohort.testing import Broker
from kohort.wire.messages.api_versions import ApiVersionsRequest

ASK = ApiVersionsRequest(client_software_name="talk", client_software_version="1")


def sleep_for_long(begun):
    begun.set()
    time.sleep(SOON_S)


def forked():
    """A process that was forked and lives on, as one of a pool does."""
    context = multiprocessing.get_context("fork")
    begun = context.Event()
    process = context.Process(target=sleep_for_long, args=(begun,))
    process.start()
    assert begun.wait(SOON_S)
    return process


def executed():
    """A server that a test has started, and that asked for all descriptors."""
    program = "import time; print(flush=True); time.sleep(600)"
    process = subprocess.Popen(
        [sys.executable, "-c", program], close_fds=False, stdout=subprocess.PIPE
    )
    process.stdout.read(1)
    return process


def end(process):
    process.kill()
    process.join() if hasattr(process, "join") else process.communicate()


def descriptors(pid):
    """What a process has open, as the system names it."""
    folder = f"/proc/{pid}/fd"
    found = set()
    for name in os.listdir(folder):  # noqa: PTH208
        try:
            found.add(os.readlink(f"{folder}/{name}"))  # noqa: PTH115
        except FileNotFoundError:
            continue
    return {name for name in found if not name.startswith(("/dev", "/proc"))}


@pytest.mark.parametrize("live_on", [forked, executed])
@pytest.mark.parametrize("own", [False, True], ids=["thread", "process"])
def test_it_holds_no_port_no_lock_and_no_connection(own, live_on, tmp_path):
    before = descriptors(os.getpid())
    with Broker(data_dir=tmp_path / "data", process=own) as broker:
        broker.create_topic("t")
        broker.produce("t", "x")
        owned = descriptors(os.getpid()) - before
        with Talk(broker.bootstrap) as client:
            assert client.ask(ASK).error_code == 0
            process = live_on()
            try:
                assert owned
                assert owned & descriptors(process.pid) <= {"anon_inode:[eventpoll]"}
                broker.stop()
                readable, _, _ = select.select([client.socket], [], [], SOON_S)
                assert readable, "the client is told, though a copy of the process lives on"
                host, port = broker.bootstrap.split(":")
                with pytest.raises(OSError), socket.create_connection((host, int(port)), 5):
                    pass
                broker.start()
                assert [record.text for record in broker.read("t")] == ["x"]
            finally:
                end(process)


def test_the_broker_goes_on_after_a_fork():
    """The forked process closes copies: nothing of that reaches the broker."""
    with Broker() as broker, Talk(broker.bootstrap) as client:
        for _ in range(3):
            pid = os.fork()
            if not pid:
                try:
                    broker.create_topic("t")
                except KohortError:
                    broker.close()
                    os._exit(0)
                os._exit(1)
            assert os.waitpid(pid, 0)[1] == 0
            assert client.ask(ASK).error_code == 0
            assert broker.topics == []


def test_a_forked_process_may_have_a_broker_of_its_own():
    with Broker() as broker:
        broker.create_topic("t")
        pid = os.fork()
        if not pid:
            with Broker() as other:
                other.create_topic("u")
                os._exit(0 if other.topics == ["u"] else 1)
        assert os.waitpid(pid, 0)[1] == 0
        assert broker.topics == ["t"]


def test_the_process_of_a_broker_ends_with_the_test_though_a_forked_one_lives_on():
    program = """
import os, signal, time
from kohort.testing import Broker

broker = Broker(process=True).start()
child = os.fork()
if not child:
    os.close(1)
    os.close(2)
    time.sleep(120)
print(broker.pid, child, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    broker, child = map(int, done.stdout.split())
    try:
        eventually(lambda: has_ended(broker), "the end of the broker's process")
    finally:
        os.kill(child, 9)


def has_ended(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:  # noqa: PTH123
            return file.read().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


PROGRAM = """
import multiprocessing, os, sys, threading
from kohort.testing import Broker

def fork():
    pid = os.fork()
    if not pid:
        sys.exit(0)
    assert os.waitpid(pid, 0)[1] == 0

def start(method="fork"):
    process = multiprocessing.get_context(method).Process(target=len, args=("",))
    process.start()
    process.join()
    assert process.exitcode == 0

def pool():
    with multiprocessing.get_context("fork").Pool(1) as workers:
        assert workers.map(abs, [-1]) == [1]
        workers.close()
        workers.join()

def ask():
    while not over:
        broker.topics
        broker.produce("t", "x")

over = False
with Broker(process=sys.argv[1] == "process") as broker:
    broker.create_topic("t")
    broker.groups["g"].commit("t", 0)
    asking = threading.Thread(target=ask)
    if sys.argv[3] == "busy":
        asking.start()
    for _ in range(5):
        {"fork": fork, "start": start, "pool": pool}[sys.argv[2]]()
    over = True
    if sys.argv[3] == "busy":
        asking.join()
"""


@pytest.mark.parametrize("work", ["idle", "busy"])
@pytest.mark.parametrize("how", ["fork", "start", "pool"])
@pytest.mark.parametrize("where", ["thread", "process"])
def test_a_forked_process_says_nothing_of_the_broker_at_its_end(where, how, work):
    done = subprocess.run(
        [sys.executable, "-W", "always", "-c", PROGRAM, where, how, work],
        capture_output=True,
        text=True,
        check=False,
        timeout=SOON_S,
    )
    assert (done.stderr, done.returncode) == ("", 0)
