# SPDX-License-Identifier: Apache-2.0
"""Nobody sees or changes what the rules of that moment forbid, and nobody is refused what they
allow.

The checker reads rules in the simplest way: it looks through all of them. While a change of a rule
is under way, the rule may be there or not. An answer that gives something must have been allowed at
some moment between the request and the answer, and a refusal must have been right at some such
moment. This holds for requests that wait, too: Kafka judges them once, when they come.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from math import inf
from typing import ClassVar, NamedTuple

from kohort.sim.access_facts import (
    AccessGiven,
    AccessRefused,
    Demand,
    EffectRefused,
    EffectSeen,
    PatternAssigned,
    Rule,
    RulesAsked,
    RulesDone,
    RulesLost,
)
from kohort.sim.checkers.checker import Alarm, Checker
from kohort.sim.checkers.commits import DOUBT_US
from kohort.sim.events import MICROS
from kohort.sim.facts import TopicsSeen
from kohort.sim.lasting_facts import BrokerStarted, LogReloaded

DENY = 2
ALL, READ, WRITE, DELETE, ALTER, DESCRIBE = 2, 3, 4, 6, 7, 8
TOPIC = 2
PREFIXED = 4
HOST = "127.0.0.1"  # of every client
LATE_US = 30 * MICROS
"""An expression is resolved again soon after the rules change. Until then, and until the member has
asked for it, the topics of the last time are assigned.
"""


class _Moment(NamedTuple):
    """The rules from an instant on: those that are there, and those that may be."""

    there: frozenset[Rule]
    maybe: frozenset[Rule]


class RightsChecker(Checker):
    name: ClassVar[str] = "rights"
    hears: ClassVar = {
        RulesAsked: "asked",
        RulesDone: "done",
        RulesLost: "lost",
        AccessGiven: "access_given",
        AccessRefused: "access_refused",
        EffectRefused: "effect_refused",
        EffectSeen: "effect_seen",
        PatternAssigned: "assigned",
        TopicsSeen: "topics_seen",
        BrokerStarted: "read_again",
        LogReloaded: "read_again",
    }

    def __init__(self, alarm: Alarm) -> None:
        super().__init__(alarm)
        self._known: dict[Rule, bool] = {}  # as it was acknowledged last
        self._open: dict[Rule, dict[bool, float]] = {}  # what may still happen, and until when
        self._times: list[int] = [0]
        self._moments: list[_Moment] = [_Moment(frozenset(), frozenset())]
        self._refused: set[str] = set()
        self._names: dict[bytes, str] = {}  # of topics
        self._read_again_at = -LATE_US

    # The rules

    def asked(self, fact: RulesAsked) -> None:
        for rule in fact.rules:
            self._open.setdefault(rule, {})[fact.there] = inf
        self._note(fact.at)

    def done(self, fact: RulesDone) -> None:
        for rule in fact.rules:
            self._known[rule] = fact.there
            self._open[rule] = {
                there: until
                for there, until in self._open.get(rule, {}).items()
                if there is not fact.there and until > fact.sent
            }
        self._note(fact.at)

    def lost(self, fact: RulesLost) -> None:
        for rule in fact.rules:
            self._open.setdefault(rule, {})[fact.there] = fact.at + DOUBT_US
        self._note(fact.at)

    def _note(self, at: int) -> None:
        there, maybe = set(), set()
        for rule in self._known.keys() | self._open.keys():
            values = {self._known.get(rule, False), *self._open.get(rule, ())}
            if values == {True}:
                there.add(rule)
            elif True in values:
                maybe.add(rule)
        self._times.append(at)
        self._moments.append(_Moment(frozenset(there), frozenset(maybe)))

    def _between(self, since: int, until: int) -> Iterator[_Moment]:
        """The rules at an instant, and after each change up to another."""
        first = bisect_left(self._times, since) - 1
        yield from self._moments[max(first, 0) : bisect_right(self._times, until)]

    # What clients got

    def access_given(self, fact: AccessGiven) -> None:
        moments = self._between(fact.sent, fact.at)
        if not any(
            _may_be_allowed(moment, fact.principal, demand)
            for moment in moments
            for demand in fact.any_of
        ):
            self.alarm(
                f"{fact.principal} got {fact.asked} between {fact.sent} and {fact.at}, and"
                f" {_text(fact.any_of, 'or')} was forbidden"
            )

    def access_refused(self, fact: AccessRefused) -> None:
        moments = self._between(fact.sent, fact.at)
        if not any(
            _may_be_refused(moment, fact.principal, demand)
            for moment in moments
            for demand in fact.all_of
        ):
            self.alarm(
                f"{fact.principal} was refused {fact.asked} between {fact.sent} and {fact.at}, and"
                f" {_text(fact.all_of, 'and')} was allowed"
            )

    def effect_refused(self, fact: EffectRefused) -> None:
        self._refused.add(fact.text)

    def effect_seen(self, fact: EffectSeen) -> None:
        if fact.text in self._refused:
            self.alarm(f"{fact.text} was refused, and is there")

    def topics_seen(self, fact: TopicsSeen) -> None:
        self._names |= fact.topics

    def read_again(self, fact: BrokerStarted | LogReloaded) -> None:
        """A member has what it had until its next heartbeat: nothing tells whose member it is."""
        self._read_again_at = fact.at

    def assigned(self, fact: PatternAssigned) -> None:
        name = self._names.get(fact.topic_id)
        if name is None or fact.at - self._read_again_at < LATE_US:
            return
        demand = Demand(DESCRIBE, TOPIC, name)
        if not any(
            _may_be_allowed(moment, fact.principal, demand)
            for moment in self._between(fact.sent - LATE_US, fact.at)
        ):
            self.alarm(
                f"{fact.principal} was given {name} by an expression at {fact.at}, and"
                f" {_text((demand,), '')} was forbidden for {LATE_US // MICROS} s"
            )


def _text(demands: Iterable[Demand], word: str) -> str:
    return f" {word} ".join(f"{operation} of {kind} {name!r}" for operation, kind, name in demands)


def _may_be_allowed(moment: _Moment, principal: str, demand: Demand) -> bool:
    """Whether it is allowed if those rules are there that allow something."""
    more = (rule for rule in moment.maybe if rule.permission != DENY)
    return _allows([*moment.there, *more], principal, demand)


def _may_be_refused(moment: _Moment, principal: str, demand: Demand) -> bool:
    more = (rule for rule in moment.maybe if rule.permission == DENY)
    return not _allows([*moment.there, *more], principal, demand)


def _allows(rules: Iterable[Rule], principal: str, demand: Demand) -> bool:
    """The decision of Kafka's StandardAuthorizer, where nobody may do what no rule is about."""
    about = [rule for rule in rules if _counts(rule, principal, demand)]
    if any(rule.permission == DENY and rule.operation in (ALL, demand.operation) for rule in about):
        return False
    return any(
        rule.permission != DENY
        and (rule.operation in (ALL, demand.operation) or _implies(rule, demand))
        for rule in about
    )


def _counts(rule: Rule, principal: str, demand: Demand) -> bool:
    if rule.kind != demand.kind or rule.principal not in ("User:*", principal):
        return False
    if rule.host not in ("*", HOST):
        return False
    if rule.pattern == PREFIXED:
        return demand.name.startswith(rule.name)
    return rule.name in ("*", demand.name)


def _implies(rule: Rule, demand: Demand) -> bool:
    return demand.operation == DESCRIBE and rule.operation in (READ, WRITE, DELETE, ALTER)
