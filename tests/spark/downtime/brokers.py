# SPDX-License-Identifier: Apache-2.0
"""The two brokers of a story, and what may happen to them: a pause, and a death with a return."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.peers.kafka import Kafka
from tests.spark.histories.record_server_log import LOG4J

from kohort.testing import Broker

SESSION_MS = 6000
SETTINGS = {
    "offsets.topic.num.partitions": "4",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": str(SESSION_MS),
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "1000",
    "group.initial.rebalance.delay.ms": "0",
}
FLAGS = ("-Duser.timezone=UTC", "-Dlog4j2.configurationFile=log4j2.properties")


class Hosted(NamedTuple):
    """A broker that runs in a process of its own."""

    broker: Any
    bootstrap: str
    data: Path
    said: Path
    """What it writes about members that are gone, where it does so; else there is no such file."""

    def pause(self, seconds: float) -> None:
        """SIGSTOP, and SIGCONT after so long."""
        os.kill(self.broker.pid, signal.SIGSTOP)
        try:
            time.sleep(seconds)
        finally:
            os.kill(self.broker.pid, signal.SIGCONT)

    def crash(self, seconds: float) -> None:
        """SIGKILL, and a start on the same directory after so long."""
        self.broker.kill()
        time.sleep(seconds)
        self.broker.start()

    def stop(self) -> None:
        self.broker.stop()


@contextmanager
def running(on: str, directory: Path) -> Iterator[Hosted]:
    if on == "kafka":
        (directory / "log4j2.properties").write_text(LOG4J)
        with Kafka(SETTINGS, heap="384M", directory=directory, flags=FLAGS) as kafka:
            yield Hosted(kafka, kafka.address, kafka.data, directory / "server.log")
    else:
        with Broker(SETTINGS, data_dir=directory, process=True) as broker:
            yield Hosted(broker, broker.bootstrap, directory, directory / "server.log")
