# SPDX-License-Identifier: Apache-2.0
"""The classes of Spark in one file, as a JVM wants them in memory (class data sharing, JEP 310).

A JVM that maps such an archive does not load, check and link 18,000 classes one by one. It is only
right for one Java, one Spark and one place of both, which its name says, and a JVM that finds it
wrong goes on without it. A JVM does not find damage, so the name has the checksum, too.

A run without an archive has its JVM list the classes that it loads. From the list a process of its
own makes the archive, after the run, under another name until it is whole.
"""

import atexit
import fcntl
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import blake2b
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import pyspark
from pyspark.sql import SparkSession
from xxhash import xxh3_64

from kohort.pipeline.stores.cache import cache_directory
from kohort.spark.engine.java import version_output

SWITCH = "KOHORT_CLASS_ARCHIVE"
"""The variable of the environment; `off` is for neither use nor make archives."""
MOST_ARCHIVES = 3
ROOM_BYTES = 1 << 30
_MAKING_S = 900
_OLD_S = 86_400
_PIECE_BYTES = 1 << 20
_PREFIX = "classes-"
_AROUND = ("SPARK_CONF_DIR", "HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_DIST_CLASSPATH")
_SILENT = "-Xlog:cds*=off"
"""A JVM would say on stdout that an archive is not for it."""


_LATER: list["Recipe"] = []
"""What is to be made when this process has ended: one at most."""


class Recipe(NamedTuple):
    """What an archive is made of."""

    target: str
    """The path, but for checksum and suffix."""
    listed: str
    """The file with the classes that a JVM has loaded."""
    java: str
    class_path: str
    arguments: tuple[str, ...]
    """Those about modules: an archive is for a JVM with the same."""


class Place:
    """Where the archive of a Java, and of this Spark, is or would be. `home` is the Java's."""

    def __init__(self, home: str) -> None:
        spark = Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent)
        parts = [_our_version(), str(pyspark.__version__), str(spark.resolve())]
        parts.append(_changed(spark / "jars"))  # a JVM looks at the age of each
        parts += [str(Path(home).resolve()), version_output(Path(home) / "bin" / "java")]
        parts += [os.environ.get(name, "") for name in _AROUND]
        self._name = _PREFIX + blake2b("\n".join(parts).encode(), digest_size=8).hexdigest()
        self.directory = cache_directory()

    @property
    def target(self) -> Path:
        """The path, but for checksum and suffix."""
        return self.directory / self._name

    @property
    def failed(self) -> Path:
        """A file that says that no archive could be made here."""
        return self.directory / f"{self._name}.failed"

    def archive_or_none(self) -> Path | None:
        """The archive, if it is there and whole. A damaged one goes."""
        for path in sorted(self.directory.glob(f"{self._name}-*.jsa")):
            with suppress(OSError):
                if _checksum(path) == path.stem.rpartition("-")[2]:
                    return path
                path.unlink()
        return None

    def list_file(self) -> Path:
        """A new name for the list of classes of this process's JVM."""
        return self.directory / f"{self._name}.{os.getpid()}.list"


def is_off() -> bool:
    """Whether nobody wants archives."""
    return os.environ.get(SWITCH, "").strip().lower() in {"off", "0", "no", "false"}


def options(home: str, *, record: bool) -> str:
    """Options for a JVM of the Java at `home`: to use its archive; or to list its classes, if that
    is wanted and there is none.
    """
    if is_off():
        return ""
    with suppress(OSError):
        place = Place(home)
        archive = place.archive_or_none()
        if archive is not None:
            os.utime(archive)  # so that it is not the one to go
            return f"{_quoted(f'-XX:SharedArchiveFile={archive}')} -Xshare:auto {_SILENT}"
        if record and not place.failed.exists():
            place.directory.mkdir(parents=True, exist_ok=True)
            if os.access(place.directory, os.W_OK) and _has_room(place.directory):
                listed = place.list_file()
                atexit.register(_at_exit, listed)  # before a JVM is: it runs after its end
                return f"{_quoted(f'-XX:DumpLoadedClassList={listed}')} {_SILENT}"
    return ""


def recipe_or_none(spark: SparkSession, home: str) -> Recipe | None:
    """What to make an archive of, if the JVM of a session has listed its classes."""
    place = Place(home)
    listed = place.list_file()
    if is_off() or not listed.exists():
        return None
    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001
    property_of = jvm.java.lang.System.getProperty
    runtime = jvm.java.lang.management.ManagementFactory.getRuntimeMXBean()
    modules = (str(argument) for argument in runtime.getInputArguments())
    return Recipe(
        str(place.target),
        str(listed),
        str(Path(property_of("java.home")) / "bin" / "java"),
        property_of("java.class.path"),
        tuple(
            module for module in modules if module.startswith(("--add-", "--enable-native-access"))
        ),
    )


