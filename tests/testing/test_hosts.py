# SPDX-License-Identifier: Apache-2.0
"""Where a broker under test lives. What both kinds do alike is in test_broker.py."""

import os
import signal
import sys
from functools import partial

import pytest
from tests.testing.test_broker_harness import plan
from tests.waiting import SOON_S

from kohort.errors import KohortError
from kohort.testing.hosts import ProcessHost, ThreadHost, _Process
from kohort.testing.loop import LoopThread


@pytest.fixture(params=[ThreadHost, ProcessHost])
def host(request):
    loop = LoopThread()
    loop.start()
    host = ThreadHost(loop) if request.param is ThreadHost else ProcessHost()
    yield host
    host.stop()
    host.close()
    loop.close()


def test_a_command_is_answered_while_it_runs(host):
    with pytest.raises(KohortError, match="does not run"):
        host.ask("time_ms")
    assert not host.is_running
    assert host.log() == ""
    host.start(plan())
    assert host.is_running
    assert host.ask("time_ms") == 1_000
    host.ask("advance", 5)
    assert host.ask("time_ms") == 1_005
    with pytest.raises(KohortError, match="has no disk"):
        host.ask("fill_disk", full=True)
    assert host.ask("time_ms") == 1_005, "an error is the end of nothing"
    host.abandon()
    host.abandon()
    assert not host.is_running


def test_a_process_that_ends_in_the_middle_of_a_command():
    host = ProcessHost()
    host.start(plan())
    pid = host.pid
    os.kill(pid, signal.SIGSTOP)
    host._pipe.send((1, "time_ms", (), {}))
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(KohortError, match="the broker has ended"):
        host._answer(1, SOON_S)
    host.stop()
    host.close()


def test_an_answer_that_nobody_waits_for_any_more(monkeypatch):
    """As after Ctrl-C, or the timeout of a test."""
    host = ProcessHost()
    host.start(plan())

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(host, "_answer", interrupted)
        with pytest.raises(KeyboardInterrupt):
            host.ask("coordinator", "g")
    host.ask("advance", 5)
    assert host.ask("time_ms") == 1_005
    host.kill()
    host.close()


def test_an_error_is_of_the_same_kind_wherever_the_broker_is(host):
    host.start(plan(nodes=2))
    with pytest.raises(TypeError):
        host.ask("advance")
    with pytest.raises(AttributeError):
        host.ask("no_such_command")
    with pytest.raises(KohortError, match="there is no node 2"):
        host.ask("move", "g", 2)


def test_a_process_that_is_silent():
    host = ProcessHost()
    host.start(plan())
    with pytest.raises(KohortError, match="the broker has not answered"):
        host._answer(1, 0)
    host.kill()
    with pytest.raises(KohortError, match="does not run"):
        _ = host.pid
    host.close()


def test_a_process_that_somebody_has_stopped_is_named_and_ends_in_order(monkeypatch):
    monkeypatch.setattr("kohort.testing.hosts.STOPPED_SECONDS", 0.3)
    host = ProcessHost()
    host.start(plan())
    pid = host.pid
    os.kill(pid, signal.SIGSTOP)
    with pytest.raises(KohortError, match=f"its process {pid} is stopped \\(SIGSTOP\\)"):
        host.ask("time_ms")
    host.resume()
    assert host.ask("time_ms") == 1_000, "it goes on, and the late answer is nobody's"
    os.kill(pid, signal.SIGSTOP)
    host.stop()
    assert not os.path.exists(f"/proc/{pid}")  # noqa: PTH110
    assert "Traceback" not in host.log()
    host.close()


def test_a_process_that_is_silent_is_named(monkeypatch):
    monkeypatch.setattr("kohort.testing.hosts.ASK_SECONDS", 0.3)
    host = ProcessHost()
    host.start(plan())
    monkeypatch.setattr(host._pipe, "receive", lambda *_: None)
    with pytest.raises(KohortError, match=f"its process {host.pid} is silent for 0.3 s"):
        host.ask("time_ms")
    host.kill()
    host.close()


def test_a_broker_whose_process_is_stopped_can_be_closed(monkeypatch):
    from kohort.testing import Broker

    monkeypatch.setattr("kohort.testing.hosts.STOPPED_SECONDS", 0.3)
    with Broker(process=True) as broker:
        broker.create_topic("t")
        pid = broker.pid
        os.kill(pid, signal.SIGSTOP)
        monkeypatch.setattr("kohort.testing.cluster_client.ANSWER_S", 0.5)
        with pytest.raises(KohortError, match=f"its process {pid} is stopped"):
            broker.create_topic("u")
    assert not os.path.exists(f"/proc/{pid}")  # noqa: PTH110


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")  # nor has it begun
def test_a_command_that_an_alarm_interrupts_at_any_moment_spoils_none_after_it(host, alarm):
    host.start(plan())
    pid = host.pid if isinstance(host, ProcessHost) else None
    struck = 0
    for microseconds in range(5, 1_505, 3):
        struck += alarm(lambda: host.ask("time_ms"), microseconds)
        assert host.is_running, f"after {microseconds} microseconds"
        assert host.ask("coordinator", "g") == 0, "and not the time, which nobody waits for"
    assert struck, "no alarm came while a command ran"
    if pid is not None:
        assert host.pid == pid


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")  # nor has it begun
def test_a_start_or_an_end_that_an_alarm_interrupts_can_be_repeated(host, alarm, tmp_path):
    """As often as it is: there is one broker or none, and nothing holds its directory or port."""
    struck = 0
    wanted = plan(data_dir=str(tmp_path / "data"))
    for milliseconds in (1, 5, 20, 80, 160, 320):
        struck += alarm(partial(host.start, wanted), 1_000 * milliseconds)
        if not host.is_running:
            (bootstrap,) = host.start(wanted).values()
            wanted = plan(data_dir=wanted.data_dir, port=int(bootstrap.rpartition(":")[2]))
        assert host.ask("time_ms") == 1_000
        pid = host.pid if isinstance(host, ProcessHost) else None
        struck += alarm(host.stop, 20 * milliseconds**2)
        host.stop()
        assert not host.is_running
        assert pid is None or not os.path.exists(f"/proc/{pid}")  # noqa: PTH110
    assert struck, "no alarm came while one began or ended"


def test_a_look_that_a_signal_interrupts_keeps_nobody_from_looking_again():
    """The lock of `Popen` stays where the handler of a signal raises behind its `acquire`."""
    process = _Process([sys.executable, "-c", "import time; time.sleep(60)"])
    for lock in [value for value in vars(process).values() if hasattr(value, "acquire")]:
        lock.acquire()
    assert process.poll() is None
    process.terminate()
    assert process.wait() == -signal.SIGTERM
    process.kill()


def test_a_process_that_somebody_has_waited_for_has_ended():
    process = _Process([sys.executable, "-c", "pass"])
    os.waitpid(process.pid, 0)
    assert process.wait() == 0
