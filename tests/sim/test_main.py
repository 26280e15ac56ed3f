# SPDX-License-Identifier: Apache-2.0
"""The command: one seed, many, a plant, a run that is resumed, and the story of a find."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.interruptible import started
from tests.waiting import SOON_S, eventually

from kohort.sim.main import main
from kohort.sim.run import simulate
from kohort.sim.trace import shortest_trace


def test_one_seed(capsys):
    assert main(["--seed", "3", "--minutes", "0.2"]) == 0
    assert capsys.readouterr().out.startswith("seed 3: ok (digest ")


def test_a_plant_is_found(capsys):
    assert main(["--seed", "8", "--minutes", "1", "--plant", "producer id twice"]) == 0
    assert "is given out twice" in capsys.readouterr().out


def test_a_plant_that_is_not_found(capsys):
    assert main(["--seed", "1", "--minutes", "0.01", "--plant", "drop tombstone"]) == 1
    assert capsys.readouterr().out.endswith("the planted bug 'drop tombstone' was not found\n")


def test_many_seeds_are_resumed(tmp_path, capsys):
    state = tmp_path / "played"
    command = ["--minutes", "0.1", "--processes", "2", "--state", str(state)]
    assert main([*command, "--seeds", "1-3"]) == 0
    assert sorted(state.read_text().split()[1::2]) == ["1", "2", "3"]
    assert main([*command, "--seeds", "1-4"]) == 0
    told = capsys.readouterr().out
    assert "3 seeds were played before" in told
    assert "4 of 4 seeds" in told


def test_a_find_is_told_as_a_transcript():
    """The story needs no more of the world than the find does."""
    told: list[str] = []
    found = simulate(22, 0.5, plant="skip revocation")
    story = shortest_trace(found, 0.5, "skip revocation", told.append)
    assert "owners: " in story
    assert "heartbeat member-" in story
    assert "\ntopic " in story.partition("\nheartbeat ")[0]
    assert "power" not in story.split("What it needs")[1].splitlines()[0]
    runs = [int(one.split()[-3]) for one in told]
    assert runs == sorted(set(runs))
    assert told[-1].endswith(f"run {runs[-1]} of {runs[-1] + 1}")  # the last one tells the story


def test_the_story_of_a_planted_bug_is_told_where_it_is_asked_for(monkeypatch, capsys):
    asked = []

    def story(found, minutes, plant, _progress):
        asked.append((found.seed, minutes, plant))
        return "heartbeat member-1"

    monkeypatch.setattr("kohort.sim.main.shortest_trace", story)
    command = ["--seed", "8", "--minutes", "1", "--plant", "producer id twice"]
    assert main(command) == 0
    assert asked == []
    assert main([*command, "--story"]) == 0
    assert asked == [(8, 1.0, "producer id twice")]
    told = capsys.readouterr().out.splitlines()
    assert told[-2] == "heartbeat member-1"
    assert "is given out twice" in told[-1]


@pytest.mark.parametrize("kind", ["missing", "binary", "read-only"])
def test_a_state_that_cannot_be_kept_is_told_before_anything_is_played(
    kind, tmp_path, monkeypatch, capsys
):
    def play(*_, **__):
        raise AssertionError("something is played")

    monkeypatch.setattr("kohort.sim.main.Campaign._played", play)
    state = tmp_path / "played"
    if kind == "binary":
        state.write_bytes(b"\xff\xfe")
    elif kind == "read-only":
        monkeypatch.setattr("kohort.sim.main.Path.open", _refused)
    else:
        state = Path("/proc/played")
    with pytest.raises(SystemExit) as refused:
        main(["--seeds", "1-2", "--state", str(state)])
    assert refused.value.code == 2
    told = capsys.readouterr().err
    assert told.startswith(f"python -m kohort.sim: --state {state} cannot be used: ")
    assert told.count("\n") == 1


def test_a_state_that_can_be_written_no_more_ends_it_with_a_line(tmp_path, monkeypatch, capsys):
    state = tmp_path / "played"
    opened = Path.open

    def open_(path, mode="r", **more):
        if (
            path == state and mode == "a" and more
        ):  # the first time it is only looked whether it can be written
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return opened(path, mode, **more)

    monkeypatch.setattr("kohort.sim.main.Path.open", open_)
    with pytest.raises(SystemExit):
        main(["--seeds", "1-2", "--minutes", "0.1", "--processes", "1", "--state", str(state)])
    told = capsys.readouterr().err
    assert told.startswith(
        f"python -m kohort.sim: --state {state} cannot be written: No space left on dev"
    )


def _refused(*_args, **_more):
    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def test_no_seeds_are_refused(capsys):
    with pytest.raises(SystemExit) as refused:
        main(["--seeds", "9-1"])
    assert refused.value.code == 2
    assert "'9-1' has no seeds" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (("--seeds", "a-b"), "'a-b' has no seeds"),
        (("--seed", "-1"), "'-1' is no seed, expected a whole number"),
        (
            ("--plant", "skip revokation"),
            "did you mean skip revocation? (see python -m kohort.sim --help)",
        ),
        (("--minutes", "0"), "'0', expected more than 0 minutes"),
        (("--minutes", "nan"), "'nan', expected more than 0 minutes"),
        (("--processes", "0"), "'0', expected 1 or more"),
        (("--state", "/nowhere/played"), "'/nowhere/played', expected a file in a directory"),
    ],
)
def test_a_wrong_argument_is_told_before_anything_is_played(wrong, told, capsys):
    with pytest.raises(SystemExit) as refused:
        main([*wrong])
    assert refused.value.code == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_it_with_a_line(tmp_path, how):
    state = tmp_path / "played"
    command = [sys.executable, "-m", "kohort.sim.main", "--seeds", "1-100000", "--minutes", "0.1"]
    process = started(
        [*command, "--state", str(state)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        eventually(lambda: state.exists() and state.stat().st_size, "a seed was played")
        process.send_signal(how)
        told, complained = process.communicate(timeout=SOON_S)
    finally:
        process.kill()
    assert (process.returncode, complained) == (130, "")
    assert told.endswith(f"stopped; the same command goes on from {state}\n")


def test_what_a_run_raises_is_told_with_its_seed(monkeypatch, capsys):
    def raising(*_, **__):
        raise ZeroDivisionError("of the simulator")

    monkeypatch.setattr("kohort.sim.main.simulate", raising)
    assert main(["--seed", "5"]) == 1
    assert "seed 5: raised: ZeroDivisionError: of the simulator" in capsys.readouterr().out


def test_what_was_played_with_a_plant_is_not_played_without(tmp_path, capsys):
    state = tmp_path / "played"
    state.write_text("0.1 1 drop tombstone\n0.1 2\n")
    assert main(["--minutes", "0.1", "--state", str(state), "--seeds", "1-2"]) == 0
    assert "1 seeds were played before" in capsys.readouterr().out