def make_later(spark: SparkSession) -> None:
    """Have a process of its own make an archive once this one has ended, if its JVM has listed
    classes. Nothing that goes wrong with that concerns a run.
    """
    home = os.environ.get("JAVA_HOME")
    with suppress(Exception):  # whatever a JVM or a file system may say
        recipe = recipe_or_none(spark, home) if home else None
        if recipe is not None:
            _LATER.append(recipe)


def _at_exit(listed: Path) -> None:
    """The JVM has ended by now, and its list is whole."""
    for recipe in _LATER:
        mine = f"{listed}.whole"
        command = [sys.executable, "-m", __name__, json.dumps(recipe._replace(listed=mine))]
        nowhere = subprocess.DEVNULL
        with suppress(OSError):
            listed.replace(mine)
            subprocess.Popen(  # noqa: S603  (ourselves)
                command, stdin=nowhere, stdout=nowhere, stderr=nowhere, start_new_session=True
            )
    listed.unlink(missing_ok=True)


def make(recipe: Recipe) -> Path | None:
    """Make an archive now; it takes half a minute of a processor. None when the JVM cannot, or
    somebody else is making one.
    """
    target = Path(recipe.target)
    with _alone(target.parent) as may:
        if not may:
            return None
        temporary = target.with_name(f"{target.name}.{os.getpid()}.new")
        try:
            done = _dumped(recipe, temporary)
            if done:
                archive = target.with_name(f"{target.name}-{_checksum(temporary)}.jsa")
                temporary.replace(archive)
                target.with_name(f"{target.name}.failed").unlink(missing_ok=True)
                _tidy(target.parent)
                return archive
            target.with_name(f"{target.name}.failed").touch()
        finally:
            temporary.unlink(missing_ok=True)
    return None


def _dumped(recipe: Recipe, into: Path) -> bool:
    with suppress(OSError, subprocess.TimeoutExpired):
        done = subprocess.run(  # noqa: S603  (the user's own Java)
            [
                *(recipe.java, "-Xshare:dump", "-Xmx1g", "-XX:TieredStopAtLevel=1"),
                f"-XX:SharedClassListFile={recipe.listed}",
                f"-XX:SharedArchiveFile={into}",
                *recipe.arguments,
                *("-cp", recipe.class_path),
            ],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_MAKING_S,
            check=False,
        )
        return done.returncode == 0 and into.exists()
    return False


@contextmanager
def _alone(directory: Path) -> Iterator[bool]:
    """Whether nobody else makes an archive in this directory."""
    descriptor = os.open(directory / f"{_PREFIX}lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield True
    except BlockingIOError:
        yield False
    finally:
        os.close(descriptor)


def _tidy(directory: Path) -> None:
    """Leave the archives that were used last, and nothing that a killed process has left."""
    archives = sorted(directory.glob(f"{_PREFIX}*.jsa"), key=_changed, reverse=True)
    for path in archives[MOST_ARCHIVES:]:
        path.unlink(missing_ok=True)
    long_ago = time.time() - _OLD_S
    for pattern in ("list", "whole", "new"):
        for path in directory.glob(f"{_PREFIX}*.{pattern}"):
            with suppress(OSError):
                if path.stat().st_mtime < long_ago:
                    path.unlink()


def _our_version() -> str:
    try:
        return metadata.version("kohort")
    except metadata.PackageNotFoundError:  # a folder on the path
        return ""


def _checksum(path: Path) -> str:
    found = xxh3_64()
    with path.open("rb", buffering=0) as opened:
        while piece := opened.read(_PIECE_BYTES):
            found.update(piece)
    return found.hexdigest()


def _changed(path: Path) -> str:
    """When it was last changed, fit for comparing."""
    try:
        return f"{path.stat().st_mtime_ns:020}"
    except OSError:
        return ""


def _has_room(directory: Path) -> bool:
    return shutil.disk_usage(directory).free >= ROOM_BYTES


def _quoted(option: str) -> str:
    """As Spark takes several options apart."""
    return f'"{option}"' if any(character.isspace() for character in option) else option


def main(arguments: Sequence[str]) -> None:
    """What `make_later` starts: nobody waits for it, so everybody else comes first."""
    os.nice(19)
    target, listed, java, class_path, modules = json.loads(arguments[1])
    try:
        make(Recipe(target, listed, java, class_path, tuple(modules)))
    finally:
        Path(listed).unlink(missing_ok=True)


if __name__ == "__main__":
    main(sys.argv)
