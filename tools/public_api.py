# SPDX-License-Identifier: Apache-2.0
"""Every public name of Kohort, a line each: the text of `docs/public-api.txt`.

A line has the names of parameters, their kinds, and `=...` for a default. Annotations and values
are left out, because each Python prints them in its own way. Attributes come from the source: a
class does not know them before an object is made.
"""

import ast
import inspect
import sys
from collections.abc import Iterator
from enum import Enum
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

MODULES = {
    "kohort": "",
    "kohort.assignors": "Assign Assignment AssignorError Plan Subscription",
    "kohort.spark": "",
    "kohort.spark.jobs": "",
    "kohort.tables": "",
    "kohort.tables.thresholds": "Groups Limit Rules RulesError State",
    "kohort.terms": "MemberId TopicId",
    "kohort.testing": "",
}
"""A module that users import, and its public names; none for all that it exports."""

MEMBERS = {"kohort.Broker": "bootstrap config ports reload_certificates start stop"}
"""Public members of a class whose other members serve other modules of Kohort."""

INTERNAL = frozenset(
    {
        "kohort.Consumer.on_count",
        *("kohort.Consumer.settings", "kohort.Producer.settings"),
        *("kohort.Consumer(**settings).check", "kohort.Producer(**settings).check"),
        *("kohort.ApiError.without_frames", "kohort.AuthenticationError.without_frames"),
        *("kohort.DeliveryError.without_frames", "kohort.TransactionError.without_frames"),
        *("kohort.BrokerConfig.given", "kohort.BrokerConfig.prefixed"),
        *("kohort.BrokerConfig.ignored", "kohort.BrokerConfig.mistakes"),
        *("kohort.BrokerConfig.value", "kohort.BrokerConfig.without_effect"),
        "kohort.GroupMetadata.refused",
        *("kohort.testing.Broker.ask", "kohort.testing.Broker.command"),
        "kohort.testing.Broker.faults.forget",
        "kohort.testing.Broker.groups.asked_for",
        "kohort.testing.Broker.moved_ms",
    }
)
"""Members of other classes that only other modules of Kohort use."""

RETURNED = {
    "kohort.Consumer(**settings)": "kohort.client.consumer.settings.ConsumerSettings",
    "kohort.Producer(**settings)": "kohort.client.producer.settings.ProducerSettings",
    "kohort.SyncAdminClient.iterate": "kohort.client.admin.synchronous.Iterations",
    "kohort.spark.jobs.rebuild()": "kohort.pipeline.format.rebuild.RebuildResult",
    "kohort.spark.jobs.run()": "kohort.pipeline.format.summary.Summary",
    "kohort.tables.check()": "kohort.tables.judging.Verdict",
    "kohort.tables.check().findings[]": "kohort.tables.judging.Finding",
    "kohort.tables.snapshot()": "kohort.tables.snapshots.Snapshot",
    "kohort.testing.Broker.clock": "kohort.testing.handles.ClockHandle",
    "kohort.testing.Broker.faults": "kohort.testing.faults.Faults",
    "kohort.testing.Broker.faults.error()": "kohort.testing.faults.FaultHandle",
    "kohort.testing.Broker.groups": "kohort.testing.groups.Groups",
    "kohort.testing.Broker.groups[]": "kohort.testing.groups.GroupHandle",
    "kohort.testing.Broker.node()": "kohort.testing.handles.NodeHandle",
    "kohort.testing.Broker.tls": "kohort.testing.authority.Authority",
}
"""Classes that users never name: how a user reaches an object, or writes a setting of one."""

FIXTURES = "kohort_broker kohort_group kohort_options kohort_topic"
SPECIAL = frozenset(
    f"__{name}__"
    for name in (
        *("aenter", "aexit", "aiter", "anext", "await", "bool", "call", "contains"),
        *("enter", "exit", "getitem", "iter", "len", "next"),
    )
)
"""What a user calls by syntax. A newer Python adds others to a dataclass by itself."""


