# SPDX-License-Identifier: Apache-2.0
"""Which parts of a table become one."""

from kohort.pipeline.format.manifest import FEW_ROWS, MOST_PARTS, Part, to_join


def parts(*rows):
    return [Part(path=str(number), rows=count) for number, count in enumerate(rows)]


def test_many_small_parts_become_one_and_a_large_one_stays():
    small, large = parts(*[FEW_ROWS - 1] * MOST_PARTS), Part(path="large", rows=FEW_ROWS)
    assert to_join([*small, large]) == small


def test_few_small_parts_stay():
    assert to_join(parts(*[1] * (MOST_PARTS - 1))) == []
    assert to_join(parts(1, 1, 1), most=3) == parts(1, 1, 1)
