"""Where a broker under test lives. What both kinds do alike is in test_broker.py."""

import os
import signal

import pytest
from tests.testing.test_stage import plan
from tests.waiting import SOON_S

from kohort.errors import KohortError
from kohort.testing.hosts import ProcessHost, ThreadHost
from kohort.testing.loop import LoopThread


@pytest.fixture(params=[ThreadHost, ProcessHost])
def host(request):
    loop = LoopThread()
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


def test_a_message_that_is_cut_in_the_middle_ends_the_process(monkeypatch):
    host = ProcessHost()
    host.start(plan())

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(type(host._pipe), "recv", interrupted)
        with pytest.raises(KeyboardInterrupt):
            host.ask("time_ms")
    assert not host.is_running
    host.start(plan())
    assert host.ask("time_ms") == 1_000
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
    monkeypatch.setattr("kohort.testing.hosts._is_readable", lambda *_: False)
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
        monkeypatch.setattr("kohort.testing.asking.ANSWER_S", 0.5)
        with pytest.raises(KohortError, match=f"its process {pid} is stopped"):
            broker.create_topic("u")
    assert not os.path.exists(f"/proc/{pid}")  # noqa: PTH110
