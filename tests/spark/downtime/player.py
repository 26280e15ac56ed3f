# SPDX-License-Identifier: Apache-2.0
"""Plays a day on a broker, and notes what was done to whom and when. Nothing here looks into the
log, and nobody waits for what the broker says.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from tests.spark.downtime.brokers import SESSION_MS, Hosted
from tests.spark.downtime.days import BROKER, KINDS, Act, Day

from kohort.client.admin import AdminClient, NewTopic

CLIENT = Path(__file__).with_name("client.py")
TOPIC, PARTITIONS = "orders", 4
EVERY_S = 0.05
"""How far the records of a partition are apart."""
LEAVE_S = 60.0


def now() -> int:
    return int(time.time() * 1000)


class Producer(threading.Thread):
    """Writes without pause. What the broker does not take at once is taken when it is back."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(daemon=True)
        self.bootstrap = bootstrap
        self.ending = threading.Event()

    def run(self) -> None:
        from confluent_kafka import Producer

        settings = {"bootstrap.servers": self.bootstrap, "log_level": 0, "linger.ms": 5}
        producer = Producer(settings | {"reconnect.backoff.max.ms": 500})
        due = time.monotonic()
        while not self.ending.is_set():
            for partition in range(PARTITIONS):
                producer.produce(TOPIC, b"x", partition=partition)
            producer.poll(0)
            due += EVERY_S
            self.ending.wait(max(0.0, due - time.monotonic()))


class Client:
    """A process of client.py."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings
        command = [sys.executable, str(CLIENT), json.dumps(settings)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, text=True)

    def order(self, what: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(what + "\n")
        self.process.stdin.flush()

    def signal(self, which: signal.Signals) -> None:
        os.kill(self.process.pid, which)

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(10)


class Player:
    """Plays one day; `truth` is complete when `play` has ended, and the journals are on disk."""

    def __init__(self, hosted: Hosted, day: Day, on: str, journals: Path) -> None:
        self.hosted, self.day, self.journals = hosted, day, journals
        self.clients: dict[str, Client] = {}
        self.producer = Producer(hosted.bootstrap)
        self.done: list[dict[str, Any]] = []
        self.truth: dict[str, Any] = {
            "on": on,
            "seed": day.seed,
            "commit_s": day.commit_s,
            "poll_s": day.poll_s,
            "session_ms": SESSION_MS,
            "done": self.done,
        }

    async def prepare(self) -> None:
        async with AdminClient(self.hosted.bootstrap, timeout=120) as admin:
            (await admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])).all()
            # A new broker has no coordinator yet: this question is repeated until it has one.
            (await admin.list_group_offsets({"nobody": None})).all()

    def play(self) -> None:
        """`prepare` comes before, `end` behind it, also where it fails."""
        self.producer.start()
        for act in self.day.acts:
            if act.what == "wait":
                time.sleep(act.seconds)
            else:
                self.act(act)
        self.truth["ended_at"] = now()

    def act(self, act: Act) -> None:
        at = now()
        names = [BROKER] if act.who == BROKER else [f"{kind}-{act.who}" for kind in KINDS]
        match act.what:
            case "pause":
                self.hosted.pause(act.seconds)
            case "crash":
                self.hosted.crash(act.seconds)
            case "start":
                for kind, name in zip(KINDS, names, strict=True):
                    self.clients[name] = self.client(kind, name)
            case "kill":
                for name in names:
                    self.clients[name].signal(signal.SIGKILL)
            case "stop":
                for name in names:
                    self.clients[name].signal(signal.SIGSTOP)
                time.sleep(act.seconds)
                for name in names:
                    self.clients[name].signal(signal.SIGCONT)
            case "hang" | "leave":
                for name in names:
                    self.clients[name].order(act.what)
        until = now() + (int(self.day.hang_s * 1000) if act.what == "hang" else 0)
        self.done += [{"what": act.what, "who": name, "at": at, "until": until} for name in names]

    def client(self, kind: str, name: str) -> Client:
        return Client(
            {
                "bootstrap": self.hosted.bootstrap,
                "kind": kind,
                "group": kind,
                "client_id": name,
                "topic": TOPIC,
                "journal": str(self.journals / f"{name}.jsonl"),
                "session_ms": SESSION_MS,
                "commit_s": self.day.commit_s,
                "poll_s": self.day.poll_s,
                "max_poll_ms": self.day.max_poll_ms,
                "hang_s": self.day.hang_s,
                "backoff_ms": self.day.backoff_ms,
            }
        )

    def end(self) -> None:
        """Who is left outlives the broker, so that its end is not in the log."""
        self.producer.ending.set()
        for client in self.clients.values():
            client.end()
