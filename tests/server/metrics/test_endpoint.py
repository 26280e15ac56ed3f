# SPDX-License-Identifier: Apache-2.0
"""The endpoint: what a scraper gets, and what a bad one cannot do."""

import asyncio
import socket
import urllib.error
import urllib.request
from dataclasses import replace

import pytest
import pytest_asyncio
from tests.observer import RecordingObserver
from tests.waiting import SOON_S, eventually

from kohort.server.broker import Broker
from kohort.server.metrics.metrics import METRICS, PROCESS, served_name

pytest.importorskip("prometheus_client", reason="the extra `metrics` is not installed")

from prometheus_client.parser import text_string_to_metric_families

from kohort.server.metrics import endpoint as metrics_endpoint
from kohort.server.metrics.endpoint import CONNECTIONS_MAX, REQUEST_BYTES_MAX, MetricsEndpoint

SETTINGS = {"offsets.topic.num.partitions": 3, "log.sync": "none"}


def get(endpoint, path="/metrics"):
    url = f"http://{endpoint.host}:{endpoint.port}{path}"
    try:
        with urllib.request.urlopen(url, timeout=SOON_S) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def raw(endpoint, data, *, read=True):
    client = socket.create_connection((endpoint.host, endpoint.port), SOON_S)
    client.sendall(data)
    if not read:
        return client
    with client:
        found = b""
        while part := client.recv(1 << 16):
            found += part
    return found


@pytest_asyncio.fixture
async def broker():
    async with Broker(SETTINGS) as broker:
        yield broker


@pytest.fixture
def endpoint(broker):
    endpoint = MetricsEndpoint(broker, "127.0.0.1", 0)
    endpoint.start()
    yield endpoint
    endpoint.stop()


async def asked(endpoint, path="/metrics"):
    return await asyncio.to_thread(get, endpoint, path)


@pytest.mark.asyncio
async def test_what_is_served_is_what_is_listed(broker, endpoint):
    """The page of the documentation is made from the list."""
    status, text = await asked(endpoint)
    families = list(text_string_to_metric_families(text))
    served = {sample.name for family in families for sample in family.samples}
    of_requests = {served_name(one) for one in METRICS if "requestmetrics" in one.name}
    assert status == 200
    assert served == {served_name(one) for one in METRICS} - of_requests | set(PROCESS)
    kinds = {family.name: family.type for family in families}
    for metric in METRICS:
        assert kinds[metric.name] == metric.kind
        assert f"# HELP {served_name(metric)} {metric.text}" in text


@pytest.mark.asyncio
async def test_a_metric_that_cannot_be_read_is_told_once_and_the_others_are_served(
    broker, endpoint, monkeypatch
):
    def fails(_reading):
        raise RuntimeError("dictionary changed size during iteration")

    monkeypatch.setattr(metrics_endpoint, "FRESH_SECONDS", 0.0)
    told = RecordingObserver()
    broker.cluster.observe = told
    faulty = replace(METRICS[3], read=fails)
    monkeypatch.setattr(metrics_endpoint, "METRICS", [*METRICS[:3], faulty, *METRICS[4:]])
    for _ in range(2):
        status, text = await asked(endpoint)
        assert status == 200
        assert f"# HELP {served_name(METRICS[3])} " not in text
        for metric in (*METRICS[:3], *METRICS[4:]):
            assert f"# HELP {served_name(metric)} " in text
    (line,) = told.errors
    assert f"metric {faulty.name} cannot be read" in line
    for read in (METRICS[3].read, fails):  # it is read once more, and what comes then is new
        faulty = replace(faulty, read=read)
        monkeypatch.setattr(metrics_endpoint, "METRICS", [faulty])
        await asked(endpoint)
    assert told.errors == [line, line]


@pytest.mark.asyncio
async def test_who_asks_and_does_not_read_is_let_go_and_others_are_served(endpoint, monkeypatch):
    monkeypatch.setattr(metrics_endpoint, "SECONDS_MAX", 1.0)
    monkeypatch.setattr(metrics_endpoint, "FRESH_SECONDS", 3600.0)
    await asked(endpoint)
    endpoint._page = b"x" * (64 << 20)  # more than fits on the way

    def besiege():
        asking = b"GET /metrics HTTP/1.1\r\n\r\n"
        lazy = [raw(endpoint, asking, read=False) for _ in range(CONNECTIONS_MAX - 1)]
        assert get(endpoint, "/healthz")[0] == 200
        eventually(lambda: endpoint._open == 0, "nobody is served any more")
        for client in lazy:
            client.close()

    await asyncio.to_thread(besiege)


