# SPDX-License-Identifier: Apache-2.0
"""`kohort.testing.Broker`: what a test may rely on."""

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest
from tests.serve.talk import Talk
from tests.waiting import SOON_S, eventually

import kohort
from kohort import AdminClient
from kohort.config import BROKER_SETTINGS, text_of
from kohort.errors import ApiError, KohortError
from kohort.testing import Broker, WaitTimeoutError
from kohort.wire.messages.api_versions import ApiVersionsRequest
from kohort.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

ASK = ApiVersionsRequest(client_software_name="talk", client_software_version="1")


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


both = pytest.mark.parametrize("process", [False, True], ids=["thread", "process"])


@both
def test_from_start_to_close(process):
    broker = Broker(process=process)
    with pytest.raises(KohortError, match="does not run"):
        _ = broker.pid
    broker.start()
    directory = broker.data_dir
    with Talk(broker.bootstrap) as client:
        assert client.ask(ASK).error_code == 0
    assert (directory is not None) == process
    broker.stop()
    assert not broker.is_running
    assert directory is None or directory.is_dir()
    broker.stop()  # twice is fine
    broker.close()
    assert directory is None or not directory.exists()
    assert (broker.bootstrap, broker.data_dir, broker.log()) == ("", None, "")
    broker.close()


def test_its_process_and_its_file_of_lines_are_gone_at_the_end():
    broker = Broker(process=True).start()
    pid, said = broker.pid, broker._host._said
    broker.stop()
    assert not alive(pid)
    broker.close()
    assert said.closed


def test_its_thread_is_gone_at_the_end():
    before = threading.active_count()
    with Broker() as broker:
        assert threading.active_count() > before
        with pytest.raises(KohortError, match=r"is a thread of this process"):
            _ = broker.pid
        with pytest.raises(KohortError, match=r"cannot be killed, use Broker\(process=True\)"):
            broker.kill()
        assert broker.is_running
    assert threading.active_count() == before


@both
def test_it_runs_once(process):
    with Broker(in_memory=True, process=process) as broker:
        with pytest.raises(KohortError, match="already runs as"):
            broker.start()
        with Talk(broker.bootstrap) as client:
            assert client.ask(ASK).error_code == 0


def test_one_that_died_by_itself_may_be_started_again():
    with Broker(in_memory=True, process=True) as broker:
        before, pid = broker.bootstrap, broker.pid
        os.kill(pid, signal.SIGKILL)
        broker._host._process.wait(SOON_S)
        with pytest.raises(KohortError, match="does not run"):
            _ = broker.pid
        with pytest.raises(KohortError, match="does not run"):
            broker.clock.advance(1)
        assert broker.start().bootstrap == before
        assert broker.pid != pid


