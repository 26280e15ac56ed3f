# SPDX-License-Identifier: Apache-2.0
"""What breaks users between two texts of `tools/public_api.py`, and what the changelog names of it.

A text is all that this module reads, so it compares any release with any other.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

BREAKING = re.compile(r"(Changed|Removed)\n")
LINE = re.compile(r"(.+?)(\([^()]*\))?( async)?")


class Break(NamedTuple):
    """A public name that code written for the earlier text cannot use as before, and why."""

    name: str
    why: str

    def __str__(self) -> str:
        return f"{self.name}: {self.why}"

    @property
    def short(self) -> str:
        """How the changelog names it: `Class.member`, `module.function`, or a name alone."""
        return ".".join(self.name.removeprefix("kohort.").split(".")[-2:])


class Signature(NamedTuple):
    """What the line of a function says: `parameters` in their order, by name."""

    parameters: Mapping[str, "Parameter"]
    is_async: bool


class Parameter(NamedTuple):
    """`by_position` and `by_name` say how a caller may give it."""

    by_position: bool
    by_name: bool
    has_default: bool


def breaks(before: str, now: str) -> list[Break]:
    """The public names that are gone or that some call no longer fits, in the order of the text."""
    old, new = (dict(map(_read, text.splitlines())) for text in (before, now))
    found = []
    for name, what in old.items():
        if name not in new:
            owner = name.rpartition(".")[0]
            if (
                owner not in old or owner in new
            ):  # a class that is gone is named, and no member of it
                found.append(Break(name, "is gone"))
        elif what is not None:
            found += [Break(name, why) for why in _breaks_of_signature(what, new[name])]
        elif new[name] is not None:
            found.append(Break(name, "was a value, and is called now"))
    return found


def unnamed(found: list[Break], changelog: str, release: str) -> list[Break]:
    """The breaks that the changelog does not name above its part about a release.

    It names one as code, under "Changed" or "Removed": what was added or fixed breaks nobody.
    Raises ValueError: the changelog has no such part.
    """
    heading = f"\n## {release.removeprefix('v')}"
    part, end, _ = changelog.partition(heading)
    if not end:
        raise ValueError(
            f"the changelog has no line '{heading.strip()}', expected one for {release}"
        )
    chapters = [one for one in re.split(r"^### ", part, flags=re.MULTILINE) if BREAKING.match(one)]
    code = "\n".join(re.findall(r"`([^`]+)`", "".join(chapters)))
    return [one for one in found if not re.search(rf"(?<!\w){re.escape(one.short)}(?!\.?\w)", code)]


def _read(line: str) -> tuple[str, Signature | None]:
    matched = LINE.fullmatch(line)
    if matched is None:
        raise ValueError(f"{line!r} is no line of the public API")
    name, brackets, is_async = matched.groups()
    if brackets is None:
        return name, None
    return name, Signature(dict(_parameters(brackets)), is_async is not None)


def _parameters(brackets: str) -> Iterator[tuple[str, Parameter]]:
    (function,) = ast.parse(f"def function{brackets}: ...").body
    assert isinstance(function, ast.FunctionDef)
    its = function.args
    positional = [*its.posonlyargs, *its.args]
    required = len(positional) - len(its.defaults)
    for index, one in enumerate(positional):
        by_name = index >= len(its.posonlyargs)
        yield one.arg, Parameter(by_position=True, by_name=by_name, has_default=index >= required)
    for one, default in zip(its.kwonlyargs, its.kw_defaults, strict=True):
        yield one.arg, Parameter(by_position=False, by_name=True, has_default=default is not None)
    for stars, more in (("*", its.vararg), ("**", its.kwarg)):
        if more is not None:  # its name is no caller's
            yield stars, Parameter(by_position=False, by_name=False, has_default=True)


def _breaks_of_signature(old: Signature, new: Signature | None) -> Iterator[str]:
    if new is None:
        yield "was called, and is a value now"
        return
    if old.is_async != new.is_async:
        yield "is awaited now" if new.is_async else "is no longer awaited"
    for name, one in old.parameters.items():
        its = new.parameters.get(name)
        if its is None:
            yield f"the parameter {name} is gone"
        elif one.has_default and not its.has_default:
            yield f"the parameter {name} has lost its default"
        elif (one.by_position and not its.by_position) or (one.by_name and not its.by_name):
            way = "by name" if its.by_name else "by position"
            yield f"the parameter {name} is taken {way} only"
    for name, one in new.parameters.items():
        if name not in old.parameters and not one.has_default:
            yield f"the parameter {name} is new and has no default"
    places, later = (_by_position(one) for one in (old, new))
    if set(places) <= set(later) and places != later[: len(places)]:
        yield f"the parameters come in another order: {', '.join(later)}"


def _by_position(one: Signature) -> list[str]:
    return [name for name, its in one.parameters.items() if its.by_position]
