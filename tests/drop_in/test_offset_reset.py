# SPDX-License-Identifier: Apache-2.0
"""`--reset-offsets` of several groups: one that fails neither hides nor hinders what is done for
the others.
"""

import pytest
from tests.drop_in.recorded_runs import run

from kohort.drop_in import consumer_groups
from kohort.drop_in.running import JAVA_EXIT_CODES
from kohort.testing import Broker

NOBODY = "no-such-topic"


@pytest.fixture
def broker():
    """Ten records, of which the groups a and b have read three; c has read nothing."""
    with Broker(in_memory=True) as broker:
        broker.create_topic("t")
        broker.produce("t", *map(str, range(10)))
        for group in ("a", "b"):
            broker.groups[group].commit("t", 3)
        yield broker


def reset(broker, *argv):
    server = ("--bootstrap-server", broker.bootstrap)
    return run(consumer_groups.main, [*server, "--reset-offsets", *argv])


def rows(text):
    """The table: a group and its new offset in each row."""
    table = text.partition("NEW-OFFSET\n")[2]
    return [(row.split()[0], int(row.split()[3])) for row in table.splitlines()]


def offsets(broker, *groups):
    return [list(broker.groups[group].committed().values()) for group in groups]


GROUPS = ("--group", "a", "--group", "b")
BACK = ("--topic", "t", "--shift-by", "-1", "--execute")


@pytest.mark.parametrize("first", ["a", "c"])
def test_a_group_without_an_offset_to_shift_leaves_all_as_they_were(broker, first):
    """The call is wrong, as the usage text says: nothing of it is done."""
    groups = ("--group", first, "--group", "ac".replace(first, ""))
    ran = reset(broker, *groups, *BACK)
    assert (ran.exit, ran.stdout) == (1, "")
    why = "Cannot shift offset for partition t-0 since there is no current committed offset"
    assert ran.stderr.startswith(f"{why}\n")
    assert offsets(broker, "a", "c") == [[3], []]


@pytest.mark.parametrize("argv", [("--topic", "t"), ("--to-latest",), ("--topic", NOBODY)])
def test_what_no_group_can_be_reset_by_leaves_all_as_they_were(broker, argv):
    scenario = ("--to-latest",) if NOBODY in argv else ()
    ran = reset(broker, *GROUPS, *argv, *scenario, "--execute")
    assert ran.exit == 1
    assert (ran.stdout + ran.stderr).count("Error: ") == (NOBODY in argv), "told once, not by group"
    assert offsets(broker, "a", "b") == [[3], [3]]


@pytest.mark.parametrize("failing", ["a", "b"])
@pytest.mark.parametrize("api", ["OffsetFetch", "OffsetCommit"])
def test_a_group_that_is_refused_does_not_hinder_the_other(broker, failing, api):
    """Whether it is refused when it is planned or when it is committed."""
    (other,) = {"a", "b"} - {failing}
    with broker.faults.error(api, "GROUP_AUTHORIZATION_FAILED", group=failing, times=None) as fault:
        ran = reset(broker, *GROUPS, *BACK)
        assert fault.hits > 0
    assert ran.exit == 1
    assert ran.stdout.count("\nError: Executing consumer group command failed due to ") == 1
    assert "GroupAuthorizationException" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert rows(ran.stdout) == [(other, 2)]
    assert offsets(broker, failing, other) == [[3], [2]]


def test_a_commit_without_an_answer_is_told_as_such(broker):
    """What has been done for it nobody knows, and the other group has its row."""
    with broker.faults.close("OffsetCommit", group="a", times=None, handled=True):
        ran = reset(broker, *GROUPS, *BACK)
    assert ran.exit == 1
    (error,) = [line for line in ran.stdout.splitlines() if line.startswith("Error: ")]
    assert error.endswith("; it may be set all the same")
    assert rows(ran.stdout) == [("b", 2)]
    assert offsets(broker, "a", "b") == [[2], [2]]


def test_a_group_that_cannot_be_planned_is_left_out_of_a_dry_run(broker):
    """It shows what `--execute` would do."""
    with broker.faults.error("OffsetFetch", "GROUP_AUTHORIZATION_FAILED", group="a", times=None):
        ran = reset(broker, *GROUPS, "--topic", "t", "--to-latest", "--dry-run")
    assert (ran.exit, ran.stdout.count("Error: "), rows(ran.stdout)) == (1, 1, [("b", 10)])
    assert offsets(broker, "a", "b") == [[3], [3]]


def test_a_group_that_is_refused_alone_has_no_table(broker):
    with broker.faults.error("OffsetCommit", "GROUP_AUTHORIZATION_FAILED", group="a", times=None):
        ran = reset(broker, "--group", "a", *BACK)
    why = "Group authorization failed."
    told = f"\nError: Executing consumer group command failed due to {why}\n"
    assert (ran.exit, ran.stdout) == (1, told)


def test_a_duration_may_lead_into_the_future(broker):
    """As the Java tool takes it; no record is that new."""
    ran = reset(broker, "--group", "a", "--topic", "t", "--by-duration", "P-1D", "--execute")
    warning = "\nWarn: Partition 0 from topic t is empty. Falling back to latest known offset.\n"
    assert (ran.exit, ran.stderr) == (0, "")
    assert ran.stdout.startswith(warning)
    assert rows(ran.stdout) == [("a", 10)]
    assert offsets(broker, "a") == [[10]]


def test_an_offset_that_the_log_does_not_reach_is_told_on_stderr(broker):
    """In the words that the Java tool logs; what it changes nobody asked for."""
    wanted = [(99, "higher than latest", 10), (-1, "lower than earliest", 0)]
    for offset, where, new in wanted:
        ran = reset(broker, "--group", "a", "--topic", "t", "--to-offset", str(offset), "--execute")
        told = f"WARN New offset ({offset}) is {where} offset for topic partition t-0. "
        assert (ran.exit, ran.stderr) == (0, f"{told}Value will be set to {new}\n")
        assert (rows(ran.stdout), offsets(broker, "a")) == ([("a", new)], [[new]])
    for offset in (0, 10):
        ran = reset(broker, "--group", "a", "--topic", "t", "--to-offset", str(offset), "--dry-run")
        assert (ran.exit, ran.stderr) == (0, "")


@pytest.mark.parametrize("more", [(), (JAVA_EXIT_CODES,)])
def test_a_negative_offset_in_a_file_is_a_wrong_call(broker, tmp_path, more):
    """Also to Java, which leaves with 1."""
    path = tmp_path / "plan.csv"
    path.write_text("t,0,-3\n")
    ran = reset(broker, "--group", "a", "--from-file", str(path), "--execute", *more)
    first, second, *_usage = ran.stderr.splitlines()
    assert (ran.exit, ran.stdout, first) == (1, "", "Invalid negative offset")
    assert second.startswith(f"{path}: the offset in line 1 is '-3', expected a number from 0")
    assert offsets(broker, "a") == [[3]]
