# SPDX-License-Identifier: Apache-2.0
"""What `kohort groups watch` says of two looks at the same groups."""

import pytest

from kohort.cli.group_changes import GroupChanges, GroupEvent, GroupSnapshot, event_line
from kohort.cli.lags import GroupLag


def seen(group_id="g", state="Stable", epoch=3, members=("a",), lag=10, unknown=0, **more):
    known = {f"id-{member}": member for member in members}
    return GroupSnapshot(group_id, state, epoch, epoch, known, GroupLag(lag, 1, unknown), **more)


def texts(before, after):
    changes = GroupChanges()
    changes.look(before, 0.0)
    return [event.text for event in changes.look(after, 2.0)[1]]


@pytest.mark.parametrize(
    ("before", "after", "events"),
    [
        ([seen()], [seen(lag=20)], []),
        ([seen()], [seen(state="Reconciling")], ["Stable -> Reconciling"]),
        ([seen()], [seen(state="Empty", epoch=4)], ["Stable -> Empty, epoch 3 -> 4"]),
        ([seen(epoch=None)], [seen(epoch=None, state="Empty")], ["Stable -> Empty"]),
        ([seen()], [seen(epoch=4)], ["epoch 3 -> 4"]),
        ([seen()], [seen(members=("a", "b"))], ["b has joined (id-b)"]),
        ([seen()], [seen(members=())], ["a has left (id-a)"]),
        ([seen()], [], ["is gone"]),
        ([], [seen()], ["is there: Stable"]),
        ([seen()], [GroupSnapshot("g", error="no answer")], ["no answer"]),
        ([GroupSnapshot("g", error="no answer")], [GroupSnapshot("g", error="no answer")], []),
        ([GroupSnapshot("g", error="no answer")], [seen()], ["can be looked at again: Stable"]),
    ],
)
def test_what_has_happened(before, after, events):
    assert texts(before, after) == events


def test_the_first_look_is_no_event():
    rows, events = GroupChanges().look([seen()], 0.0)
    assert (len(rows), events) == (1, [])


@pytest.mark.parametrize(
    ("before", "after", "per_second"),
    [
        (seen(lag=10), seen(lag=30), 10.0),
        (seen(lag=10), seen(lag=0), -5.0),
        (seen(lag=10), seen(lag=30, unknown=1), None),
        (seen(group_id="other"), seen(), None),
    ],
)
def test_how_fast_a_lag_grows_where_all_of_it_is_known(before, after, per_second):
    changes = GroupChanges()
    changes.look([before], 0.0)
    (row,) = changes.look([after], 2.0)[0]
    assert row.per_second == per_second


def test_a_line_of_an_event():
    assert event_line(GroupEvent("", "is gone"), "12:00:01") == '12:00:01 "": is gone'
