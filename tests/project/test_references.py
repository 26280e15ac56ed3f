# SPDX-License-Identifier: Apache-2.0
"""What docstrings and comments name in back quotes is there: modules, what they define, files.

A name with dots begins with `kohort`, with a module, package or class of ours, or with an object
that is called like its class. Names without dots are not looked at: they may be anything.
"""

import ast
import builtins
import io
import re
import sys
import tokenize
from collections import defaultdict
from functools import cache

import pytest
from tests.project import test_layers

ROOT, SOURCE, MODULES = test_layers.ROOT, test_layers.SOURCE, test_layers.MODULES
QUOTED = re.compile(r"`([A-Za-z_][\w./-]*)(?:\([^`]*\))?`")
DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.\w+)+")
ELSEWHERE = {*sys.stdlib_module_names, *dir(builtins), "polars", "pyarrow"}
NO_REFERENCES = {  # why a name with dots is none -> such names
    "a setting": {
        *("advertised.listeners", "authorizer.class.name", "auto.commit.interval.ms"),
        *("bootstrap.servers", "broker.rack", "default.api.timeout.ms", "log.dirs"),
        *("offsets.retention.minutes", "sasl.jaas.config", "session.timeout.ms"),
    },
    "a file": {"meta.properties", "partition.metadata", "report.html", "server.properties"},
    "a format of Spark": {"kohort.groups", "kohort.log", "kohort.topic"},
    "an attribute of an argument": {"code.retriable", "file.lock"},
}


@cache
def quoted_in(source):
    """What comments and docstrings quote, those of attributes included: pairs of line and name."""
    found = [
        (node.lineno, node.value.value)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    ]
    if re.search("#.*`", source):
        tokens = tokenize.generate_tokens(io.StringIO(source).readline)
        found += [(one.start[0], one.string) for one in tokens if one.type == tokenize.COMMENT]
    return [(line, name) for line, text in found for name in QUOTED.findall(str(text))]


def quoted_by(module):
    return quoted_in(MODULES[module].read_text(encoding="utf-8"))


def bound(body):
    """What these statements define or import: names, each with its node."""
    for node in body:
        match node:
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                yield node.name, node
            case ast.Import() | ast.ImportFrom():
                yield from ((alias.asname or alias.name, node) for alias in node.names)
            case ast.Assign() | ast.AnnAssign():
                names = (one for one in ast.walk(node) if isinstance(one, ast.Name))
                yield from ((one.id, node) for one in names if isinstance(one.ctx, ast.Store))
            case ast.If() | ast.Try():
                yield from bound([*node.body, *node.orelse])


@cache
def defined_in(module):
    return dict(bound(test_layers.tree_of(module).body))


@cache
def by_name():
    """All modules and packages by the last word of their names, and all classes."""
    modules, classes = defaultdict(list), defaultdict(list)
    for module in MODULES:
        modules[module.rpartition(".")[2]].append(module)
        for name, node in defined_in(module).items():
            if isinstance(node, ast.ClassDef):
                classes[name].append(node)
    return modules, classes


def has(node, name):
    """Whether a class has an attribute: one of its own, of `self`, or of a base."""
    own = {one for one, _ in bound(node.body)}
    for one in ast.walk(node):
        match one:
            case ast.Attribute(value=ast.Name(id="self"), ctx=ast.Store()):
                own.add(one.attr)
    bases = [ast.unparse(base).rpartition(".")[2] for base in node.bases]
    return name in own or any(has(one, name) for base in bases for one in by_name()[1][base])


def resolves(module, names):
    """Whether a module has what these names lead to; what it imports is looked at no further."""
    if not names:
        return True
    if f"{module}.{names[0]}" in MODULES:
        return resolves(f"{module}.{names[0]}", names[1:])
    found = defined_in(module).get(names[0])
    if isinstance(found, ast.ClassDef) and len(names) > 1:
        return has(found, names[1])
    return found is not None


@cache
def is_there(reference):
    """Whether a reference leads somewhere. What is no reference does, too."""
    if reference.endswith(".py"):
        return (ROOT / reference).exists() or any(SOURCE.rglob(reference))
    if not DOTTED.fullmatch(reference):
        return True
    first, *rest = reference.split(".")
    modules, classes = by_name()
    of_class = [*classes[first], *classes[first.title().replace("_", "")]]
    if modules[first] or of_class:
        in_module = any(resolves(module, rest) for module in modules[first])
        return in_module or any(has(node, rest[0]) for node in of_class)
    return first in ELSEWHERE


def stale_references(module):
    excepted = set().union(*NO_REFERENCES.values())
    for line, reference in quoted_by(module):
        if reference not in excepted and not is_there(reference):
            yield f"{module}, text at line {line}: `{reference}` is not there"


def test_what_a_docstring_names_is_there():
    assert [one for module in MODULES for one in stale_references(module)] == []


def test_the_exceptions_are_needed():
    named = {name for module in MODULES for _, name in quoted_by(module)}
    for why, references in NO_REFERENCES.items():
        unneeded = {one for one in references if one not in named or is_there(one)}
        assert unneeded == set(), f"not in the list any more: {why}"


@pytest.mark.parametrize(
    "reference",
    [
        *("kohort.gone", "kohort.pipeline.format.manifest.Gone", "manifest.gone", "adding.tidy"),
        *(
            "manifest.Part.gone",
            "Part.gone",
            "request_buffer.gone",
            "Gone.rows",
            "format/gone.py",
            "src/kohort/gone.py",
        ),
    ],
)
@pytest.mark.parametrize(
    "text", ['"""See `{}`."""', "x = 1  # as `{}()` does", 'x = 1\n"""`{}`"""']
)
def test_a_stale_one_is_found(reference, text, tmp_path, monkeypatch):
    path = tmp_path / "bad.py"
    path.write_text(text.format(reference))
    monkeypatch.setitem(MODULES, "kohort.pipeline.bad", path)
    (found,) = stale_references("kohort.pipeline.bad")
    assert reference in found


@pytest.mark.parametrize(
    "reference",
    [
        *("kohort.pipeline", "kohort.history.HistoryInputs", "manifest.Part", "format.manifest"),
        *(
            "manifest.Part.rows",
            "Part.rows",
            "request_buffer.frames",
            "format/manifest.py",
            "src/kohort/errors.py",
        ),
        *("pipeline/format/manifest.py", "asyncio.wait_for", "pyarrow.Table"),
    ],
)
def test_one_that_is_right_is_not(reference):
    assert is_there(reference)
