# SPDX-License-Identifier: Apache-2.0
"""A round: a broker without sockets, hostile streams on many connections, and honest groups that
are asked again and again. Seed and number of a round say all about it.
"""

import re
from functools import cache
from random import Random

from tests.prove.fuzzing.honest import MARK, SILENCE_MS, Honest
from tests.prove.fuzzing.replayed import compare_with_replay
from tests.serve.hostile import TEXTS, requests, stream
from tests.server.desk import Desk
from tests.world import Client

from kohort.errors import WireError
from kohort.server.network.connection import Connection
from kohort.server.network.dispatcher import RequestDispatcher
from kohort.sim.disk import SimulatedFiles
from kohort.terms import Millis

FRAMES = 20_000  # of a round
STREAM_FRAMES = 8
OPEN_MAX = 12  # hostile connections that are left open for a while
ASK_EVERY = 40  # streams
REPLAY_EVERY = 1000
DISK_EVERY = 5  # rounds: the others keep their logs in memory, which is quicker
LEARNED_MAX = 40
SETTINGS = {
    "offsets.topic.num.partitions": "3",
    "max.partitions": "300",
    "group.initial.rebalance.delay.ms": "1000",
    "group.min.session.timeout.ms": "10",  # so that foreign sessions end, too
    "log.roll.ms": "60000",
    "log.cleaner.min.cleanable.ratio": "0",
}
# The ids that the broker has given to members, as they are in its answers.
NAMES_GIVEN = re.compile(
    rb"[!-~]{0,40}[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
)


@cache
def frames() -> tuple[bytes, ...]:
    found = tuple(requests())
    assert not any(MARK.encode() in one for one in found)
    return found


class Counting:
    """The dispatcher, with the number of frames that have arrived at it."""

    def __init__(self, dispatcher: RequestDispatcher) -> None:
        self._door = dispatcher
        self.frames = 0

    def take(self, connection: Connection, frame: bytes, now: Millis) -> bool:
        try:
            taken = self._door.take(connection, frame, now)
        except WireError:
            self.frames += 1
            raise
        self.frames += taken
        return taken

    def lose(self, connection: Connection, error: WireError) -> None:
        self._door.lose(connection, error)


class Round:
    """Plays one round. An AssertionError tells what broke."""

    def __init__(self, seed: int, number: int) -> None:
        self._random = Random(f"{seed}/{number}")
        self.on_disk = number % DISK_EVERY == DISK_EVERY - 1
        self._settings = {name.replace(".", "_"): text for name, text in SETTINGS.items()}
        self._disk = SimulatedFiles() if self.on_disk else None
        self.desk = Desk(files=self._disk, seed=number, **self._settings)
        self.honest = Honest(self.desk)
        self._door = self.desk.dispatchers[0] = Counting(self.desk.dispatchers[0])
        self._open: list[Client] = []
        self._texts = [*TEXTS, "g", "group", "m", "first", "range", "uniform", "consumer"]
        self._own_texts = len(self._texts)
        self.groups_compared = 0
        self.most_groups = 0

    def play(self, count: int = FRAMES) -> int:
        """Send streams until so many foreign frames have arrived; how many have."""
        number = arrived = 0
        while arrived < count:
            before = self._door.frames
            self._send()
            arrived += self._door.frames - before
            number += 1
            if number % ASK_EVERY == 0:
                self.desk.advance(self._random.randrange(SILENCE_MS))
                self.honest.ask()
                self._look()
            if number % REPLAY_EVERY == REPLAY_EVERY - 1:
                self._compare()
        self.end()
        return arrived

    def _send(self) -> None:
        random = self._random
        data = stream(random, frames(), STREAM_FRAMES, self._texts)
        if self._open and random.random() < 0.3:
            client = self._open.pop(random.randrange(len(self._open)))
        else:
            client = self.desk.connect()
        cut = random.randrange(len(data) + 1) if random.random() < 0.5 else len(data)
        for part in (data[:cut], data[cut:]):
            if part and not client.closed:
                client.send(part)
        self._learn(client)
        error = client.connection.error
        assert error is None or isinstance(error, WireError), repr(error)
        if client.closed or len(self._open) >= OPEN_MAX or random.random() < 0.5:
            self._hang_up(client)
        else:
            self._open.append(client)

    def _learn(self, client: Client) -> None:
        """Use the ids that the broker gives to members, as a member would."""
        for answer in client.answers:
            for found in NAMES_GIVEN.findall(answer[:4000]):
                name = found.decode()
                if MARK not in name and name not in self._texts:
                    self._texts.append(name)
        client.answers.clear()
        if len(self._texts) > self._own_texts + LEARNED_MAX:
            del self._texts[self._own_texts : -LEARNED_MAX // 2]

    def _hang_up(self, client: Client) -> None:
        for slot in client.connection.slots:
            self.desk.cluster.fetch_purgatory.cancel(slot)
        client.connection.close()

    def _look(self) -> None:
        """Nothing is told as an error, and what the broker keeps for its clients is bounded."""
        cluster = self.desk.cluster
        assert self.desk.told.errors == []
        assert len(cluster.fetch_purgatory) <= len(self._open)
        assert cluster.table.whole
        assert all(driver.active for driver in cluster.drivers.values())
        self.most_groups = max(
            self.most_groups, sum(len(one.machine.groups) for one in cluster.drivers.values())
        )

    def _compare(self) -> None:
        self.desk.settle()
        self.groups_compared += compare_with_replay(self.desk.cluster)

    def end(self) -> None:
        """All foreigners go: what they have left is bounded, and the log has all of the rest."""
        for client in self._open:
            self._hang_up(client)
        self._open.clear()
        self._compare()
        self.honest.ask()
        self.honest.read()
        if self._disk is None:
            return
        self.desk.housekeep()
        self._compare()
        self.honest.ask()
        self._disk = self._disk.after_crash()
        self.desk = Desk(files=self._disk, seed=0, now=self.desk.now, **self._settings)
        self.honest.on(self.desk).ask()
        self.honest.read()
        self._compare()
        self._look()
