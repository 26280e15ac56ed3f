# SPDX-License-Identifier: Apache-2.0
"""How a message is declared: a class with typed fields, each with the versions that have it.

The class is the only source: `codegen` makes encoders and decoders from it, type checkers read it
as a dataclass, and a test compares it with upstream's layouts. Fields are in wire order, under
upstream's names in snake_case.
"""

from collections.abc import Callable
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    NamedTuple,
    TypeVar,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
)

import msgspec


class Primitive(NamedTuple):
    """A basic type of the wire. `format` is its struct code where its width is fixed."""

    name: str
    format: str
    size: int
    default: Any


UUID = Primitive("uuid", "16s", 16, bytes(16))
STRING = Primitive("string", "", 0, "")

Bool = Annotated[bool, Primitive("bool", "?", 1, default=False)]
Int8 = Annotated[int, Primitive("int8", "b", 1, 0)]
Int16 = Annotated[int, Primitive("int16", "h", 2, 0)]
Int32 = Annotated[int, Primitive("int32", "i", 4, 0)]
Int64 = Annotated[int, Primitive("int64", "q", 8, 0)]
Float64 = Annotated[float, Primitive("float64", "d", 8, 0.0)]
Uuid = Annotated[bytes, UUID]
String = Annotated[str, STRING]
Bytes = Annotated[bytes, Primitive("bytes", "", 0, b"")]
Records = Annotated[bytes, Primitive("records", "", 0, b"")]


class Versions(NamedTuple):
    """A range in upstream's grammar: `2-5`, `3+`, `4`, or `none`."""

    first: int
    last: int

    @classmethod
    def of(cls, text: str) -> "Versions":
        if text == "none":
            return cls(1, 0)
        first, dash, last = text.partition("-")
        if first.endswith("+"):
            return cls(int(first[:-1]), 32767)
        return cls(int(first), int(last) if dash else int(first))

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.first <= version <= self.last

    def __str__(self) -> str:
        if self.first > self.last:
            return "none"
        if self.last == 32767:
            return f"{self.first}+"
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


ALWAYS = Versions(0, 32767)
NEVER = Versions(1, 0)
_REQUIRED: Any = object()


class FieldSpec(NamedTuple):
    """What `at` says about a field."""

    versions: Versions
    nullable: Versions | None
    tag: int | None
    tagged: Versions
    default: Any
    always: bool
    classic: bool


def at(
    versions: str = "0+",
    *,
    nullable: str | None = None,
    tag: int | None = None,
    tagged: str | None = None,
    default: Any = _REQUIRED,
    always: bool = False,
    classic: bool = False,
) -> Any:
    """Which versions have a field, and how they write it.

    Args:
        versions: the versions that have the field.
        nullable: the versions in which it may be null, where that is not all of them.
        tag: its tag, when it travels among the tagged fields.
        tagged: the versions in which it is tagged, where that is not all of them.
        default: its value where a message lacks it; the type's own zero when left out.
        always: a tagged field that upstream writes even when it holds its default.
        classic: a string that keeps its two-byte length in flexible versions (the header's client
        id).
    """
    spans = Versions.of(versions)
    tagged_spans = NEVER if tag is None else Versions.of(tagged) if tagged else spans
    return FieldSpec(
        spans,
        Versions.of(nullable) if nullable else None,
        tag,
        tagged_spans,
        default,
        always,
        classic,
    )


class Field(NamedTuple):
    """One field, resolved. `of` is a Primitive or a struct's class; `array` says a list of them."""

    name: str
    of: Any
    array: bool
    versions: Versions
    nullable: Versions
    tag: int | None
    tagged: Versions
    default: Any
    always: bool
    classic: bool


Message = TypeVar("Message")


def fields_of(message: type[Any]) -> tuple[Field, ...]:
    """The fields of a message class, in wire order."""
    fields: tuple[Field, ...] = message.__fields__
    return fields


