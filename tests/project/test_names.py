# SPDX-License-Identifier: Apache-2.0
"""One word, one idea: in the broker a public class or alias has its name to itself."""

import ast
import re
from collections import defaultdict

import pytest
from tests.project import test_layers

PACKAGES = (
    *("kohort.machines", "kohort.coordinator"),
    *("kohort.runtime", "kohort.storage", "kohort.server"),
)
SHARED = {  # a name that several modules have, and why it is the right word in each
    "Topic": "the coordinator has of a topic what a group needs to know, the catalog all of it",
}


def names_of(module):
    """The classes and aliases that a module defines for others; constants are written otherwise."""
    for node in test_layers.tree_of(module).body:
        targets = []
        if isinstance(node, ast.ClassDef):
            targets = [node.name]
        elif isinstance(node, ast.Assign):
            targets = [one.id for one in node.targets if isinstance(one, ast.Name)]
        elif isinstance(node, ast.AnnAssign):
            targets = [ast.unparse(node.target)]
        for name in targets:
            if name[0].isupper() and name != name.upper():
                yield name


def modules_by_name():
    found = defaultdict(list)
    for module in test_layers.MODULES:
        if any(test_layers.within(module, package) for package in PACKAGES):
            for name in names_of(module):
                found[name].append(module)
    return found


def test_a_name_is_made_once():
    for name, modules in modules_by_name().items():
        assert len(modules) == 1 or name in SHARED, f"{name} is made in {' and '.join(modules)}"


def test_a_name_that_is_shared_still_is():
    found = modules_by_name()
    for name, why in SHARED.items():
        assert why
        assert len(found[name]) > 1, f"{name} needs no exception any more"


@pytest.mark.parametrize("source", ["class Shard: pass", "Shard = tuple[str, int]"])
def test_a_second_one_is_found(source, tmp_path, monkeypatch):
    path = tmp_path / "bad.py"
    path.write_text(source)
    monkeypatch.setitem(test_layers.MODULES, "kohort.server.bad", path)
    with pytest.raises(AssertionError, match="Shard is made in"):
        test_a_name_is_made_once()


PARTICIPLE = re.compile(
    r"_?(\w*[a-z]ed|Told|Given|Known|Seen|Brought|Held|Left|Kept|Lost|Sent|Taken|Written|Found|Broken)$"
)
FIELDS_WORDS = {  # a class that may have such a name, and why
    "Broken": "the exception of an invariant that has failed, all over the project",
    "Delivered": "users have it: where a produced record is",
    "Feed": "a noun: what a data source reads",
    "Need": "a noun: what a request needs of a broker",
}
VAGUE = frozenset({"told", "felt", "brought", "given"})


def classes_and_functions(module):
    for node in test_layers.nodes_of(module):
        if isinstance(node, ast.ClassDef):
            yield node.name, ""
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield "", node.name


def faults(module):
    """The classes that are named by one participle, and the functions that do not say what they do.
    Of several words the last one is the noun.
    """
    for class_name, function in classes_and_functions(module):
        one_word = re.fullmatch(r"_?[A-Z][a-z]*", class_name)
        if one_word and PARTICIPLE.fullmatch(class_name) and class_name not in FIELDS_WORDS:
            yield f"{module}: no noun names the class {class_name}"
        if function.strip("_") in VAGUE:
            yield f"{module}: the function {function} does not say what it does"


def test_a_class_is_a_noun_and_a_function_says_what_it_does():
    """The words for both are in docs/glossary.md."""
    assert [fault for module in test_layers.MODULES for fault in faults(module)] == []


@pytest.mark.parametrize(
    "source", ["class Told: pass", "class _Parked: pass", "def told(): pass", "def _told(): pass"]
)
def test_a_name_that_says_nothing_is_found(source, tmp_path, monkeypatch):
    path = tmp_path / "bad.py"
    path.write_text(source)
    monkeypatch.setitem(test_layers.MODULES, "kohort.client.bad", path)
    (fault,) = faults("kohort.client.bad")
    assert "kohort.client.bad" in fault


def test_the_words_of_the_glossary_are_those_of_the_code():
    """Each line of docs/glossary.md says where its word lives, and that is there."""
    lines = (test_layers.ROOT / "docs" / "glossary.md").read_text(encoding="utf-8").splitlines()
    rows = [line.split(" | ") for line in lines if line.startswith("| **")]
    assert len(rows) > 60
    for row in rows:
        paths = re.findall(r"`([\w/]+(?:\.py|/))`", row[2])
        assert paths, row
        for path in paths:
            assert (test_layers.ROOT / "src" / "kohort" / path).exists(), f"{path} of {row[0]}"
