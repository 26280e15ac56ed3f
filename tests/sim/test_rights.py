# SPDX-License-Identifier: Apache-2.0
"""The checker of rules judges histories that no broker has made, by SEC-60 to SEC-62 and SEC-67."""

import pytest

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
from kohort.sim.checkers.rights import RightsChecker
from kohort.sim.facts import TopicsSeen
from kohort.sim.lasting_facts import BrokerStarted

SECOND = 1_000_000
MINUTE = 60 * SECOND
READ, WRITE, DESCRIBE, ALL = 3, 4, 8, 2
TOPIC, GROUP = 2, 3
LITERAL, PREFIXED = 3, 4
DENY, ALLOW = 2, 3
ALICE = "User:alice"
ALLOWED = Rule(TOPIC, "t", LITERAL, ALICE, "*", READ, ALLOW)
READING = Demand(READ, TOPIC, "t")


def alarms(*facts):
    said = []
    checker = RightsChecker(said.append)
    ears = dict(checker.ears())
    for fact in facts:
        ears[type(fact)](fact)
    return said


def made(*rules, at=1):
    return RulesAsked(rules, True, at), RulesDone(rules, True, at, at + 1)


def deleted(*rules, at):
    return RulesAsked(rules, False, at), RulesDone(rules, False, at, at + 1)


def given(demand=READING, *, sent=10, at=11):
    return AccessGiven(ALICE, (demand,), "records", sent, at)


def refused(demand=READING, *, sent=10, at=11):
    return AccessRefused(ALICE, (demand,), "records", sent, at)


@pytest.mark.parametrize(
    ("rule", "demand"),
    [
        (ALLOWED, READING),
        (ALLOWED._replace(name="*"), READING),
        (ALLOWED._replace(pattern=PREFIXED, name=""), READING),
        (ALLOWED._replace(pattern=PREFIXED), Demand(READ, TOPIC, "topic")),
        (ALLOWED._replace(principal="User:*"), READING),
        (ALLOWED._replace(host="127.0.0.1"), READING),
        (ALLOWED._replace(operation=ALL), Demand(WRITE, TOPIC, "t")),
        (ALLOWED, Demand(DESCRIBE, TOPIC, "t")),
    ],
)
def test_a_rule_that_allows_something(rule, demand):
    assert not alarms(*made(rule), given(demand))
    assert alarms(*made(rule), refused(demand))
    assert alarms(*made(rule, rule._replace(permission=DENY, operation=ALL)), given(demand))


@pytest.mark.parametrize(
    ("rule", "demand"),
    [
        (ALLOWED._replace(principal="User:bob"), READING),
        (ALLOWED._replace(host="10.9.8.7"), READING),
        (ALLOWED._replace(kind=GROUP), READING),
        (ALLOWED, Demand(READ, TOPIC, "topic")),
        (ALLOWED, Demand(WRITE, TOPIC, "t")),
        (ALLOWED._replace(operation=DESCRIBE), READING),
        (ALLOWED._replace(pattern=PREFIXED, name="*"), READING),
        (ALLOWED._replace(permission=DENY), READING),
    ],
)
def test_a_rule_that_allows_nothing_of_it(rule, demand):
    assert alarms(*made(rule), given(demand))
    assert not alarms(*made(rule), refused(demand))


def test_a_denial_of_reading_leaves_the_description():
    rules = ALLOWED, ALLOWED._replace(permission=DENY)
    assert not alarms(*made(*rules), given(Demand(DESCRIBE, TOPIC, "t")))


def test_while_a_rule_is_made_both_answers_are_right():
    asked, done = RulesAsked((ALLOWED,), True, 5), RulesDone((ALLOWED,), True, 5, 20)
    both = given(sent=6, at=7), refused(sent=6, at=7), refused(sent=19, at=30)
    assert not alarms(asked, *both[:2], done, both[2])
    assert alarms(asked, done, refused(sent=21, at=30))
    assert alarms(asked, given(sent=3, at=4))


def test_a_request_that_waits_is_judged_by_any_moment_of_its_wait():
    """A Fetch that has come in time is answered after the right has gone (SEC-67)."""
    rules = *made(ALLOWED), *deleted(ALLOWED, at=100)
    assert not alarms(*rules, given(sent=50, at=500))
    assert alarms(*rules, given(sent=200, at=500))


def test_a_change_without_an_answer_may_come_late():
    lost = RulesAsked((ALLOWED,), True, 5), RulesLost((ALLOWED,), True, 6)
    later = given(sent=SECOND, at=SECOND), refused(sent=SECOND, at=SECOND)
    assert not alarms(*lost, *later)
    after = deleted(ALLOWED, at=2 * SECOND)
    assert not alarms(*lost, *after, given(sent=3 * SECOND, at=3 * SECOND))
    much_later = deleted(ALLOWED, at=5 * MINUTE)
    assert alarms(*lost, *after, *much_later, given(sent=6 * MINUTE, at=6 * MINUTE))


def test_one_of_several_rights_is_enough_to_be_given_something():
    both = AccessGiven(ALICE, (Demand(WRITE, TOPIC, "t"), READING), "a list", 10, 11)
    assert not alarms(*made(ALLOWED), both)
    assert alarms(both)


def test_one_missing_right_is_enough_to_be_refused():
    both = AccessRefused(ALICE, (Demand(WRITE, TOPIC, "t"), READING), "a list", 10, 11)
    assert not alarms(*made(ALLOWED), both)
    assert alarms(*made(ALLOWED._replace(operation=ALL)), both)
    assert alarms(AccessRefused(ALICE, (), "names that were not sent", 10, 11))


def test_what_was_refused_is_never_seen():
    assert alarms(EffectRefused("x"), EffectSeen("x"))
    assert not alarms(EffectRefused("x"), EffectSeen("y"))


def test_an_expression_names_what_its_member_may_describe():
    names = TopicsSeen({b"i": "t"}, 0)
    got = PatternAssigned(ALICE, b"i", 3 * MINUTE, 3 * MINUTE)
    assert alarms(names, got)
    assert not alarms(names, *made(ALLOWED), got)
    assert alarms(names, *made(ALLOWED), *deleted(ALLOWED, at=MINUTE), got)
    just_before = deleted(ALLOWED, at=3 * MINUTE - SECOND)
    assert not alarms(names, *made(ALLOWED), *just_before, got)
    assert not alarms(names, BrokerStarted(3 * MINUTE - SECOND), got)
