# SPDX-License-Identifier: Apache-2.0
"""Samples of ends as they get thinner: cut anywhere and thinned in any order, they are the same."""

from itertools import pairwise

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from tests.spark.gold.progress_rows import BEGIN, sample, seconds

from kohort.pipeline.columns.times import micros
from kohort.pipeline.rollup.sample_downsampling import KEY, ORDER, downsample
from kohort.pipeline.schemas import END_OFFSETS
from kohort.pipeline.schemas.rollup_tiers import ROLLUP_TIERS

FINE, COARSE = ROLLUP_TIERS
DAY_S = 24 * 3600
THURSDAY_S = -2 * DAY_S
"""The begin is a Saturday, and a file of the coarse zone begins on a Thursday."""
SPAN_S = 3 * 3600

samples = st.lists(
    st.tuples(
        st.sampled_from(["t", "u"]),
        st.sampled_from([None, "A"]),
        st.sampled_from(["log", "cluster"]),
        st.integers(0, SPAN_S) | st.integers(DAY_S, DAY_S + SPAN_S),
        st.integers(1, 9),
    ),
    max_size=60,
    unique_by=lambda drawn: drawn[:4],
)


def table(rows):
    return pa.Table.from_pylist(rows, END_OFFSETS.arrow).sort_by(ORDER)


def growing(drawn):
    """The ends of topics that are never made anew: each of its own key."""
    ends, rows = {}, []
    for topic, topic_id, origin, at, more in sorted(drawn, key=lambda one: one[3]):
        key = topic, topic_id, origin
        ends[key] = ends.get(key, 0) + more // 2  # now and then nothing was written
        rows.append(sample(at, ends[key], topic=topic, topic_id=topic_id, origin=origin))
    return table(rows)


def told(rows):
    return rows.sort_by(ORDER).to_pylist()


def pieces_of(data, whole, order):
    cuts = sorted(data.draw(st.lists(st.integers(0, len(order)), max_size=4)))
    for first, last in zip([0, *cuts], [*cuts, len(order)], strict=True):
        yield whole.take(pa.array(order[first:last], pa.int64()))


@given(drawn=samples, data=st.data())
def test_in_whatever_order_and_pieces_samples_are_thinned_they_become_the_same(drawn, data):
    whole = growing(drawn)
    order = data.draw(st.permutations(range(whole.num_rows)))
    known = END_OFFSETS.arrow.empty_table()
    for piece in pieces_of(data, whole, order):
        known = pa.concat_tables([known, piece])
        if data.draw(st.booleans()):
            known = downsample(known, FINE)

    assert told(downsample(known, COARSE)) == told(downsample(whole, COARSE))
    assert told(downsample(downsample(whole, FINE), FINE)) == told(downsample(whole, FINE))


@given(drawn=samples, data=st.data())
def test_topics_that_are_made_anew_are_never_taken_for_the_old_ones(drawn, data):
    """An end that goes back is seen to have done so, wherever the samples are cut, as they come."""
    rows = [
        sample(at, 1 + at * more % 7, topic=topic, topic_id=topic_id, origin=origin)
        for topic, topic_id, origin, at, more in sorted(drawn, key=lambda one: one[3])
    ]
    whole = table(rows)
    in_time = whole.sort_by("sampled_at")
    known = END_OFFSETS.arrow.empty_table()
    for piece in pieces_of(data, in_time, range(len(rows))):
        known = downsample(pa.concat_tables([known, piece]), FINE)

    kept = told(downsample(known, COARSE))

    assert kept == told(downsample(whole, COARSE))
    for tier in ROLLUP_TIERS:
        left = told(downsample(whole, tier))
        for before, after in going_back(whole.to_pylist()):
            assert {key(before), key(after)} <= {key(row) for row in left}
        assert len(going_back(left)) == len(going_back(whole.to_pylist()))


def key(row):
    return tuple(row[name] for name in (*KEY, "sampled_at", "end_offset"))


def going_back(ordered):
    """Neighbours of one key between which the end went back; between days they are not looked at
    by the finer zone, which keeps them anyway.
    """
    return [
        (before, after)
        for before, after in pairwise(ordered)
        if key(before)[:4] == key(after)[:4] and after["end_offset"] < before["end_offset"]
    ]


@given(drawn=samples, tier=st.sampled_from(ROLLUP_TIERS))
def test_a_step_keeps_its_last_sample_and_says_for_how_many_it_stands(drawn, tier):
    whole = growing(drawn)
    lasts, firsts = {}, {}
    for row in whole.to_pylist():
        at = micros(row["sampled_at"])
        lasts[*key(row)[:4], at // tier.step_us] = row
        firsts.setdefault((*key(row)[:4], at // tier.file_us), row)

    found = told(downsample(whole, tier))

    kept = {key(row) for row in (*lasts.values(), *firsts.values())}
    assert {key(row) for row in found} == kept
    assert len(found) == len(kept)
    assert sum(row["samples"] for row in found) == whole.num_rows
    alone = {key(row) for row in found if row["samples"] == 1}
    assert {key(row) for row in firsts.values()} <= alone


def test_a_year_of_samples_every_minute_is_a_few_thousand_rows():
    """24 a day, and one more for each week."""
    year = 52 * 7 * DAY_S
    rows = [sample(THURSDAY_S + at, at) for at in range(0, year, 60)]

    found = downsample(table(rows), COARSE)

    assert found.num_rows == 52 * (7 * 24 + 1)
    assert (seconds(rows[0]["sampled_at"]), BEGIN.weekday()) == (THURSDAY_S, 5)


def test_samples_of_an_earlier_kohort_stand_for_themselves():
    old = pa.Table.from_pylist([sample(at, at) for at in (1, 2, 3)], END_OFFSETS.arrow)
    assert old["samples"].null_count == 3
    assert [row["samples"] for row in told(downsample(old, FINE))] == [1, 2]
    assert told(downsample(old.slice(0, 0), FINE)) == []
