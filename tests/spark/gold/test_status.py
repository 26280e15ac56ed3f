# SPDX-License-Identifier: Apache-2.0
"""Verdicts of both sets of rules, each on a story in which they agree or must not."""

import pytest
from tests.spark.gold.progress_rows import (
    at,
    commit,
    commits_frame,
    frame,
    sample,
    samples_frame,
    seconds,
)

from kohort.pipeline.schemas.membership import GROUP_STATE
from kohort.pipeline.schemas.membership import MEMBERS as MEMBER_ROWS
from kohort.pipeline.schemas.progress import STATUS
from kohort.spark.gold.lag import lag_at
from kohort.spark.gold.measure import Context
from kohort.spark.gold.status import BURROW, KOHORT, Limits, status

NOW = 1000
EVERY_10_S = range(890, 990, 10)  # ten commits, the last at 980
EVERY_5_S = range(945, 995, 5)
SELDOM = [(time, 20 * time) for time in (*range(0, NOW, 30), NOW)]
"""The end of a topic that grows by 20 records a second, and is sampled each 30 seconds."""
BATCHES = [0, 40, 30, 60, 10, 90, -20, 100, 40, 20]
"""How far commits are off a straight line, as records are read in batches."""


def growing(first=100, step=10, every=range(0, NOW, 10)):
    """The end of a topic to which records come all the time."""
    return [(time, first + step * index) for index, time in enumerate(every)]


def rising(start, step, times=EVERY_10_S):
    return [(time, start + step * index) for index, time in enumerate(times)]


# story -> commits (second, offset), ends (second, offset), burrow (status, rule), kohort (likewise)
STORIES = {
    "keeps up": (rising(990, 10), growing(), ("OK", "caught_up"), ("OK", "progress")),
    "level": ([(995, 1090)], growing(), ("OK", "lag_allowed"), ("OK", "lag_allowed")),
    "slow": (rising(500, 1), growing(), ("WARN", "slowing"), ("WARN", "slowing")),
    # always the same 100 records behind: Burrow warns, we do not
    "steady": (rising(890, 10), growing(), ("WARN", "slowing"), ("OK", "progress")),
    "catching up": (rising(100, 50), growing(), ("OK", "progress"), ("OK", "progress")),
    "stalled": (rising(300, 0), growing(), ("STALL", "stalled"), ("STALL", "stalled")),
    "stopped": (
        rising(300, 10, range(500, 600, 10)),
        growing(),
        ("STOP", "stopped"),
        ("STOP", "stopped"),
    ),
    "rewound": (
        [(890, 900), (900, 910), (910, 500), (980, 600)],
        growing(),
        ("REWIND", "rewound"),
        ("REWIND", "rewound"),
    ),
    "rewound and back": (
        [(890, 900), (900, 910), (910, 500), (980, 915)],
        growing(),
        ("OK", "progress"),
        ("OK", "progress"),
    ),
    # commits once in five minutes, and the window has two of them
    "slow committer": (
        [(390, 400), (690, 700)],
        growing(),
        ("STOP", "stopped"),
        ("OK", "progress"),
    ),
    # nothing to read for ten minutes, then a record five seconds ago
    "idle topic": (
        rising(100, 0, range(300, 400, 10)),
        [(0, 100), *((time, 100) for time in range(20, 900, 10)), (990, 100), (995, 101)],
        ("OK", "caught_up"),
        ("OK", "progress"),
    ),
    # Burrow's ring of ends has forgotten that it had caught up
    "idle topic, busy since": (
        rising(91, 1, range(300, 400, 10)),
        [(0, 90), (410, 100), (985, 100), *((986 + one, 101 + one) for one in range(12))],
        ("STOP", "stopped"),
        ("OK", "progress"),
    ),
    # the record may have come at 884, or long before
    "stalled, perhaps": (
        rising(100, 0),
        [(0, 90), (885, 101), (975, 101)],
        ("STALL", "stalled"),
        ("OK", "progress"),
    ),
    # falls behind by ten records a second: between two samples its lag only seems to sink
    "falls behind, seldom sampled": (
        rising(12_000, 50, EVERY_5_S),
        SELDOM,
        ("WARN", "slowing"),
        ("WARN", "slowing"),
    ),
    # the same in batches, so that lag does sink from one commit to another
    "falls behind in batches": (
        [(time, 12_000 + 50 * one + BATCHES[one]) for one, time in enumerate(EVERY_5_S)],
        SELDOM,
        ("OK", "progress"),
        ("WARN", "slowing"),
    ),
    # five minutes behind, and no more at the end than at the begin
    "keeps its distance in batches": (
        [(time, 12_900 + 100 * one + BATCHES[one]) for one, time in enumerate(EVERY_5_S)],
        SELDOM,
        ("OK", "progress"),
        ("OK", "progress"),
    ),
    "catches up in batches": (
        [(time, 12_900 + 150 * one + BATCHES[one]) for one, time in enumerate(EVERY_5_S)],
        SELDOM,
        ("OK", "progress"),
        ("OK", "progress"),
    ),
    # a commit of five minutes ago: nobody knows how often it commits
    "one commit": ([(700, 500)], growing(), ("STOP", "stopped"), ("UNKNOWN", "single_commit")),
    "one commit, just now": ([(985, 1080)], growing(), ("STALL", "stalled"), ("OK", "progress")),
    "deserted": (rising(890, 10), growing(), ("WARN", "slowing"), ("STOP", "no_members")),
    "only commits": (rising(890, 10), growing(), ("WARN", "slowing"), ("OK", "progress")),
    "beyond": ([(980, 5000)], growing(), ("OK", "lag_allowed"), ("WARN", "beyond_end")),
    "lost": ([(980, 10)], growing(), ("STOP", "stopped"), ("LOST", "records_lost")),
    "unknown": ([(980, 10)], [], ("NOTFOUND", "lag_unknown"), ("UNKNOWN", "lag_unknown")),
    "begun anew": (
        [(890, 900), (900, None), (910, 500), (980, 600)],
        growing(),
        ("OK", "progress"),
        ("OK", "progress"),
    ),
}
MEMBERS = {"deserted": 0, "only commits": 0}
PROTOCOL_TYPE = {"only commits": ""}
START = {"lost": 20}


