# SPDX-License-Identifier: Apache-2.0
"""Which codec is in use: the native one where it was built, unless somebody asks for the other."""

import os
from types import ModuleType

VARIABLE = "KOHORT_CODEC"
PYTHON = "python"
NATIVE = "native"
REVISION = 2  # of the interface to C: codec.h has the same number


class CodecChoiceError(ImportError):
    """The environment asks for a codec that is not here."""


def _extension() -> ModuleType | None:
    """The extension, where it was built for this Python and of these sources."""
    try:
        from kohort.native import _codec  # noqa: PLC0415  (it may be missing)
    except ImportError:
        return None
    return _codec if _codec.REVISION == REVISION else None


def choose(asked: str, extension: ModuleType | None) -> str:
    """The codec to use. Raises CodecChoiceError where the environment asks for none that is here.
    Nothing asked for is what the environment says where the variable is not set, or empty.
    """
    if asked not in ("", PYTHON, NATIVE):
        raise CodecChoiceError(f"{VARIABLE} is {asked!r}, expected {PYTHON} or {NATIVE}")
    if asked == NATIVE and extension is None:
        raise CodecChoiceError(
            f"{VARIABLE} is {NATIVE}, and this installation has no native codec: expected "
            f"{PYTHON}, or an installation that a C compiler has built"
        )
    return asked or (PYTHON if extension is None else NATIVE)


EXTENSION = _extension()
CODEC = choose(os.environ.get(VARIABLE, ""), EXTENSION)
