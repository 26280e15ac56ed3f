# SPDX-License-Identifier: Apache-2.0
"""The plugin for pytest, in a pytest of its own."""

import os
import subprocess
import sys
from importlib.metadata import entry_points
from importlib.util import find_spec

import pytest

# Where this checkout is installed with its entry points, pytest has loaded the plugin itself.
LOADED = any(one.name == "kohort" for one in entry_points(group="pytest11"))
PLUGIN = () if LOADED else ("-p", "kohort.testing.plugin")


def run(directory, text, *options):
    """The output of pytest for a file with these tests."""
    (directory / "test_it.py").write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull]
    done = subprocess.run(
        [*command, *PLUGIN, "--rootdir", str(directory), *options, str(directory / "test_it.py")],
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "INTERNALERROR" not in done.stdout + done.stderr, done.stdout + done.stderr
    return done.stdout


TESTS = """
import pytest

def test_one(kohort_broker, kohort_topic, kohort_group):
    kohort_broker.produce(kohort_topic, "x")
    assert kohort_broker.groups[kohort_group].state == "Dead"
    assert kohort_broker.topics == [kohort_topic]
    assert kohort_topic.startswith("test_one-") and kohort_group != kohort_topic

@pytest.mark.kohort_topic(partitions=3, configs={"retention.ms": 7})
def test_two(kohort_broker, kohort_topic):
    assert kohort_broker.topics == [kohort_topic]
    assert len(kohort_broker.ask("topic_ends", kohort_topic)) == 3

@pytest.mark.kohort_topic(2)
def test_positional(kohort_broker, kohort_topic):
    assert len(kohort_broker.ask("topic_ends", kohort_topic)) == 2

def test_three(kohort_broker, kohort_group):
    assert kohort_broker.topics == []

@pytest.mark.parametrize("word", ["a/b", "c d"])
def test_four(kohort_topic, word):
    assert kohort_topic

def test_five(kohort_broker, kohort_topic, kohort_group):
    kohort_broker.delete_topic(kohort_topic)
    kohort_broker.stop()
"""


def test_each_test_gets_names_of_its_own(tmp_path):
    assert "7 passed" in run(tmp_path, TESTS, "--strict-markers")


def test_the_modules_of_kohort_are_imported_as_they_are(tmp_path):
    """Of a package that is installed with a plugin, pytest marks all modules: to rewrite asserts in
    hundreds of them takes seconds before the first broker runs.
    """
    marked = "import pytest\npytest.register_assert_rewrite('kohort')\n"
    (tmp_path / "conftest.py").write_text(marked, encoding="utf-8")
    text = """
import sys

def test_loaders(kohort_broker):
    of_kohort = {name: one for name, one in sys.modules.items() if name.startswith("kohort.")}
    assert len(of_kohort) > 100
    marked = {name for name, one in of_kohort.items()
              if type(one.__loader__).__name__ == "AssertionRewritingHook"}
    before_the_plugin = {"kohort.lazy_names", "kohort.testing", "kohort.testing.names"}
    assert {"kohort.testing.plugin"} <= marked <= {*before_the_plugin, "kohort.testing.plugin"}
"""
    assert "1 passed" in run(tmp_path, text)


def test_a_marker_with_too_many_arguments_is_refused(tmp_path):
    text = """
import pytest

@pytest.mark.kohort_topic(2, {"retention.ms": 7})
def test_it(kohort_topic):
    pass
"""
    out = run(tmp_path, text)
    assert "1 error" in out
    assert "the marker kohort_topic has 2 positional arguments, expected at most 1" in out


def test_with_xdist(tmp_path):
    assert "7 passed" in run(tmp_path, TESTS, "-n", "2", "--dist", "loadfile")


def test_a_failure_shows_the_group(tmp_path):
    text = """
from tests.serve.talk import Talk
from tests.testing.members import join

def test_it(kohort_broker, kohort_topic, kohort_group):
    with Talk(kohort_broker.bootstrap) as client:
        join(client, kohort_group, topic=kohort_topic)
        assert kohort_broker.groups[kohort_group].state == "Empty"

def test_passes(kohort_group):
    pass

def test_that_stops_it(kohort_broker, kohort_group):
    kohort_broker.stop()
    assert False
"""
    root = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))  # noqa: PTH120
    out = run(tmp_path, text, "-o", f"pythonpath={root}")
    assert "2 failed, 1 passed" in out
    assert "- Kohort -" in out
    assert "group test_it-2: consumer Stable, epoch 2, 1 member" in out
    assert "m (talk) at epoch 2: test_it-1 0" in out
    assert "group test_passes" not in out


