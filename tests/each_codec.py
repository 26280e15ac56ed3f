# SPDX-License-Identifier: Apache-2.0
"""Tests of the codec run with both of them: the one in Python, and the native one."""

import pytest

from kohort.native.choice import EXTENSION
from kohort.wire import codec, python_codec

NOT_BUILT = "the native codec is not built (a C compiler and Python's headers build it)"


def native_codec():
    """The native codec; where it was not built, the test is skipped."""
    if EXTENSION is None:
        pytest.skip(NOT_BUILT, allow_module_level=True)
    from kohort.wire import native_codec

    return native_codec


def use(chosen) -> None:
    """Messages are encoded and decoded by this codec from now on, but for the functions that
    somebody holds already.
    """
    codec._in_use = chosen
    for function in (
        codec.encoder,
        codec.piecewise_encoder,
        codec.decoder,
        codec._lenient_decoder,
    ):
        function.cache_clear()


@pytest.fixture(scope="module", params=["python", "native"])
def each_codec(request):
    """A module that uses it is run once with each codec."""
    before = codec._in_use
    use(python_codec if request.param == "python" else native_codec())
    yield request.param
    use(before)


@pytest.fixture(scope="module")
def python_codec_in_use():
    """For tests that count calls: what a message costs is counted with the codec in Python, where
    an element costs some. With the native one it is cheaper, and nothing counts it.
    """
    before = codec._in_use
    use(python_codec)
    yield
    use(before)
