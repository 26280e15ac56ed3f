# SPDX-License-Identifier: Apache-2.0
"""Jars by Maven: it brings what is missing into its own cache, and tells where everything is."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path


class PeerError(RuntimeError):
    """A peer cannot be had, or did not do what it was asked; the text ends with its own words."""


def class_path(pom: Path, what: str, seconds: float) -> str:
    """The class path of a project's dependencies, as Java wants it.

    Raises PeerError, which names `what` the jars are, where they cannot be had.
    """
    if shutil.which("mvn") is None:
        raise PeerError(f"mvn is not installed, so {what} cannot be brought")
    listing = pom.with_name(f"classpath.{os.getpid()}")  # not that of another run beside this one
    command = ["mvn", "-q", "-B", "-f", str(pom), "dependency:build-classpath"]
    try:
        done = subprocess.run(
            [*command, f"-Dmdep.outputFile={listing}"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
        if done.returncode != 0 or not listing.exists():
            raise PeerError(f"mvn could not bring {what}: {_first_error(done.stdout)}")
        return listing.read_text().strip()
    except subprocess.TimeoutExpired:
        raise PeerError(f"mvn did not bring {what} in {seconds:.0f} s") from None
    finally:
        listing.unlink(missing_ok=True)


def kept_class_path(name: str, pom: str, what: str, seconds: float) -> str:
    """The class path of a project that is kept in the cache under a name; Maven brings what is
    missing. Raises PeerError, as `class_path` does.
    """
    folder = cache(name)
    kept, project = folder / "classpath.txt", folder / "pom.xml"
    if kept.exists() and project.exists() and project.read_text() == pom:
        found = kept.read_text().strip()
        if found and all(Path(jar).exists() for jar in found.split(os.pathsep)):
            return found
    folder.mkdir(parents=True, exist_ok=True)
    project.write_text(pom)
    found = class_path(project, what, seconds)
    fresh = kept.with_suffix(f".{os.getpid()}")
    fresh.write_text(found)
    fresh.replace(kept)  # whole or not at all, also for another test run beside this one
    return found


def why_not(class_path: Callable[[], str], *tools: str) -> str | None:
    """Why what has this class path cannot be run here, in words fit for a skip; None where it can
    be.
    """
    for tool in tools:
        if shutil.which(tool) is None:
            return f"{tool} is not installed"
    try:
        class_path()
    except PeerError as error:
        return str(error)
    return None


def cache(name: str) -> Path:
    """Where a pom and what is known of its jars is kept: the user's cache, never the tree."""
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(home) / "kohort" / name


def _first_error(output: str) -> str:
    lines = [line for line in output.splitlines() if "[ERROR]" in line]
    return lines[0].replace("[ERROR]", "").strip()[:200] if lines else "no words from mvn"