def test_a_failure_shows_the_group_of_the_fixture_also_where_the_test_has_not_named_it(tmp_path):
    text = """
def test_by_its_fixture(kohort_broker, kohort_topic, kohort_group):
    assert 0

def test_without_it(kohort_broker, kohort_topic):
    assert 0
"""
    out = run(tmp_path, text)
    assert "2 failed" in out
    assert out.count("- Kohort -") == 1
    assert "\ngroup test_by_its_fixture-2: does not exist" in out


def test_a_broker_that_cannot_even_be_asked_spoils_no_report(tmp_path):
    text = """
def test_patches_what_asks(kohort_broker, kohort_group, monkeypatch):
    def ask(*question):
        raise OSError("the test has patched it")
    monkeypatch.setattr(kohort_broker, "ask", ask)
    assert 0

def test_patches_the_picture(kohort_broker, kohort_group, monkeypatch):
    def describe(group):
        raise OSError("the test has patched it")
    monkeypatch.setattr("kohort.testing.groups.GroupHandle.describe", describe)
    assert 0

def test_after_it(kohort_broker):
    assert kohort_broker.topics == []
"""
    out = run(tmp_path, text)
    assert "2 failed, 1 passed" in out
    assert out.count("cannot be asked: the test has patched it") == 2


NAMED_BEFORE = """
import pytest
from kohort.testing import Broker

@pytest.fixture(scope="module")
def own():
    with Broker() as broker:
        yield broker

def test_names_one(own):
    assert own.groups["of-the-first"].state == "Dead"
    own.stop()

def test_after_it(own):
    own.start()
    assert 0
"""


def test_a_failure_shows_no_group_that_an_earlier_test_has_named(tmp_path):
    out = run(tmp_path, NAMED_BEFORE)
    assert "1 failed, 1 passed" in out
    assert "group of-the-first" not in out


def test_its_broker_is_what_a_conftest_says(tmp_path):
    (tmp_path / "conftest.py").write_text("""
import pytest

@pytest.fixture(scope="session")
def kohort_options():
    return {"nodes": 2, "clock": "manual", "in_memory": True}
""")
    text = """
def test_it(kohort_broker):
    assert kohort_broker.nodes == 2
    now = kohort_broker.clock.now_ms
    kohort_broker.clock.advance(1)
    assert kohort_broker.clock.now_ms == now + 1000
"""
    assert "1 passed" in run(tmp_path, text)


def test_it_is_light_where_it_is_not_used(tmp_path):
    """Everybody who has Kohort installed loads it with each run of pytest."""
    text = """
import sys

def test_it():
    ours = sorted(name for name in sys.modules if name.partition(".")[0] == "kohort")
    testing = ["kohort.testing", "kohort.testing.names", "kohort.testing.plugin"]
    assert ours == ["kohort", "kohort.lazy_names", *testing]
"""
    assert "1 passed" in run(tmp_path, text)


@pytest.mark.skipif(find_spec("pytest_asyncio") is None, reason="pytest-asyncio is not there")
def test_with_pytest_asyncio(tmp_path):
    text = """
import asyncio

async def test_it(kohort_broker, kohort_topic, kohort_group):
    kohort_broker.produce(kohort_topic, "x")
    group = kohort_broker.groups[kohort_group]
    assert await asyncio.to_thread(group.wait, "Dead") is None
"""
    assert "1 passed" in run(tmp_path, text, "-o", "asyncio_mode=auto")


def test_a_loop_of_the_test_is_not_disturbed(tmp_path):
    text = """
import asyncio
import kohort

def test_it(kohort_broker, kohort_topic, kohort_group):
    async def whole():
        async with kohort.AdminClient(kohort_broker.bootstrap) as admin:
            found = await admin.list_topics()
            group = kohort_broker.groups[kohort_group]
            return [one.name for one in found], await asyncio.to_thread(group.wait, "Dead")

    assert asyncio.run(whole()) == ([kohort_topic], None)
"""
    assert "1 passed" in run(tmp_path, text)


LEFT_BEHIND = """
def test_fault(kohort_broker, kohort_group):
    kohort_broker.faults.error("ListGroups", 15, times=None)
    assert 0

def test_after(kohort_broker, kohort_group):
    assert list(kohort_broker.faults) == []

def test_close(kohort_broker):
    kohort_broker.close()

def test_after_that(kohort_broker, kohort_topic):
    assert kohort_broker.topics == [kohort_topic]
"""


def test_what_a_test_leaves_behind_harms_no_other(tmp_path):
    told = run(tmp_path, LEFT_BEHIND)
    assert "1 failed, 3 passed" in told
    assert "fault: COORDINATOR_NOT_AVAILABLE for ListGroups, hits: 0" in told


