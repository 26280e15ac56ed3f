# SPDX-License-Identifier: Apache-2.0
"""deploy/Containerfile: held against the project, and built and run where there is an engine."""

import json
import re
import shutil
import subprocess
import sys
import time
import tomllib
import zipfile
from importlib.machinery import EXTENSION_SUFFIXES

import pytest
from tests.deploy.command_lines import DEPLOY, accepted
from tests.deploy.containers import engine, healthy, kohort, stages, the
from tests.ports import free_port
from tests.waiting import SOON_S, eventually

from kohort.config import BrokerConfig
from kohort.config.listeners import client_listeners

ROOT = DEPLOY.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
ARGUMENTS, BUILD, IMAGE = stages()
PYTHON = the(ARGUMENTS, "ARG").removeprefix("PYTHON=")


def words_of(instruction):
    """The words of a command that is written as a list."""
    return json.loads(instruction.partition("[")[1] + instruction.partition("[")[2])


def command():
    return words_of(the(IMAGE, "CMD"))


def health():
    program, *words = words_of(the(IMAGE, "HEALTHCHECK"))
    assert program == "kohort"
    return words


def test_the_compiler_is_in_the_first_stage_alone():
    assert "gcc" in " ".join(one.rest for one in BUILD if one.word == "RUN")
    run = the(IMAGE, "RUN")
    assert [word for word in ("apt", "pip", "gcc", "curl") if word in run] == []
    copied = the(IMAGE, "COPY")
    assert copied == "--from=build /opt/kohort /opt/kohort"


def test_nothing_runs_as_root():
    user = the(IMAGE, "USER")
    assert re.fullmatch(r"([1-9]\d*):\1", user), "numbers, by which an engine knows it is not root"
    assert f"--uid {user.partition(':')[0]} " in the(IMAGE, "RUN")
    assert [one.word for one in IMAGE].index("USER") > [one.word for one in IMAGE].index("RUN")


def test_the_extras_of_the_image_exist():
    (extras,) = [
        one.rest.removeprefix("EXTRAS=").split(",")
        for one in BUILD
        if one.word == "ARG" and one.rest.startswith("EXTRAS=")
    ]
    assert set(extras) <= set(PROJECT["optional-dependencies"])
    assert "metrics" in extras  # the command of the image serves them
    assert '".[${EXTRAS}]"' in BUILD[-1].rest


def test_the_python_of_the_image_is_one_that_is_supported():
    assert f"Programming Language :: Python :: {PYTHON}" in PROJECT["classifiers"]
    assert [stage[0].rest.split()[0] for stage in (BUILD, IMAGE)] == ["python:${PYTHON}-slim"] * 2


def test_kohort_takes_the_commands_of_the_image():
    assert words_of(the(IMAGE, "ENTRYPOINT")) == ["kohort"]
    args = accepted(command())
    assert str(args.data_dir) == the(IMAGE, "VOLUME")
    accepted(health())


def test_the_ports_of_the_image_are_those_of_its_command():
    args = accepted(command())
    listeners = client_listeners(BrokerConfig.of(dict(args.settings)))
    ports = {one.port for one in listeners} | {args.metrics[1]}
    assert ports == set(map(int, the(IMAGE, "EXPOSE").split()))
    assert {one.host for one in listeners} == {"0.0.0.0"}  # else no published port leads there


def test_what_is_copied_is_enough_to_build_kohort(tmp_path):
    tree = tmp_path / "tree"
    for one in BUILD:
        if one.word == "COPY":
            *names, target = one.rest.split()
            for name in names:
                copy(ROOT / name, tree / target / (name if target == "./" else ""))
    done = subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--outdir", str(tmp_path), str(tree)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode and "No matching distribution" in done.stdout + done.stderr:
        pytest.skip("what builds it is not here and cannot be fetched")
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {f"kohort/{path.name}" for path in (ROOT / "src/kohort").glob("*.py")} <= set(names)
    if shutil.which("cc"):
        assert [name for name in names if name.endswith(EXTENSION_SUFFIXES[0])]


def test_the_build_is_given_what_it_copies():
    text = (DEPLOY / "Containerfile.dockerignore").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert lines[0] == "*"
    copied = [name for one in BUILD if one.word == "COPY" for name in one.rest.split()[:-1]]
    assert [line[1:] for line in lines if line.startswith("!")] == copied


def copy(source, target):
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)


def test_the_command_of_the_image_serves_and_its_health_check_tells(tmp_path):
    port = free_port()
    places = {"/data": str(tmp_path / "data"), "0.0.0.0:9644": "127.0.0.1:0"}
    words = [
        places.get(word, word).replace("0.0.0.0", "127.0.0.1").replace("9092", str(port))
        for word in command()
    ]
    settings = {"KOHORT_BOOTSTRAP_SERVERS": f"127.0.0.1:{port}"}
    with healthy(words, health(), cwd=tmp_path, settings=settings) as process:
        process.terminate()
        assert process.wait(SOON_S) == 0
    done = kohort(*health()[:-1], "1", cwd=tmp_path, settings=settings)
    assert done.returncode == 1


@pytest.fixture(scope="module")
def docker():
    """The engine of this machine, as a function of its words."""
    name, why = engine()
    if not name:
        pytest.skip(why)
    base = f"python:{PYTHON}-slim"
    pulled = subprocess.run([name, "pull", base], capture_output=True, text=True, check=False)
    if pulled.returncode:
        pytest.skip(f"{base} cannot be fetched: {pulled.stderr.strip()}")

    def run(*words):
        done = subprocess.run(
            [name, *words], capture_output=True, text=True, timeout=SOON_S * 10, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.strip()

    run.name = name
    return run


@pytest.mark.clients
@pytest.mark.timeout(1800)
def test_the_image_is_built_and_keeps_its_data(docker):
    tag = f"kohort-test-{time.time_ns()}"
    form = ["--format", "docker"] if docker.name == "podman" else []
    docker("build", *form, "--file", str(DEPLOY / "Containerfile"), "--tag", tag, str(ROOT))
    try:
        docker("run", "--detach", "--name", tag, tag)
        eventually(lambda: state(docker, tag) == "healthy", "the container is healthy")
        docker("exec", tag, "kohort", "topics", "create", "orders")
        docker("stop", tag)
        assert docker("inspect", "--format", "{{.State.ExitCode}}", tag) == "0"
        docker("start", tag)
        eventually(lambda: state(docker, tag) == "healthy", "the container is healthy again")
        assert "orders" in docker("exec", tag, "kohort", "topics", "list")
        assert docker("exec", tag, "id", "--user") == the(IMAGE, "USER").partition(":")[0]
    finally:
        subprocess.run([docker.name, "rm", "--force", "--volumes", tag], check=False)
        subprocess.run([docker.name, "rmi", "--force", tag], check=False)


def state(docker, name):
    return docker("inspect", "--format", "{{.State.Health.Status}}", name)
