# SPDX-License-Identifier: Apache-2.0
"""The rules of the project, as tests: who may import whom, what the core may not touch,
how long is long.

IMPORT_LAYERS is the table of the architecture. A module imports from its own layer or from layers
below it; `coordinator` and `storage` are introduced to each other by `runtime` and do not know each
other.
"""

import ast
from collections.abc import Callable, Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from tests.repository import ROOT, committed

SOURCE = ROOT / "src" / "kohort"

IMPORT_LAYERS = {
    "kohort": 6,  # the public face
    "kohort.errors": 0,
    "kohort.java": 0,
    "kohort.terms": 0,
    "kohort.version": 0,
    "kohort.config": 0,
    "kohort.expressions": 0,
    "kohort.escaping": 0,
    "kohort.figures": 0,
    "kohort.csv_writer": 0,
    "kohort.native": 0,
    "kohort.lazy_names": 0,
    "kohort.wire": 1,
    "kohort.records": 2,
    "kohort.assignors": 2,
    "kohort.machines": 2,  # what coordinators are made of
    "kohort.coordinator": 3,
    "kohort.history": 3,
    "kohort.transactions": 3,
    "kohort.remote": 3,
    "kohort.security": 3,
    "kohort.security.names": 0,
    "kohort.security.stores": 4,  # it reads files
    "kohort.storage": 3,
    "kohort.user_files": 4,  # it reads files
    "kohort.runtime": 4,
    "kohort.client": 5,
    "kohort.client.network": 4,
    "kohort.client.members": 3,  # pure: the machines of members
    "kohort.client.accumulator": 3,  # pure: those of producers
    "kohort.server": 5,
    "kohort.pipeline": 5,
    "kohort.spark": 6,  # the public face of the pipeline, which imports Spark when it is asked
    "kohort.spark.engine": 5,
    "kohort.spark.sources": 5,
    "kohort.spark.gold": 5,
    "kohort.spark.tables": 5,
    "kohort.tables": 6,  # the public face of what the pipeline has written
    "kohort.spark.jobs": 7,
    "kohort.spark.warming": 7,
    "kohort.testing": 6,
    "kohort.sim": 7,
    "kohort.cli": 7,
    "kohort.drop_in": 7,
    "kohort.__main__": 7,
}
PUBLIC = 6
PURE = (
    3  # layers up to here have no clock, no chance, no network, no disk, no threads, no log lines
)

FORBIDDEN_IMPORTS = [
    ("kohort.coordinator", "kohort.storage", "runtime introduces them"),
    ("kohort.runtime", "kohort.coordinator", "it drives any machine"),
    ("kohort.runtime", "kohort.transactions", "it drives any machine"),
    ("kohort.transactions", "kohort.coordinator", "they know of groups what their messages say"),
    ("kohort.storage", "kohort.coordinator", "runtime introduces them"),
    ("kohort.transactions", "kohort.storage", "runtime introduces them"),
    ("kohort.coordinator", "kohort.transactions", "groups know a transaction by its producer"),
    ("kohort.coordinator.offsets", "kohort.coordinator.classic", "any kind of group has offsets"),
    ("kohort.coordinator.offsets", "kohort.coordinator.consumer", "any kind of group has offsets"),
    ("kohort.client", "kohort.server", "a client knows brokers by the protocol alone"),
    ("kohort.client", "kohort.storage", "a client never reads a broker's files"),
    ("kohort.client.members", "kohort.coordinator", "a member knows it by the protocol alone"),
    (
        "kohort.client.accumulator",
        "kohort.transactions",
        "a producer knows the protocol alone",
    ),
    ("kohort.cli", "kohort.storage", "commands never read a broker's files"),
    ("kohort.drop_in", "kohort.storage", "commands never read a broker's files"),
    ("kohort.drop_in", "kohort.server", "commands speak to brokers through the client"),
    ("kohort.server", "kohort.client", "a broker serves, it does not ask"),
    ("kohort.spark", "kohort.coordinator", "Spark reads records, it keeps no groups"),
    ("kohort.spark", "kohort.server", "Spark reads records, it keeps no groups"),
    ("kohort.history", "kohort.coordinator", "it reads what a coordinator wrote, whoever that was"),
    ("kohort.spark.sources", "kohort.spark.tables", "a source keeps nothing"),
    ("kohort.pipeline", "kohort.coordinator", "it reads records, it keeps no groups"),
    ("kohort.pipeline", "kohort.server", "it reads records, it keeps no groups"),
    ("kohort.pipeline", "kohort.spark", "tables are read and drawn where there is no Spark"),
    ("kohort.pipeline.stores", "kohort.pipeline.format", "a store knows files, not their rows"),
    ("kohort.spark.gold", "kohort.spark.tables", "a measure is given its frames"),
    ("kohort.spark.gold", "kohort.spark.sources", "a measure is given its frames"),
    ("kohort.tables", "kohort.spark", "it is for programs without Spark"),
    ("kohort.cli", "kohort.server", "commands speak to brokers through the client"),
    ("kohort", "pyspark", "all but the jobs of the pipeline works without Spark"),
    ("kohort", "kohort.sim", "the simulator imports everything and nothing imports it"),
]
IMPORT_EXCEPTIONS = {  # who may do what FORBIDDEN_IMPORTS forbids, and why
    ("kohort.cli.serve", "kohort.server"): "the one command that is a broker",
    ("kohort.sim", "kohort.sim"): "its own parts",
    ("kohort.spark", "pyspark"): "its jobs, and what they are made of",
    ("kohort.cli.inspect_data", "kohort.storage"): "it asks no broker: it mends what one has left",
    ("kohort.cli.inspect_data", "kohort.server"): "it reads the catalog as a broker would",
}

