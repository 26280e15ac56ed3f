# SPDX-License-Identifier: Apache-2.0
"""What runs inside somebody's test is not at the mercy of that test: whatever it patches, in every
order, the broker goes on as ever, and takes none of the numbers and calls that the test counts.
"""

import contextvars
import gc
import os
import random
import re
import shutil
import subprocess
import sys
import weakref
from unittest import mock

import pytest
from confluent_kafka.admin import AdminClient
from tests.testing.patches import IN_A_FOLDER, PATCHES

from kohort.errors import ApiError, ErrorCode
from kohort.storage.files import system
from kohort.testing import Broker, WaitTimeoutError

OF_PROCESSES = (
    *("freezegun", "time", "environment", "processes", "socket module", "umask"),
    *("methods of threads", "texts of files", "versions", "pyfakefs"),
)
IN_IMPORTS = ("freezegun", "time-machine", "random", "environment", "socket", "asyncio.sleep")
every_patch = pytest.mark.parametrize(
    ("patch", "process"),
    [
        *((patch, False) for patch in [*PATCHES, *IN_A_FOLDER]),
        *((patch, True) for patch in [*OF_PROCESSES, *IN_A_FOLDER]),
    ],
    ids=lambda value: {False: "thread", True: "process"}.get(value, value),
)


@pytest.fixture
def patched(patch, tmp_path):
    """Makes the patch, once; kept away from the test's own calls."""
    return PATCHES[patch]() if patch in PATCHES else IN_A_FOLDER[patch](tmp_path)


@pytest.fixture
def now(tmp_path_factory):
    """What the system says the time is: no Python takes part in it."""
    path = str(tmp_path_factory.mktemp("clock") / "now")

    def found():
        descriptor = system.open(path, os.O_WRONLY | os.O_CREAT)
        system.write(descriptor, b".")
        time = system.fstat(descriptor).st_mtime * 1000
        system.close(descriptor)
        return time

    return found


def use(broker, now, topic):
    """A bit of everything, that waits for real time in each place where the broker does."""
    broker.create_topic(topic, partitions=2)
    (record,) = broker.produce(topic, "x")
    assert abs(record.timestamp_ms - now()) < 60_000 + broker.moved_ms
    assert [found.text for found in broker.read(topic)] == ["x"]
    group = broker.groups[f"of {topic}"]
    group.commit(topic, 1)
    assert group.lag() == {(topic, 0): 0}
    with pytest.raises(WaitTimeoutError):
        group.wait(members=1, timeout=0.05)
    with pytest.raises(WaitTimeoutError):
        broker.read(topic, 2, timeout=0.05)
    with pytest.raises(WaitTimeoutError):
        broker.faults.drop("Heartbeat").wait(timeout=0.05)
    broker.faults.clear()
    broker.clock.advance(46)
    with pytest.raises(ApiError):
        broker.create_topic(topic)


@every_patch
def test_a_broker_that_runs_goes_on(patched, process, now):
    with Broker(process=process) as broker:
        broker.create_topic("before")
        with patched:
            use(broker, now, "first")
            use(broker, now, "second")
        use(broker, now, "after")


@every_patch
def test_a_broker_is_started_and_restarted_in_the_middle_of_it(patched, process, now, tmp_path):
    broker = Broker(process=process, data_dir=tmp_path / "data" / "of it")
    try:
        with patched:
            broker.start()
            use(broker, now, "first")
            broker.restart()
            use(broker, now, "second")
        assert broker.topics == ["first", "second"]
        use(broker, now, "after")
        assert "Traceback" not in broker.log()
    finally:
        broker.close()


