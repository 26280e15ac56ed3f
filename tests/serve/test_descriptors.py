# SPDX-License-Identifier: Apache-2.0
"""A low limit of open files: partitions do not take what clients need, nor clients what logs do."""

import resource
import socket
import subprocess
from contextlib import ExitStack

import pytest
from tests.serve.few_descriptors import (
    create,
    delete,
    fill_and_restart,
    limited,
    open_files,
    without_leader,
    write,
)
from tests.serve.talk import Talk, address_of, command
from tests.waiting import eventually

from kohort.errors import ErrorCode
from kohort.wire.messages.api_versions import ApiVersionsRequest
from kohort.wire.messages.init_producer_id import InitProducerIdRequest

ASK = ApiVersionsRequest(client_software_name="talk", client_software_version="1")


@pytest.mark.parametrize("sync", ["group", "none"])
def test_more_partitions_than_descriptors_are_served_and_so_are_new_clients(tmp_path, sync):
    fill_and_restart(90, 2, 100, tmp_path, "-X", f"log.sync={sync}")


def test_a_limit_that_is_too_low_is_told_at_the_start(tmp_path):
    def few():
        resource.setrlimit(resource.RLIMIT_NOFILE, (50, 50))

    done = subprocess.run(
        command("--listen", "127.0.0.1:0", "--data-dir", str(tmp_path)),
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
        preexec_fn=few,
    )
    assert done.returncode == 1
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert "the limit of open files is 50 (`ulimit -n`), expected at least " in line
    assert "4 are for the logs of groups and transactions" in line


def test_a_topic_whose_logs_must_stay_open_is_refused_where_they_cannot(tmp_path):
    few = "-X", "transaction.state.log.num.partitions=100"
    with limited(120, tmp_path, *few) as broker, broker.talk() as client:
        code, text = create(client, "__transaction_state", 100)
        assert code == ErrorCode.INVALID_PARTITIONS
        assert "the limit of open files is 120 (`ulimit -n`), expected at least 1" in text
        request = InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=1000)
        eventually(
            lambda: client.ask(request).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE,
            "a refusal",
        )
        assert create(client, "others", 200) == (0, None)
        assert delete(client, "others") == 0


def test_connections_beyond_their_share_are_refused_and_the_others_are_served(tmp_path):
    with limited(150, tmp_path) as broker:
        admitted: list[Talk] = []
        while len(admitted) < 150:
            client = broker.talk()
            try:
                assert client.ask(ASK).error_code == 0
            except (EOFError, ConnectionError):
                client.socket.close()
                break
            admitted.append(client)
        assert 8 <= len(admitted) < 100
        assert open_files(broker) < 150
        client = admitted.pop()
        assert create(client, "many", 100) == (0, None)
        eventually(lambda: not without_leader(client, "many"), "leaders")
        for index in range(100):
            assert client.produce("many", b"x", index=index).error_code == 0
        client.socket.close()
        eventually(lambda: _served(broker), "a place for the next one")
        for one in admitted:
            one.socket.close()
        assert broker.end() == 0
        assert "their share of the limit of open files, 150 (`ulimit -n`)" in broker.errors


@pytest.mark.parametrize("loop", ["uvloop", "asyncio"])
def test_a_crowd_that_comes_at_once_takes_no_descriptor_from_anybody(tmp_path, monkeypatch, loop):
    if loop == "asyncio":
        (tmp_path / "without").mkdir()
        (tmp_path / "without" / "uvloop.py").write_text("raise ImportError\n")
        monkeypatch.setenv("PYTHONPATH", str(tmp_path / "without"))
    else:
        pytest.importorskip("uvloop")
    with limited(150, tmp_path / "data") as broker, broker.talk() as client, ExitStack() as crowd:
        assert create(client, "many", 100) == (0, None)
        eventually(lambda: not without_leader(client, "many"), "leaders")
        for _ in range(500):
            one = crowd.enter_context(socket.socket())
            one.setblocking(False)
            one.connect_ex(address_of(broker.address))
        write(client, "many", 100, b"x")
        assert create(client, "more") == (0, None)
        crowd.close()
        eventually(lambda: _served(broker), "a place for the next one")
        assert broker.end() == 0


def _served(broker) -> bool:
    with broker.talk() as client:
        try:
            return client.ask(ASK).error_code == 0
        except (EOFError, ConnectionError):
            return False
