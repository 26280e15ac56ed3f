# SPDX-License-Identifier: Apache-2.0
"""Numbers of one to five bytes."""

from hypothesis import given
from hypothesis import strategies as st

from kohort.wire.codegen import read_uvarint, uvarint


@given(st.integers(0, (1 << 32) - 1))
def test_varints(value):
    encoded = uvarint(value)

    assert read_uvarint(encoded + b"rest", 0) == (value, len(encoded))