CHANGED = """
import os, signal, time
import pytest

def now():
    return time.time() * 1000

def test_node(kohort_broker):
    kohort_broker.node(1).stop()
    kohort_broker.node(0).kill(takeover=False)

def test_after_node(kohort_broker, kohort_topic):
    assert kohort_broker.command("group_log_ends")
    assert kohort_broker.ask("topic_ends", kohort_topic) == {(kohort_topic, 0): 0}
    for index in range(3):
        with pytest.raises(Exception, match="is running"):
            kohort_broker.node(index).start()

def test_clock(kohort_broker):
    kohort_broker.clock.advance(86_400 * 30)
    kohort_broker.produce(kohort_broker.create_topic("kept"), "x")

def test_after_clock(kohort_broker):
    assert abs(kohort_broker.clock.now_ms - now()) < 60_000
    assert kohort_broker.read("kept")[0].text == "x"
    kohort_broker.restart()
    assert abs(kohort_broker.clock.now_ms - now()) < 60_000

def test_fault(kohort_broker):
    kohort_broker.faults.error("Metadata", 15, times=None)

def test_after_fault(kohort_broker):
    assert list(kohort_broker.faults) == []

def test_stop(kohort_broker, kohort_topic):
    kohort_broker.stop()

def test_after_stop(kohort_broker):
    assert kohort_broker.is_running
    assert kohort_broker.topics == ["kept"]

def test_stopped_process(kohort_broker):
    if kohort_broker.process:
        os.kill(kohort_broker.pid, signal.SIGSTOP)

def test_after_stopped_process(kohort_broker):
    assert kohort_broker.topics == ["kept"]

def test_killed_process(kohort_broker):
    if kohort_broker.process:
        os.kill(kohort_broker.pid, signal.SIGKILL)

def test_after_killed_process(kohort_broker):
    assert kohort_broker.topics == ["kept"]
"""


@pytest.mark.parametrize("process", [False, True])
def test_what_a_test_has_changed_is_as_before_for_the_next_one(process, tmp_path):
    (tmp_path / "conftest.py").write_text(f"""
import pytest

@pytest.fixture(scope="session")
def kohort_options():
    return {{"nodes": 3, "process": {process}}}
""")
    assert "12 passed" in run(tmp_path, CHANGED)


PORT_TAKEN = """
import socket
import pytest

@pytest.fixture
def port(kohort_broker):
    host, port = kohort_broker.bootstrap.split(":")
    with socket.socket() as taken:
        yield lambda: (taken.bind((host, int(port))), taken.listen())
    print("fixture of", "test_takes_its_port", "has ended")

@pytest.fixture(scope="module")
def elsewhere():
    yield
    print("fixture of the module has ended")

def test_takes_its_port(kohort_broker, port, elsewhere):
    kohort_broker.stop()
    port()

def test_of_something_else(elsewhere):
    pass

def test_of_the_broker(kohort_broker, kohort_topic):
    assert kohort_broker.topics == [kohort_topic]
"""


def test_a_broker_that_does_not_recover_is_an_error_of_the_test_that_has_damaged_it(tmp_path):
    """The fixtures of that test end in order, and the tests after it do not hear of it."""
    out = run(tmp_path, PORT_TAKEN, "-rP", "-s")
    assert "3 passed, 1 error" in out
    assert "ERROR at teardown of test_takes_its_port" in out
    assert "the broker did not start" in out
    assert "not torn down properly" not in out
    assert "fixture of test_takes_its_port has ended" in out
    assert "fixture of the module has ended" in out


def test_both_errors_are_shown_where_a_fixture_fails_after_the_broker(tmp_path):
    text = """
import pytest

@pytest.fixture
def fails():
    yield
    raise ValueError("the fixture fails, too")

def test_it(kohort_broker, fails, monkeypatch):
    def recover():
        raise RuntimeError("it stays away")
    kohort_broker.recover = recover

def test_after_it():
    pass
"""
    out = run(tmp_path, text)
    assert "2 passed, 1 error" in out
    assert "it stays away" in out
    assert "the fixture fails, too" in out