BANNED_MODULES = {"asyncio", "socket", "time", "random", "logging", "threading", "secrets"}
DISK_MODULES = {"os", "pathlib", "io", "fcntl", "shutil", "tempfile", "mmap", "glob"}
ALLOWED = {  # of the banned modules, and why
    ("kohort.native.choice", "os"): "the environment says which codec is wanted, once, at import",
    ("kohort.storage.files", "threading"): "syncs of a file may come from two threads at a time",
    ("kohort.storage.open_files", "threading"): "a thread may close what another one reads",
}
BANNED_NAMES = {"uuid1", "uuid4", "urandom", "perf_counter", "monotonic"}
CLOCKS = {("datetime", "now"), ("datetime", "utcnow"), ("datetime", "today"), ("date", "today")}
FILES = "kohort.storage.files"  # the only door to the disk

LONGEST_MODULE = 600
LONGEST_FUNCTION = 60
LONG_FUNCTIONS = {  # module.function: why it is best read in one piece
    "kohort.client.producer.producer.Producer.send": "what a produced record costs is its path",
    "kohort.client.fetcher.decoding.records_of": "what a consumer's record costs is its loop",
    "kohort.wire.batch.building.build": "written for every commit: a call in its loop would show",
    "kohort.wire.batch.reading.entries": "a log is loaded by it: every call in it would show",
}
UNFINISHED = ("TO" + "DO", "FIX" + "ME", "X" * 3)
ELSEWHERE = ("/wo" + "rk/", "/ro" + "ot/", "shar" + "ed/")


