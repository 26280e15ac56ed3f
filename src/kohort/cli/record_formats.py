# SPDX-License-Identifier: Apache-2.0
"""Records as text, as lines of JSON, and by a template; lines back to records.

`kohort consume` writes what `kohort produce` reads. JSON loses nothing: bytes that are no text come
in hexadecimal, under a name that says so.
"""

import json
import re
from argparse import ArgumentTypeError
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from kohort.cli.documents import DoubledNameError, json_text, read_json
from kohort.cli.render import printable
from kohort.errors import KohortError

if TYPE_CHECKING:
    from kohort.client.fetcher.record import AnyRecord

Bytes = bytes | None
Show = Callable[[bytes], bytes]
NO_TIME = -1  # the timestamp of a record that has none, as in Kafka

_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|.|$)", re.DOTALL)
_ESCAPES = {"n": b"\n", "t": b"\t", "r": b"\r", "0": b"\0", "\\": b"\\"}
_TOKEN = re.compile(r"%(.?)", re.DOTALL)
_FIELDS = ("topic", "partition", "offset", "timestamp", "timestamp_type", "headers")
_KNOWN = {*_FIELDS, "key", "key_bytes", "value", "value_bytes"}
_INT32_MAX, _INT64_MAX = (1 << 31) - 1, (1 << 63) - 1


class TextForm(NamedTuple):
    """How records stand in text: what ends each, what parts a key from its value, and what stands
    for null. A separator of None means values without keys.
    """

    delimiter: bytes = b"\n"
    key_separator: bytes | None = None
    null: bytes | None = None


class NewRecord(NamedTuple):
    """A record to produce. None leaves the partition to the key, and the time to the producer."""

    key: Bytes
    value: Bytes
    headers: tuple[tuple[str, Bytes], ...] = ()
    partition: int | None = None
    timestamp_ms: int | None = None


def escaped(text: str) -> bytes:
    r"""An argument type: a text in which \n, \t, \r, \0, \\ and \xHH stand for bytes."""
    if not text:
        raise ArgumentTypeError("it is empty, expected a text")
    return any_escaped(text)


def any_escaped(text: str) -> bytes:
    """The same of a text that may be empty."""
    found, at = b"", 0
    for match in _ESCAPE.finditer(text):
        word = match[1]
        byte = bytes.fromhex(word[1:]) if word[:1] == "x" and word[1:] else _ESCAPES.get(word)
        if byte is None:
            raise ArgumentTypeError(
                rf"{match[0]!r} in {text!r} is no escape, expected \n, \t, \r, \0, \\ or \xHH"
            )
        found += text[at : match.start()].encode(errors="surrogateescape") + byte
        at = match.end()
    return found + text[at:].encode(errors="surrogateescape")


def as_it_is(data: bytes) -> bytes:
    """What a pipe gets."""
    return data


def visible_bytes(data: bytes) -> bytes:
    """What a terminal gets: text that cannot move its cursor."""
    return printable(data.decode(errors="backslashreplace")).encode()


def text_of(record: "AnyRecord", form: TextForm, show: Show) -> bytes:
    """A record as text, with the delimiter that ends it."""
    value = _shown(record.value, form.null, show) + form.delimiter
    if form.key_separator is None:
        return value
    return _shown(record.key, form.null, show) + form.key_separator + value


def _shown(data: Bytes, null: bytes | None, show: Show) -> bytes:
    return (null or b"") if data is None else show(data)


def json_of(record: "AnyRecord") -> bytes:
    """A record as an object on a line."""
    fields = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp_ms,
        "timestamp_type": record.timestamp_type,
        **_field("key", record.key),
        **_field("value", record.value),
        "headers": [{"key": label, **_field("value", value)} for label, value in record.headers],
    }
    return json_text(fields).encode() + b"\n"


def _field(label: str, data: Bytes) -> dict[str, str | None]:
    try:
        return {label: None if data is None else data.decode()}
    except UnicodeDecodeError:
        return {f"{label}_bytes": data.hex() if data is not None else None}


Part = Callable[["AnyRecord", bytes, Show], bytes]
"""What a part of a template writes of a record, given what stands for null."""

_PARTS: dict[str, Part] = {
    "s": lambda record, null, show: _shown(record.value, null, show),
    "k": lambda record, null, show: _shown(record.key, null, show),
    "S": lambda record, _null, _show: b"%d" % _length(record.value),
    "K": lambda record, _null, _show: b"%d" % _length(record.key),
    "t": lambda record, _null, _show: record.topic.encode(),
    "p": lambda record, _null, _show: b"%d" % record.partition,
    "o": lambda record, _null, _show: b"%d" % record.offset,
    "T": lambda record, _null, _show: b"%d" % record.timestamp_ms,
    "h": lambda record, null, show: b",".join(
        show(label.encode()) + b"=" + _shown(value, null, show) for label, value in record.headers
    ),
    "%": lambda _record, _null, _show: b"%",
}


