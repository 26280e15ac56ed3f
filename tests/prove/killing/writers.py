# SPDX-License-Identifier: Apache-2.0
"""Records and commits without a pause."""

import time
from typing import Any

from confluent_kafka import KafkaException, Producer
from tests.prove.killing.actor import END_SECONDS, Actor
from tests.prove.killing.asking import asked
from tests.prove.killing.away import COORDINATOR_MOVES
from tests.prove.killing.journal import Journal
from tests.serve.talk import Talk


class Writer(Actor):
    """Produces numbers; `acknowledged` is what the broker has promised."""

    def __init__(
        self, seed: int, bootstrap: str, journal: Journal, topic: str, *, idempotent: bool
    ) -> None:
        super().__init__(f"writer of {topic}", seed, journal)
        self.acknowledged: set[int] = set()
        self.sent = 0
        self._topic = topic
        settings = {
            "bootstrap.servers": bootstrap,
            "linger.ms": 2,
            "acks": "all",
            "enable.idempotence": idempotent,
            "reconnect.backoff.max.ms": 300,
            "message.timeout.ms": 120_000,
            "log_level": 0,  # of every lost connection it would write a line
        }
        self._producer = Producer(settings)

    def act(self) -> None:
        number = str(self.sent)
        try:
            self._producer.produce(self._topic, number, key=number, on_delivery=self._delivered)
            self.sent += 1
        except BufferError as error:
            self.say(f"{error}")
        self._producer.poll(0)
        time.sleep(0.005)

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            raise KafkaException(error)
        self.acknowledged.add(int(message.value()))
        self._journal.count("records")

    def close(self) -> None:
        assert self._producer.flush(END_SECONDS) == 0


class Committer(Actor):
    """Commits for groups without members as fast as it may, with long texts, so that there is
    always something to clean.
    """

    def __init__(self, seed: int, bootstrap: str, journal: Journal, topic: str) -> None:
        super().__init__("committer", seed, journal)
        self.last = {f"busy {number}": 0 for number in range(8)}
        self._topic = topic
        self.bootstrap = bootstrap
        self._number = 0

    def act(self) -> None:
        with Talk(self.bootstrap, 10) as client:
            while not self.ending.is_set():
                self._number += 1
                group = self.random.choice(list(self.last))
                code = client.commit(group, self._topic, self._number, metadata="x" * 4000)
                assert code in {0, *COORDINATOR_MOVES, *self.excused}, f"{group}: error {code}"
                if code == 0:
                    self.last[group] = self._number
                    self._journal.count("long commits")
                self.ending.wait(0.005)

    def compare(self, promised: dict[str, int]) -> None:
        """Compare what is committed with what had been promised before."""
        for group, offset in promised.items():
            committed = asked(self.bootstrap, lambda client, group=group: client.committed(group))
            found = committed.get((self._topic, 0), 0)
            assert found >= offset, f"{group} holds {found}, {offset} was acknowledged"
