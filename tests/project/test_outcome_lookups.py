# SPDX-License-Identifier: Apache-2.0
"""Outcomes are gone through once, not at each turn of a loop: their dicts are made at each look, so
that a loop over all of them would take the square of their number.
"""

import ast

from tests.project.test_layers import MODULES, tree_of

MADE_AT_EACH_LOOK = {"failed", "succeeded", "missing"}
LOOPS = (ast.For, ast.AsyncFor, ast.While)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def turns_of(loop):
    """What is done at each turn; what is gone through is looked at once."""
    if isinstance(loop, LOOPS):
        return loop.body
    first, *others = loop.generators
    results = [loop.key, loop.value] if isinstance(loop, ast.DictComp) else [loop.elt]
    return [*results, *first.ifs, *others]


def looks_in_loops(tree):
    """The lines of such looks, at something that the loop itself does not make."""
    for loop in ast.walk(tree):
        if isinstance(loop, LOOPS + COMPREHENSIONS):
            inside = [node for part in turns_of(loop) for node in ast.walk(part)]
            targets = [loop.target] if isinstance(loop, ast.For | ast.AsyncFor) else []
            targets += [part.target for part in getattr(loop, "generators", ())]
            names = [*inside, *(node for target in targets for node in ast.walk(target))]
            made = {
                node.id
                for node in names
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
            }
            for node in inside:
                if (
                    isinstance(node, ast.Attribute)
                    and node.attr in MADE_AT_EACH_LOOK
                    and isinstance(node.ctx, ast.Load)
                    and isinstance(node.value, ast.Name)
                    and node.value.id not in made | {"self"}
                ):
                    yield node.lineno


def asks_admins(module):
    users = ("cli.", "drop_in.", "client.admin", "pipeline.", "spark.", "testing.")
    return module.removeprefix("kohort.").startswith(users)


def test_no_loop_makes_them_at_each_turn():
    found = [
        f"{module}:{line}"
        for module in filter(asks_admins, MODULES)
        for line in sorted({*looks_in_loops(tree_of(module))})
    ]
    assert found == []


def test_the_rule_sees_loops_and_comprehensions():
    source = """
for name in names:
    error = outcomes.failed[name]
found = [outcomes.succeeded[name] for name in names]
{name: 1 for name in names if name in outcomes.failed}
for name, error in outcomes.failed.items():
    print(name)
for outcome in many:
    print(outcome.failed)
errors = outcomes.failed
"""
    assert [*looks_in_loops(ast.parse(source))] == [3, 4, 5]
