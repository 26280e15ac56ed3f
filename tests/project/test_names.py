"""One word, one idea: in the broker a public class or alias has its name to itself."""

import ast
from collections import defaultdict

import pytest
from tests.project import test_layers

PACKAGES = ("kohort.coordinator", "kohort.runtime", "kohort.storage", "kohort.server")
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
    try:
        with pytest.raises(AssertionError, match="Shard is made in"):
            test_a_name_is_made_once()
    finally:
        test_layers.tree_of.cache_clear()
