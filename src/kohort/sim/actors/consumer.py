# SPDX-License-Identifier: Apache-2.0
"""A member of a KIP-848 group as a real consumer would be one: by the machine of the client."""

from random import Random
from typing import Any, ClassVar

from kohort import expressions
from kohort.client.members.heartbeat import MemberConfig
from kohort.client.members.membership import Membership
from kohort.client.members.retry_backoff import RetryBackoff
from kohort.errors import ErrorCode
from kohort.sim.actor_context import ActorContext
from kohort.sim.actors.member import REBALANCE_MS, Member
from kohort.sim.facts import PartitionId
from kohort.terms import GroupId, MemberId

GROUPS = 2
TOPICS = ("home", "apples", "pears", "plums")
VERSION = 1
EXPRESSIONS = ("p.+s", "apples|plums", "(?i)P(ears|lums)", "no-such-topic.*")


class Consumer(Member):
    """Shares its groups with raw consumers, which let go of partitions at once."""

    kind: ClassVar[str] = "consumer"
    machine: Membership

    def __init__(self, stage: ActorContext, number: int) -> None:
        super().__init__(stage, number)
        self.group = f"consumers-{number % GROUPS}"
        self.instance_id = self.instance_of("consumer")

    def new_machine(self) -> Membership:
        random = self.random
        names, regex = _subscription(random)
        config = MemberConfig(
            names=names,
            regex=regex,
            rebalance_timeout_ms=REBALANCE_MS,
            server_assignor=random.choice([None, None, "range", "uniform"]),
        )
        member_id = MemberId(f"{self.name}-{self.lives}".replace(" ", "-"))
        backoff = RetryBackoff(jitter_permille=random.randrange(-200, 201))
        return Membership(
            GroupId(self.group), member_id, config, backoff, instance_id=self.instance_id
        )

    def member_id(self) -> str:
        return self.machine.member_id

    def epoch(self) -> int:
        return self.machine.epoch

    def topics(self) -> tuple[str, ...]:
        config = self.machine.config
        if not config.regex:
            return config.names
        found = (topic for topic in TOPICS if expressions.matches(config.regex, topic))
        return tuple(dict.fromkeys((*config.names, *found)))

    def version_of(self, request: Any) -> int:
        del request
        return VERSION

    def counts(self, request: Any, answer: Any, sent: int) -> bool:
        del sent  # a coordinator that is loading refuses
        return not answer.error_code and request.member_epoch >= 0

    def expels(self, request: Any, answer: Any) -> bool:
        unknown: bool = answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
        return unknown and request.member_epoch > 0

    def place(self, partition: Any) -> PartitionId:
        return partition.topic_id, partition.partition

    def change(self, random: Random) -> None:
        names, regex = _subscription(random)
        self.machine.want(self.machine.config._replace(names=names, regex=regex))

    def released(self, partitions: frozenset[Any]) -> list[Any]:
        return self.machine.released(partitions)


def _subscription(random: Random) -> tuple[tuple[str, ...], str]:
    """Topics by name, by an expression, or by both."""
    chance = random.random()
    if chance < 0.6:
        return _some_topics(random), ""
    expression = random.choice(EXPRESSIONS)
    return (_some_topics(random) if chance < 0.8 else ()), expression


def _some_topics(random: Random) -> tuple[str, ...]:
    return tuple(topic for topic in TOPICS if random.random() < 0.6) or TOPICS[:1]
