# SPDX-License-Identifier: Apache-2.0
"""One broker, many kills, everybody at work."""

import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any, Self

from tests.clients.member_processes import Crew, create_topic, numbers_read, settled
from tests.prove.killing.asking import asked
from tests.prove.killing.groups import Keepers, Lives
from tests.prove.killing.journal import Journal
from tests.prove.killing.members import Churn
from tests.prove.killing.topics import Topics
from tests.prove.killing.victim import Victim, strike, strike_start
from tests.prove.killing.writers import Committer, Writer
from tests.serve.talk import Talk
from tests.waiting import eventually

from kohort.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)

PARTITIONS = 6
SETTINGS = {
    "auto.create.topics.enable": "false",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "3000",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.initial.rebalance.delay.ms": "100",
    "offsets.topic.num.partitions": "2",
    # A segment is closed every half second, and cleaned at once; the broker looks after its logs
    # four times within the time after which it closes a silent connection.
    "log.roll.ms": "500",
    "log.cleaner.backoff.ms": "100",
    "log.cleaner.min.cleanable.ratio": "0",
    "connections.max.idle.ms": "1600",
    "log.flush.offset.checkpoint.interval.ms": "300",
}
PROGRESS = (
    "records",
    "long commits",
    "commits by keeper",
    "groups deleted",
    "topics made",
    "topics deleted",
    "joins",
)
GROUPS = {
    "new": ["confluent-consumer", "confluent-consumer"],
    "old": ["confluent-classic", "confluent-classic"],
    "python": ["kafka-python"],
    "asyncio": ["aiokafka"],
}


class Campaign:
    """Everybody at work on one broker, and what was promised to them. In a `with` block; its seed,
    the last operations and the log are told when it fails.
    """

    def __init__(
        self,
        crew: Crew,
        directory: Path,
        seed: int,
        *,
        groups: dict[str, list[str]] = GROUPS,
        lives: int = 2,
        pause: tuple[float, float] = (3, 6),
        data: Path | None = None,
        never: tuple[str, ...] = ("Traceback", " ERROR ", " has failed"),
        excused: frozenset[int] = frozenset(),
    ) -> None:
        """`pause` has the seconds between two changes of the members, `never` what the broker must
        not write, and `excused` the codes that it may answer besides those of one that is away.
        """
        self.random = Random(seed)
        self.journal = Journal()
        self.victim = Victim(directory, SETTINGS, data)
        self.struck: Counter[str] = Counter()
        self._seed = seed
        self._never = never
        self.victim.start()
        where = self.victim.bootstrap
        create_topic(where, "t", PARTITIONS)
        self.writer = Writer(seed, where, self.journal, "t", idempotent=True)
        self.committer = Committer(seed, where, self.journal, "t")
        self.topics = Topics(seed, where, self.journal)
        self.keepers = Keepers(seed, where, self.journal, "t", PARTITIONS)
        names = ["t", *self.topics.names]
        self.lives = [Lives(number, seed, where, self.journal, names) for number in range(lives)]
        self.churn = Churn(seed, crew, where, self.journal, topic="t", groups=groups, pause=pause)
        self.actors = [
            *(self.writer, self.committer, self.topics, self.keepers),
            *(*self.lives, self.churn),
        ]
        for actor in self.actors:
            actor.excused |= excused

    def __enter__(self) -> Self:
        for actor in self.actors:
            actor.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            print(self.journal)
            print(self.victim.lines())
            print(f"seed {self._seed}, {dict(self.struck)}", flush=True)
        for actor in self.actors:
            actor.ending.set()
        self.victim.end()

    def tell(self, text: str) -> None:
        self.journal.say("campaign", text)
        print(text, flush=True)

    def promised(self) -> tuple[Any, Any]:
        """What `compare` must find: ask while the broker is away."""
        return self.churn.promised(), dict(self.committer.last)

    def compare(self, promised: tuple[Any, Any]) -> None:
        """Compare what the broker has with what it had promised, and look at everybody."""
        self.journal.say("campaign", "ready again")
        self.churn.compare(promised[0])
        self.committer.compare(promised[1])
        self.victim.check_log(*self._never)
        self.check()

    def check(self) -> None:
        for actor in self.actors:
            actor.check()

    def goes_on(self) -> None:
        """Wait until something new has been acknowledged to everybody."""
        before = self.journal.counts.copy()
        for what in PROGRESS:

            def more(what: str = what) -> bool:
                self.check()
                return self.journal.counts[what] > before[what]

            eventually(more, f"more than {before[what]} {what}")

    def end(self) -> None:
        """No more faults: all come to rest, and are compared with the broker after a last kill."""
        for actor in self.actors:
            actor.end()
        for group, members in self.churn.members.items():
            eventually(
                lambda group=group: (
                    set(numbers_read(self.churn.everybody(group))) >= self.writer.acknowledged
                ),
                f"every acknowledged record was read by {group}",
            )
            settled(members, PARTITIONS)
        found = asked(self.victim.bootstrap, lambda client: stored(client, "t", PARTITIONS))
        assert found == self.writer.sent
        self.victim.kill()
        self.victim.start()
        self.topics.look()
        for name, belief in self.topics.names.items():
            if belief.there:
                self.topics.compare(name, belief)
        for groups in (self.keepers, *self.lives):
            for group in groups.possible:
                groups.compare(group)
        for lives in self.lives:
            lives.join_all(PARTITIONS, eventually)
        self.victim.check_log(*self._never)
        self.tell(self.journal.summary())
        self.tell(f"the broker has warned of {self.victim.warnings()}")


