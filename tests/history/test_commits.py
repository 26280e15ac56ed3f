# SPDX-License-Identifier: Apache-2.0
"""For how long nobody read a partition that was moved, and where that cannot be known."""

import pytest
from tests.history import log as logs
from tests.history.log import Log, end_of, epoch, has, has_nothing, member, tables

from kohort.history import Commits


def killed(
    begin=0.0, silent=8.0, late=1.0, per_second=10, after=None, every=1.0, topic_partition=0
):
    """`a` commits for ten seconds and dies; `b` gets the partition and commits `late` seconds on.
    `after` is the first offset that it commits.
    """
    log = Log()
    log.at(begin).write(member("a"), epoch(2))
    log.write(has("a", 2, topic_partition, before=0))
    log.commits(begin + every, begin + 10, every, per_second, [topic_partition])
    put_out = begin + 10 + silent
    log.at(put_out).write(has_nothing("a"), end_of("a"), member("b"), epoch(3))
    log.write(has("b", 3, topic_partition, before=0))
    if late is not None:
        log.at(put_out + late)
        first = round((begin + 10 + silent + late) * per_second) if after is None else after
        log.commit(first, topic_partition)
    return log


def unread(log, number=3, **more):
    row = tables(log, **more).epoch(number)
    return [(one.topic_partition, one.seconds, one.unknown) for one in row.unread], row


def test_from_the_last_commit_to_the_first_less_the_usual_distance():
    found, row = unread(killed())
    assert found == [(0, 8.0, None)]  # 9 s, and commits come every second
    assert row.unread_seconds == row.longest_unread_seconds == 8
    assert [one.seconds for one in row.unowned] == [0]  # as the coordinator sees it


def test_a_quick_move_costs_nothing():
    assert unread(killed(silent=0.2, late=0.5))[0] == [(0, 0.0, None)]
    assert unread(killed(silent=0.2, late=0.5, after=100))[0] == [(0, 0.0, None)]


@pytest.mark.parametrize(
    ("log", "why"),
    [
        (killed(late=None), "no commit since"),
        (killed(late=1900), "no commit since"),
        (killed(every=5.0), "too few commits before"),
        (killed(after=100), "idle"),  # nothing was there to read
        (killed(after=103), "idle"),  # what comes within a third of a second
        # Nobody may be silent for so long and stay a member, unless the coordinator is away.
        (killed(silent=200), "idle, or the coordinator was away"),
    ],
)
def test_what_cannot_be_known_has_a_reason(log, why):
    found, row = unread(log)
    assert found == [(0, None, why)]
    assert row.unread_seconds is row.longest_unread_seconds is None


def test_over_a_hole_nothing_is_counted_as_if_there_were_none():
    """Commits may have stood where records are missing."""
    log = killed()
    behind = [one.offset for one in log.events if isinstance(one, Commits)]
    assert unread(log)[1].likely[0].silent_seconds == 8
    for complete in (behind[-2] + 1, None):
        found, row = unread(log, complete_offset=complete)
        assert found == [(0, None, "commits may be missing")]
        assert row.likely[0].likely is row.likely[0].silent_seconds is None
    assert unread(log, complete_offset=behind[0])[0] == [(0, 8.0, None)]
    assert unread(log, complete_offset=behind[5])[0] == [(0, 8.0, None)]
    few = unread(log, complete_offset=behind[-3])[0]  # two commits are no rhythm
    assert few == [(0, None, "too few commits before")]


def test_without_commits_or_a_name_there_is_nothing_to_go_by():
    log = Log()
    log.write(member("a"), epoch(2))
    log.write(has("a", 2, 0, before=0))
    log.at(9).write(has_nothing("a"), end_of("a"), epoch(3))
    assert unread(log)[0] == [(0, None, "no commit before")]
    row = tables(log).epoch(3)
    assert row.unread[0].topic == "orders"
    for event in log.events:
        if getattr(event.value, "assigned_partitions", None):
            event.value.assigned_partitions[0].topic_id = "nobody-knows"
    assert unread(log)[0] == [(0, None, "the name of the topic is not known")]


def test_a_silence_counts_once():
    log = killed(late=None)
    log.at(20).write(has_nothing("b"), end_of("b"), member("c"), epoch(4))
    log.write(has("c", 4, 0, before=0))
    log.at(21).commit(210)
    assert unread(log)[0] == [(0, 10.0, None)]
    assert unread(log, 4)[0] == [(0, None, "unread since an earlier rebalance")]


def test_the_sum_and_the_longest():
    log = Log()
    log.write(member("a"), epoch(2))
    log.write(has("a", 2, 0, 1, before=0))
    log.commits(1, 10, partitions=(0, 1))
    log.at(12).write(has_nothing("a"), end_of("a"), member("b"), epoch(3))
    log.write(has("b", 3, 0, 1, before=0))
    log.at(13).commit(130, 0)
    log.at(15).commit(150, 1)
    found, row = unread(log)
    assert found == [(0, 2.0, None), (1, 4.0, None)]
    assert (row.unread_seconds, row.longest_unread_seconds) == (6, 4)


def test_commits_in_transactions_tell_of_reading_too():
    log = killed(late=None)
    log.at(20).commit(200, plain=False)
    assert unread(log)[0] == [(0, 9.0, None)]


def test_a_generation_of_a_classic_group_has_them_too():
    log = Log()
    log.write(logs.generation(1, logs.classic("a", 0, 1)))
    log.commits(1, 10, partitions=(0, 1))
    log.at(14).write(logs.generation(2, logs.classic("a", 0), logs.classic("b", 1)))
    log.at(15).commit(150, 1)
    assert unread(log, 2)[0] == [(1, 4.0, None)]


def test_the_last_commit_of_who_had_it_ends_no_silence():
    """A cooperative member commits what it gives up when it hears of it; the next generation gives
    it to another one.
    """
    log = Log()
    log.write(logs.generation(1, logs.classic("a", 0, 1)))
    log.commits(1, 10, partitions=(0, 1))
    log.at(10.5).write(logs.generation(2, logs.classic("a", 0, claims=(0, 1)), logs.classic("b")))
    log.at(10.7).commit(107, 1)
    log.at(13).write(logs.generation(3, logs.classic("a", 0), logs.classic("b", 1)))
    log.at(14).commit(140, 1)
    (part,) = tables(log).epoch(2).unread
    assert (part.topic_partition, part.seconds) == (1, pytest.approx(2.3))  # less a second
    assert logs.at(part.since) == pytest.approx(11.7)


def ownerless(reset_s, *, stamped=None):
    """The owner is put out at 55 s, and somebody else has the partition from 900 s on. Meanwhile
    its offset is committed.
    """
    log = Log()
    log.write(member("a"), epoch(2))
    log.write(has("a", 2, 0, before=0))
    log.commits(1, 10)
    log.at(55).write(has_nothing("a"), end_of("a"), epoch(3))
    log.at(reset_s if stamped is None else stamped).commit(100, 0)
    log.at(900).write(member("c"), epoch(4))
    log.write(has("c", 4, 0, before=0))
    log.at(902).commit(9000, 0)
    return log


def test_an_offset_that_somebody_else_sets_is_no_sign_of_who_had_it():
    assert unread(ownerless(57))[0] == [(0, 844.0, None)]  # the last word of who had it
    for reset_s in (66, 600, 800):
        why = "somebody else has committed meanwhile"
        assert unread(ownerless(reset_s))[0] == [(0, None, why)]


def test_a_late_commit_of_an_earlier_time_makes_nothing_longer():
    assert unread(ownerless(57, stamped=5))[0] == [(0, 891.0, None)]
