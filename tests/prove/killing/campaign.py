"""One broker, many kills, everybody at work."""

import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

from tests.clients.crew import Crew, create_topic, numbers_read, settled
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
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.initial.rebalance.delay.ms": "300",
    "offsets.topic.num.partitions": "2",
    # A segment is closed every half second, and cleaned at once; the broker looks after its logs
    # four times within the time after which it closes a silent connection.
    "log.roll.ms": "500",
    "log.cleaner.backoff.ms": "100",
    "log.cleaner.min.cleanable.ratio": "0",
    "connections.max.idle.ms": "1600",
    "log.flush.offset.checkpoint.interval.ms": "300",
}
GROUPS = {
    "new": ["confluent-consumer", "confluent-consumer"],
    "old": ["confluent-classic", "confluent-classic"],
    "python": ["kafka-python"],
    "asyncio": ["aiokafka"],
}


class Campaign:
    """Everybody at work on one broker, and what was promised to them."""

    def __init__(
        self, crew: Crew, directory: Path, seed: int, groups: dict[str, list[str]]
    ) -> None:
        self.random = Random(seed)
        self.journal = Journal()
        self.victim = Victim(directory, SETTINGS)
        self.struck: Counter[str] = Counter()
        self.victim.start()
        where = self.victim.bootstrap
        create_topic(where, "t", PARTITIONS)
        self.writer = Writer(seed, where, self.journal, "t", idempotent=True)
        self.committer = Committer(seed, where, self.journal, "t")
        self.topics = Topics(seed, where, self.journal)
        self.keepers = Keepers(seed, where, self.journal, "t", PARTITIONS)
        names = ["t", *self.topics.names]
        self.lives = [Lives(number, seed, where, self.journal, names) for number in range(2)]
        self.churn = Churn(seed, crew, where, self.journal, topic="t", groups=groups)
        self.actors = [
            *(self.writer, self.committer, self.topics, self.keepers),
            *(*self.lives, self.churn),
        ]

    def run(self, kills: int) -> None:
        begin = time.monotonic()
        for actor in self.actors:
            actor.start()
        while self.struck.total() < kills:
            self._kill_once(kills - self.struck.total())
            done = self.struck.total()
            if done % 50 == 0 or done == kills:
                minutes = (time.monotonic() - begin) / 60
                self._tell(f"{done} of {kills} kills in {minutes:.1f} min: {dict(self.struck)}")
        self._end()
        self._tell(f"{kills} kills: {self.journal.summary()}")
        self._tell(f"the broker has warned of {self.victim.warnings()}")

    def _tell(self, text: str) -> None:
        self.journal.say("campaign", text)
        print(text, flush=True)

    def _kill_once(self, left: int) -> None:
        kind = strike(self.random, self.victim)
        self.struck[kind] += 1
        self.journal.say("campaign", f"kill at {kind}")
        promised: Any = self.churn.promised(), dict(self.committer.last)
        for _ in range(min(left - 1, self.random.choice([0, 0, 0, 1, 2]))):
            strike_start(self.random, self.victim)
            self.struck["start"] += 1
            self.journal.say("campaign", "kill at start")
        self.victim.start()
        self.journal.say("campaign", "ready again")
        self.churn.compare(promised[0])
        self.committer.compare(promised[1])
        self.victim.check_log()
        for actor in self.actors:
            actor.check()

    def _end(self) -> None:
        """No more kills: all come to rest, and are compared with the broker after a last one."""
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
        with Talk(self.victim.bootstrap) as client:
            assert stored(client, "t", PARTITIONS) == self.writer.sent
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
        self.victim.check_log()


def stored(client: Talk, name: str, partitions: int) -> int:
    """How many records a topic was given."""
    wanted = [ListOffsetsPartition(partition_index=n, timestamp=-1) for n in range(partitions)]
    topic = ListOffsetsTopic(name=name, partitions=wanted)
    answer = client.ask(ListOffsetsRequest(replica_id=-1, topics=[topic]), 7)
    return sum(one.offset for one in answer.topics[0].partitions)


def killed_again_and_again(
    crew: Crew, directory: Path, kills: int, seed: int, groups: dict[str, list[str]] = GROUPS
) -> None:
    """Run a campaign. Its seed, its last operations and the log are told when it fails."""
    print(f"seed {seed}, {kills} kills")
    campaign = Campaign(crew, directory, seed, groups)
    try:
        campaign.run(kills)
    except BaseException:
        print(campaign.journal)
        print(campaign.victim.lines())
        print(f"seed {seed}, {dict(campaign.struck)}")
        raise
    finally:
        for actor in campaign.actors:
            actor.ending.set()
        campaign.victim.end()