def name_of(path: Path) -> str:
    parts = ("kohort", *path.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


Rule = Callable[[str], None]
"""Raises AssertionError where the module of this name breaks it."""

MODULES = {name_of(path): path for path in sorted(SOURCE.rglob("*.py"))}


def tree_of(module: str) -> ast.Module:
    return _tree_in(MODULES[module])


@cache
def _tree_in(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def nodes_of(module: str) -> tuple[ast.AST, ...]:
    """Every part of its tree."""
    return _nodes_in(MODULES[module])


@cache
def _nodes_in(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(_tree_in(path)))


def within(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


def layer_of(module: str) -> int:
    """The layer of the longest name in the table that the module is within."""
    name = module
    while name not in IMPORT_LAYERS:
        name, _, rest = name.rpartition(".")
        assert rest
    assert name != "kohort" or module == "kohort", (
        f"{module} is not in IMPORT_LAYERS: say where it stands"
    )
    return IMPORT_LAYERS[name]


def imports_of(module: str) -> Iterator[tuple[int, str]]:
    """Line and full name of each import, those inside functions too."""
    for node in nodes_of(module):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{module}:{node.lineno} imports relatively; write the name out"
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield node.lineno, full if full in MODULES else str(node.module)


def rule(concerns: Callable[[str], bool] = lambda _: True) -> Callable[[Rule], Callable[[], None]]:
    """Makes one test of a rule for a module: it looks at every module that the rule concerns, and
    names all that break it.
    """

    def decorate(check: Rule) -> Callable[[], None]:
        def test() -> None:
            broken = []
            for module in filter(concerns, MODULES):
                try:
                    check(module)
                except AssertionError as error:
                    broken.append(str(error))
            assert not broken, "\n".join(broken)

        test.__name__, test.__doc__ = check.__name__, check.__doc__
        test.check = check  # type: ignore[attr-defined]  # for one module
        return test

    return decorate


@rule()
def test_imports_go_down(module):
    layer = layer_of(module)
    for line, imported in imports_of(module):
        if within(imported, "kohort"):
            assert layer_of(imported) <= layer, (
                f"{module}:{line} on layer {layer} imports {imported} on layer {layer_of(imported)}"
            )


IN_REQUESTS = (
    *("server", "coordinator", "transactions", "machines", "runtime"),
    *("storage", "records", "wire"),
)
TYPES_OF_SOME = {
    *("kohort.server.broker", "kohort.server.cluster"),  # brokers: TLS and SASL
    "kohort.client.admin",  # each call needs its own views, and commands are made of few calls
    *(f"kohort.client.admin.{name}" for name in ("hints", "arguments")),
}
AT_HAND = {"utf-8", "ascii", "latin-1"}  # these are in C
IMPORTS_AT_START = {  # what is imported when a broker starts, before it has a request, and why
    "kohort.server.broker": "TLS and SASL are some twenty, and a broker of plain text has neither",
    "kohort.server.sasl.key_source": "a client of HTTP is two dozen modules",
}


def takes_part_in_requests(module: str) -> bool:
    package = module.split(".")[1:2]
    return bool(package) and package[0] in (*IN_REQUESTS, "config", "terms", "java")


@rule(takes_part_in_requests)
def test_a_request_imports_nothing(module):
    """With no file descriptor left an import fails, and would fail a request. What Python imports
    by itself at its first use, as most codecs, is looked up when the module is imported.
    """
    tree = tree_of(module)
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in ast.walk(function):
                late = isinstance(node, ast.Import | ast.ImportFrom)
                called = node.func if isinstance(node, ast.Call) else None
                name = getattr(called, "attr", getattr(called, "id", None))
                late = late or name in ("import_module", "__import__")
                late = late and module not in IMPORTS_AT_START
                assert not late, f"{module}:{node.lineno} imports at its first use"
    at_import = [top for top in tree.body if isinstance(top, ast.For | ast.Expr)]
    looked_up = {
        node.value
        for top in at_import
        if "codecs.lookup" in ast.unparse(top)
        for node in ast.walk(top)
        if isinstance(node, ast.Constant)
    }
    of_terms = {"utf-16-be", "utf-16-le"} if module != "kohort.java" else set()
    known = (
        AT_HAND
        | looked_up
        | (of_terms if any(one == "kohort.terms" for _, one in imports_of(module)) else set())
    )
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            name = node.args[0]
            if node.func.attr in ("encode", "decode") and isinstance(name, ast.Constant):
                assert name.value in known, f"{module}:{node.lineno} looks {name.value} up late"


def graph() -> dict[str, set[str]]:
    """Each module with those of ours that it imports, wherever the import stands."""
    return {
        module: {imported for _, imported in imports_of(module) if imported in MODULES} - {module}
        for module in MODULES
    }


def test_no_file_imports_itself_by_a_detour():
    """A circle would have to be read, tested and compiled as one file."""
    try:
        TopologicalSorter(graph()).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def hides_imports(module: str) -> bool:
    return any(
        isinstance(node, ast.Name) and node.id == "TYPE_CHECKING" for node in nodes_of(module)
    )


@rule(lambda module: layer_of(module) < PUBLIC)
def test_imports_for_types_are_imports(module):
    """They say who knows whom. Commands hide some, for a quick start, and a broker what only some
    have.
    """
    assert not hides_imports(module) or module in TYPES_OF_SOME, module


@rule()
def test_forbidden_imports(module):
    """K40-26: who asks a broker asks by the protocol."""
    for line, imported in imports_of(module):
        for one, other, why in FORBIDDEN_IMPORTS:
            if within(module, one) and within(imported, other):
                assert any(
                    within(module, inside) and within(imported, beyond)
                    for inside, beyond in IMPORT_EXCEPTIONS
                ), f"{module}:{line} imports {imported}: {why}"


@rule(lambda module: layer_of(module) <= PURE)
def test_the_core_is_pure(module):
    for line, imported in imports_of(module):
        root = imported.partition(".")[0]
        allowed = (module, root) in ALLOWED
        assert allowed or root not in BANNED_MODULES, f"{module}:{line} imports {imported}"
        allowed = allowed or module == FILES
        assert allowed or root not in DISK_MODULES, f"{module}:{line} imports {imported}"
    for node in nodes_of(module):
        if isinstance(node, ast.Attribute):
            assert node.attr not in BANNED_NAMES, f"{module}:{node.lineno} uses .{node.attr}"
            owner = ast.unparse(node.value).rpartition(".")[2]
            assert (owner, node.attr) not in CLOCKS, f"{module}:{node.lineno} reads a clock"
        elif isinstance(node, ast.Name):
            assert node.id not in BANNED_NAMES, f"{module}:{node.lineno} uses {node.id}"
            assert node.id != "open" or module == FILES, f"{module}:{node.lineno} opens a file"
        elif isinstance(node, ast.alias):
            assert node.name not in BANNED_NAMES, f"{module}:{node.lineno} imports {node.name}"


@rule()
def test_a_module_says_what_it_is(module):
    assert ast.get_docstring(tree_of(module)), f"{module} has no docstring"


@rule()
def test_a_module_is_not_too_long(module):
    lines = MODULES[module].read_text(encoding="utf-8").count("\n")
    assert lines <= LONGEST_MODULE, f"{module} has {lines} lines: which second idea moved in?"


def functions_of(module: str) -> Iterator[tuple[str, int]]:
    """Each function, with the lines from `def` to its last."""

    def walk(node: ast.AST, prefix: str) -> Iterator[tuple[str, int]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                assert child.end_lineno
                yield f"{prefix}.{child.name}", child.end_lineno - child.lineno + 1
            named = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            yield from walk(child, f"{prefix}.{child.name}" if named else prefix)

    return walk(tree_of(module), module)


@rule()
def test_a_function_is_not_too_long(module):
    for function, lines in functions_of(module):
        assert lines <= LONGEST_FUNCTION or function in LONG_FUNCTIONS, (
            f"{function} has {lines} lines, expected {LONGEST_FUNCTION} at most"
        )


def test_exceptions_are_needed():
    lengths = {name: lines for module in MODULES for name, lines in functions_of(module)}
    for function, why in LONG_FUNCTIONS.items():
        assert why
        assert lengths[function] > LONGEST_FUNCTION, f"{function} needs no exception any more"


@rule()
def test_nothing_is_left_unfinished_or_printed(module):
    text = MODULES[module].read_text(encoding="utf-8")
    for mark in UNFINISHED:
        assert mark not in text, f"{module} has a {mark}"
    if not within(module, "kohort.cli"):
        for node in nodes_of(module):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id != "print", f"{module}:{node.lineno} prints"


def test_no_file_knows_the_machine_it_was_written_on():
    for path in committed():
        try:
            text = (ROOT / path).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for place in ELSEWHERE:
            assert place not in text, f"{path} mentions {place}"


def in_a_circle(_module: str) -> None:
    test_no_file_imports_itself_by_a_detour()


@pytest.mark.parametrize(
    ("test", "module", "source"),
    [
        (test_imports_go_down, "kohort.wire.bad", "from kohort.records import codec"),
        (test_imports_go_down, "kohort.records.bad", "def f():\n    import kohort.runtime.driver"),
        (
            test_imports_go_down,
            "kohort.client.network.connection",
            "from kohort.client import admin",
        ),
        (test_imports_go_down, "kohort.stray", "import json\nfrom kohort import errors"),
        (in_a_circle, "kohort.wire.schema", "from kohort.wire import codec"),
        (
            test_imports_for_types_are_imports,
            "kohort.wire.bad",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING: pass",
        ),
        (test_forbidden_imports, "kohort.coordinator.bad", "import kohort.storage.log"),
        (test_forbidden_imports, "kohort.cli.bad", "from kohort.server import broker"),
        (test_forbidden_imports, "kohort.cli.bad", "from kohort.storage import segments"),
        (test_forbidden_imports, "kohort.server.bad", "import kohort.sim.world"),
        (test_the_core_is_pure, "kohort.storage.bad", "from threading import Lock"),
        (test_the_core_is_pure, "kohort.coordinator.bad", "import uuid\nuuid.uuid4()"),
        (test_the_core_is_pure, "kohort.coordinator.bad", "from uuid import uuid4 as new"),
        (test_the_core_is_pure, "kohort.terms", "import datetime\ndatetime.datetime.now()"),
        (test_the_core_is_pure, "kohort.storage.log", "open('file')"),
        (test_the_core_is_pure, "kohort.storage.log", "import os.path"),
        (test_the_core_is_pure, "kohort.coordinator.bad", "def f():\n    from pathlib import Path"),
        (test_a_module_says_what_it_is, "kohort.bad", "x = 1"),
        (test_a_module_is_not_too_long, "kohort.bad", "\n" * 601),
        (test_a_function_is_not_too_long, "kohort.bad", "class A:\n  def f(): (" + "\n" * 60 + ")"),
        (test_nothing_is_left_unfinished_or_printed, "kohort.bad", "# " + UNFINISHED[0]),
        (test_nothing_is_left_unfinished_or_printed, "kohort.server.bad", "print(1)"),
    ],
)
def test_the_rules_find_offenders(test, module, source, tmp_path, monkeypatch):
    path = tmp_path / "bad.py"
    path.write_text(source)
    monkeypatch.setitem(MODULES, module, path)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        getattr(test, "check", test)(module)
