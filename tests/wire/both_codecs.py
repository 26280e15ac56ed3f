# SPDX-License-Identifier: Apache-2.0
"""The native codec against the one in Python: whatever comes, they say the same.

Messages are drawn from their classes, and are then bent: values of wrong types, numbers and texts
that no field has room for. Bytes are spoiled, and counts are made huge.
"""

import contextlib
import copy
from array import array
from enum import IntEnum, StrEnum
from functools import partial
from random import Random
from typing import Any

from tests.serve.hostile import spoil

from kohort.records import schemas
from kohort.records.transactions import TransactionLogValue
from kohort.wire import native_codec, python_codec
from kohort.wire.apis import APIS
from kohort.wire.codegen import uvarint
from kohort.wire.columns import Columns
from kohort.wire.frames import RequestHeader, ResponseHeader
from kohort.wire.schema import (
    Bool,
    Bytes,
    Field,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    Primitive,
    String,
    Uuid,
    at,
    fields_of,
    record,
    struct,
)


class Number(IntEnum):
    """Error codes are such numbers."""

    FIVE = 5


class Word(StrEnum):
    """States of groups may be such texts."""

    STABLE = "Stable"


@struct
class Part:
    """A struct in all places where one may be."""

    number: Int16
    text: String
    later: Int32 = at("1+", default=5)
    named: String = at("1+", tag=2, default="")


@record(versions="0-2", flexible="1+")
class Everything:
    """Every kind of field in every way that it may be written: the classes of the protocol have
    each of them somewhere, and most of them rarely.
    """

    flag: Bool
    tiny: Int8
    small: Int16
    plain: Int32
    large: Int64
    rate: Float64
    id: Uuid
    text: String
    old: String = at(classic=True)
    payload: Bytes
    maybe_text: String | None
    null_since_2: String | None = at(nullable="2+", default=None)
    list_null_since_2: list[Part] | None = at(nullable="2+", default=None)
    maybe_bytes: Bytes | None
    part: Part
    maybe_part: Part | None
    flags: list[Bool]
    numbers: list[Int32]
    larges: list[Int64] | None
    ids: list[Uuid]
    texts: list[String]
    blobs: list[Bytes]
    parts: list[Part] | None
    only_1: Int32 = at("1", default=-1)
    list_since_2: list[Int32] = at("2+", default=[])
    tag_9: Int32 = at("1+", tag=9, default=-1)
    tag_3: String | None = at("1+", tag=3, default=None)
    tag_200: Part = at("1+", tag=200)
    tag_0: Part | None = at("1+", tag=0, default=None)
    tag_5: list[Part] = at("1+", tag=5, default=[])
    tag_6: Bool = at("1+", tag=6, default=False)
    tag_7: Float64 = at("1+", tag=7, default=0.0)
    tag_8: Part | None = at("1+", tag=8, default=None, always=True)
    tagged_since_2: Int64 = at("1+", tag=4, tagged="2+", default=0)


CLASSES: list[Any] = [
    *(cls for api in APIS.values() for cls in (api.request, api.response)),
    *(cls for cls in vars(schemas).values() if hasattr(cls, "flexible")),
    *(TransactionLogValue, RequestHeader, ResponseHeader, Everything),
]
VERSIONED = [
    (cls, version)
    for cls in CLASSES
    for version in range(cls.versions.first, cls.versions.last + 1)
]
BOUNDS = (None, 0, 1, 7, 100)
TEXTS = ["", "g", "orders", "Stable", "\N{SNOWMAN}\N{GRINNING FACE}", "é" * 130, "x" * 300]
BITS = {"b": 8, "h": 16, "i": 32, "q": 64}


def message(random: Random, cls: Any, version: int) -> Any:
    """A message of a class that this version can carry."""
    values = {
        field.name: _value(random, field, version)
        for field in fields_of(cls)
        if version in field.versions and random.random() < 0.9
    }
    return cls(**values)


def _value(random: Random, field: Field, version: int) -> Any:
    if version in field.nullable and random.random() < 0.2:
        return None
    if field.array:
        count = random.choice([0, 1, 2, 3, 40 if isinstance(field.of, Primitive) else 3])
        return [_one(random, field.of, version) for _ in range(count)]
    return _one(random, field.of, version)


def _one(random: Random, kind: Any, version: int) -> Any:
    if not isinstance(kind, Primitive):
        return message(random, kind, version)
    if kind.format in BITS:
        edge = 1 << (BITS[kind.format] - 1)
        return random.choice([0, 1, -1, 5, edge - 1, -edge, random.randrange(-edge, edge)])
    match kind.name:
        case "bool":
            return random.random() < 0.5
        case "float64":
            return random.choice([0.0, -1.5, 1e300, float("inf"), random.random()])
        case "uuid":
            return random.choice([bytes(16), random.randbytes(16)])
        case "string":
            return random.choice(TEXTS)
    return random.randbytes(random.choice([0, 1, 20, 200]))


ODD = [
    *(None, True, False, 0, 0.0, 1, -1, 128, -129, 40_000, 2**31, 2**63, -(2**70), 1.5),
    Number.FIVE,
    *("", "x", Word.STABLE, "\ud800", "y" * 33_000, b"", b"x", b"z" * 16, bytearray(16), object()),
    *(memoryview(b"ab"), [], [1], [None], ["x"], [b"z" * 16], [b"short"], (), (1, 2), ("x",)),
    *({}, {1: 2}, range(3), [2**40], [True], [1.5], {"x"}, [["x"]], iter(())),
]


def _odd(random: Random) -> Any:
    value = random.choice(ODD)
    return list(value) if isinstance(value, list) else value  # a message changes what it has


