# SPDX-License-Identifier: Apache-2.0
"""A message class and a version become two straight-line functions: encode and decode.

The source is made on first use and kept where tracebacks and debuggers find it. A run of
fixed-width fields is one unpack. An array of small structs whose strings are all empty, as in a
commit or a fetch of offsets, is one unpack for all of them.

Every byte may be hostile. The sign of lengths and counts is checked. A slice beyond the end is
short but moves the position past it, so that the next read, or the check at the end, refuses. No
loop runs further than there are bytes, and nothing recurses.
"""

import linecache
from collections.abc import Callable
from typing import Any

from kohort.wire.codegen import decoding, encoding
from kohort.wire.codegen.decoding import decoder_source
from kohort.wire.codegen.encoding import around_source, elements_source, encoder_source
from kohort.wire.codegen.varints import read_uvarint, uvarint

__all__ = [
    "AroundEncoder",
    "Decoder",
    "Encoder",
    "around_source",
    "compile_function",
    "decoder_source",
    "elements_source",
    "encoder_source",
    "read_uvarint",
    "uvarint",
]

Encoder = Callable[[Any], bytes]
AroundEncoder = Callable[[Any, int], tuple[bytes, bytes]]
"""Encodes what stands before and behind the elements of an array, of which it is given the number.
"""
Decoder = Callable[[bytes, int], tuple[Any, int]]


def compile_function(
    verb: str, cls: type[Any], version: int, source: str, constants: dict[str, Any]
) -> Any:
    """The function, with its source where tracebacks look for it."""
    filename = f"<kohort {verb} {cls.__name__} v{version}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    namespace = {**decoding.GLOBALS, **encoding.GLOBALS, **constants}
    exec(compile(source, filename, "exec"), namespace)  # noqa: S102  (our own text, made above)
    return namespace[verb.rsplit(maxsplit=1)[-1]]
