# SPDX-License-Identifier: Apache-2.0
"""Documents for programs: what `--format json`, `jsonl` and `csv` write.

Rows are written as they come, so an answer about many groups is never built as one text. Every JSON
document begins with `schema_version`; docs/cli.md says what may change within a version.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TextIO

from kohort.csv_writer import CsvWriter, Stream

SCHEMA_VERSION = 1
VERSION = "schema_version"

Row = Mapping[str, Any]

_UNICODE = json.JSONEncoder(ensure_ascii=False, allow_nan=False)
_ASCII = json.JSONEncoder(allow_nan=False)
_BACKSLASH, _HALF = "\ue000", "\ue001"


class DoubledNameError(ValueError):
    """An object of JSON has a name twice; the text goes behind the place of the document."""


def read_json(text: str | bytes) -> Any:
    """A document. Raises ValueError, also for an object that has a name twice: which of both counts
    is not said, and other programs read the other one. Raises RecursionError for deep ones.
    """
    return json.loads(text, object_pairs_hook=_object)


def _object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise DoubledNameError(f"has {json.dumps(twice)} twice in an object, expected it once")
    return found


def write_json(stream: TextIO, value: object) -> None:
    """One document. An object says its version first."""
    if isinstance(value, Mapping):
        value = {VERSION: SCHEMA_VERSION, **value}
    stream.write(laid_out(value, stream.encoding) + "\n")


def write_json_rows(stream: TextIO, name: str, rows: Iterable[Row], beside: Row) -> None:
    """One document as `write_json` writes it, with the list of rows under their name, and what is
    `beside` it after that.
    """
    stream.write(f'{{\n  "{VERSION}": {SCHEMA_VERSION},\n  {json.dumps(name)}: [')
    between = "\n"
    for row in rows:
        stream.write(between + _indented(laid_out(row, stream.encoding), 4))
        between = ",\n"
    stream.write("]" if between == "\n" else "\n  ]")
    for key, value in beside.items():
        text = _indented(laid_out(value, stream.encoding), 2).lstrip()
        stream.write(f",\n  {json.dumps(key)}: {text}")
    stream.write("\n}\n")


def write_json_lines(stream: TextIO, rows: Iterable[Row]) -> None:
    """A document for each row, on a line of its own."""
    stream.writelines(
        json_text({VERSION: SCHEMA_VERSION, **row}, stream.encoding) + "\n" for row in rows
    )


def write_csv(
    stream: Stream, columns: Sequence[str], rows: Iterable[Row], nested: str | None = None
) -> None:
    """A line of the columns' names, and one for each row (RFC 4180), or for each of the rows that
    are `nested` in it under this name; a column that both have is that of the outer one. None is an
    empty field; a list or an object is JSON. What would be a control character on a terminal stays
    what it is: quotes keep it in its field, and `Output` escapes it where it is a terminal.
    """
    writer = CsvWriter(stream)
    writer.writerow(columns)
    for row in rows:
        inner = row.get(nested) if nested is not None else None
        for one in [{**found, **row} for found in inner] if inner else [row]:
            writer.writerow([_field(one.get(column)) for column in columns])


def _field(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return json_text(value) if isinstance(value, Mapping | list | tuple) else value


def _indented(text: str, room: int) -> str:
    margin = " " * room
    return margin + text.replace("\n", f"\n{margin}")


def laid_out(value: object, encoding: str | None = None) -> str:
    """The same as `json_text` over several lines, for people. Python's own encoder takes ten times
    as long for that.
    """
    from msgspec.json import format as indented

    line = json_text(value, encoding)
    if "\\ud" not in line:
        return indented(line, indent=2)
    # Half of a surrogate pair, which a path may have, is an escape that msgspec refuses. Other
    # characters stand for it meanwhile: no line has them, as they cannot be printed.
    line = line.replace("\\\\", _BACKSLASH).replace("\\ud", _HALF)
    return indented(line, indent=2).replace(_HALF, "\\ud").replace(_BACKSLASH, "\\\\")


def json_text(value: object, encoding: str | None = None) -> str:
    """A line of JSON with its letters as they are, where the encoding has them, and control
    characters escaped, as those beyond ASCII are not by JSON's own rules. Raises ValueError for a
    number that JSON has no text for.
    """
    unicode = encoding is None or encoding.lower().startswith("utf")
    text = (_UNICODE if unicode else _ASCII).encode(value)
    if text.isprintable():
        return text
    # What cannot be printed is within a text, where an escape may stand.
    return "".join(
        character if character.isprintable() else json.dumps(character)[1:-1] for character in text
    )
