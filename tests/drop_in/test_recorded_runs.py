# SPDX-License-Identifier: Apache-2.0
"""What the tools of Apache Kafka 4.3.1 were recorded to print, ours print, but for what
`recorded_runs.masked` leaves out.

All runs are played in this process against a broker of ours that is set up as the recorded one was.
"""

import contextlib
import json
import os
import re
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.drop_in import recorded_cluster as cluster
from tests.drop_in.recorded_runs import (
    FRAMES,
    KINDS,
    TOOLS,
    USAGE,
    Case,
    Run,
    cases,
    differences,
    kind_of,
    masked,
    play,
    run,
)

from kohort.testing import Broker

DOCUMENT = Path(__file__).parents[2] / "docs" / "drop-in.md"
TARGET = "a group that nobody is in any more has an empty target of its last epoch (KAFKA-20442)"
UNREACHABLE = "the trace ends with the reason for which no broker was reached"
SHORT_LINES = "a file with lines that lack a column is refused, instead of taken for offset 0"
DIFFERENT = {  # runs that are not as they were recorded, and why; docs/drop-in.md has the reasons
    "describe-empty-consumer-state-verbose": TARGET,
    "describe-x-all-state-verbose": TARGET,
    "args-unreachable": UNREACHABLE,
    "reset-file-bad": SHORT_LINES,
    "reset-file-empty": SHORT_LINES,
    "reset-file-text": SHORT_LINES,
    "reset-file-group": "a file with a column for the group is read without a trace of errors",
}
ALL, EQUAL = 287, 280
OURS = Path(__file__).parents[1] / "data" / "cli" / "ours.json"  # what those print here
CHANGES = {  # runs that change something, or are refused it, and the exit code that scripts get
    "reset-active-execute": 1,
    "reset-active-consumer": 1,
    "reset-earliest-execute": 0,
    "reset-empty-consumer": 0,
    "reset-export-execute": 0,
    "reset-file-plan-execute": 0,
    "reset-missing-group-execute": 0,
    "delete-empty-classic": 0,
    "delete-missing": 1,
    "delete-mixed": 1,
    "delete-non-empty": 1,
    "delete-two-missing": 1,
    "delete-two-ok": 0,
    "delete-all-groups": 1,
}
# Recorded with exit code 0, and failures to a script.
FAILED = re.compile(r"^\nError: |is invalid: ", re.MULTILINE)


class Played(NamedTuple):
    """A run of ours, with the exit code it has by default."""

    case: Case
    ours: Run
    by_default: int
    lines: list[str]
    masked: Run


@contextlib.contextmanager
def recorded_cluster_of_ours(folder):
    """A client of a broker that is set up as the recorded one was; its folder is the current."""
    data = folder / "data"
    settings = {name: str(value) for name, value in cluster.SETTINGS.items()}
    before = Path.cwd()
    with Broker(settings, clock="manual", data_dir=data) as broker:
        with cluster.talk(broker.bootstrap) as client:
            cluster.make_topics(client)
            cluster.commit_simple(client)
        broker.stop()
        cluster.append_other_groups(data)
        broker.start()
        os.chdir(folder)
        try:
            with cluster.talk(broker.bootstrap) as client:
                cluster.make_groups(client)
                yield client, broker.bootstrap
        finally:
            os.chdir(before)


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """All runs by name."""
    with recorded_cluster_of_ours(tmp_path_factory.mktemp("runs")) as (client, server):
        return dict(_play_all(client, server))


@pytest.fixture(scope="module")
def changes(tmp_path_factory):
    """Runs that change something, by the exit codes that scripts get: on a broker of their own, as
    a second run would find nothing left to do.
    """
    with recorded_cluster_of_ours(tmp_path_factory.mktemp("changes")) as (client, server):
        wanted = [case for case in cases() if case.name in CHANGES]
        return dict(_play_all(client, server, wanted, java_exit_codes=False))