def template(text: str) -> Sequence[bytes | Part]:
    """An argument type: a template of `%` tokens, as kcat's -f takes them, and escapes."""
    parts: list[bytes | Part] = []
    at = 0
    for match in _TOKEN.finditer(text):
        part = _PARTS.get(match[1])
        if part is None:
            expected = ", ".join(f"%{letter}" for letter in _PARTS)
            raise ArgumentTypeError(f"{match[0]!r} is no token, expected one of {expected}")
        parts += [any_escaped(text[at : match.start()]), part]
        at = match.end()
    return [*parts, any_escaped(text[at:])]


def templated(
    record: "AnyRecord", parts: Sequence[bytes | Part], null: bytes | None, show: Show
) -> bytes:
    """A record by a template. Nothing is added, not even a line end."""
    return b"".join(
        part if isinstance(part, bytes) else part(record, null or b"", show) for part in parts
    )


def _length(data: Bytes) -> int:
    return -1 if data is None else len(data)


def new_record(line: bytes, form: TextForm) -> NewRecord:
    """What a line is. Raises KohortError for one without the separator of its key."""
    if form.key_separator is None:
        return NewRecord(None, _unless(line, form.null))
    key, found, value = line.partition(form.key_separator)
    if not found:
        shown = form.key_separator.decode(errors="replace")
        raise KohortError(f"has no {shown!r}, expected a key before it")
    return NewRecord(_unless(key, form.null), _unless(value, form.null))


def _unless(data: bytes, null: bytes | None) -> Bytes:
    return None if data == null else data


def new_record_of_json(line: bytes) -> NewRecord:
    """What a line is that `json_of` has written, or a program with the same names. Its topic, its
    offset and the type of its time are passed over. Raises KohortError, which says what is wrong.
    """
    try:
        found = read_json(line)
    except DoubledNameError as error:
        raise KohortError(str(error)) from None
    except (ValueError, RecursionError) as error:
        raise KohortError(f"is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise KohortError(f"is {_kind(found)}, expected an object")
    unknown = next((name for name in found if name not in _KNOWN), None)
    if unknown is not None:
        raise KohortError(
            f"has the unknown field {unknown!r}, expected {', '.join(sorted(_KNOWN))}"
        )
    if "value" not in found and "value_bytes" not in found:
        raise KohortError("has no value, expected one, or null")
    time_ms = _number(found, "timestamp", NO_TIME, _INT64_MAX)
    return NewRecord(
        _bytes_of(found, "key"),
        _bytes_of(found, "value"),
        _headers_of(found),
        _number(found, "partition", 0, _INT32_MAX),
        None if time_ms == NO_TIME else time_ms,
    )


def _headers_of(found: dict[str, Any]) -> tuple[tuple[str, Bytes], ...]:
    headers = found.get("headers", [])
    if not isinstance(headers, list) or not all(isinstance(one, dict) for one in headers):
        raise KohortError("has headers that are not a list of objects")
    pairs = []
    for header in headers:
        label = header.get("key")
        if not isinstance(label, str):
            raise KohortError(f"has a header whose key is {_kind(label)}, expected a text")
        _encoded("the key of a header", label)
        pairs.append((label, _bytes_of(header, "value")))
    return tuple(pairs)


def _bytes_of(fields: dict[str, Any], label: str) -> Bytes:
    name = f"{label}_bytes"
    if name in fields and label in fields:
        raise KohortError(f"has {label} and {name}, expected one of them")
    value = fields.get(name, fields.get(label))
    if value is None:
        return None
    if not isinstance(value, str):
        raise KohortError(f"has a {label} that is {_kind(value)}, expected a text or null")
    if name not in fields:
        return _encoded(label, value)
    try:
        return bytes.fromhex(value)
    except ValueError:
        raise KohortError(f"has {name} that is not hexadecimal") from None


def _encoded(what: str, text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise KohortError(f"has half of a character in {what}, which no UTF-8 can say") from None


def _number(fields: dict[str, Any], name: str, least: int, most: int) -> int | None:
    value = fields.get(name)
    if value is None:
        return None
    if type(value) is not int or not least <= value <= most:
        raise KohortError(f"has {name} {json.dumps(value)[:40]}, expected a number from {least} on")
    return value


def _kind(value: object) -> str:
    if isinstance(value, bool):
        return "true or false"
    kinds = {dict: "an object", list: "a list", str: "a text", int: "a number", float: "a number"}
    return kinds.get(type(value), "null")
