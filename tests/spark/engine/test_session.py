# SPDX-License-Identifier: Apache-2.0
"""Finding Spark and Java, saying in a sentence what is missing, and how a session ends."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from kohort.spark.engine import java, shipping
from kohort.spark.engine.java import JavaError, find_java
from kohort.spark.engine.session import (
    SessionError,
    check_version,
    cores,
    is_local,
    sentence,
    session,
    settings,
)

ROOT = Path(__file__).parents[3]


def test_versions_of_spark():
    for version in ("4.2.0", "4.3.0", "4.3.1.dev0"):
        check_version(version)
    for version in ("3.5.1", "4.1.4", "4.4.0", "5.0.0"):
        with pytest.raises(SessionError, match=f"pyspark is {version}, expected 4.2 or newer but "):
            check_version(version)


def test_masters():
    assert [is_local(one) for one in ("local", "local[2]", "local[*]")] == [True] * 3
    assert not any(is_local(one) for one in ("spark://h:1", "yarn", "local-cluster[1,1,512]", ""))
    assert (cores("local"), cores("local[3]"), cores("local[*]")) == (1, 3, os.cpu_count())


@pytest.mark.parametrize("master", ["foo", "", "local[", "host:7077", "spark://"])
def test_what_is_no_master_is_refused_before_java_starts(master):
    with pytest.raises(SessionError, match="is not a master of Spark, expected local, local"):
        session(master)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("one line", "one line"),
        ("[CODE] first\n\tat org.x\n", "[CODE] first"),
        (
            "[X] failed: Traceback\n  File\nkohort.spark.sources.source.SourceError: was cut\n at",
            "was cut",
        ),
        ("[X] failed:\n  File\nConnectionError: refused\n\tat org", "ConnectionError: refused"),
        (
            (
                "An error occurred while calling o7.x.\n: org.apache.spark.SparkException: Lost"
                " task 0.0 (driver): java.io.IOException: No space left on device\n\tat java.io.X"
            ),
            "IOException: No space left on device",
        ),
        (
            (
                "An error occurred while calling o7.x.\n: org.apache.spark.SparkException: Lost\n"
                "\tat org.x\nCaused by: java.net.ConnectException: refused: h:1\n\tat java.net.X"
            ),
            "ConnectException: refused: h:1",
        ),
        ("", "ValueError"),
    ],
)
def test_what_an_error_of_spark_says(text, said):
    assert sentence(ValueError(text)) == said


def fake_java(directory, version):
    path = directory / "bin" / "java"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    path.chmod(0o755)
    return directory


def test_java_home_stands_first_and_is_checked(tmp_path, monkeypatch):
    for version, words in (("1.8.0_401", "which is Java 8, and Spark needs 17"), ("11.0.2", "11")):
        home = fake_java(tmp_path / version, version)
        monkeypatch.setenv("JAVA_HOME", str(home))
        with pytest.raises(JavaError, match=words):
            find_java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    with pytest.raises(JavaError, match="where no Java can be run: set it to one of 17 or newer"):
        find_java()
    home = fake_java(tmp_path / "good", "21.0.8")
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert find_java() == str(home)


def test_then_the_path_then_the_one_of_pip_then_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", "")  # and so it is set back, whatever is found
    monkeypatch.delenv("JAVA_HOME")
    good = fake_java(tmp_path / "good", "17.0.1")
    monkeypatch.setenv("PATH", f"{good / 'bin'}:/bin")
    assert find_java() == os.environ["JAVA_HOME"] == str(good)

    old = fake_java(tmp_path / "old", "11.0.1")
    monkeypatch.setenv("JAVA_HOME", "")
    monkeypatch.setenv("PATH", f"{old / 'bin'}:/bin")
    monkeypatch.setattr(java, "_bundled", lambda: None)
    with pytest.raises(
        JavaError, match="`java` is version 11, and Spark needs version 17 or newer"
    ):
        find_java()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(JavaError, match=r"there is no Java, and Spark needs .*'\.\[java\]'"):
        find_java()


def test_the_package_that_is_shipped_can_be_imported(tmp_path):
    path = shipping.package()
    assert shipping.package() == path
    assert "kohort/pipeline/columns/decode/__init__.py" in zipfile.ZipFile(path).namelist()
    done = subprocess.run(
        [sys.executable, "-c", "import kohort.errors; print(kohort.errors.__file__)"],
        env={**os.environ, "PYTHONPATH": str(path)},
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    assert done.stdout.startswith(str(path))


def test_a_start_is_quiet_and_errors_are_heard():
    program = (
        "import subprocess, sys, time; from kohort.spark.engine.silent_jvm import quiet_start\n"
        "with quiet_start():\n"
        "    subprocess.run(['sh', '-c', 'echo WARNING: Using incubator modules: x >&2;"
        " echo mine >&2'])\n"
        "sys.stderr.write('after\\n'); sys.stderr.flush(); time.sleep(0.3)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert sorted(done.stderr.splitlines()) == ["after", "mine"]


@pytest.mark.spark
def test_a_session_of_the_tests_is_started_anew_when_it_has_died():
    """Else one JVM that the system has ended would be an error of every test behind it."""
    program = (
        "from pyspark import SparkContext\n"
        "from tests.spark import sessions\n"
        "first = sessions.start()\n"
        "assert sessions.lives(first) and sessions.start() is first\n"
        "SparkContext._gateway.proc.kill(); SparkContext._gateway.proc.wait()\n"
        "assert not sessions.lives(first)\n"
        "second = sessions.start()\n"
        "print(second.range(3).count(), sessions.lives(second), sessions.lives(first))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout == "3 True False\n"


@pytest.mark.spark
def test_a_session_ends_with_its_process_and_without_a_word():
    told = (
        "from pyspark import SparkContext\n"
        "from kohort.spark.engine.session import session\n"
        "spark = session('local[1]', quick=True)\n"
        "print(spark.range(3).count(), SparkContext._gateway.proc.pid)\n"
    )
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    count, java_pid = map(int, done.stdout.split())
    assert (count, done.stderr) == (3, "")
    with pytest.raises(ProcessLookupError):
        os.kill(java_pid, 0)


@pytest.mark.spark
def test_a_jvm_that_is_not_needed_any_more_ends_meanwhile():
    """Without a word, and Ctrl-C is what it was before Spark."""
    told = (
        "import gc, os, signal, sys\n"
        "from pyspark import SparkContext\n"
        "from kohort.spark.engine.session import begin_end, session\n"
        "frame = session('local[1]', {'spark.driver.memory': '512m'}).range(7)\n"
        "assert frame.count() == 7\n"
        "begin_end()\n"
        "print(SparkContext._gateway.proc.wait(60))\n"
        "del frame\n"
        "gc.collect()\n"
        "try:\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted')\n"
    )
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("0\ninterrupted\n", "")


@pytest.mark.spark
def test_nobody_is_told_of_answers_that_nobody_waits_for():
    """A thread of Py4J has the JVM forget objects. Where that ended meanwhile, a run that had
    succeeded showed a trace.
    """
    told = (
        "import gc, signal, time\n"
        "from pyspark import SparkContext\n"
        "from kohort.spark.engine.session import session\n"
        "spark = session('local[1]', quick=True)\n"
        "objects = [spark.range(3) for _ in range(20)]\n"
        "java = SparkContext._gateway.proc\n"
        "java.send_signal(signal.SIGSTOP)\n"
        "objects.clear(); gc.collect()\n"
        "time.sleep(2)  # the thread looks for work once a second\n"
        "java.kill(); java.wait()\n"
        "time.sleep(0.5)\n"
    )
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    assert done.stderr == ""


def test_what_was_set_before_one_setting_is_refused_is_set_back():
    class Conf(dict):
        def set(self, name, value):
            if value == "impossible":
                raise ValueError(name)
            self[name] = value

        def unset(self, name):
            self.pop(name, None)

    class Session:
        conf = Conf({"spark.mine": "as it was"})

    before = dict(Session.conf)
    with (
        pytest.raises(ValueError, match=r"spark\.other"),
        settings(Session, {"spark.mine": "changed", "spark.other": "impossible"}),
    ):
        pass
    assert Session.conf == before
