# SPDX-License-Identifier: Apache-2.0
"""The regular expressions of clients: RE2, whole names (KIP-848, KIP-1152).

RE2 takes time in proportion to the text, whatever the expression. The bounds here keep small what
a client can make one expression cost. RE2 comes with the package google-re2; without it,
`unavailable_or_none` says so, and nothing else here may be called.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

try:
    import re2
except ImportError:  # no wheel for this machine
    re2 = None

LENGTH_MAX = 4096  # characters
CLASSES_MAX = 50  # such as \pL: RE2 takes a tenth of a millisecond to read each
MEMORY_MAX = 1 << 20  # bytes of a compiled expression; those of 8 MiB take a quarter of a second
STEPS = 1 << 14  # names times characters of the expression: how much is looked at in one part

# How Kafka's RE2/J says it, by what RE2 says.
_AS_KAFKA_SAYS = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "unexpected )": "missing closing )",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
    "trailing \\": "trailing backslash at end of expression",
    "pattern too large - compile failed": "expression too large",
}


class InvalidExpression(Exception):  # noqa: N818  (an expected answer, not a failure)
    """Text that is no regular expression of RE2; the message says why not."""


def unavailable_or_none() -> str | None:
    """Why expressions cannot be resolved here, if they cannot."""
    if re2 is None:
        return "regular expressions need the Python package google-re2, which is not installed"
    return None


def check(expression: str) -> None:
    """Raises InvalidExpression, with Kafka's words where it has some."""
    _compiled(expression)


def matches(expression: str, name: str) -> bool:
    """Whether the expression matches the whole name. Raises InvalidExpression."""
    return matcher(expression)(name)


def matcher(expression: str) -> Callable[[str], bool]:
    """What says of a name whether the expression matches the whole of it. Raises
    InvalidExpression.
    """
    fullmatch = _compiled(expression).fullmatch
    return lambda name: fullmatch(name) is not None


def resolve(
    wanted: Mapping[str, Iterable[str]],
) -> Generator[None, None, dict[str, tuple[str, ...]]]:
    """Those of the names that each expression matches, sorted. Every step of this iterator looks at
    a part of the names.

    An expression that is not valid, which another broker may have let in, matches nothing.
    """
    found: dict[str, tuple[str, ...]] = {}
    for expression, names in wanted.items():
        matching: list[str] = []
        try:
            fullmatch = _compiled(expression).fullmatch
        except InvalidExpression:
            found[expression] = ()
            continue
        at_once = max(1, STEPS // max(len(expression), 16))
        for part in _parts(names, at_once):
            matching += [name for name in part if fullmatch(name) is not None]
            yield
        found[expression] = tuple(sorted(matching))
    return found


def _parts(names: Iterable[str], size: int) -> Iterator[list[str]]:
    left = iter(names)
    while part := list(islice(left, size)):
        yield part


def _compiled(expression: str) -> Any:
    """The expression, which RE2 remembers: some hundred of them, of at most `MEMORY_MAX` each."""
    if len(expression) > LENGTH_MAX:
        raise InvalidExpression(
            f"expression too large, {len(expression)} characters, at most {LENGTH_MAX}"
        )
    classes = expression.count("\\p") + expression.count("\\P")
    if classes > CLASSES_MAX:
        raise InvalidExpression(
            f"expression too large, {classes} Unicode classes, at most {CLASSES_MAX}"
        )
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.max_mem = MEMORY_MAX
    try:
        return re2.compile(expression, options)
    except re2.error as error:
        raise InvalidExpression(_error_text(error)) from None
    except UnicodeError:
        raise InvalidExpression("invalid UTF-8") from None


def _error_text(error: Exception) -> str:
    text = error.args[0] if error.args else ""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    kind = text.partition(": ")[0]
    return _AS_KAFKA_SAYS.get(kind, kind)
