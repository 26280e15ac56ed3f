"""The wheel as a user gets it: built from the tree, installed elsewhere, used without the tree."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from tests.serve.talk import Served

ROOT = Path(__file__).parents[2]


def run(*argv, **options):
    done = subprocess.run(
        [str(one) for one in argv], capture_output=True, text=True, check=False, **options
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built without a network where hatchling is there; else it must be fetched."""
    place = tmp_path_factory.mktemp("wheel")
    tree = place / "tree"
    tree.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md"):
        shutil.copy(ROOT / name, tree)
    shutil.copytree(ROOT / "src", tree / "src", ignore=shutil.ignore_patterns("__pycache__"))
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", place]
    done = subprocess.run(
        [str(one) for one in [*build, tree]], capture_output=True, text=True, check=False
    )
    if "hatchling" in done.stderr and "No matching distribution" in done.stderr:
        pytest.skip("hatchling is not here and cannot be fetched")
    assert done.returncode == 0, done.stderr
    (found,) = place.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """The interpreter of an environment that has the wheel and what it needs, nothing else."""
    home = tmp_path_factory.mktemp("venv")
    run(sys.executable, "-m", "venv", home)
    python = home / "bin" / "python"
    done = subprocess.run(
        [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel],
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


def test_what_is_in_it(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert "kohort/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    outside = [name for name in names if not name.startswith(("kohort/", "kohort-"))]
    assert outside == []
    source = ROOT / "src"
    modules = {str(path.relative_to(source)) for path in source.rglob("*.py")}
    assert modules <= set(names)
    assert not [name for name in names if "test_" in name or "__pycache__" in name]


@pytest.mark.timeout(240)
def test_it_works_without_the_tree(installed, tmp_path):
    script = installed.with_name("kohort")
    here = {"cwd": tmp_path, "env": environment()}
    version = run(script, "--version", **here)
    assert version.startswith("kohort 0.")
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
            broker = Served(process)
            with broker.talk() as client:
                client.create_topic("t")
                assert client.commit("g", "t", 7) == 0
            listed = run(script, "groups", "list", "--bootstrap-server", broker.address, **here)
            assert "g" in listed.split()
            assert broker.end() == 0
        finally:
            if process.poll() is None:
                process.kill()