@pytest.mark.parametrize("patch", [*PATCHES, *IN_A_FOLDER])
def test_a_broker_with_security_is_started_and_restarted_in_the_middle_of_it(patched, now):
    """Its certificate is of the time of the machine, and its key comes from nothing patched."""
    broker = Broker(security=["SASL_SSL", "SSL"])
    try:
        with patched:
            broker.start()
            use(broker, now, "first")
            broker.restart()
            use(broker, now, "second")
            files = broker.tls.ca_file, *broker.tls.client("alice")
        assert all(system.stat(file).st_size for file in files)
        login = broker.client_settings("librdkafka")
        assert {"first", "second"} <= set(AdminClient(login).list_topics(timeout=30).topics)
        assert "WARNING" not in broker.log()
        assert "Traceback" not in broker.log()
    finally:
        broker.close()


@pytest.mark.parametrize("patch", IN_IMPORTS)
def test_a_broker_is_imported_in_the_middle_of_it(patch, tmp_path):
    """As with the first fixture of a test that something has frozen before."""
    program = """
import sys
import tests.testing.patches as own

assert not [name for name in sys.modules if name.startswith("kohort")]
with own.PATCHES[sys.argv[1]]():
    from kohort.testing import Broker
    with Broker() as broker:
        broker.create_topic("t")
        broker.produce("t", "x")
        assert broker.read("t")[0].text == "x"
        at = broker.clock.now_ms
path = own.os.path.join(sys.argv[2], "now")
open(path, "w").close()
assert abs(at - own.os.stat(path).st_mtime * 1000) < 60_000
"""
    done = subprocess.run(
        [sys.executable, "-c", program, patch, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        cwd=os.path.dirname(os.path.dirname(os.path.dirname(__file__))),  # noqa: PTH120
    )
    assert done.returncode == 0, done.stderr


def test_the_numbers_of_a_test_are_its_own():
    """A test that has seeded chance gets what it expects, whatever the broker does meanwhile."""
    random.seed(7)
    expected = [random.random() for _ in range(3)]
    with Broker() as broker:
        random.seed(7)
        found = []
        for name in "abc":
            found.append(random.random())
            broker.create_topic(name)
            broker.node(0)
            broker.restart()
    assert found == expected


def test_a_mock_that_counts_counts_no_call_of_the_broker():
    with Broker() as broker, mock.patch("time.time", side_effect=[1.0, 2.0]) as clock:
        broker.create_topic("t")
        broker.produce("t", "x")
        assert clock.call_count == 0


def test_nothing_of_the_first_tests_context_is_kept():
    """A broker of the session lives longer than the context in which it was started."""

    class Heavy:
        pass

    variable = contextvars.ContextVar("variable")
    heavy = Heavy()
    alive = weakref.ref(heavy)

    def begin(value):
        variable.set(value)
        broker = Broker().start()
        broker.create_topic("t")
        return broker

    broker = contextvars.Context().run(begin, heavy)
    try:
        del heavy
        gc.collect()
        assert alive() is None
    finally:
        broker.close()


@pytest.mark.parametrize("process", [False, True], ids=["thread", "process"])
def test_a_directory_that_is_gone_is_told_of_and_ends_in_order(process, tmp_path):
    directory = tmp_path / "data"
    with Broker(data_dir=directory, process=process) as broker:
        broker.create_topic("t")
        shutil.rmtree(directory)
        with pytest.raises(ApiError, match=re.escape(f"{directory}/")) as raised:
            broker.create_topic("u")
        assert raised.value.code is ErrorCode.KAFKA_STORAGE_ERROR
        assert broker.topics == ["t"]  # refused means unchanged, and it serves
        broker.stop()
        assert not broker.is_running
        told = [line for line in broker.log().splitlines() if f"WARNING {directory}: " in line]
        assert told, broker.log()
    assert not directory.exists()


def test_a_relative_directory_stays_where_it_was(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Broker(data_dir="data") as broker:
        broker.create_topic("t")
        (tmp_path / "other").mkdir()
        monkeypatch.chdir(tmp_path / "other")
        assert broker.restart().topics == ["t"]
    assert (tmp_path / "data").is_dir()
    assert not list((tmp_path / "other").iterdir())