def _play_all(client, server, wanted=None, *, java_exit_codes=True):
    is_later = False
    for case in cases() if wanted is None else wanted:
        kind = kind_of(case.name)
        if KINDS.index(kind) > 1 and not is_later:
            cluster.let_time_pass(client)
            is_later = True
        if kind in ("delete-offsets", "reset"):
            cluster.commit_simple(client)
        ours = play(case, server, java_exit_codes=java_exit_codes)
        once = not java_exit_codes or "--execute" in case.argv or kind == "delete"
        again = ours if once else play(case, server, java_exit_codes=False)
        lines = list(differences(case, ours, server))
        yield case.name, Played(case, ours, again.exit, lines, masked(ours, server))


def test_the_runs_are_as_they_were_recorded(played):
    """K518-18, K518-19, K518-20, K229-17, K848-175."""
    different = {name: ran.lines for name, ran in played.items() if ran.lines}
    others = [line for name, lines in different.items() if name not in DIFFERENT for line in lines]
    assert not others, "\n".join(others)
    assert set(different) == set(DIFFERENT), "a run that is listed is as it was recorded"
    assert (len(played), len(played) - len(different)) == (ALL, EQUAL)


def test_what_differs_is_what_is_expected_of_it(played, request):
    """`--rewrite` writes it down anew, and the diff is the review."""
    ours = {name: _by_line(played[name].masked) for name in sorted(DIFFERENT)}
    if request.config.getoption("rewrite"):
        OURS.write_text(f"{json.dumps(ours, indent=1, ensure_ascii=False)}\n", encoding="utf-8")
    assert ours == json.loads(OURS.read_text(encoding="utf-8"))


def _by_line(ran):
    return {"exit": ran.exit, "stdout": ran.stdout.split("\n"), "stderr": ran.stderr.split("\n")}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_that_failed_leaves_with_1(changes, name):
    """A script must know that a group was not reset, or not deleted."""
    ran = changes[name]
    assert ran.by_default == CHANGES[name]
    others = [lines for lines in ran.lines if not lines.startswith(f"{name} exit:")]
    if name == "delete-all-groups":  # more groups are there than when it was recorded
        others = []
    assert not others, "\n".join(others)


def test_every_difference_is_documented():
    """The page has the reasons and the number; a script's author looks there."""
    text = " ".join(DOCUMENT.read_text(encoding="utf-8").split())
    missing = [reason for reason in DIFFERENT.values() if reason not in text.replace("`", "")]
    assert not missing
    assert f"{EQUAL} of {ALL} are the same but for" in text
    recorded = [case.recorded for case in cases()]
    for what, left_out in (("Usage texts", USAGE), ("Stack frames", FRAMES)):
        found = sum(any(map(left_out.search, (ran.stdout, ran.stderr))) for ran in recorded)
        assert f"- {what} ({found} runs)" in text


def test_a_failure_is_an_exit_code_unless_java_exit_codes_are_wanted(played):
    """Scripts overlook what leaves with 0."""
    for name, ran in played.items():
        if "--execute" in ran.case.argv or kind_of(name) == "delete":
            continue
        failed = FAILED.search(ran.ours.stdout) or "Error: org.apache" in ran.ours.stdout
        if failed or ran.ours.exit:
            expected = 0 if name == "args-help" else 1
            assert (name, ran.by_default) == (name, expected)
        else:
            assert (name, ran.by_default) == (name, 0)
    assert sum(ran.by_default != ran.ours.exit for ran in played.values()) > 30


@pytest.mark.parametrize("tool", TOOLS)
def test_help_names_every_option_of_the_runs(tool):
    shown = run(TOOLS[tool], ["--help"])
    assert (shown.exit, shown.stdout) == (0, "")
    words = {word for case in cases() if case.tool == tool for word in case.argv}
    options = {word for word in words if word.startswith("--")} - {"--no-such-flag"}
    assert [option for option in options if f"  {option}" not in shown.stderr] == []
    assert "--java-exit-codes" in shown.stderr
