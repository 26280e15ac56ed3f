# SPDX-License-Identifier: Apache-2.0
"""The workflows of a public CI call what is there, for every Python that is claimed."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS = set(re.findall(r"^([a-z]+):", MAKEFILE, re.MULTILINE))


def loaded(path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def steps(workflow):
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def claimed():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = (re.fullmatch(r".* :: (3\.\d+)", one) for one in project["classifiers"])
    return [one[1] for one in found if one]


def test_there_are_workflows():
    assert [path.name for path in WORKFLOWS] == ["ci.yml", "release.yml"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_calls_targets_that_exist(path):
    called = [
        word
        for step in steps(loaded(path))
        for command in re.findall(r"^make (.*)$", step.get("run", ""), re.MULTILINE)
        for word in command.split()
        if "=" not in word
    ]
    assert called
    assert set(called) <= TARGETS


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_may_only_read_unless_a_job_says_more(path):
    workflow = loaded(path)
    assert workflow["permissions"] == {"contents": "read"}
    more = {name: job.get("permissions") for name, job in workflow["jobs"].items()}
    allowed = {"publish": {"id-token": "write"}} if path.name == "release.yml" else {}
    assert {name: rights for name, rights in more.items() if rights} == allowed


def test_every_python_that_is_claimed_is_tested_and_has_wheels():
    ci, release = map(loaded, WORKFLOWS)
    assert ci["jobs"]["fast"]["strategy"]["matrix"]["python"] == claimed()
    (build,) = [step for step in release["jobs"]["native"]["steps"] if "env" in step]
    wanted = [f"cp{version.replace('.', '')}-*" for version in claimed()]
    assert build["env"]["CIBW_BUILD"].split() == wanted


def test_files_that_a_workflow_names_are_there():
    for path in WORKFLOWS:
        for name in re.findall(r"\{project\}/(\S+)", path.read_text(encoding="utf-8")):
            assert (ROOT / name).is_file(), name
