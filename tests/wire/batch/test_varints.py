# SPDX-License-Identifier: Apache-2.0
"""Varints to the byte."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.wire.batch import read_varint
from kohort.wire.batch.varints import NULL, SMALL, VARINTS, encoded_varint


@pytest.mark.parametrize(
    ("number", "encoded"), [(0, "00"), (-1, "01"), (1, "02"), (63, "7e"), (64, "8001")]
)
def test_a_varint_is_zigzag(number: int, encoded: str) -> None:
    assert encoded_varint(number).hex() == encoded


@given(st.integers(-(2**63), 2**63 - 1))
def test_what_is_written_is_read(number: int) -> None:
    encoded = encoded_varint(number)
    assert read_varint(encoded, 0) == (number, len(encoded))


def test_the_table_has_the_same() -> None:
    assert [encoded_varint(number) for number in range(SMALL)] == VARINTS
    assert encoded_varint(-1) == NULL