def page() -> str:
    """docs/public-api.txt"""
    found: set[str] = set()
    for module, chosen in MODULES.items():
        home = import_module(module)
        for name in chosen.split() or home.__all__:
            found.update(lines_of(f"{module}.{name}", getattr(home, name)))
    for path, where in RETURNED.items():
        module, _, name = where.rpartition(".")
        found.update(members_of(path, getattr(import_module(module), name)))
    plugin = import_module("kohort.testing.plugin")
    found.update(f"pytest fixture {name}" for name in FIXTURES.split() if hasattr(plugin, name))
    return "".join(f"{line}\n" for line in sorted(found))


def lines_of(path: str, value: Any) -> Iterator[str]:
    """The lines of a public name. A class has one for itself, and one for each member."""
    if inspect.isclass(value) and _is_ours(value):
        yield path + (_parameters(value) if _is_made_by_users(value) else "")
        yield from members_of(path, value)
    elif inspect.isfunction(value):
        yield _function(path, value)
    else:
        yield path


def members_of(path: str, kind: type) -> Iterator[str]:
    """The lines of a class's public members, those of its bases too as far as they are ours."""
    seen: set[str] = set()
    if issubclass(kind, Enum):
        seen.update(kind.__members__)
        yield from (f"{path}.{name}" for name in kind.__members__)
    chosen = MEMBERS.get(path, "").split()
    for base in (base for base in kind.__mro__ if _is_ours(base)):
        own = {**dict.fromkeys(_attributes(base)), **vars(base)}
        for name, value in own.items():
            public = name in SPECIAL or not name.startswith("_")
            public = public and f"{path}.{name}" not in INTERNAL
            if public and name not in seen and (not chosen or name in {*chosen, *SPECIAL}):
                seen.add(name)
                yield _member(f"{path}.{name}", value)


def _member(path: str, value: Any) -> str:
    function = value.__func__ if isinstance(value, staticmethod | classmethod) else value
    return _function(path, function) if inspect.isfunction(function) else path


def _function(path: str, function: Any) -> str:
    asynchronous = inspect.iscoroutinefunction(function)
    return f"{path}{_parameters(function)}{' async' if asynchronous else ''}"


def _parameters(of: Any) -> str:
    """The parameters in brackets, as Python writes them, with `=...` for a default."""
    parts: list[str] = []
    before = ""
    for one in inspect.signature(of).parameters.values():
        kind = one.kind.name
        if before == "POSITIONAL_ONLY" != kind:
            parts.append("/")
        if kind == "KEYWORD_ONLY" and before not in {"VAR_POSITIONAL", kind}:
            parts.append("*")
        star = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}.get(kind, "")
        default = "" if one.default is inspect.Parameter.empty else "=..."
        parts.append(f"{star}{one.name}{default}")
        before = kind
    if before == "POSITIONAL_ONLY":
        parts.append("/")
    return f"({', '.join(parts)})"


def _is_ours(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == "kohort"


def _is_made_by_users(kind: type) -> bool:
    """Whether one of our classes says what a new object takes."""
    if issubclass(kind, Enum) or getattr(kind, "_is_protocol", False):
        return False
    makers = ("__init__", "__new__", "__struct_fields__")
    return any(name in vars(base) for base in kind.__mro__ if _is_ours(base) for name in makers)


@cache
def _classes(path: str) -> dict[str, ast.ClassDef]:
    tree = ast.parse(Path(path).read_text(encoding="utf-8"))
    return {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}


def _attributes(kind: type) -> Iterator[str]:
    """The attributes that a class declares, and those that its constructor sets."""
    found = _classes(str(sys.modules[kind.__module__].__file__)).get(kind.__name__)
    for node in found.body if found else ():
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id
        if isinstance(node, ast.FunctionDef) and node.name == "__init__":
            for inner in ast.walk(node):
                if isinstance(inner, ast.Attribute) and isinstance(inner.ctx, ast.Store):
                    yield inner.attr