@pytest.mark.asyncio
async def test_the_health_check_is_answered_however_many_pages_are_on_their_way(
    endpoint, monkeypatch
):
    monkeypatch.setattr(metrics_endpoint, "SECONDS_MAX", SOON_S)
    monkeypatch.setattr(metrics_endpoint, "FRESH_SECONDS", 3600.0)
    await asked(endpoint)
    endpoint._page = b"x" * (64 << 20)

    def besiege():
        asking = b"GET /metrics HTTP/1.1\r\n\r\n"
        lazy = [raw(endpoint, asking, read=False) for _ in range(CONNECTIONS_MAX)]
        eventually(lambda: endpoint._open == CONNECTIONS_MAX, "not everybody is served")
        assert get(endpoint, "/healthz") == (200, "ready\n")
        assert get(endpoint) == (503, "32 pages are on their way, expected fewer\n")
        for client in lazy:
            client.close()
        eventually(lambda: not endpoint._open, "the pages are still on their way")

    await asyncio.to_thread(besiege)


@pytest.mark.asyncio
async def test_ready_or_not(broker, endpoint):
    assert await asked(endpoint, "/healthz") == (200, "ready\n")
    broker.cluster.drivers[1].start_loading()
    assert await asked(endpoint, "/healthz") == (503, "__consumer_offsets-1 is loading\n")
    await broker.stop()
    assert await asked(endpoint, "/healthz") == (503, "the broker is not started\n")
    status, text = await asked(endpoint)
    assert status == 200
    assert "kafka_" not in text


@pytest.mark.asyncio
async def test_nothing_else_is_served(endpoint):
    assert (await asked(endpoint, "/"))[0] == 404
    answer = await asyncio.to_thread(raw, endpoint, b"POST /metrics HTTP/1.1\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 405 ")


@pytest.mark.asyncio
async def test_a_request_has_a_bound(endpoint):
    endless = b"GET /metrics HTTP/1.1\r\nX: " + b"x" * 3 * REQUEST_BYTES_MAX
    answer = await asyncio.to_thread(raw, endpoint, endless + b"\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 400 ")


@pytest.mark.asyncio
@pytest.mark.parametrize("said", [b"", b"GET /met", b"GET /healthz HTTP/1.1\r\n"])
async def test_silent_connections_take_the_health_check_from_nobody(endpoint, said):
    """The next one closes the oldest of them; they are never more than the limit."""

    def besiege():
        silent = [raw(endpoint, said, read=False) for _ in range(CONNECTIONS_MAX + 1)]
        assert silent[0].recv(1) == b""
        for path in ("/healthz", "/healthz", "/metrics"):
            assert get(endpoint, path)[0] == 200
        assert len(endpoint._silent) <= CONNECTIONS_MAX
        silent[-1].sendall(b"\r\n\r\n")  # it was kept
        assert silent[-1].recv(1 << 16).startswith(b"HTTP/1.1 ")
        for client in silent:
            client.close()

    await asyncio.to_thread(besiege)


@pytest.mark.asyncio
async def test_a_silent_connection_does_not_stay(endpoint, monkeypatch):
    monkeypatch.setattr(metrics_endpoint, "SECONDS_MAX", 0.1)

    def wait():
        with raw(endpoint, b"GET /met", read=False) as silent:
            assert silent.recv(1) == b""

    await asyncio.to_thread(wait)
    assert not endpoint._silent


@pytest.mark.asyncio
async def test_the_broker_goes_on_while_scrapers_press(broker, endpoint):
    """Its own loop takes part in none of it."""
    pages = [asyncio.create_task(asked(endpoint)) for _ in range(20)]
    reader, writer = await asyncio.open_connection(*broker.addresses[0])
    versions = bytes.fromhex("00000011 0012 0000 00000001 0007 6b6f686f727431".replace(" ", ""))
    writer.write(versions)
    size = int.from_bytes(await reader.readexactly(4))
    assert int.from_bytes((await reader.readexactly(size))[:4]) == 1
    writer.close()
    assert {status for status, _ in await asyncio.gather(*pages)} == {200}


@pytest.mark.asyncio
async def test_a_page_is_not_made_for_each_of_many(broker, endpoint, monkeypatch):
    made = []
    generate = metrics_endpoint.generate_latest
    monkeypatch.setattr(
        metrics_endpoint, "generate_latest", lambda one: made.append(1) or generate(one)
    )
    monkeypatch.setattr(metrics_endpoint, "FRESH_SECONDS", 3600.0)
    endpoint._made_at = float("-inf")
    for _ in range(5):
        await asked(endpoint)
    assert len(made) == 1


@pytest.mark.asyncio
async def test_a_port_that_is_taken_is_said(endpoint, broker):
    with pytest.raises(OSError, match="in use"):
        MetricsEndpoint(broker, "127.0.0.1", endpoint.port).start()
