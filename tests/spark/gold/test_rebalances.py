# SPDX-License-Identifier: Apache-2.0
"""What rebalances were about and what they cost, held against the script that caused them."""

from collections import Counter
from copy import deepcopy

import pytest

pytest.importorskip("pyspark")

from tests.spark import rows
from tests.spark.gold import stories
from tests.spark.gold.stories import named, seconds

from kohort.history import Commits, History, HistoryInputs, Names, Record
from kohort.history.backlog import section
from kohort.pipeline.columns.events import events
from kohort.spark.gold.history_replay import events_of, groups_with_members


def of_story(told, script):
    """Epoch -> row, and the epochs are without a gap."""
    found = {row["epoch"]: row for row in told["rebalances"][script]}
    assert list(found) == list(range(min(found), min(found) + len(found)))
    return found


def triggers(told, script):
    return {epoch: row["triggers"] for epoch, row in of_story(told, script).items()}


def times(told, script):
    """Epoch -> start, end and outcome."""
    return {
        epoch: (
            seconds(script, row["started_at"]),
            seconds(script, row["ended_at"]),
            row["outcome"],
        )
        for epoch, row in of_story(told, script).items()
    }


def who(script, members):
    return [named(script, one["member_id"]) for one in members]


def test_each_epoch_has_its_cause(told):
    assert triggers(told, stories.lives) == {
        2: ["join"],
        3: ["join"],
        4: ["unknown"],  # it left, and a cluster with very short sessions might look the same
        5: ["join"],
        6: ["unknown"],  # it timed out, and might as well have left at that moment
        7: ["unknown"],  # it committed a moment before
    }
    rows = of_story(told, stories.lives)
    assert rows[4]["possible"] == ["leave", "session timeout"]
    assert rows[6]["possible"] == ["session timeout", "leave"]
    assert rows[7]["possible"] == ["leave", "session timeout"]
    assert "45.0 s before" in rows[6]["evidence"]
    assert "commit of its partitions 0.5 s before" in rows[7]["evidence"]
    assert [who(stories.lives, rows[epoch]["gone"]) for epoch in (4, 6, 7)] == [["b"], ["c"], ["a"]]
    assert [who(stories.lives, rows[epoch]["joined"]) for epoch in (2, 3, 5)] == [
        ["a"],
        ["b"],
        ["c"],
    ]
    assert all(row["trigger"] == row["triggers"][0] for row in rows.values())


def test_a_leave_is_one_where_the_length_of_sessions_is_known(told):
    rows = {row["epoch"]: row for row in told["rebalances, session known"][stories.lives]}

    assert {epoch: rows[epoch]["trigger"] for epoch in (4, 6, 7)} == {
        4: "leave",
        6: "unknown",  # silent for a whole session, and might still have left at that moment
        7: "leave",
    }
    assert rows[6]["possible"] == ["session timeout", "leave"]
    assert "assumed" not in rows[4]["evidence"]


def test_a_rebalance_ends_with_its_last_member(told):
    assert times(told, stories.lives) == {
        2: (0, 0, "completed"),
        3: (5, 7, "completed"),
        4: (8, 9, "completed"),
        5: (10, None, "superseded"),  # c never came for its partitions
        6: (55, 55, "completed"),
        7: (60.5, 60.5, "completed"),
    }
    assert times(told, stories.overtaken) == {
        2: (0, 0, "completed"),
        3: (1, None, "superseded"),
        4: (2, 4, "completed"),
    }


def test_partitions_without_an_owner_are_timed(told):
    rows = of_story(told, stories.lives)

    def unowned(epoch):
        return {one["topic_partition"]: one["seconds"] for one in rows[epoch]["unowned"]}

    assert unowned(3) == {2: 0, 3: 0}  # given up and taken at 7 s
    assert unowned(4) == {2: 1, 3: 1}
    assert unowned(5) == {2: 43, 3: 43}
    assert unowned(7) == dict.fromkeys(range(4))
    assert [rows[epoch]["partitions_moved"] for epoch in range(2, 8)] == [0, 2, 2, 0, 0, 0]
    assert rows[3]["members_involved"] == 2
    assert rows[3]["seconds"] == 2


