# SPDX-License-Identifier: Apache-2.0
"""What is uploaded: built from the tree, looked into, installed and used without the tree."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.repository import ROOT, committed
from tests.serve.talk import ServeProcess

WITHOUT = "kohort: without the native codec"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")  # where the tests have run; see `make pythons`


def run(*argv, **options):
    done = subprocess.run(
        [str(one) for one in argv], capture_output=True, text=True, check=False, **options
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


class Built(NamedTuple):
    """What would be uploaded to a package index."""

    sdist: Path
    wheel: Path
    said: str  # by the build


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The wheel is built from the source distribution, as it is for whoever has no wheel."""
    place = tmp_path_factory.mktemp("dist")
    tree = place / "tree"
    for path in files_of_the_tree():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, tree / path)
    done = subprocess.run(
        [sys.executable, "-m", "build", "--outdir", str(place), str(tree)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode and "No matching distribution" in done.stdout + done.stderr:
        pytest.skip("what builds it is not here and cannot be fetched")
    assert done.returncode == 0, done.stdout + done.stderr
    (sdist,), (wheel,) = place.glob("*.tar.gz"), place.glob("*.whl")
    return Built(sdist, wheel, done.stdout + done.stderr)


def files_of_the_tree():
    """The files of the repository, by their paths in it; without git, all that are here."""
    found = committed()
    if found:
        return found
    kept = ("src", "docs", "examples", "tests")
    files = [path for name in kept for path in (ROOT / name).rglob("*") if path.is_file()]
    files += [
        path
        for path in ROOT.iterdir()
        if path.suffix in (".md", ".toml") or path.stem in ("LICENSE", "hatch_build")
    ]
    return [path.relative_to(ROOT) for path in files if "__pycache__" not in path.parts]


@pytest.fixture(scope="module")
def installed(built, tmp_path_factory):
    """The interpreter of an environment that has the wheel and what it needs, nothing else."""
    home = tmp_path_factory.mktemp("venv")
    run(sys.executable, "-m", "venv", home)
    python = home / "bin" / "python"
    done = subprocess.run(
        [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", built.wheel],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode and "No matching distribution" in done.stderr:
        pytest.skip(f"the requirements cannot be fetched: {done.stderr.splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    return python


def environment():
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return kept | {"PYTHONDONTWRITEBYTECODE": "1"}


def test_what_is_in_the_wheel(built):
    names = zipfile.ZipFile(built.wheel).namelist()
    assert "kohort/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    outside = [name for name in names if not name.startswith(("kohort/", "kohort-"))]
    assert outside == []
    source = ROOT / "src"
    modules = {str(path.relative_to(source)) for path in source.rglob("*.py")}
    assert modules <= set(names)
    assert not [name for name in names if "test_" in name or "__pycache__" in name]
    assert not [name for name in names if name.endswith((".c", ".h"))]


def test_the_wheel_has_a_native_codec_or_is_pure_and_says_why(built):
    names = zipfile.ZipFile(built.wheel).namelist()
    extensions = [name for name in names if name.endswith(EXTENSION_SUFFIXES[0])]
    if WITHOUT in built.said:
        (line,) = [line for line in built.said.splitlines() if WITHOUT in line]
        assert len(line) > len(WITHOUT) + 2
        assert extensions == []
        assert built.wheel.name.endswith("-py3-none-any.whl")
    else:
        (name,) = extensions
        assert name.startswith("kohort/native/_codec.")
        python = f"cp{sys.version_info[0]}{sys.version_info[1]}"
        assert f"-{python}-{python}-" in built.wheel.name
        assert not built.wheel.name.endswith("-any.whl")


def wheel_of(built, place, **variables):
    """Build a wheel of the source distribution, as for a user: how that went, and the wheels."""
    with tarfile.open(built.sdist) as archive:
        archive.extractall(place, filter="data")
    (tree,) = place.iterdir()
    done = subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--outdir", str(place), str(tree)],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr, [one.name for one in place.glob("*.whl")]


def test_without_a_compiler_the_wheel_is_pure(built, tmp_path):
    code, said, wheels = wheel_of(built, tmp_path, CC=str(tmp_path / "no-compiler"))
    assert code == 0, said
    assert WITHOUT in said
    (wheel,) = wheels
    assert wheel.endswith("-py3-none-any.whl")


def test_a_pure_wheel_may_be_asked_for(built, tmp_path):
    code, said, wheels = wheel_of(built, tmp_path, KOHORT_CODEC="python")
    assert code == 0, said
    assert WITHOUT not in said
    (wheel,) = wheels
    assert wheel.endswith("-py3-none-any.whl")


def test_a_native_wheel_that_is_asked_for_is_built_or_refused(built, tmp_path):
    no_compiler = {"CC": str(tmp_path / "no-compiler"), "KOHORT_CODEC": "native"}
    code, said, wheels = wheel_of(built, tmp_path, **no_compiler)
    assert code != 0
    assert "no-compiler" in said
    assert wheels == []


def test_what_is_in_the_source_distribution(built):
    """Nothing but what is meant: a file of this name somewhere else is not."""
    with tarfile.open(built.sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    ours = {
        str(path) for path in files_of_the_tree() if path.parts[0] in ("src", "docs", "examples")
    }
    papers = {"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "LICENSE"}
    added = {"pyproject.toml", "hatch_build.py", "PKG-INFO", ".gitignore"}
    assert names == ours | papers | added


def test_what_an_index_shows(built):
    """Its links lead somewhere: files of the repository are named there, and linked nowhere."""
    archive = zipfile.ZipFile(built.wheel)
    (name,) = [one for one in archive.namelist() if one.endswith(".dist-info/METADATA")]
    head, _, page = archive.read(name).decode().partition("\n\n")
    targets = re.findall(r"\]\(([^)]+)\)", page)
    assert [one for one in targets if not one.startswith(("https://", "#"))] == []
    with tarfile.open(built.sdist) as source:
        there = {one.partition("/")[2] for one in source.getnames()}
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for text, target in re.findall(r"\[([^\]]+)\]\((?!https?:|#)([^)#]+)", readme):
        assert f"`{text}`" in page
        path = target.rstrip("/")
        assert any(one == path or one.startswith(f"{path}/") for one in there), target
    lines = head.splitlines()
    assert "Description-Content-Type: text/markdown" in lines
    assert not [one for one in lines if one.startswith(("Project-URL", "Home-page"))]
    for version in PYTHONS:
        assert f"Classifier: Programming Language :: Python :: {version}" in lines
    extras = {one.split(": ")[1] for one in lines if one.startswith("Provides-Extra")}
    of_tables = {"spark", "tables", "sql", "s3", "clouds", "hdfs", "iceberg"}
    assert extras == {*of_tables, "java", "fast", "metrics", "security"}
    needed = [one for one in lines if one.startswith("Requires-Dist") and "extra ==" not in one]
    assert len(needed) == 7


@pytest.mark.timeout(600)
def test_it_works_without_the_tree(built, installed, tmp_path):
    script = installed.with_name("kohort")
    here = {"cwd": tmp_path, "env": environment()}
    version = run(script, "--version", **here)
    codec = "python" if WITHOUT in built.said else "native"
    assert re.fullmatch(rf"kohort 0\.\S+, codec: {codec}\n", version)
    assert "serve" in run(installed, "-m", "kohort", "--help", **here)
    where = run(installed, "-c", "import kohort; print(kohort.__file__)", **here)
    assert str(ROOT / "src") not in where
    process = subprocess.Popen(
        [script, "serve", "--listen", "127.0.0.1:0", "--data-dir", tmp_path / "data"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **here,
    )
    with process:
        try:
            broker = ServeProcess(process)
            with broker.talk() as client:
                client.create_topic("t")
                assert client.commit("g", "t", 7) == 0
            listed = run(script, "groups", "list", "--bootstrap-server", broker.address, **here)
            assert "g" in listed.split()
            assert broker.end() == 0
        finally:
            if process.poll() is None:
                process.kill()


def test_a_user_gets_one_command_and_the_drop_in_tools(built):
    """The simulator is for those who work on Kohort: `python -m kohort.sim`."""
    with zipfile.ZipFile(built.wheel) as wheel:
        (name,) = [name for name in wheel.namelist() if name.endswith("entry_points.txt")]
        text = wheel.read(name).decode()
        assert "kohort/sim/__main__.py" in wheel.namelist()
    scripts = text.partition("[console_scripts]\n")[2].partition("\n[")[0].split("\n")
    tools = ["kohort-configs", "kohort-consumer-groups", "kohort-groups"]
    assert sorted(line.partition(" ")[0] for line in scripts if line) == ["kohort", *tools]
