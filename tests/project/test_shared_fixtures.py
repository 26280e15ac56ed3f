# SPDX-License-Identifier: Apache-2.0
"""A fixture that many tests share may take its time, and one start that fails is not the end."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def outcomes(directory, text, *options):
    """What pytest says of tests that use nothing but tests/shared_fixtures.py."""
    (directory / "test_it.py").write_text("import pytest, time\n" + text, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.shared_fixtures", *options]
    command += ["-p", "no:cacheprovider", "-c", "/dev/null", "--rootdir", str(directory), "-rA"]
    done = subprocess.run(
        [*command, str(directory / "test_it.py")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "INTERNALERROR" not in done.stdout + done.stderr, done.stdout + done.stderr
    lines = [line.split(" - ")[0] for line in done.stdout.splitlines()]
    kinds = ("PASSED ", "FAILED ", "ERROR ")
    found = [line.split("::") for line in lines if line.startswith(kinds)]
    return {name: head.split()[0] for head, name in found}


def test_a_shared_fixture_has_a_limit_of_its_own_and_a_test_keeps_the_usual_one(tmp_path):
    text = """
@pytest.fixture(scope="session")
def slow():
    time.sleep(3)

def test_with_it(slow):
    pass

def test_that_hangs(slow):
    time.sleep(60)

def test_behind_it(slow):
    pass
"""
    assert outcomes(tmp_path, text, "--timeout=2") == {
        "test_with_it": "PASSED",
        "test_that_hangs": "FAILED",
        "test_behind_it": "PASSED",
    }


def test_the_limit_of_a_fixture_holds(tmp_path):
    text = """
@pytest.fixture(scope="module")
def hangs():
    time.sleep(60)

def test_with_it(hangs):
    pass
"""
    short = ("--timeout=1", "-o", "shared_fixture_timeout=1")
    assert outcomes(tmp_path, text, *short) == {"test_with_it": "ERROR"}


def test_a_start_that_failed_is_tried_again_but_not_for_ever(tmp_path):
    text = """
starts = []

@pytest.fixture(scope="session")
def at_the_second_try():
    starts.append("second")
    assert len(starts) > 1

@pytest.fixture(scope="session")
def never():
    starts.append("never")
    raise OSError

@pytest.mark.parametrize("number", range(3))
def test_one(at_the_second_try, number):
    pass

@pytest.mark.parametrize("number", range(5))
def test_other(never, number):
    pass

def test_tries():
    assert starts == ["second"] * 2 + ["never"] * 3
"""
    assert outcomes(tmp_path, text) == {
        "test_one[0]": "ERROR",
        "test_one[1]": "PASSED",
        "test_one[2]": "PASSED",
        **{f"test_other[{number}]": "ERROR" for number in range(5)},
        "test_tries": "PASSED",
    }


def test_what_has_died_is_started_anew_with_what_was_made_of_it(tmp_path):
    text = """
from tests.shared_fixtures import LIVES

LIVES["engine"] = lambda it: it["lives"]

@pytest.fixture(scope="session")
def engine():
    yield {"lives": True}
    raise OSError

@pytest.fixture(scope="module")
def computed(engine):
    return [engine]

def test_that_kills_it(engine, computed):
    engine["lives"] = False

def test_behind_it(computed, engine):
    assert engine["lives"]
    assert computed == [engine]
    LIVES.clear()

def test_of_the_same(computed, engine):
    assert engine["lives"]
"""
    found = outcomes(tmp_path, text)
    assert [found["test_that_kills_it"], found["test_behind_it"]] == ["PASSED", "PASSED"]