def test_the_groups_that_a_test_has_touched_are_shown(tmp_path):
    text = """
import pytest
from tests.serve.talk import Talk
from tests.testing.members import join
from kohort.testing import Broker

@pytest.fixture
def own():
    with Broker() as broker:
        yield broker

def test_before(kohort_broker, own, kohort_topic):
    kohort_broker.groups["untouched"].commit(kohort_topic)

def test_joins(kohort_broker, kohort_topic):
    with Talk(kohort_broker.bootstrap) as client:
        join(client, "hard-coded", topic=kohort_topic)
        assert 0

def test_commits(kohort_broker, kohort_topic):
    with Talk(kohort_broker.bootstrap) as client:
        assert client.commit("committed", kohort_topic, 1) == 0
        assert 0

def test_waits(kohort_broker):
    kohort_broker.groups["misspelt"].wait("Stable", timeout=0.05)

def test_of_its_own(own):
    own.create_topic("t")
    own.groups["elsewhere"].commit("t")
    assert 0
"""
    root = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))  # noqa: PTH120
    out = run(tmp_path, text, "-o", f"pythonpath={root}")
    assert "4 failed, 1 passed" in out
    for name in ("hard-coded: consumer Stable", "committed: ", "elsewhere: "):
        assert f"\ngroup {name}" in out
    assert "\ngroup misspelt: does not exist" in out
    assert "untouched" not in out.partition("short test summary")[0]


MARKERS = {
    "partition=3": "the marker kohort_topic has no argument partition; did you mean partitions?",
    "partitions='3'": "partitions is '3', expected a whole number, 1 or more",
    "0": "partitions is 0, expected a whole number, 1 or more",
    "2, partitions=3": "the marker kohort_topic names partitions twice",
    "configs=[1]": "configs is [1], expected a dict",
    "configs={'retention.m': 1}": "INVALID_CONFIG: Unknown topic config name: retention.m",
    "configs={'retention.ms': None}": "retention.ms is None, expected a text, a number or a bo",
    "replication_factor=9": "INVALID_REPLICATION_FACTOR: ",
}
OPTIONS = {
    "{'setings': {}}": "has no argument setings; did you mean settings?",
    "['nodes']": "kohort_options is ['nodes'], expected a dict",
    "{'settings': {'num.partition': 3}}": "num.partition is not a setting; did you mean num.part",
    "{'nodes': '3'}": "nodes is '3', expected a whole number, 1 or more",
}


def test_a_mistake_in_a_marker_or_in_the_options_is_one_line(tmp_path):
    text = "import pytest\n"
    for index, marker in enumerate(MARKERS):
        text += f"""
@pytest.mark.kohort_topic({marker})
def test_marker_{index}(kohort_topic):
    pass
"""
    for index, options in enumerate(OPTIONS):
        text += f"""
class TestOptions{index}:
    @pytest.fixture(scope="class")
    def kohort_options(self):
        return {options}

    @pytest.fixture(scope="class")
    def kohort_broker(self, kohort_options):
        from kohort.testing.plugin import _new_broker
        with _new_broker(kohort_options) as broker:
            yield broker

    def test_options_{index}(self, kohort_broker):
        pass
"""
    out = run(tmp_path, text)
    assert f"{len(MARKERS) + len(OPTIONS)} errors" in out
    for name, cases in (("marker", MARKERS), ("TestOptions", OPTIONS)):
        for index, line in enumerate(cases.values()):
            told = out.partition("_ ERROR at setup of ")[2]
            whose = f"test_marker_{index} " if name == "marker" else f"test_options_{index} "
            told = out.partition(whose)[2].partition("\n_")[0].partition("\n====")[0]
            told = [text for text in told.splitlines()[1:] if text]
            assert len(told) == 1, told
            assert line in told[0]


def test_a_failure_shows_the_lines_of_the_test_and_none_of_kohort(tmp_path):
    text = """
import pytest
from kohort.testing import Broker

def test_refused(kohort_broker):
    kohort_broker.create_topic("a/b")

def test_late(kohort_broker):
    kohort_broker.groups["g"].wait(members=1, timeout=0.05)

def test_read(kohort_broker):
    kohort_broker.read("no-such-topic")

def test_fault(kohort_broker):
    kohort_broker.faults.drop("Fech")

def test_arguments():
    Broker(nodes=0)

def test_setting():
    Broker({"num.partition": 3})

def test_not_running():
    Broker().groups["g"].lag()

def test_process(kohort_broker):
    Broker(process=True).clock.advance(1)

def test_taken(kohort_broker):
    other = Broker()
    other._ports = {"PLAINTEXT": int(kohort_broker.bootstrap.rpartition(":")[2])}
    other.start()
"""
    out = run(tmp_path, text)
    assert "9 failed" in out
    assert "raised in repr" not in out
    places = [
        line for line in out.splitlines() if line.startswith(("src/", "/")) and ".py:" in line
    ]
    assert not [line for line in places if "kohort/" in line], out
    assert "def ask" not in out