def _resolve(name: str, annotation: Any, given: Any) -> Field:
    nullable = NEVER
    spec = given if isinstance(given, FieldSpec) else at(default=given)
    if get_origin(annotation) in (Union, UnionType):
        nullable = spec.nullable or ALWAYS
        (annotation,) = (kind for kind in get_args(annotation) if kind is not NoneType)
    array = get_origin(annotation) is list
    if array:
        (annotation,) = get_args(annotation)
    of = annotation
    if get_origin(annotation) is Annotated:
        of = next(extra for extra in annotation.__metadata__ if isinstance(extra, Primitive))
    default = spec.default
    if default is _REQUIRED:
        zero = of.default if isinstance(of, Primitive) else of
        default = [] if array else zero() if callable(zero) else zero
    return Field(
        name,
        of,
        array,
        spec.versions,
        nullable,
        spec.tag,
        spec.tagged,
        default,
        spec.always,
        spec.classic,
    )


def _build(cls: type[Message], attributes: dict[str, Any]) -> type[Message]:
    """The class at run time: a msgspec.Struct, built in a third of the time of a slots dataclass.

    Every field has its protocol default, so that a decoder and a test may leave out what does not
    matter. The type checker finds a field that was forgotten.
    """
    annotations: dict[str, Any] = cls.__annotations__
    fields = tuple(
        _resolve(name, annotation, cls.__dict__.get(name, _REQUIRED))
        for name, annotation in annotations.items()
    )
    namespace = {
        name: value
        for name, value in cls.__dict__.items()
        if name not in annotations and name not in ("__dict__", "__weakref__", "__annotations__")
    }
    return msgspec.defstruct(  # type: ignore[return-value]
        cls.__name__,
        [(field.name, Any, _default(field)) for field in fields],
        namespace={**namespace, **attributes, "__fields__": fields},
        module=cls.__module__,
        gc=False,
    )


def _default(field: Field) -> Any:
    if isinstance(field.default, list):
        return msgspec.field(default_factory=list)
    if isinstance(field.default, msgspec.Struct):
        return msgspec.field(default_factory=type(field.default))
    return field.default


@dataclass_transform(kw_only_default=True, frozen_default=False, field_specifiers=(at,))
def struct(cls: type[Message]) -> type[Message]:
    """A part of a message."""
    return _build(cls, {})


def _of_api(
    key: int, side: str, versions: str, flexible: str
) -> Callable[[type[Message]], type[Message]]:
    def build(cls: type[Message]) -> type[Message]:
        attributes = {
            "api_key": key,
            "name": cls.__name__.removesuffix(side),
            "versions": Versions.of(versions),
            "flexible": Versions.of(flexible),
        }
        built: Any = _build(cls, attributes)
        where = cls.__module__, key
        if side == "Request":
            _REQUESTS[where] = built
        elif where in _REQUESTS:
            _REQUESTS[where].response = built
        return built  # type: ignore[no-any-return]

    return build


# A module declares a request and then its response. The request's class has it as `response`, so
# that a client reads answers without `apis`, which imports the messages of every API.
_REQUESTS: dict[tuple[str, int], Any] = {}


@dataclass_transform(kw_only_default=True, frozen_default=False, field_specifiers=(at,))
def request(key: int, *, versions: str, flexible: str) -> Callable[[type[Message]], type[Message]]:
    """A request: its API key, the versions of its layout, and which of them are flexible."""
    return _of_api(key, "Request", versions, flexible)


@dataclass_transform(kw_only_default=True, frozen_default=False, field_specifiers=(at,))
def response(key: int, *, versions: str, flexible: str) -> Callable[[type[Message]], type[Message]]:
    """The answer to the request of the same key, whose class has it as `response` from now on."""
    return _of_api(key, "Response", versions, flexible)


@dataclass_transform(kw_only_default=True, frozen_default=False, field_specifiers=(at,))
def record(
    *, versions: str = "0", flexible: str = "none"
) -> Callable[[type[Message]], type[Message]]:
    """The key or the value of a record, or another layout by itself (a header, a payload)."""

    def build(cls: type[Message]) -> type[Message]:
        attributes = {"versions": Versions.of(versions), "flexible": Versions.of(flexible)}
        return _build(cls, attributes)

    return build
