"""What the tools of Apache Kafka 4.3.1 were recorded to print, ours print: byte by byte.

All runs are played in this process against a broker of ours that is set up as the recorded one was.
"""

import os
import re
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.drop_in import recorded_cluster as cluster
from tests.drop_in.recorded_runs import (
    KINDS,
    TOOLS,
    Case,
    Run,
    cases,
    differences,
    kind_of,
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
# Recorded with exit code 0, and failures to a script.
FAILED = re.compile(r"^\nError: |is invalid: ", re.MULTILINE)


class Played(NamedTuple):
    """A run of ours, with the exit code it has by default."""

    case: Case
    ours: Run
    by_default: int
    lines: list[str]


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """All runs by name."""
    folder = tmp_path_factory.mktemp("runs")
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
                return dict(_play_all(client, broker.bootstrap))
        finally:
            os.chdir(before)


def _play_all(client, server):
    is_later = False
    for case in cases():
        kind = kind_of(case.name)
        if KINDS.index(kind) > 1 and not is_later:
            cluster.let_time_pass(client)
            is_later = True
        if kind in ("delete-offsets", "reset"):
            cluster.commit_simple(client)
        ours = play(case, server)
        changes = "--execute" in case.argv or kind == "delete"
        again = ours if changes else play(case, server, java_exit_codes=False)
        yield case.name, Played(case, ours, again.exit, list(differences(case, ours, server)))


def test_the_runs_are_as_they_were_recorded(played):
    """K518-18, K518-19, K518-20, K229-17, K848-175."""
    different = {name: ran.lines for name, ran in played.items() if ran.lines}
    others = [line for name, lines in different.items() if name not in DIFFERENT for line in lines]
    assert not others, "\n".join(others)
    assert set(different) == set(DIFFERENT), "a run that is listed is as it was recorded"
    assert (len(played), len(played) - len(different)) == (ALL, EQUAL)


def test_every_difference_is_documented():
    """The page has the reasons and the number; a script's author looks there."""
    text = " ".join(DOCUMENT.read_text(encoding="utf-8").split())
    missing = [reason for reason in DIFFERENT.values() if reason not in text.replace("`", "")]
    assert not missing
    assert f"{EQUAL} of {ALL}" in text


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