def test_a_member_that_does_not_give_up_is_put_out(told):
    rows = of_story(told, stories.stalls)
    assert rows[4]["triggers"] == ["rebalance timeout"]
    assert "partitions to give up for 10.0 s" in rows[4]["evidence"]
    assert times(told, stories.stalls)[3] == (1, None, "superseded")


def test_changes_are_told_apart(told):
    script = stories.changes
    rows = of_story(told, script)
    last = max(rows)
    found = triggers(told, script)
    assert [found[last - 3], found[last - 2], found[last - 1]] == [
        ["subscription change"],
        ["metadata change"],
        ["assignor change"],
    ]
    assert [seconds(script, rows[last - back]["started_at"]) for back in (3, 2, 1, 0)] == [
        1,
        5,
        7,
        10,
    ]
    assert who(script, rows[last - 3]["changed"]) == ["a"]
    assert found[last] == ["leave"]  # both at once: no timer does that
    assert who(script, rows[last]["gone"]) == ["a", "b"]


def test_generations_have_bounds_and_causes(told):
    script = stories.classic_lives
    rows = of_story(told, script)
    assert triggers(told, script) == {
        1: ["join"],
        2: ["join"],
        3: ["leave"],
        4: ["join"],
        5: ["unknown"],
    }
    assert rows[5]["possible"] == ["session timeout", "leave"]
    assert rows[3]["possible"] == []
    bounds = [
        (seconds(script, row["started_after"]), seconds(script, row["ended_at"]))
        for row in rows.values()
    ]
    assert bounds == [(0, 0), (0, 5.5), (5.5, 24.5), (24.5, 24.5), (24.5, 39.5)]
    assert {row["started_at"] for row in rows.values()} == {None}
    assert rows[5]["seconds_at_most"] == 15
    assert who(script, rows[3]["gone"]) == ["b"]


def test_what_differs_between_generations_is_named(told):
    assert triggers(told, stories.classic_changes) == {
        1: ["join"],
        2: ["metadata change"],
        3: ["unknown"],
        4: ["subscription change"],
        5: ["assignor change"],
        6: ["metadata change"],
    }
    assert of_story(told, stories.classic_changes)[3]["possible"] == []
    rows = of_story(told, stories.cooperative)
    assert [rows[epoch]["triggers"] for epoch in (1, 2, 3)] == [
        ["join"],
        ["join"],
        ["cooperative follow-up"],
    ]
    assert [(one["topic_partition"], one["seconds"]) for one in rows[2]["unowned"]] == [(1, 2)]
    assert [one["to_member_id"] for one in rows[3]["moves"]] == [
        member for member, name in stories.story(stories.cooperative).names.items() if name == "b"
    ]


def test_a_backlog_that_is_read_record_by_record_is_one(told):
    """The first commit behind the silence is of one record of a hundred that wait."""
    row = of_story(told, stories.backlog)[3]
    assert [(one["topic_partition"], one["seconds"]) for one in row["unread"]] == [(0, 9.0)]
    assert [one["likely"] for one in row["likely"]] == ["went silent"]


def test_commits_come_in_few_rows_that_tell_the_same(spark):
    """As Spark folds them and as they stand in the log: each section as one."""
    raw = stories.story(stories.backlog).rows(0)
    decoded = rows.decoded_frame(spark, raw)
    alone = events(decoded.toArrow())
    folded = events(events_of(decoded, groups_with_members(decoded), {0: 0}).toArrow())

    assert sum(one.count for one in commits(folded)) == len(commits(alone)) == 429
    assert len(commits(folded)) < 20
    first_at: dict = {}
    expected = Counter()
    for one in alone:
        if isinstance(one, Record):
            first_at = {}
            mark = one.offset
            continue
        begun = first_at.setdefault(one.topic_partition, one.at)
        expected[mark, one.topic_partition, section(one.at, begun)] += 1
    assert sorted(one.count for one in commits(folded)) == sorted(expected.values())
    assert history(folded) == history(alone)


def commits(found):
    return [one for one in found if isinstance(one, Commits)]


def history(found):
    replayed = History(HistoryInputs(Names({}), None, 0))
    replayed.feed(deepcopy(found))
    return [*map(repr, replayed.closed), *map(repr, replayed.open_rows())]
