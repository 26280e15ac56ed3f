# SPDX-License-Identifier: Apache-2.0
"""Messages to bytes and back: `encode` and `decode`, made for a class and a version on first use.

Two codecs stand behind this module, one in C and one in Python, with the same results and the same
refusals; `kohort.native.choice` says which is in use.
"""

import struct
from functools import cache
from typing import Any, NamedTuple, Protocol, TypeVar

from kohort.errors import UnsupportedVersionError, WireError
from kohort.native.choice import CODEC, NATIVE
from kohort.wire import python_codec
from kohort.wire.codegen import AroundEncoder, Decoder, Encoder


class _Codec(Protocol):
    """What a codec has: `python_codec` says what each of these is."""

    def encoder(self, cls: Any, version: int) -> Encoder: ...
    def elements_encoder(
        self, cls: Any, version: int, array: str, *, flexible: bool
    ) -> Encoder: ...
    def around_encoder(
        self, cls: Any, version: int, array: str, *, flexible: bool
    ) -> AroundEncoder: ...
    def decoder(self, cls: Any, version: int, most: int | None, *, lenient: bool) -> Decoder: ...


_in_use: _Codec = python_codec
if CODEC == NATIVE:
    from kohort.wire import native_codec

    _in_use = native_codec

Message = TypeVar("Message")


def _check(cls: type[Any], version: int) -> None:
    if version not in cls.versions:
        raise UnsupportedVersionError(
            f"{cls.__name__} has versions {cls.versions}, version {version} was asked for",
        )


@cache
def encoder(cls: Any, version: int) -> Encoder:
    """The encoder: message -> bytes. Fields that the version lacks are left out."""
    _check(cls, version)
    return _in_use.encoder(cls, version)


class PiecewiseEncoder(NamedTuple):
    """Encodes a message a piece at a time. `elements(message)` are those that its array has now,
    and `around(message, count)` what stands before and behind all of them: the bytes of a message
    are those before, those of the elements in their order, and those behind.
    """

    elements: Encoder
    around: AroundEncoder


@cache
def piecewise_encoder(cls: Any, version: int, array: str, message: Any = None) -> PiecewiseEncoder:
    """The encoder of a message whose array is too large to be there at once, or of a
    struct somewhere in a message. `array` names an array at its top, one that the version has and
    that is not in a tag.
    """
    message = message or cls
    _check(message, version)
    flexible = version in message.flexible
    return PiecewiseEncoder(
        _in_use.elements_encoder(cls, version, array, flexible=flexible),
        _in_use.around_encoder(cls, version, array, flexible=flexible),
    )


@cache
def decoder(cls: Any, version: int, most: int | None = None) -> Decoder:
    """The decoder: (bytes, start) -> (message, end). All arrays and tags together may have
    `most` elements. Hostile bytes make it raise any of `HOSTILE`, and it does not check the end:
    use `decode` unless you do both.
    """
    _check(cls, version)
    return _in_use.decoder(cls, version, most, lenient=False)


@cache
def _lenient_decoder(cls: Any, version: int, most: int | None) -> Decoder:
    return _in_use.decoder(cls, version, most, lenient=True)


HOSTILE = (IndexError, struct.error, WireError, OverflowError, MemoryError)


def decode_from(
    cls: type[Message], version: int, data: bytes, start: int, most: int | None = None
) -> tuple[Message, int]:
    """Decode a message that starts at `start`: the message, and the position behind it. All arrays
    and tags together may have `most` elements.

    Raises WireError for bytes that are no such message. Text that is not UTF-8 is read with
    replacement characters, as upstream reads it; bytes behind the message are the caller's.
    """
    any_class: Any = cls
    try:
        try:
            message, end = decoder(any_class, version, most)(data, start)
        except UnicodeDecodeError:
            message, end = _lenient_decoder(any_class, version, most)(data, start)
    except HOSTILE as error:
        raise WireError(f"not a {cls.__name__} v{version}: {error}") from error
    if end > len(data):
        raise WireError(f"not a {cls.__name__} v{version}: {end - len(data)} bytes are missing")
    return message, end


def decode(
    cls: type[Message], version: int, data: bytes, start: int = 0, most: int | None = None
) -> Message:
    """Decode a message that runs to the end of `data`. Raises WireError; see `decode_from`."""
    return decode_from(cls, version, data, start, most)[0]


def encode(message: Any, version: int) -> bytes:
    """Encode a message in one of its versions. Raises UnsupportedVersionError for any other, and
    WireError where a text or a number is larger than its field.
    """
    cls: Any = type(message)
    try:
        return encoder(cls, version)(message)
    except struct.error as error:
        raise WireError(f"{cls.__name__} v{version} has no room: {error}") from error
