"""The lag of a group: what is known of it, and what is not."""

import pytest

from kohort.cli.lags import group_lag, lag_of
from kohort.client.admin import CommittedOffset, FoundOffset
from kohort.errors import ApiError, ErrorCode

LOST = ApiError(ErrorCode.LEADER_NOT_AVAILABLE)


def at(offset):
    return CommittedOffset(offset)


def end(offset):
    return FoundOffset(offset, -1, None)


@pytest.mark.parametrize(
    ("committed", "last", "lag"),
    [
        (at(3), end(10), 7),
        (at(12), end(10), -2),
        (None, end(10), None),
        (LOST, end(10), None),
        (at(3), LOST, None),
        (at(3), None, None),
    ],
)
def test_of_a_partition(committed, last, lag):
    assert lag_of(committed, last) == lag


@pytest.mark.parametrize(
    ("offsets", "value", "text", "sentence"),
    [
        ({0: at(3), 1: at(9)}, 8, "8", "8 records behind"),
        ({0: at(9), 1: at(12)}, 1, "1", "1 record behind"),
        ({0: at(3), 2: at(5)}, 7, "at least 7", "at least 7 records behind, 1 unknown"),
        ({0: at(3), 1: LOST}, 7, "at least 7", "at least 7 records behind, 1 unknown"),
        ({2: at(5)}, None, "unknown", "lag unknown"),
        ({0: None}, None, "", "nothing is committed"),
    ],
)
def test_of_a_group(offsets, value, text, sentence):
    found = group_lag(offsets, {0: end(10), 1: end(10), 2: LOST})
    assert (found.value, found.text, found.sentence) == (value, text, sentence)
