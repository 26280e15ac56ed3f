"""Members that an outage of the coordinator has put out."""

import pytest
from tests.history import log as logs
from tests.history.log import Log, end_of, epoch, has, has_nothing, member, tables


def outage(*, changes=True, alive=False, commits=False, apart=0.1, wait=30.0):
    """Two members, of whom nothing is heard after the coordinator has changed."""
    log = Log()
    log.write(member("a"), epoch(2))
    log.write(has("a", 2, 0, before=0))
    log.at(1).write(member("b"), epoch(3))
    log.write(has("a", 3, 0), has("b", 3, 1, before=0))
    log.commits(2, 10, partitions=(0, 1))
    log.leader_epoch += changes
    if alive:
        log.at(20).write(has("b", 3, 1))
    if commits:
        log.at(20).commit(200, 1)
    log.at(10 + wait).write(has_nothing("a"), end_of("a"), epoch(4))
    log.at(10 + wait + apart).write(has_nothing("b"), end_of("b"), epoch(5))
    return log


def likely(log):
    found = tables(log)
    return [one.likely for number in (4, 5) for one in found.epoch(number).likely]


def test_all_are_out_at_once_under_another_coordinator():
    assert likely(outage()) == ["coordinator away"] * 2


@pytest.mark.parametrize(
    "log",
    [
        outage(changes=False),
        outage(alive=True),
        outage(commits=True),
        outage(apart=30),
        outage(wait=4000),
    ],
)
def test_one_sign_to_the_contrary_is_enough(log):
    assert "coordinator away" not in likely(log)


def test_one_alone_may_have_gone_by_itself():
    log = Log()
    log.write(member("a"), epoch(2))
    log.write(has("a", 2, 0, before=0))
    log.leader_epoch += 1
    log.at(9).write(has_nothing("a"), end_of("a"), epoch(3))
    assert tables(log).epoch(3).likely[0].likely is None


def test_a_classic_group_loses_them_in_one_generation():
    log = Log()
    log.write(logs.generation(1, logs.classic("a", 0), logs.classic("b", 1)))
    log.leader_epoch += 1
    log.at(20).write(logs.generation(2))
    assert [one.likely for one in tables(log).epoch(2).likely] == ["coordinator away"] * 2


def test_where_the_coordinator_is_not_told_nothing_is_likely():
    log = outage()
    for event in log.events:
        event.leader_epoch = None
    assert likely(log) == [None, None]