@both
def test_nothing_is_left_behind_when_it_does_not_come_up(process, monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with Broker(process=process) as other:
        port = _port(other.bootstrap)
        broker = Broker(process=process)
        broker._ports = {"PLAINTEXT": port}
        before = threading.active_count()
        with pytest.raises(KohortError, match=f"port {port} is taken"), broker:
            pass
        assert threading.active_count() == before
    assert list(tmp_path.iterdir()) == []


@both
def test_nothing_is_left_behind_when_nobody_closes_it(process, tmp_path):
    program = f"""
from kohort.testing import Broker
broker = Broker(process={process}).start()
print(broker.pid if broker.process else 0)
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert done.stderr == ""
    assert done.stdout == "0\n" or not alive(int(done.stdout))
    assert list(tmp_path.iterdir()) == []


@both
def test_it_ends_with_its_block_whatever_happens_in_it(process):
    ended = []

    def fail() -> None:
        with Broker(in_memory=True, process=process) as broker:
            ended.append(broker)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert not ended[0].is_running


@pytest.mark.parametrize(
    ("how", "process"),
    [("kill", True), ("stop", True), ("restart alone", True), ("stop", False), ("again", False)],
)
def test_a_restart_keeps_address_and_data(how, process):
    with Broker(process=process) as broker:
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


@both
def test_all_nodes_keep_their_addresses(process):
    with Broker(nodes=3, process=process) as broker:
        before = broker.bootstrap
        assert len(before.split(",")) == 3
        first = _port(before.split(",")[0])
        assert [_port(one) for one in before.split(",")] == [first, first + 1, first + 2]
        broker.restart()
        assert broker.bootstrap == before


def test_what_a_thread_keeps_in_memory_ends_with_close():
    broker = Broker().start()
    broker.create_topic("t")
    assert broker.restart().topics == ["t"]
    broker.close()
    with broker:
        assert broker.topics == []


def test_in_memory_a_restart_forgets():
    with Broker(in_memory=True) as broker:
        assert broker.data_dir is None
        with Talk(broker.bootstrap) as client:
            client.create_topic("t")
            assert client.commit("g", "t", 1) == 0
        broker.restart()
        with Talk(broker.bootstrap) as client:
            assert client.committed("g") == {}


@both
def test_a_directory_of_the_caller_is_kept(process, tmp_path):
    mine = tmp_path / "mine"
    with Broker(data_dir=mine, process=process) as broker, Talk(broker.bootstrap) as client:
        client.create_topic("t")
    assert (tmp_path / "mine" / "t-0").is_dir()


@both
def test_what_it_says_when_it_does_not_come_up(process, tmp_path):
    (tmp_path / "file").write_text("")
    with Broker(data_dir=tmp_path / "mine", process=process) as broker:
        broker.stop()
        broker.data_dir = tmp_path / "file"
        with pytest.raises(KohortError, match="the broker did not start: ") as raised:
            broker.start()
        assert str(tmp_path / "file") in str(raised.value)
        assert not broker.is_running
    with pytest.raises(KohortError, match=r"num\.partitions"):
        Broker({"num.partitions": "0"}, in_memory=True).start()


@both
def test_a_first_start_that_fails_leaves_nothing_behind(process, tmp_path):
    """A `with` block closes what has started only."""
    (tmp_path / "file").write_text("")
    before = threading.active_count()
    with pytest.raises(KohortError, match="the broker did not start: "):
        Broker(data_dir=tmp_path / "file", process=process).start()
    with (
        pytest.raises(KohortError, match=r"num\.partitions"),
        Broker({"num.partitions": "0"}, in_memory=True, process=process),
    ):
        pass
    eventually(lambda: threading.active_count() <= before, "its threads have ended")


@both
def test_its_log_has_a_line_per_change_of_a_groups_state(process):
    with Broker(in_memory=True, process=process) as broker, Talk(broker.bootstrap) as client:
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
        "new -> consumer Stable; member m joins; epoch 2",
        "consumer Stable -> consumer Empty; member m leaves; epoch 3",
    ]
    assert all(" INFO " in line for line in lines)


@both
def test_a_name_with_a_line_break_stays_in_its_line(process):
    with Broker(in_memory=True, process=process) as broker, Talk(broker.bootstrap) as client:
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
    assert " INFO group a\\n2026" in line


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
        ({"clock": "fast"}, "clock is 'fast', expected 'real' or 'manual'"),
        ({"nodes": 0}, "nodes is 0, expected a whole number, 1 or more"),
        (
            {"settings": {"listeners": "PLAINTEXT://:9"}},
            "listeners is .* takes free ports",
        ),
    ],
)
def test_a_mistake_is_told_before_anything_starts(mistake, words):
    with pytest.raises(KohortError, match=words):
        Broker(**mistake)


def test_settings_may_be_values_of_python():
    broker = Broker({"num.partitions": 3, "auto.create.topics.enable": False})
    assert broker.settings["num.partitions"] == "3"
    assert broker.settings["auto.create.topics.enable"] == "false"


@both
def test_records_go_in_and_come_out_as_objects(process):
    with Broker(in_memory=True, process=process) as broker:
        assert broker.create_topic("orders", 3, configs={"retention.ms": 1000}) == "orders"
        first, second = broker.produce("orders", "one", {"id": 2}, headers=[("trace", b"7")])
        (keyed,) = broker.produce("orders", None, key="customer-1")
        (placed,) = broker.produce("orders", b"\xff", partition=2, timestamp_ms=7)

        assert (first.partition, first.offset, first.text) == (0, 0, "one")
        assert (second.offset, second.json, second.headers) == (1, {"id": 2}, (("trace", b"7"),))
        assert (keyed.key, keyed.value) == (b"customer-1", None)
        assert (placed.partition, placed.timestamp_ms, placed.value) == (2, 7, b"\xff")
        found = broker.read("orders", 4)
        assert sorted(found, key=str) == sorted([first, second, keyed, placed], key=str)
        assert broker.read("orders", partition=2)[-1] == placed
        with pytest.raises(WaitTimeoutError, match=r"5 records of orders, it has .*one"):
            broker.read("orders", 5, timeout=0)
        assert broker.topics == ["orders"]
        broker.delete_topic("orders")
        assert broker.topics == []
        with pytest.raises(ApiError, match="topic orders does not exist"):
            broker.read("orders")


def test_what_is_read_may_take_several_fetches(monkeypatch):
    monkeypatch.setattr("kohort.testing.cluster_client.FETCH_BYTES", 1000)
    with Broker(in_memory=True) as broker:
        broker.create_topic("t")
        for number in range(10):
            broker.produce("t", *[f"{number}-{index}" * 20 for index in range(10)])
        assert [one.offset for one in broker.read("t")] == list(range(100))


def test_a_node_leaves_and_comes_back():
    with Broker(nodes=3) as broker:
        broker.create_topic("t", 6, replication_factor=3)
        addresses = broker.bootstrap.split(",")
        leaders = _leaders(addresses[0])
        assert set(leaders.values()) == {0, 1, 2}
        broker.node(1).stop()
        with pytest.raises(OSError), Talk(broker.node(1).address):
            pass
        without = _leaders(addresses[0])
        assert set(without.values()) == {0, 2}
        assert {
            one: without[one] for one in leaders if leaders[one] != 1
        }.items() <= leaders.items()
        assert len(broker.produce("t", *range(5))) == 5
        with pytest.raises(KohortError, match="node 1 does not run, start it first"):
            broker.node(1).stop()
        broker.node(0).kill()
        with pytest.raises(KohortError, match="node 2 is the last one that serves"):
            broker.node(2).kill()
        broker.node(0).start()
        broker.node(1).start()
        with pytest.raises(KohortError, match="node 1 is running, stop it first"):
            broker.node(1).start()
        broker.node(1).restart()
        assert _leaders(addresses[1]) == leaders
        with pytest.raises(KohortError, match="there is no node 3, expected 0 to 2"):
            broker.node(3)


def test_a_node_that_nobody_stands_in_for():
    """K40-22."""
    with Broker(nodes=2) as broker:
        broker.create_topic("t", 2)
        groups = [broker.groups[f"g{number}"] for number in range(8)]
        for group in groups:
            group.commit("t", 3)
        lost, kept = ([one for one in groups if one.coordinator() == at] for at in (1, 0))
        broker.node(1).stop(takeover=False)
        with pytest.raises(KohortError, match="nobody coordinates"):
            lost[0].coordinator()
        assert {one.coordinator() for one in kept} == {0}
        assert [one.committed() for one in kept] == [{("t", 0): 3}] * len(kept)
        assert sorted(_leaders(broker.node(0).address).values()) == [-1, 0]
        broker.node(1).start()
        assert {one.coordinator() for one in lost} == {1}
        assert [one.committed() for one in groups] == [{("t", 0): 3}] * 8


def _leaders(address):
    with Talk(address) as client:
        return {
            one.partition_index: one.leader_id for one in client.metadata("t").topics[0].partitions
        }


def test_nobody_can_wait_for_it_in_its_own_thread():
    with Broker() as broker:

        async def wrong():
            return broker.topics

        with pytest.raises(RuntimeError, match="called in the thread of the broker"):
            broker._loop.run(wrong())


@both
def test_more_records_than_a_batch_may_hold_become_several(process):
    with Broker(in_memory=True, process=process) as broker:
        broker.create_topic("t", 2)
        written = broker.produce("t", *[f"{number}".rjust(1000) for number in range(2500)])
        assert [one.offset for one in written] == list(range(2500))
        assert broker.read("t") == written


def test_a_broker_shows_where_it_is():
    """As pytest prints it beside a failure."""
    broker = Broker(in_memory=True)
    assert repr(broker) == "<broker that does not run>"
    with broker:
        assert repr(broker) == f"<broker at {broker.bootstrap}>"
    assert repr(broker) == "<broker that does not run>"


@pytest.mark.parametrize("headers", ["ab", 5, ["ab"], [("h",)], [(1, "v")]])
def test_headers_that_are_none_are_named(headers):
    with Broker() as broker:
        broker.create_topic("t")
        with pytest.raises(KohortError, match=r"^headers (is|has) .*, expected "):
            broker.produce("t", "x", headers=headers)
        assert broker.read("t") == []


@pytest.mark.parametrize("headers", [[("h", "v")], {"h": b"v"}, [("h", bytearray(b"v"))]])
def test_headers_may_be_texts_and_a_mapping(headers):
    with Broker(in_memory=True) as broker:
        broker.create_topic("t")
        (written,) = broker.produce("t", "x", headers=headers)
        assert written.headers == (("h", b"v"),)
        assert broker.read("t") == [written]


def test_what_is_no_time_and_no_partition_is_named():
    with Broker(in_memory=True) as broker:
        broker.create_topic("t")
        with pytest.raises(KohortError, match=r"timestamp_ms is 1\.5, expected a whole number"):
            broker.produce("t", "x", timestamp_ms=1.5)
        with pytest.raises(KohortError, match="partition is '0', expected a whole number"):
            broker.produce("t", "x", partition="0")
        assert broker.read("t") == []


def test_a_wait_for_records_tells_the_last_few():
    with Broker(in_memory=True) as broker:
        broker.create_topic("t")
        broker.produce("t", *["x" * 1000] * 100)
        with pytest.raises(
            WaitTimeoutError, match="it has 100 records; the last ones: t-0 at"
        ) as e:
            broker.read("t", 101, timeout=0)
        assert len(str(e.value)) < 1000


@both
def test_a_forked_process_leaves_the_broker_alone(process):
    """It has none of the threads that the broker lives in; it must not wait for them."""
    with Broker(in_memory=True, process=process) as broker:
        broker.create_topic("t")
        child = os.fork()
        if child == 0:
            try:
                broker.topics  # noqa: B018
            except KohortError as error:
                broker.close()
                os._exit(7 if "was forked" in str(error) else 8)
            os._exit(9)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert broker.topics == ["t"]


def test_what_becomes_of_a_connection_is_told_by_its_broker_alone():
    with (
        Broker({"max.connections.per.ip": 1}, in_memory=True) as one,
        Broker(in_memory=True) as other,
    ):
        with Talk(one.bootstrap) as client, Talk(one.bootstrap) as refused:
            assert refused.closed_by_peer()
            client.socket.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert client.closed_by_peer()
        assert "is refused: max.connections.per.ip=1" in one.log()
        assert "connection from /127.0.0.1 on listener PLAINTEXT closed: " in one.log()
        assert "connection" not in other.log()


def test_the_guide_names_every_setting_that_differs_from_a_brokers():
    guide = (Path(__file__).parents[2] / "docs" / "testing.md").read_text(encoding="utf-8")
    (told,) = re.findall(r"^\*\*(\w+) settings differ(.*?)^$", guide, re.MULTILINE | re.DOTALL)
    with Broker() as broker:
        differ = {
            name
            for name, text in broker.settings.items()
            if text != text_of(BROKER_SETTINGS[name].default)
        }
        assert set(broker.settings) == differ, "what is as everywhere need not be set"
    assert told[0] == {5: "Five", 6: "Six"}[len(differ)]
    assert {name for name in differ if f"`{name}`" in told[1]} == differ


@both
def test_only_committed_records_are_read_unless_all_are_asked_for(process):
    import asyncio

    async def produce(bootstrap, topic):
        async with kohort.Producer(bootstrap_servers=bootstrap, transactional_id="a") as producer:
            await producer.begin_transaction()
            await producer.send(topic, b"aborted")
            await producer.flush()
            await producer.abort_transaction()
            await producer.begin_transaction()
            await producer.send(topic, b"committed")
            await producer.commit_transaction()
            await producer.begin_transaction()
            await producer.send(topic, b"open")
            await producer.flush()
            broker.produce(topic, "behind the open one")
            with pytest.raises(WaitTimeoutError, match="2 records of t"):
                broker.read(topic, 2, timeout=0.05)
            shown = [record.text for record in broker.read(topic)]
            everything = broker.read(topic, isolation_level="read_uncommitted")
            await producer.commit_transaction()
            return shown, [record.text for record in everything]

    with Broker(process=process) as broker:
        topic = broker.create_topic("t")
        shown, everything = asyncio.run(produce(broker.bootstrap, topic))
        assert shown == ["committed"]
        assert everything == ["aborted", "committed", "open", "behind the open one"]
        ended = ["committed", "open", "behind the open one"]
        assert [record.text for record in broker.read(topic, 3)] == ended, "waits for the marker"
        assert [record.text for record in broker.read(topic, partition=0)] == ended


@both
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")  # nor has it begun
def test_close_can_be_repeated_where_an_alarm_interrupts_it(process, alarm, tmp_path):
    threads, struck = threading.active_count(), 0
    for milliseconds in (2, 20, 100, 400):
        broker = Broker(process=process, data_dir=tmp_path / "data")
        struck += alarm(broker.start, 1_000 * milliseconds)
        broker.close()
        broker.start()
        assert broker.topics == []
        struck += alarm(broker.close, 100 * milliseconds)
        broker.close()
        assert not broker.is_running
        eventually(lambda: threading.active_count() <= threads, "all threads end")
    assert struck, "no alarm came while it began or ended"
