# SPDX-License-Identifier: Apache-2.0
"""Reads `server.properties` as upstream writes it: Java's properties format."""

import re

_PAIR = re.compile(r"((?:\\.|[^\\\s=:])*)\s*[=:]?\s*(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_LETTERS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def read_properties(text: str) -> dict[str, str]:
    """The names and values of a properties text. A name given twice keeps the last value."""
    return {name: value for name, (value, _) in read_numbered(text).items()}


def read_numbered(text: str) -> dict[str, tuple[str, int]]:
    """The same, and for each the number of the line on which it begins."""
    pairs: dict[str, tuple[str, int]] = {}
    for number, line in _logical_lines(text):
        match = _PAIR.fullmatch(line)
        if match:
            pairs[_plain(match[1])] = _plain(match[2]), number
    return pairs


def _logical_lines(text: str) -> list[tuple[int, str]]:
    """Lines with their continuations joined, and the numbers of their first ones; blank lines and
    comments left out.
    """
    lines: list[tuple[int, str]] = []
    unfinished: str | None = None
    begin = 0
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.lstrip()
        if unfinished is None and (not line or line[0] in "#!"):
            continue
        begin = number if unfinished is None else begin
        line = (unfinished or "") + line
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            unfinished = line[:-1]
            continue
        lines.append((begin, line))
        unfinished = None
    if unfinished:
        lines.append((begin, unfinished))
    return lines


def _plain(text: str) -> str:
    return _ESCAPE.sub(_unescaped, text)


def _unescaped(match: re.Match[str]) -> str:
    code = match[1]
    return chr(int(code[1:], 16)) if len(code) == 5 else _LETTERS.get(code, code)
