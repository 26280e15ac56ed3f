"""`kohort.testing.Broker`: what a test may rely on."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from tests.serve.talk import Talk
from tests.waiting import SOON_S

from kohort import AdminClient
from kohort.errors import KohortError
from kohort.testing import Broker
from kohort.wire.messages.api_versions import ApiVersionsRequest
from kohort.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

ASK = ApiVersionsRequest(client_software_name="talk", client_software_version="1")


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_from_start_to_close():
    broker = Broker()
    with pytest.raises(KohortError, match="does not run"):
        _ = broker.pid
    broker.start()
    pid, directory, said = broker.pid, broker.data_dir, broker._errors
    with Talk(broker.bootstrap) as client:
        assert client.ask(ASK).error_code == 0
    assert directory.is_dir()
    broker.stop()
    assert not broker.is_running
    assert not alive(pid)
    assert directory.is_dir()
    broker.stop()  # twice is fine
    broker.close()
    assert not directory.exists()
    assert not said.exists()
    assert (broker.bootstrap, broker.data_dir, broker.log()) == ("", None, "")
    broker.close()


def test_it_runs_once():
    with Broker(in_memory=True) as broker:
        pid = broker.pid
        with pytest.raises(KohortError, match=f"already runs as process {pid}"):
            broker.start()
        assert broker.pid == pid
        with Talk(broker.bootstrap) as client:
            assert client.ask(ASK).error_code == 0


def test_one_that_died_by_itself_may_be_started_again():
    with Broker(in_memory=True) as broker:
        before, pid = broker.bootstrap, broker.pid
        os.kill(pid, signal.SIGKILL)
        broker._process.wait(SOON_S)
        with pytest.raises(KohortError, match="does not run"):
            _ = broker.pid
        assert broker.start().bootstrap == before
        assert broker.pid != pid


def test_nothing_is_left_behind_when_it_does_not_come_up(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(KohortError, match=r"num\.partitions"), Broker({"num.partitions": "0"}):
        pass
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_left_behind_when_nobody_closes_it(tmp_path):
    program = "from kohort.testing import Broker; print(Broker().start().pid)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert not alive(int(done.stdout))
    assert list(tmp_path.iterdir()) == []


def test_it_ends_with_its_block_whatever_happens_in_it():
    pids = []

    def fail() -> None:
        with Broker(in_memory=True) as broker:
            pids.append(broker.pid)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    (pid,) = pids
    assert not alive(pid)


@pytest.mark.parametrize("how", ["kill", "stop", "restart alone"])
def test_a_restart_keeps_address_and_data(how):
    with Broker() as broker:
        before = broker.bootstrap
        with Talk(before) as client:
            client.create_topic("t")
            assert client.produce("t", b"x").error_code == 0
            assert client.commit("g", "t", 1) == 0
        if how == "kill":
            broker.kill()
            with pytest.raises(OSError), socket.create_connection(("127.0.0.1", _port(before)), 1):
                pass
        if how == "stop":
            broker.stop()
        broker.restart()
        assert broker.bootstrap == before
        with Talk(before) as client:
            assert client.committed("g") == {("t", 0): 1}
            assert client.produce("t", b"y").base_offset == 1


def _port(bootstrap: str) -> int:
    return int(bootstrap.rpartition(":")[2])


def test_all_nodes_keep_their_addresses():
    with Broker(nodes=3) as broker:
        before = broker.bootstrap
        assert len(before.split(",")) == 3
        first = _port(before.split(",")[0])
        assert [_port(one) for one in before.split(",")] == [first, first + 1, first + 2]
        broker.kill()
        broker.restart()
        assert broker.bootstrap == before


def test_in_memory_a_restart_forgets():
    with Broker(in_memory=True) as broker:
        assert broker.data_dir is None
        with Talk(broker.bootstrap) as client:
            client.create_topic("t")
            assert client.commit("g", "t", 1) == 0
        broker.restart()
        with Talk(broker.bootstrap) as client:
            assert client.committed("g") == {}


def test_a_directory_of_the_caller_is_kept(tmp_path):
    with Broker(data_dir=tmp_path / "mine") as broker, Talk(broker.bootstrap) as client:
        client.create_topic("t")
    assert (tmp_path / "mine" / "t-0").is_dir()


def test_what_it_says_when_it_does_not_come_up(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(KohortError, match="was not ready within") as raised:
        Broker(data_dir=tmp_path / "file").start()
    assert str(tmp_path / "file") in str(raised.value)
    with pytest.raises(KohortError, match=r"num\.partitions"):
        Broker({"num.partitions": "0"}, in_memory=True).start()


def test_its_log_has_a_line_per_change_of_a_groups_state():
    with Broker(in_memory=True) as broker, Talk(broker.bootstrap) as client:
        client.create_topic("t")
        joining = {
            "member_id": "m",
            "rebalance_timeout_ms": 60_000,
            "subscribed_topic_names": ["t"],
            "topic_partitions": [],
        }
        join = ConsumerGroupHeartbeatRequest(group_id="told", member_epoch=0, **joining)
        epoch = client.ask(join).member_epoch
        for _ in range(5):
            beat = ConsumerGroupHeartbeatRequest(group_id="told", member_id="m", member_epoch=epoch)
            assert client.ask(beat).error_code == 0
        leave = ConsumerGroupHeartbeatRequest(group_id="told", member_id="m", member_epoch=-1)
        assert client.ask(leave).error_code == 0
        lines = [line for line in broker.log().splitlines() if "group told:" in line]
    assert [line.partition("group told: ")[2] for line in lines] == [
        "new -> consumer Stable; member m joins",
        "consumer Stable -> consumer Empty; member m leaves",
    ]
    assert all(" INFO " in line for line in lines)


def test_a_name_with_a_line_break_stays_in_its_line():
    with Broker(in_memory=True) as broker, Talk(broker.bootstrap) as client:
        assert client.commit("a\nb", "no-such-topic", 1) == 3
        join = ConsumerGroupHeartbeatRequest(
            group_id="a\n2026-01-01 CRITICAL all is lost",
            member_id="m",
            member_epoch=0,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=["t"],
            topic_partitions=[],
        )
        assert client.ask(join).error_code == 0
        (line,) = [one for one in broker.log().splitlines() if "all is lost" in one]
    assert " INFO group a\\x0a2026" in line


def test_lower_versions_are_offered():
    limits = {"OffsetFetch": 7, "FindCoordinator": 3, "ConsumerGroupHeartbeat": 0}
    with Broker(in_memory=True, versions=limits) as broker, Talk(broker.bootstrap) as client:
        offered = {one.api_key: one.max_version for one in client.ask(ASK).api_keys}
        assert (offered[9], offered[10], offered[68]) == (7, 3, 0)
        assert offered[8] == 10  # the others as ever
        client.send(ASK)
        assert client.answer()


async def _offsets(bootstrap: str):
    async with AdminClient(bootstrap) as admin:
        found = await admin.list_group_offsets({"a": None, "b": None, "never": None})
        return {
            group: {place: one.offset for place, one in found[group].items()}
            if not isinstance(found[group], Exception)
            else found[group]
            for group in ("a", "b", "never")
        }


@pytest.mark.parametrize(
    "limits", [{}, {"OffsetFetch": 7}, {"OffsetFetch": 7, "FindCoordinator": 3}]
)
def test_the_admin_client_falls_back(limits):
    import asyncio

    with Broker(in_memory=True, versions=limits) as broker, Talk(broker.bootstrap) as client:
        client.create_topic("t", 2)
        assert client.commit("a", "t", 3) == 0
        assert client.commit("b", "t", 4, index=1) == 0
        found = asyncio.run(_offsets(broker.bootstrap))
    assert found == {"a": {("t", 0): 3}, "b": {("t", 1): 4}, "never": {}}


@pytest.mark.parametrize(
    ("mistake", "words"),
    [
        ({"versions": {"OffsetFetc": 7}}, "no API is called OffsetFetc; did you mean OffsetFetch"),
        ({"versions": {"OffsetFetch": 70}}, "a version of OffsetFetch from 0 to 10"),
        ({"settings": {"num.partition": 3}}, "did you mean num.partitions"),
        ({"settings": {"num.partitions": None}}, "num.partitions is None, expected a text"),
        ({"data_dir": Path("d"), "in_memory": True}, "data_dir is d, not allowed with in_memory"),
    ],
)
def test_a_mistake_is_told_before_anything_starts(mistake, words):
    with pytest.raises(KohortError, match=words):
        Broker(**mistake)


def test_settings_may_be_values_of_python():
    broker = Broker({"num.partitions": 3, "auto.create.topics.enable": False})
    assert broker.settings["num.partitions"] == "3"
    assert broker.settings["auto.create.topics.enable"] == "false"
