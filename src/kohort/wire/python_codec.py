# SPDX-License-Identifier: Apache-2.0
"""The codec in Python: the functions that `codegen` makes of a class and a version, each once.

`codec` is the way in. `kohort inspect codec` prints what is made here.
"""

from functools import cache
from typing import Any

from kohort.wire.codegen import (
    AroundEncoder,
    Decoder,
    Encoder,
    around_source,
    compile_function,
    decoder_source,
    elements_source,
    encoder_source,
)


@cache
def encoder(cls: Any, version: int) -> Encoder:
    function: Encoder = compile_function("encode", cls, version, *encoder_source(cls, version))
    return function


@cache
def elements_encoder(cls: Any, version: int, array: str, *, flexible: bool) -> Encoder:
    """What encodes the elements of one array, without their number."""
    source, constants = elements_source(cls, version, array, flexible=flexible)
    function: Encoder = compile_function(
        f"elements of {array}: encode", cls, version, source, constants
    )
    return function


@cache
def around_encoder(cls: Any, version: int, array: str, *, flexible: bool) -> AroundEncoder:
    source, constants = around_source(cls, version, array, flexible=flexible)
    function: AroundEncoder = compile_function(
        f"around {array}: encode", cls, version, source, constants
    )
    return function


@cache
def decoder(cls: Any, version: int, most: int | None, *, lenient: bool) -> Decoder:
    """A lenient one reads text that is not UTF-8 with replacement characters."""
    source, constants = decoder_source(cls, version, lenient=lenient, most=most)
    verb = "lenient decode" if lenient else "decode"
    bound = "" if most is None else f"at most {most}: "
    function: Decoder = compile_function(f"{bound}{verb}", cls, version, source, constants)
    return function
