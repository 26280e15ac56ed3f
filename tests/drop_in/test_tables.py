# SPDX-License-Identifier: Apache-2.0
"""Rows as the Java tools lay them out."""

import pytest

from kohort.drop_in.tables import filled, widest


@pytest.mark.parametrize(
    ("cells", "widths", "row"),
    [
        (("a", 5, None, "end"), (3, 2, 1), "a   5    end"),
        (("longer", "b"), (3, 3), "longer b  "),
        (("größe", "b"), (6, 1), "größe  b"),
        (("\U0001f600", "☃", "b"), (3, 2, 1), "\U0001f600  ☃  b"),  # two units of UTF-16, and one
    ],
)
def test_cells_are_filled_up_to_the_widths_that_there_are(cells, widths, row):
    assert filled(cells, widths) == row


def test_a_column_is_as_wide_as_java_counts():
    assert widest(3, ["a", "größe"]) == 5
    assert widest(1, ["\U0001f600"]) == 2
    assert widest(15, []) == 15
