# SPDX-License-Identifier: Apache-2.0
"""The lag of a group: what is known of it, and what is not."""

import pytest
from tests.client.scripted import asynchronous

from kohort.cli.lags import (
    failed_times,
    group_lag,
    group_time_lag,
    lag_of,
    time_fields,
    time_lags_of,
    time_text,
)
from kohort.client.admin import CommittedOffset, FoundOffset, Outcomes, TimeLag
from kohort.errors import ApiError, ErrorCode
from kohort.figures import Bound

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


@pytest.mark.parametrize(
    ("offsets", "owned", "count", "sentence"),
    [
        ({("t", 0): at(10)}, [("t", 0), ("t", 1)], 1, "0 records behind + 1 partition without a"),
        ({("t", 0): None}, [("t", 0)], 1, "nothing is committed + 1 partition without a commit"),
        ({("t", 0): LOST}, [("t", 0), ("u", 0), ("u", 1)], 2, "lag unknown + 2 partitions"),
        ({("t", 0): at(10)}, [("t", 0)], 0, "0 records behind"),
        ({("t", 0): at(10)}, None, None, "0 records behind"),
    ],
)
def test_partitions_without_a_commit_are_counted_and_not_taken_for_read(
    offsets, owned, count, sentence
):
    found = group_lag(offsets, {("t", 0): end(10), ("t", 1): end(10)}, owned)
    assert found.uncommitted == count
    assert found.sentence.startswith(sentence)


TIMES = {
    (0, 3): TimeLag(90.0),
    (1, 3): TimeLag(7.0, Bound.AT_LEAST, "deleted"),
    (2, 3): TimeLag(None, Bound.UNKNOWN, "no_timestamp"),
    (3, 3): LOST,
}


@pytest.mark.parametrize(
    ("offsets", "text", "seconds", "bound"),
    [
        ({0: at(3), 5: at(10)}, "1 min 30 s", 90.0, "exact"),
        ({5: at(10), 0: None}, "0 s", 0.0, "exact"),
        ({1: at(3), 5: at(12)}, "at least 7 s (deleted)", 7.0, "at least"),
        ({0: at(3), 1: at(3)}, "at least 1 min 30 s (deleted)", 90.0, "at least"),
        ({0: at(3), 2: at(3)}, "at least 1 min 30 s (no_timestamp)", 90.0, "at least"),
        ({0: at(3), 3: at(3)}, "at least 1 min 30 s (LEADER_NOT_AVAILABLE)", 90.0, "at least"),
        ({2: at(3)}, "unknown", None, "unknown"),
        ({9: at(3)}, "unknown", None, "unknown"),
        ({0: None}, None, None, "none"),
        ({}, None, None, "none"),
    ],
)
def test_of_a_group_in_time(offsets, text, seconds, bound):
    ends = {**dict.fromkeys(range(8), end(10)), 9: LOST}
    found = group_time_lag(offsets, ends, TIMES)
    assert time_text(found) == text
    fields = time_fields(found)
    assert (fields["lag_seconds"], fields["lag_seconds_bound"]) == (seconds, bound)
    assert dict(failed_times(TIMES)) == {3: LOST}


@asynchronous
async def test_each_offset_behind_which_there_is_something_is_read_once():
    asked = []

    class Admin:
        async def time_lags(self, offsets):
            asked.append(offsets)
            return Outcomes({place: TimeLag(float(offset)) for place, offset in offsets.items()})

    offsets = Outcomes(
        {
            "a": {0: at(3), 1: at(10), 2: None},
            "b": {0: at(4), 1: at(9), 3: at(1)},
            "c": {0: at(3), 1: LOST},
            "d": LOST,
        }
    )
    ends = {0: end(10), 1: end(10), 3: LOST}
    found = await time_lags_of(Admin(), offsets, ends)
    assert asked == [{0: 3, 1: 9}, {0: 4}]
    assert {place: lag.seconds for place, lag in found.items()} == {
        (0, 3): 3.0,
        (0, 4): 4.0,
        (1, 9): 9.0,
    }
