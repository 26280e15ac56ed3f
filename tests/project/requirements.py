# SPDX-License-Identifier: Apache-2.0
"""The requirements of the proposals (docs/requirements.tsv), and the tests that quote their ids.

A test holds a requirement when its docstring, or that of its module, has the id: so do the rules
and invariants of state machines, and the prose of transcripts (tests/scenarios).
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "docs" / "requirements.tsv"
TESTS = ROOT / "tests"
ABOUT_IDS = TESTS / "project" / "test_conformance.py"  # its ids are examples
ID = re.compile(r"\bK\d{2,4}-\d{2,3}\b")

HELD, NOT_YET, DECIDED = "held", "not yet", "decided"


@dataclass(frozen=True)
class Requirement:
    """One row of the table. `why` is the feature that brings it, or the reason for a decision."""

    id: str
    status: str
    why: str
    statement: str

    @property
    def proposal(self) -> str:
        return "KIP-" + self.id[1:].partition("-")[0]


@dataclass(frozen=True)
class QuoteLocation:
    """Where an id is quoted: a file below the root, and the test in it, if it is not the module."""

    path: str
    test: str = ""


@dataclass
class Quotes:
    """`by_id` has the places that hold a requirement; `strays` are quotes that hold nothing."""

    by_id: dict[str, list[QuoteLocation]] = field(default_factory=dict)
    strays: list[tuple[str, str]] = field(default_factory=list)


@cache
def requirements() -> dict[str, Requirement]:
    """By id, in the order of the table."""
    _, *lines = TABLE.read_text(encoding="utf-8").splitlines()
    found = {}
    for line in lines:
        number, said, statement = line.split("\t")
        status, _, why = said.partition(": ")
        assert number not in found, f"{number} stands twice in {TABLE.name}"
        found[number] = Requirement(number, status, why, statement)
    return found


@cache
def quotes() -> Quotes:
    """Every id in the tests."""
    found = Quotes()
    for path in sorted(TESTS.rglob("*.py")):
        if path != ABOUT_IDS:
            read_module(path.read_text(encoding="utf-8"), path.relative_to(ROOT).as_posix(), found)
    for path in sorted((TESTS / "scenarios").glob("*.txt")):
        place = QuoteLocation(path.relative_to(ROOT).as_posix())
        lines = path.read_text(encoding="utf-8").splitlines()
        _note("\n".join(line for line in lines if line.startswith("#")), place, found)
    return found


def read_module(text: str, name: str, found: Quotes) -> None:
    """Add what one module quotes."""
    if not ID.search(text):
        return
    tree = ast.parse(text)
    counted = 0
    for test, docstring in _docstrings(tree):
        counted += len(ID.findall(docstring))
        _note(docstring, QuoteLocation(name, test), found)
    if counted != len(ID.findall(text)):
        found.strays += [(name, one) for one in sorted(set(ID.findall(text)))]


def _docstrings(tree: ast.Module) -> Iterator[tuple[str, str]]:
    yield "", ast.get_docstring(tree) or ""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            decorators = {ast.unparse(one).partition("(")[0] for one in node.decorator_list}
            if node.name.startswith("test_") or decorators & {"invariant", "rule"}:
                yield node.name, ast.get_docstring(node) or ""


def _note(text: str, place: QuoteLocation, found: Quotes) -> None:
    for one in dict.fromkeys(ID.findall(text)):
        found.by_id.setdefault(one, []).append(place)


HEAD = """\
# What the proposals ask for, and what holds it

Kohort implements five proposals of Apache Kafka. Their statements are numbered here, each in a
sentence of our own. A statement is *held* when a test quotes its number and fails when it breaks;
the others say what is missing, or what was decided instead. Behaviour is that of Apache Kafka 4.3,
where a proposal and what was shipped differ.

"""
PROPOSALS = {
    "KIP-40": "list and describe groups",
    "KIP-518": "list groups by state",
    "KIP-709": "offsets of many groups in one request",
    "KIP-229": "delete groups",
    "KIP-848": "the next rebalance protocol",
}


def page() -> str:
    """docs/conformance.md"""
    rows = list(requirements().values())
    parts = [HEAD, "| proposal | statements | held | not yet | decided |\n|---|---|---|---|---|\n"]
    for title, about in PROPOSALS.items():
        own = [one for one in rows if one.proposal == title]
        anchor = f"{title} {about}".lower().replace(" ", "-")
        parts.append(f"| [{title}](#{anchor}) {about} | {_counts(own)} |\n")
    parts.append(f"| **all** | {_counts(rows)} |\n\n")
    missing: dict[str, int] = {}
    for one in rows:
        if one.status == NOT_YET:
            missing[one.why] = missing.get(one.why, 0) + 1
    parts.append("| what is missing | statements |\n|---|---|\n")
    for feature, count in sorted(missing.items(), key=lambda entry: (-entry[1], entry[0])):
        parts.append(f"| {feature} | {count} |\n")
    for title, about in PROPOSALS.items():
        parts.append(f"\n## {title} {about}\n\n")
        parts.append("| id | statement | held by, or why not |\n|---|---|---|\n")
        own = [one for one in rows if one.proposal == title]
        parts += [f"| {one.id} | {one.statement} | {_status_text(one)} |\n" for one in own]
    return "".join(parts)


def _counts(rows: list[Requirement]) -> str:
    statuses = [one.status for one in rows]
    return " | ".join(
        str(one) for one in (len(rows), *(statuses.count(one) for one in (HELD, NOT_YET, DECIDED)))
    )


def _status_text(one: Requirement) -> str:
    said = f"{one.status}: {one.why}" if one.why else ""
    tests = ", ".join(
        f"[{place.test or place.path.removeprefix('tests/')}](../{place.path})"
        for place in quotes().by_id.get(one.id, [])
    )
    return "; ".join(filter(None, [said, tests]))