@pytest.fixture(scope="module")
def verdicts(spark):
    commits, samples, groups = [], [], []
    for number, (name, (done, ends, _, _)) in enumerate(STORIES.items()):
        topic = {"topic": f"t{number}"}
        commits += [commit(name, offset, time, **topic) for time, offset in done]
        samples += [
            sample(time, end, log_start_offset=START.get(name, 0), **topic) for time, end in ends
        ]
        groups.append(
            {
                "partition": 0,
                "group_id": name,
                "members": MEMBERS.get(name, 1),
                "protocol_type": PROTOCOL_TYPE.get(name, "consumer"),
            }
        )
    # one more partition of a group that keeps up, in which it does not
    commits += [commit("keeps up", *reversed(one), topic="other") for one in rising(500, 1)]
    samples += [sample(time, end, topic="other") for time, end in growing()]
    frames = {
        "commits": commits_frame(spark, commits),
        "end_offsets": samples_frame(spark, samples),
        "group_state": frame(spark, GROUP_STATE, groups),
    }
    frames["lag"] = lag_at(frames, [at(NOW)]).cache()
    context = Context(at(NOW))
    lenient = status(frames, context, Limits(allowed_lag=10_000)).where("rules = 'burrow'")
    return status(frames, context).collect(), lenient.collect()


@pytest.mark.parametrize("name", STORIES)
def test_a_story_is_judged(verdicts, name):
    number = [*STORIES].index(name)
    found = {
        row.rules: (row.status, row.rule)
        for row in verdicts[0]
        if row.group_id == name and row.topic == f"t{number}"
    }
    assert found == {"burrow": STORIES[name][2], "kohort": STORIES[name][3]}


def judged_then(spark, *, members_now, left_at=None, complete_from=None, record_at=2000):
    """The rule that decides at NOW, of a group that lags and whose log goes on until later."""
    commits = [commit("g", offset, time) for time, offset in rising(890, 10)]
    group = {
        "partition": 0,
        "group_id": "g",
        "members": members_now,
        "protocol_type": "consumer",
        "timestamp": at(record_at),
        "complete_from": None if complete_from is None else at(complete_from),
    }
    member = {"partition": 0, "group_id": "g", "member_id": "m", "valid_from": at(100)}
    frames = {
        "commits": commits_frame(spark, commits),
        "end_offsets": samples_frame(spark, [sample(*one) for one in growing()]),
        "group_state": frame(spark, GROUP_STATE, [group]),
        "members": frame(spark, MEMBER_ROWS, [member | {"valid_to": left_at and at(left_at)}]),
    }
    frames["lag"] = lag_at(frames, [at(NOW)])
    found = status(frames, Context(at(NOW))).where("rules = 'kohort' and level = 'group'")
    return found.collect()[0].rule


def test_status_of_an_earlier_moment_goes_by_the_members_of_then(spark):
    """The log was read on: at its end all members may have left, or others have come."""
    assert judged_then(spark, members_now=0, left_at=1500) == "progress"
    assert judged_then(spark, members_now=1, left_at=950) == "no_members"
    assert judged_then(spark, members_now=0, left_at=950) == "no_members"
    # compaction may hide who was there
    assert judged_then(spark, members_now=1, left_at=950, complete_from=1200) == "progress"
    # nothing came later: the group is as it was
    assert judged_then(spark, members_now=0, left_at=950, record_at=950) == "no_members"


def test_a_group_is_as_its_worst_partition(verdicts):
    groups = {(row.group_id, row.rules): row for row in verdicts[0] if row.level == "group"}
    both = groups["keeps up", "burrow"]
    assert (both.status, both.rule, both.partitions, both.commits) == ("WARN", "slowing", 2, 20)
    assert (both.complete, seconds(both.last_commit_at)) == (1.0, 980)
    assert groups["rewound", "kohort"].status == "ERR"
    assert groups["rewound", "kohort"].rule == "rewound"
    assert groups["rewound", "burrow"].complete == 0.0
    partition = next(row for row in verdicts[0] if row.topic == "other")
    assert (partition.complete, partition.lag_records) == (1.0, 1090 - 509)


def test_the_limits_are_parameters(verdicts):
    assert {row.status for row in verdicts[1]} == {"OK", "NOTFOUND"}


def test_every_rule_is_described():
    told = next(column.text for column in STATUS.columns if column.name == "rule")
    assert [rule.name for rule in (*BURROW, *KOHORT) if f"`{rule.name}`" not in told] == []
