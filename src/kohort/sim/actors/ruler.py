# SPDX-License-Identifier: Apache-2.0
"""Makes and deletes rules of access for the principals of a run, and tells when each was asked for
and when it was acknowledged.
"""

from random import Random
from typing import Any, ClassVar

from kohort.sim.access_facts import Rule, RulesAsked, RulesDone, RulesLost
from kohort.sim.actors.actor import Actor
from kohort.sim.actors.topics import topics_of
from kohort.sim.ruled import GROUPS, NEVER, TOPICS, USERS, principal_of
from kohort.wire.messages.create_acls import AclCreation, CreateAclsRequest
from kohort.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest

LITERAL, PREFIXED = 3, 4
TOPIC, GROUP, CLUSTER = 2, 3, 4
DENY, ALLOW = 2, 3
EVERYBODY = "User:*"
ALL, READ, WRITE, DELETE, ALTER, DESCRIBE = 2, 3, 4, 6, 7, 8
STANDING = 16  # about so many rules are there at a time
FIRST = 10  # made before the principals have asked for much
PATIENCE_MS = 20_000
NAMES = {TOPIC: TOPICS, GROUP: GROUPS, CLUSTER: ("kafka-cluster",)}
PREFIXES = {TOPIC: ("ruled-", "ruled-a", "r"), GROUP: ("guests", "guests-")}
OPERATIONS = {
    TOPIC: (READ, READ, WRITE, WRITE, DESCRIBE, DESCRIBE, ALL, ALTER),
    GROUP: (READ, READ, DESCRIBE, ALL, DELETE),
    CLUSTER: (DESCRIBE,),
}


class Ruler(Actor):
    """One of a run: only so it is known which rules there are. It asks until it is answered."""

    kind: ClassVar[str] = "ruler"

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.standing: dict[Rule, None] = {}

    async def live(self) -> None:
        random = self.random
        while not self.over and await topics_of(self) is None:  # for checkers: names of topics
            await self.pause(100)
        for _ in range(FIRST):
            await self.make((_drawn(random),))
        while not self.over:
            await self.pause(random.choice([50, 1000, 4000]) * random.random())
            if random.random() * STANDING * 2 > len(self.standing):
                await self.make(tuple(_drawn(random) for _ in range(random.randint(1, 3))))
            elif random.random() < 0.1:
                principal = principal_of(random.choice(USERS))
                await self.delete(
                    tuple(rule for rule in self.standing if rule.principal == principal)
                )
            else:
                await self.delete((random.choice(list(self.standing)),))
        self.caller.hang_up()

    async def make(self, rules: tuple[Rule, ...]) -> None:
        creations = [
            AclCreation(
                resource_type=rule.kind,
                resource_name=rule.name,
                resource_pattern_type=rule.pattern,
                principal=rule.principal,
                host=rule.host,
                operation=rule.operation,
                permission_type=rule.permission,
            )
            for rule in rules
        ]
        await self._change(CreateAclsRequest(creations=creations), rules, there=True)

    async def delete(self, rules: tuple[Rule, ...]) -> None:
        """Each by a filter of its own: one that is carried out late deletes nothing else."""
        filters = [
            DeleteAclsFilter(
                resource_type_filter=rule.kind,
                resource_name_filter=rule.name,
                pattern_type_filter=rule.pattern,
                principal_filter=rule.principal,
                host_filter=rule.host,
                operation=rule.operation,
                permission_type=rule.permission,
            )
            for rule in rules
        ]
        await self._change(DeleteAclsRequest(filters=filters), rules, there=False)

    async def _change(self, request: Any, rules: tuple[Rule, ...], *, there: bool) -> None:
        while not self.over:
            sent = self.stage.loop.now
            self.tell(RulesAsked(rules, there, sent))
            answer = await self.ask(request, 3, patience_ms=PATIENCE_MS)
            now = self.stage.loop.now
            if answer is not None and not _has_failed(answer):
                self.tell(RulesDone(rules, there, sent, now))
                break
            self.tell(RulesLost(rules, there, now))
            await self.pause(self.random.randrange(50, 1000))
        for rule in rules:
            if there:
                self.standing[rule] = None
            else:
                self.standing.pop(rule, None)


def _has_failed(answer: Any) -> bool:
    results = answer.results if hasattr(answer, "results") else answer.filter_results
    return any(
        result.error_code or any(one.error_code for one in getattr(result, "matching_acls", ()))
        for result in results
    )


def _drawn(random: Random) -> Rule:
    kind = random.choice([TOPIC] * 12 + [GROUP] * 10 + [CLUSTER])
    pattern, name = LITERAL, random.choice(NAMES[kind])
    chance = random.random()
    if kind == CLUSTER:
        pass  # it has one name
    elif chance < 0.1:
        name = "*"
    elif chance < 0.45:
        pattern, name = PREFIXED, random.choice(PREFIXES[kind])
    principal = principal_of(random.choice(USERS))
    if random.random() < 0.1:
        principal = EVERYBODY
    forbids = kind == TOPIC and principal in (EVERYBODY, principal_of(NEVER))
    return Rule(
        kind,
        name,
        pattern,
        principal,
        random.choice(["*"] * 8 + ["127.0.0.1", "10.9.8.7"]),
        random.choice(OPERATIONS[kind]),
        DENY if forbids or random.random() < 0.28 else ALLOW,
    )
