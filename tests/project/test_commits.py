# SPDX-License-Identifier: Apache-2.0
"""`tools/commits.py` finds each broken rule, and nothing else."""

import importlib.util
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PATH = ROOT / "tools" / "commits.py"
BODY = "\n\nThe old one was slow.\n"


@pytest.fixture
def commits():
    spec = importlib.util.spec_from_file_location("commits", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def git(commits, tmp_path, monkeypatch):
    """Runs git in a repository of its own, which is then the one that is checked."""
    monkeypatch.setattr(commits, "ROOT", tmp_path)

    def run(*arguments):
        identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        subprocess.run(["git", *identity, *arguments], cwd=tmp_path, check=True)

    run("init", "--quiet")
    return run


@pytest.mark.parametrize(
    "message",
    [
        "Read a log in slices" + BODY,
        "Feed those that wait first" + BODY,
        "Address a node by its name" + BODY,
        "Focus on one" + BODY,
        "Pass a link on\n\nhttps://example.org/" + "a" * 80 + "\n",
    ],
)
def test_a_commit_as_it_should_be(commits, message):
    assert list(commits.faults(message, [(800, "src/kohort/a.py")])) == []


@pytest.mark.parametrize(
    ("message", "fault"),
    [
        ("Read " + "a" * 70 + BODY, "the subject has 75 characters, expected 72 at most"),
        ("read a log" + BODY, "begins with 'read', expected a capital letter"),
        ("Reads a log" + BODY, "begins with 'Reads', expected an imperative"),
        ("Fixed a log" + BODY, "begins with 'Fixed', expected an imperative"),
        ("Reading a log" + BODY, "begins with 'Reading', expected an imperative"),
        ("Read a log." + BODY, "ends with a full stop"),
        ("Read a log", "there is no body"),
        ("Read a log\n\n", "there is no body"),
        ("Read a log\nin slices\n", "the second line is not blank"),
        ("Read a log\n\nin " + "a" * 70, "line 3 has 73 characters, expected 72 at most"),
    ],
)
def test_a_message_that_breaks_a_rule(commits, message, fault):
    (found,) = commits.faults(message, [])
    assert fault in found


def test_a_commit_that_changes_too_much(commits):
    changes = [(500, "src/kohort/a.py"), (301, "tests/test_a.py"), (9000, "tests/data/a.json")]
    (found,) = commits.faults("Read a log" + BODY, changes)
    assert found.startswith("801 lines are changed, expected 800 at most")
    for subject in ("Move a log", "Rename a log"):
        assert list(commits.faults(subject + BODY, changes)) == []


def test_a_history_is_checked(commits, tmp_path, git, capsys):
    (tmp_path / "a.py").write_text("a = 1\n" * 900)
    git("add", "a.py")
    git("commit", "--quiet", "--message", "Write a" + BODY)
    git("mv", "a.py", "b.py")
    git("commit", "--quiet", "--message", "moved")

    assert commits.check_range("HEAD") == 4
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(": ", 1)[1] for line in lines] == [
        "the subject begins with 'moved', expected a capital letter",
        "the subject begins with 'moved', expected an imperative",
        "there is no body, expected one that says why",
        (
            "900 lines are changed, expected 800 at most but for moves (Move or Rename as the first"
            " word) and generated data"
        ),
    ]
    assert commits.check_range("HEAD~1..HEAD") == 3  # a moved file changes nothing


def test_a_text_that_is_wrapped_anew_changes_nothing(commits, tmp_path, git):
    words = [f"word{number}" for number in range(2000)]
    for text in (" ".join(words), "\n".join(words), "\n".join(words[:-1])):
        (tmp_path / "a.md").write_text(text)
        git("add", "a.md")
        git("commit", "--quiet", "--message", "Write a" + BODY)
    assert commits.check_range("HEAD~2..HEAD~1") == 0
    assert commits.changes_of("HEAD~1", "HEAD") == [(3, "a.md")]  # the last line had no end
    (tmp_path / "a.md").write_text("other words\n" * 900)
    git("add", "a.md")
    ((lines, _),) = commits.changes_of(commits.parent_of(""), "")
    assert lines > 2000


def test_where_there_is_no_history_nothing_is_checked(commits, tmp_path, monkeypatch):
    monkeypatch.setattr(commits, "ROOT", tmp_path)
    assert "not a git repository" in commits.no_history()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert commits.no_history() == "git is not installed"


def test_the_hook_refuses_a_message(tmp_path):
    path = tmp_path / "message"
    path.write_text("fixed it\n# a comment of git's\n")
    done = subprocess.run(
        [ROOT / ".githooks" / "commit-msg", path],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "commit: the subject begins with 'fixed', expected an imperative" in done.stderr
