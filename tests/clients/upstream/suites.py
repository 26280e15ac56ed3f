# SPDX-License-Identifier: Apache-2.0
"""The own tests of other clients, as their authors wrote them, against a broker of ours.

A suite's files come from where its authors publish them and are kept in the user's cache, never in
the tree. A plug-in of ours (`plugins/`) starts Kohort where their fixtures start Apache Kafka. The
tests run in a process of their own: two of the suites have a package `tests`, as we have.
"""

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from xml.etree import ElementTree as ET

from tests.certificates import Authority
from tests.peers.maven import cache

import kohort

PLUGINS = Path(__file__).parent / "plugins"
CHECKOUTS = "KOHORT_SUITES"
"""A variable of the environment: a folder with repositories by the name of their suite."""
FETCH_SECONDS = 120.0
PASSWORD = "abcdefgh"  # aiokafka's tests open the client's key with it


class SuiteError(RuntimeError):
    """A suite cannot be had, or did not run; the text says why."""


@dataclass(frozen=True)
class Suite:
    """A client's own tests: `version` of it, and those of its files that need a broker.

    Without `repository` they are in the source archive of the package index. `arguments` are those
    of their own options; `environment` is what they read.
    """

    name: str
    version: str
    tests: Sequence[str]
    repository: str = ""
    arguments: Sequence[str] = ()
    environment: tuple[tuple[str, str], ...] = ()
    certificates: str = ""
    missing: tuple[tuple[str, str], ...] = ()
    """What the archive leaves out, and the text that stands for it."""

    @property
    def plugin(self) -> str:
        return f"{self.name.replace('-', '_')}_suite"


KAFKA_PYTHON = Suite(
    name="kafka-python",
    version="3.0.12",
    tests=("test/integration/test_sasl_integration.py", "test/integration/test_ssl_integration.py"),
    environment=(("KAFKA_VERSION", "4.3.0"),),
    missing=(
        ("test/__init__.py", ""),
        ("test/service.py", "ExternalService = SpawnedService = None\n"),
    ),
)
WHOLE_KAFKA_PYTHON = replace(KAFKA_PYTHON, tests=("test/integration",))
AIOKAFKA = Suite(
    name="aiokafka",
    version="v0.14.0",
    tests=tuple(
        f"tests/test_{name}.py"
        for name in (
            *("admin", "client", "conn", "consumer", "coordinator", "fetcher", "pep492"),
            *("producer", "sasl", "sender", "transactional_consumer", "transactional_producer"),
        )
    ),
    repository="https://github.com/aio-libs/aiokafka",
    arguments=("--docker-image", "kohort:2.13_2.8.1", "--no-pull", "-W", "default"),
    certificates="tests/ssl_cert",
)
CONFLUENT_KAFKA = Suite(
    name="confluent-kafka",
    version="v2.15.0",
    tests=(
        "tests/integration/admin",
        "tests/integration/consumer",
        "tests/integration/producer",
        "tests/test_oauth_cb.py",
    ),
    repository="https://github.com/confluentinc/confluent-kafka-python",
)


def files_of(suite: Suite) -> Path:
    """A folder with the files of a suite; what is missing is fetched. Raises SuiteError."""
    kept = cache(f"suites/{suite.name}-{suite.version}")
    if kept.exists():
        return kept
    with tempfile.TemporaryDirectory(prefix="kohort-suite-") as name:
        whole = Path(name) / "whole"
        whole.mkdir()
        (_clone if suite.repository else _archive)(suite, Path(name), whole)
        kept.parent.mkdir(parents=True, exist_ok=True)
        fresh = kept.with_suffix(f".{os.getpid()}")
        shutil.copytree(whole, fresh)
        try:
            fresh.replace(kept)
        except OSError:  # another run was faster
            shutil.rmtree(fresh)
    return kept


