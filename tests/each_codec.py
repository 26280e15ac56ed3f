"""The native codec, for the tests that need it."""

import pytest

from kohort.native.choice import EXTENSION

NOT_BUILT = "the native codec is not built (a C compiler and Python's headers build it)"


def native_codec():
    """The native codec; where it was not built, the test is skipped."""
    if EXTENSION is None:
        pytest.skip(NOT_BUILT, allow_module_level=True)
    from kohort.wire import native_codec

    return native_codec