def kill_again_and_again(campaign: Campaign, kills: int) -> None:
    begin, told = time.monotonic(), 0
    struck = campaign.struck
    while (done := struck.total()) < kills:
        _kill_once(campaign, kills - done)
        if struck.total() >= min(told + 50, kills):
            campaign.goes_on()
            told = struck.total()
            minutes = (time.monotonic() - begin) / 60
            campaign.tell(f"{told} of {kills} kills in {minutes:.1f} min: {dict(struck)}")


def _kill_once(campaign: Campaign, left: int) -> None:
    """Kill the broker that runs, and perhaps the next ones before they are ready."""
    kind = strike(campaign.random, campaign.victim)
    campaign.struck[kind] += 1
    campaign.journal.say("campaign", f"kill at {kind}")
    promised = campaign.promised()
    for _ in range(min(left - 1, campaign.random.choice([0, 0, 0, 1, 2]))):
        strike_start(campaign.random, campaign.victim)
        campaign.struck["start"] += 1
        campaign.journal.say("campaign", "kill at start")
    campaign.victim.start()
    campaign.compare(promised)


def restart_now_and_then(campaign: Campaign, seconds: float, restarts: int) -> None:
    """Let everybody work for so long; restart the broker that many times, killed or stopped."""
    for number in range(restarts):
        time.sleep(seconds / (restarts + 1))
        if number % 2:
            campaign.journal.say("campaign", "stop")
            campaign.victim.stop()
        else:
            campaign.journal.say("campaign", "kill")
            campaign.victim.kill()
        promised = campaign.promised()
        campaign.victim.start()
        campaign.compare(promised)
        campaign.tell(f"restart {number + 1} of {restarts}: {campaign.journal.summary()}")
    time.sleep(seconds / (restarts + 1))


def stored(client: Talk, name: str, partitions: int) -> int:
    """How many records a topic was given."""
    wanted = [ListOffsetsPartition(partition_index=n, timestamp=-1) for n in range(partitions)]
    topic = ListOffsetsTopic(name=name, partitions=wanted)
    answer = client.ask(ListOffsetsRequest(replica_id=-1, topics=[topic]), 7)
    return sum(one.offset for one in answer.topics[0].partitions)