def bend(random: Random, bent: Any) -> None:
    """Give one field somewhere in a message a value that it should not have, or take it away."""
    if not fields_of(type(bent)):
        return
    field = random.choice(fields_of(type(bent)))
    value = getattr(bent, field.name, None)
    inside = value if isinstance(value, list) else [value]
    parts = [one for one in inside if hasattr(one, "__fields__")]
    if parts and random.random() < 0.7:
        bend(random, random.choice(parts))
    elif random.random() < 0.05 and hasattr(bent, field.name):
        delattr(bent, field.name)
    elif isinstance(value, list) and value and random.random() < 0.4:
        value[random.randrange(len(value))] = _odd(random)
    else:
        setattr(bent, field.name, _odd(random))


def keep_by_field(random: Random, message: Any) -> None:
    """Keep arrays of structs as columns, some of which are none that can be written."""
    for field in fields_of(type(message)):
        value = getattr(message, field.name)
        if isinstance(value, list) and value and hasattr(value[0], "__fields__"):
            if random.random() < 0.5:
                setattr(message, field.name, _columns(random, field.of, value))
            else:
                for element in value:
                    keep_by_field(random, element)


def _columns(random: Random, cls: Any, elements: list[Any]) -> Columns:
    names = [field.name for field in fields_of(cls)]
    width = random.randint(min(1, len(names)), len(names))
    values: list[Any] = [[getattr(one, name) for one in elements] for name in names[:width]]
    for place, value in enumerate(values):
        with contextlib.suppress(TypeError, OverflowError):
            values[place] = random.choice([list, list, *map(partial, (array,) * 3, "qih")])(value)
    if values and random.random() < 0.2:
        values[random.randrange(width)] = random.choice(
            [(), (1,), range(2), iter(()), None, [], _odd(random)]
        )
    return Columns(cls, tuple(values))


def damage(random: Random, data: bytes) -> bytes:
    """Bytes cut short, changed, or with a huge number in the middle of them."""
    if not data or random.random() < 0.5:
        return spoil(random, data) if data else random.randbytes(random.randrange(9))
    where = random.randrange(len(data) + 1)
    huge = random.choice([2**7, 2**14, 2**28, 2**31, 2**32 - 1, 2**35 - 1])
    written = random.choice([uvarint(huge), b"\x7f\xff\xff\xff", b"\xff" * 6, b"\x81\x00", b"\x80"])
    return data[:where] + written + data[where + random.choice([0, 1, len(written)]) :]


def outcome(function: Any, *arguments: Any) -> tuple[str, Any]:
    """What a call gives, in a form that tells 1 from True and b"" from a bytearray, or what it
    raises: the exception and its text.
    """
    try:
        value = function(*arguments)
    except Exception as error:  # noqa: BLE001  (whatever it is, the other one has to raise it too)
        return type(error).__name__, str(error)
    return "value", repr(value)


def agree_on_bytes(cls: Any, version: int, data: Any, start: int, most: int | None) -> bool:
    """Both decoders say the same of some bytes, in both ways of reading text. Whether they are a
    message.
    """
    seen = []
    for lenient in (False, True):
        ours = python_codec.decoder(cls, version, most, lenient=lenient)
        theirs = native_codec.decoder(cls, version, most, lenient=lenient)
        expected = outcome(ours, data, start)
        found = outcome(theirs, data, start)
        assert found == expected, f"{cls.__name__} v{version}, {most=}, {lenient=}: {data!r}"
        seen.append(expected[0] == "value")
    return seen[0]


def agree_on_message(cls: Any, version: int, encoded: Any) -> bytes | None:
    """Both encoders say the same of a message: its bytes, None where they refuse it."""
    expected = outcome(python_codec.encoder(cls, version), encoded)
    found = outcome(native_codec.encoder(cls, version), encoded)
    assert found == expected, f"{cls.__name__} v{version}: {encoded!r}"
    with contextlib.suppress(Exception):
        return python_codec.encoder(cls, version)(encoded)
    return None


def agree_on_pieces(random: Random, cls: Any, version: int, encoded: Any) -> None:
    """Both say the same of the parts of a message, cut at any of its arrays."""
    flexible = version in cls.flexible
    for field in fields_of(cls):
        if field.array and version in field.versions and version not in field.tagged:
            name, count = field.name, random.choice([0, 1, 200, 70_000, -1, 2**31, 2**70])
            for codec in ("elements_encoder", "around_encoder"):
                ours = getattr(python_codec, codec)(cls, version, name, flexible=flexible)
                theirs = getattr(native_codec, codec)(cls, version, name, flexible=flexible)
                arguments = (encoded,) if codec == "elements_encoder" else (encoded, count)
                expected = outcome(ours, *arguments)
                assert outcome(theirs, *arguments) == expected, (cls, version, name, encoded)


def play(random: Random, cls: Any, version: int) -> None:
    """One message in one version: whole, bent, and as bytes that are damaged."""
    drawn = message(random, cls, version)
    data = agree_on_message(cls, version, drawn)
    assert data is not None
    most = random.choice(BOUNDS)
    front = random.randbytes(random.randrange(4))
    assert agree_on_bytes(cls, version, front + data, len(front), None)
    agree_on_bytes(cls, version, data, 0, most)
    for _ in range(3):
        agree_on_bytes(cls, version, damage(random, data), 0, most)
    start = random.choice([-1, 1, len(data), len(data) + 1, 2**70])
    agree_on_bytes(cls, version, data, start, most)
    agree_on_pieces(random, cls, version, drawn)
    by_field = copy.deepcopy(drawn)
    keep_by_field(random, by_field)
    agree_on_message(cls, version, by_field)
    agree_on_pieces(random, cls, version, by_field)
    for _ in range(3):
        bend(random, drawn)
        agree_on_message(cls, version, drawn)
        agree_on_pieces(random, cls, version, drawn)
