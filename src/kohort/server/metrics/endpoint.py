# SPDX-License-Identifier: Apache-2.0
"""The endpoint of a broker's metrics: HTTP, on a thread and a loop of its own.

A scraper that is slow, silent or greedy holds up no client of the broker, and few other scrapers:
connections, bytes and seconds are bounded, and a page is made at most once in a while, however
often it is asked for. Of those that have asked nothing yet the oldest makes room for the next, and
a health check is answered however many pages are on their way.
"""

import asyncio
import socket
import threading
from collections.abc import Iterator
from typing import Any, Protocol

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from kohort.runtime.clocks import monotonic
from kohort.runtime.driver import INTERNAL
from kohort.server.cluster import Cluster
from kohort.server.metrics.meters import Traffic
from kohort.server.metrics.metrics import COUNTER, METRICS, MetricsSnapshot, missing

CONNECTIONS_MAX = 32  # that have asked nothing yet, and again that take a page
AT_ONCE_MAX = 16  # connections in one go: they can speak before they are the oldest
REQUEST_BYTES_MAX = 8192
SECONDS_MAX = 10.0  # for a whole connection: the request, the page, and its way to the client
FRESH_SECONDS = 0.5  # a page is as good for the next scraper
_TEXT = "text/plain; charset=utf-8"

Page = tuple[int, str, bytes]
"""Status, content type, body."""

REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed"}
REASONS[503] = "Service Unavailable"


class MetricsSource(Protocol):
    """The broker, as its metrics need it."""

    @property
    def cluster(self) -> Cluster | None: ...
    @property
    def traffic(self) -> Traffic: ...


class MetricFamilies:
    """The numbers of a broker, for the library that writes them."""

    def __init__(self, broker: MetricsSource) -> None:
        self._broker = broker
        self._told: set[str] = set()

    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        cluster = self._broker.cluster
        if cluster is None:
            return
        reading = MetricsSnapshot(cluster, self._broker.traffic)
        for metric in METRICS:
            make = CounterMetricFamily if metric.kind == COUNTER else GaugeMetricFamily
            family = make(metric.name, metric.text, labels=metric.labels)
            try:
                for labels, number in metric.read(reading):
                    family.add_metric(labels, number)
            except Exception as error:  # noqa: BLE001  (the others are served)
                self._tell(cluster, metric.name, error)
                continue
            self._told.discard(metric.name)
            yield family

    def _tell(self, cluster: Cluster, name: str, error: Exception) -> None:
        """Say that a metric cannot be read, once until it is: scrapers come every few seconds."""
        if name not in self._told:
            self._told.add(name)
            why = f"{type(error).__name__}: {error}"
            cluster.observe.error(f"{INTERNAL}metric {name} cannot be read: {why}")


class MetricsEndpoint:
    """Serves `/metrics` and `/healthz` from `start` until `stop`, also while the broker does not
    run: it is not ready then.
    """

    def __init__(self, broker: MetricsSource, host: str, port: int) -> None:
        self.host, self.port = host, port
        self._broker = broker
        self._registry = CollectorRegistry()
        families: Any = MetricFamilies(broker)
        self._registry.register(families)
        ProcessCollector(registry=self._registry)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._serving = threading.Event()
        self._page = b""
        self._made_at = float("-inf")
        self._open = 0  # connections that take a page
        self._silent: dict[asyncio.WriteTransport, None] = {}  # the oldest comes first

    def start(self) -> None:
        """Bind the port; `port` is the real one then. Raises OSError when it is taken."""
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        listener = socket.create_server((self.host, self.port), family=family)
        self.port = listener.getsockname()[1]
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._main(listener)), name="kohort-metrics", daemon=True
        )
        self._thread.start()
        self._serving.wait()

    def stop(self) -> None:
        """Close the port and all connections."""
        if self._loop is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._stopped.set)
            self._thread.join()
            self._loop = self._thread = None

    async def _main(self, listener: socket.socket) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopped = asyncio.Event()
        server = await asyncio.start_server(
            self._serve, sock=listener, limit=REQUEST_BYTES_MAX, backlog=AT_ONCE_MAX
        )
        listener.listen()  # more than that may wait in the system's queue
        self._serving.set()
        await self._stopped.wait()
        server.close()  # those that are still served end with the loop

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        transport = writer.transport
        try:
            async with asyncio.timeout(SECONDS_MAX):
                head = await self._request(reader, transport)
                if _target(head) == (b"GET", b"/metrics"):
                    await self._send_page(writer)
                else:
                    await _send(writer, self._answer(head))
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            pass  # the scraper has gone, or takes too long
        finally:
            transport.abort()

    async def _request(
        self, reader: asyncio.StreamReader, transport: asyncio.WriteTransport
    ) -> bytes:
        """The head of the request; empty where it is too long."""
        silent = self._silent
        silent[transport] = None
        if len(silent) > CONNECTIONS_MAX:
            oldest = next(iter(silent))
            del silent[oldest]
            oldest.abort()
        try:
            return await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            return b""
        finally:
            silent.pop(transport, None)

    async def _send_page(self, writer: asyncio.StreamWriter) -> None:
        if self._open >= CONNECTIONS_MAX:
            text = f"{CONNECTIONS_MAX} pages are on their way, expected fewer\n"
            await _send(writer, (503, _TEXT, text.encode()))
            return
        self._open += 1
        try:
            await _send(writer, (200, CONTENT_TYPE_PLAIN_0_0_4, self._metrics()))
        finally:
            self._open -= 1

    def _answer(self, head: bytes) -> Page:
        """The answer to all but a scraper."""
        if not head:
            return 400, _TEXT, b"the request is too long\n"
        method, path = _target(head)
        if method != b"GET":
            return 405, _TEXT, b"only GET is served\n"
        if path == b"/healthz":
            lacking = missing(self._broker.cluster)
            text = "\n".join(lacking or ["ready"]) + "\n"
            return (503 if lacking else 200), _TEXT, text.encode()
        return 404, _TEXT, b"there are /metrics and /healthz\n"

    def _metrics(self) -> bytes:
        now = monotonic()
        if now - self._made_at >= FRESH_SECONDS:
            self._page = generate_latest(self._registry)
            self._made_at = now
        return self._page


def _target(head: bytes) -> tuple[bytes, bytes]:
    """The method and the path of a request."""
    method, _, rest = head.partition(b" ")
    return method, rest.partition(b" ")[0].partition(b"?")[0]


async def _send(writer: asyncio.StreamWriter, answer: Page) -> None:
    writer.write(_response(answer))
    await writer.drain()
    writer.close()
    await writer.wait_closed()


def _response(answer: Page) -> bytes:
    status, kind, body = answer
    head = (
        f"HTTP/1.1 {status} {REASONS[status]}\r\nContent-Type: {kind}\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body
