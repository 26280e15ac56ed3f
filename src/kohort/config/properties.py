"""Reads `server.properties` as upstream writes it: Java's properties format."""

import re

_PAIR = re.compile(r"((?:\\.|[^\\\s=:])*)\s*[=:]?\s*(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_LETTERS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def read_properties(text: str) -> dict[str, str]:
    """The names and values of a properties text. A name given twice keeps the last value."""
    pairs: dict[str, str] = {}
    for line in _logical_lines(text):
        match = _PAIR.fullmatch(line)
        if match:
            pairs[_plain(match[1])] = _plain(match[2])
    return pairs


def _logical_lines(text: str) -> list[str]:
    """Lines with their continuations joined; blank lines and comments left out."""
    lines: list[str] = []
    unfinished: str | None = None
    for raw in text.splitlines():
        line = raw.lstrip()
        if unfinished is None and (not line or line[0] in "#!"):
            continue
        line = (unfinished or "") + line
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            unfinished = line[:-1]
            continue
        lines.append(line)
        unfinished = None
    if unfinished:
        lines.append(unfinished)
    return lines


def _plain(text: str) -> str:
    return _ESCAPE.sub(_unescaped, text)


def _unescaped(match: re.Match[str]) -> str:
    code = match[1]
    return chr(int(code[1:], 16)) if len(code) == 5 else _LETTERS.get(code, code)
