# SPDX-License-Identifier: Apache-2.0
"""Which columns a terminal has room for. No word and no number is ever broken."""

import pytest

from kohort.cli.layout import Column, fitting

STORY = "a member left, and nothing says whether it was told to go or was lost"
TABLE = [
    Column("GROUP", ["team-0-service-00000", "b"], is_numeric=False),
    Column("STATE", ["Stable", "Empty"], is_numeric=False),
    Column("LAG", ["12345678", "-"], is_numeric=True),
    Column("EVIDENCE", [STORY, "-"], is_numeric=False),
]


def table():
    return [Column(one.header, one.cells, is_numeric=one.is_numeric) for one in TABLE]


def headers(room, spare=None):
    found = fitting(table(), room, 3, spare)
    return None if found is None else [one.header for one in found]


def test_all_columns_where_there_is_room():
    found = fitting(table(), 200, 3, None)
    assert [one.width for one in found] == [20, 6, 8, len(STORY)]
    assert not any(one.wraps for one in found)


def test_prose_gives_way_first_and_not_below_its_words():
    found = fitting(table(), 90, 3, ("STATE",))
    assert [one.header for one in found] == ["GROUP", "STATE", "LAG", "EVIDENCE"]
    assert [one.width for one in found] == [20, 6, 8, 90 - 20 - 6 - 8 - 3 * 3]
    assert [one.wraps for one in found] == [False, False, False, True]
    assert fitting(table(), 67, 3, ())[-1].width == 24


@pytest.mark.parametrize(
    ("room", "spare", "left"),
    [
        (66, ("STATE", "EVIDENCE"), ["GROUP", "LAG", "EVIDENCE"]),
        (50, ("STATE", "EVIDENCE"), ["GROUP", "STATE", "LAG"]),  # EVIDENCE made room for it
        (40, ("STATE", "EVIDENCE"), ["GROUP", "STATE", "LAG"]),
        (39, ("STATE", "EVIDENCE"), ["GROUP", "LAG"]),
        (31, ("STATE", "EVIDENCE"), ["GROUP", "LAG"]),
        (30, ("STATE", "EVIDENCE"), None),
        (66, ("NO-SUCH", "EVIDENCE"), ["GROUP", "STATE", "LAG"]),
        (66, None, ["GROUP", "STATE", "LAG"]),
        (39, None, ["GROUP", "STATE"]),
        (28, None, None),
        (66, (), None),
    ],
)
def test_columns_go_in_the_order_of_the_caller(room, spare, left):
    assert headers(room, spare) == left


@pytest.mark.parametrize("room", range(20, 120))
def test_what_is_shown_fits_and_every_word_is_whole(room):
    found = fitting(table(), room, 3, ("EVIDENCE", "STATE"))
    if found is None:
        assert room < 31
        return
    assert sum(one.width for one in found) + 3 * (len(found) - 1) <= room
    for one in found:
        words = [word for cell in one.cells for word in (cell.split() if one.wraps else [cell])]
        assert max(map(len, [one.header, *words])) <= one.width


def test_a_time_may_lose_its_milliseconds_and_no_more():
    times = [Column("AT", ["2026-11-21 07:00:00.123", "-"], is_numeric=False) for _ in range(2)]
    wide, narrow = (fitting([one], room, 3, ()) for one, room in zip(times, (23, 22), strict=True))
    assert [wide[0].text(row) for row in (0, 1)] == ["2026-11-21 07:00:00.123", "-"]
    assert [narrow[0].text(row) for row in (0, 1)] == ["2026-11-21 07:00:00", "-"]
    assert fitting([Column("AT", ["2026-11-21 07:00:00.123"], is_numeric=False)], 18, 3, ()) is None


def test_a_header_takes_several_lines_where_its_cells_are_narrow():
    lag = Column("LAG_RECORDS", ["5"], is_numeric=True)
    assert lag.heading == "LAG_RECORDS"
    (lag,) = fitting([lag], 7, 3, ())
    assert lag.heading == "LAG_\nRECORDS"
    assert fitting([lag], 6, 3, ()) is None


def test_an_id_may_lose_its_middle_and_no_name_does():
    member = "checkout-7-2ff3b4c5-1b1c-4cf4-9a5e-8a1be36ddf42"
    (ids,) = fitting([Column("MEMBER_ID", [member], is_numeric=False)], 20, 3, ())
    assert ids.text(0) == "checkout-7-2ff3…df42"
    assert fitting([Column("GROUP_ID", [member], is_numeric=False)], 20, 3, ()) is None


LONG = "team-0-" + "very-" * 40 + "long-name"


@pytest.mark.parametrize("room", [40, 60, 80, 120, 300])
def test_a_very_long_name_leaves_the_table_a_table(room):
    """One group of many would turn all of them into lists of fields."""
    names = Column("GROUP", ["a", LONG], is_numeric=False)
    found = fitting([names, Column("LAG", ["12345678", "-"], is_numeric=True)], room, 3, ())
    assert [one.header for one in found] == ["GROUP", "LAG"]
    assert sum(one.width for one in found) + 3 <= room
    assert found[0].text(1) == LONG
    assert found[0].wraps == (room < 300)


def test_of_several_long_names_each_is_laid_out_over_more_lines():
    texts = [Column(header, [LONG], is_numeric=False) for header in ("GROUP", "TOPIC")]
    assert [one.width for one in fitting(texts, 60, 3, ())] == [28, 29]
    usual = [Column(header, ["x" * 40], is_numeric=False) for header in ("GROUP", "TOPIC")]
    assert fitting(usual, 60, 3, ()) is None


def test_wide_letters_are_wide():
    assert Column("T", ["日本"], is_numeric=False).width == 4