def _clone(suite: Suite, folder: Path, into: Path) -> None:
    """The files of a tag, from a repository on this machine or from that of the authors."""
    near = Path(os.environ.get(CHECKOUTS, "/nonexistent")) / suite.name
    source = str(near) if near.exists() else suite.repository
    tar = folder / "files.tar"
    _fetch(suite, "git", "clone", "-q", "--depth", "1", "-b", suite.version, *_bare(source, folder))
    archived = ("archive", "-o", str(tar), suite.version, "tests")
    _fetch(suite, "git", "-C", str(folder / "repository"), *archived)
    with tarfile.open(tar) as files:
        files.extractall(into, filter="data")


def _bare(source: str, folder: Path) -> tuple[str, ...]:
    address = Path(source).absolute().as_uri() if Path(source).exists() else source
    return ("--bare", address, str(folder / "repository"))


def _archive(suite: Suite, folder: Path, into: Path) -> None:
    """The folder of tests in the source archive of a package."""
    pip = (sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", suite.name)
    _fetch(suite, *pip, "-d", str(folder), f"{suite.name}=={suite.version}")
    (found,) = folder.glob("*.tar.gz")
    with tarfile.open(found) as files:
        files.extractall(folder / "unpacked", filter="data")
    (root,) = (folder / "unpacked").iterdir()
    shutil.copytree(root / "test", into / "test")
    for path, text in suite.missing:
        (into / path).write_text(text)


def _fetch(suite: Suite, *command: str) -> None:
    what = f"the tests of {suite.name} {suite.version}"
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=FETCH_SECONDS,
            check=False,
            env={**os.environ, "GIT_TERMINAL_PROMPT": "0"},
        )
    except FileNotFoundError:
        raise SuiteError(f"{command[0]} is not installed, so {what} cannot be had") from None
    except subprocess.TimeoutExpired:
        raise SuiteError(f"{command[0]} did not bring {what} in {FETCH_SECONDS:.0f} s") from None
    if done.returncode:
        last = (done.stderr.strip() or "it says nothing").splitlines()[-1]
        where = f"; {CHECKOUTS} may name a folder with a repository {suite.name}"
        raise SuiteError(f"{what} cannot be had: {last}{where * bool(suite.repository)}")


def run(suite: Suite, folder: Path, seconds: float = 1500.0) -> dict[str, str]:
    """How each test ended, by name: "passed", "skipped: why", "failed: why". Raises SuiteError."""
    files = folder / suite.name
    shutil.copytree(files_of(suite), files)
    certificates = files / suite.certificates if suite.certificates else folder / "certificates"
    _write_certificates(certificates)
    results = folder / "results.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-p", suite.plugin, "-p", "no:kohort"]
    done = subprocess.run(
        [*command, *suite.arguments, f"--junitxml={results}", *suite.tests],
        cwd=files,
        env=_environment(files, certificates, dict(suite.environment)),
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    if not results.exists():
        raise SuiteError(
            f"the tests of {suite.name} did not run: {(done.stdout + done.stderr)[-2000:]}"
        )
    return {_name(case): _end(case) for case in ET.parse(results).iter("testcase")}


def _environment(files: Path, certificates: Path, own: Mapping[str, str]) -> dict[str, str]:
    """Without the variables that pytest gives to what runs below it."""
    usual = {name: text for name, text in os.environ.items() if not name.startswith("PYTEST_")}
    path = [files, PLUGINS, Path(kohort.__file__).parents[1]]
    return {
        **usual,
        **own,
        "PYTHONPATH": os.pathsep.join(map(str, path)),
        "KOHORT_SUITE_CERTIFICATES": str(certificates),
    }


def _write_certificates(folder: Path) -> None:
    """By the names that the suites and their brokers look for."""
    folder.mkdir(parents=True, exist_ok=True)
    authority = Authority()
    authority.write(folder / "ca.crt")
    authority.sign("server").write_pem(folder / "server.pem")
    client = authority.sign("client")
    (folder / "client.crt").write_text(client.certificate_pem)
    (folder / "client.key").write_text(client.key_pem(PASSWORD))


def _name(case: ET.Element) -> str:
    return f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name')}"


def _end(case: ET.Element) -> str:
    for kind, word in (("skipped", "skipped"), ("failure", "failed"), ("error", "failed")):
        found = case.find(kind)
        if found is not None:
            return f"{word}: {found.get('message', '').splitlines()[0]}"
    return "passed"
