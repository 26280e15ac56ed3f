# SPDX-License-Identifier: Apache-2.0
"""`docs/versions.md` names the versions that the project claims, pins and tests."""

import ast
import re
import tomllib
from pathlib import Path

import pytest
from tests.clients.upstream import suites
from tests.peers import kafka, spark_jars
from tools.public_api import MODULES, page

from kohort.spark.engine import java

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
PAGE = (ROOT / "docs" / "versions.md").read_text(encoding="utf-8")
NEEDED = {
    **{f"{name}, at our broker": "tests" for name in ("aiokafka", "confluent-kafka")},
    "kafka-python, at our broker": "tests",
    "PySpark, of the extra `spark`": "spark",
}


def rows():
    """The table of versions: the first cell of each row, and the other three."""
    _, _, table = PAGE.partition("| | supported |")
    cells = [line.strip("| ").split(" | ") for line in table.split("\n\n")[0].splitlines()[2:]]
    return {first: tuple(others) for first, *others in cells}


ROWS = rows()


def bounds(name, group):
    groups = {**PROJECT["project"]["optional-dependencies"], **PROJECT["dependency-groups"]}
    (found,) = (one for one in groups[group] if re.match(rf"{name}\b[^-]", one))
    return found.removeprefix(name)


def test_the_pythons_are_those_that_the_package_claims_and_that_are_tried():
    classifiers = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["project"]["classifiers"]))
    tried = re.search(r"^PYTHONS \?= (.*)$", MAKEFILE, re.MULTILINE)

    assert ROWS["Python"][0].split(", ") == classifiers == tried[1].split()
    assert PROJECT["project"]["requires-python"] == f">={classifiers[0]}"


@pytest.mark.parametrize(("row", "group"), NEEDED.items())
def test_the_bounds_of_a_package_are_those_of_its_requirement(row, group):
    name = row.partition(",")[0].lower()

    assert ROWS[row][0] == bounds(name, group)


def test_the_older_spark_is_the_one_that_is_installed_beside_it():
    installed = re.search(r"pyspark==(\S+)", MAKEFILE)[1]

    assert installed == spark_jars.SPARK
    assert f"also {installed}," in ROWS["PySpark, of the extra `spark`"][2]


def test_the_oldest_java_is_the_one_that_a_run_accepts():
    assert ROWS["Java, for Spark"][0] == f"{java.OLDEST} and newer"


def test_the_kafkas_are_those_that_tests_start():
    supported, usual, proven = ROWS["Apache Kafka, for our clients, commands and pipeline"]

    assert usual == kafka.VERSION
    assert f"also {kafka.OLDER}," in proven
    assert supported == f"{kafka.OLDER.rpartition('.')[0]} and newer"
    assert ROWS["Java's client, at our broker"][1:] == (kafka.VERSION, kafka.VERSION)


@pytest.mark.parametrize("suite", [suites.AIOKAFKA, suites.CONFLUENT_KAFKA, suites.KAFKA_PYTHON])
def test_the_suites_of_clients_are_those_that_are_fetched(suite):
    proven = ROWS[f"{suite.name}, at our broker"][2]

    assert proven.endswith(f"its own tests, of {suite.version.removeprefix('v')}")


def test_no_row_is_without_a_test():
    others = {"Python", "Java, for Spark", "Java's client, at our broker"}

    assert others | NEEDED.keys() | {"Apache Kafka, for our clients, commands and pipeline"} == set(
        ROWS
    )


def imports_of(source):
    """The names that a program imports from us, with their modules."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("kohort"):
            yield from (f"{node.module}.{one.name}" for one in node.names)
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names if one.name.startswith("kohort"))


def programs():
    """Each program that users are shown: of the pages, and of the examples."""
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        for block in re.findall(
            r"```python\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL
        ):
            yield path, block
    for path in sorted((ROOT / "examples").rglob("*.py")):
        yield path, path.read_text(encoding="utf-8")


def test_what_users_are_shown_to_import_is_public():
    public = {line.partition("(")[0] for line in page().splitlines()} | MODULES.keys()
    shown = [(path.name, name) for path, source in programs() for name in imports_of(source)]

    assert len(shown) > 40
    assert [one for one in shown if one[1] not in public] == []


def test_every_module_with_public_names_is_on_the_page():
    assert [module for module in MODULES if f"`{module}`" not in PAGE] == []
