"""Each checker sees what it is there for, in a history that no broker has made."""

from kohort.sim.checkers.commits import Commits
from kohort.sim.facts import CommitLost, CommitRead, CommitSent


def alarms(checker, *facts):
    said = []
    judge = checker(said.append)
    for fact in facts:
        judge.hear(fact)
    return said


def test_a_commit_that_is_older_than_an_acknowledged_one():
    sent = [CommitSent("g", 0, 1), CommitSent("g", 0, 2)]
    assert alarms(Commits, *sent, CommitRead("g", 0, 1, floor=2))
    assert not alarms(Commits, *sent, CommitRead("g", 0, 2, floor=1))
    assert not alarms(Commits, *sent, CommitLost("g", 0, 1), CommitRead("g", 0, 1, floor=2))


def test_a_commit_that_nobody_has_sent():
    assert alarms(Commits, CommitSent("g", 0, 1), CommitRead("g", 1, 1, floor=-1))
    assert not alarms(Commits, CommitRead("g", 1, -1, floor=-1))
