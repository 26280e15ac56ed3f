# SPDX-License-Identifier: Apache-2.0
"""The past of lag as it gets thinner: cut anywhere and merged in any order, it is the same."""

from collections import defaultdict
from datetime import UTC, datetime, timedelta

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from kohort.pipeline.rollup.lag_downsampling import downsample, of_moments
from kohort.pipeline.schemas import LAG_HISTORY
from kohort.pipeline.schemas.progress import LAG
from kohort.pipeline.schemas.rollup_tiers import ONE_MOMENT, ROLLUP_TIERS

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
BEGIN = datetime(2026, 11, 20, tzinfo=UTC)
FINE, COARSE = ROLLUP_TIERS


def lag_row(group, second, records, seconds=None, **told):
    return {
        "partition": 7,
        "group_id": group,
        "level": "group",
        "at": BEGIN + timedelta(seconds=second),
        "lag_records": records,
        "lag_seconds": seconds,
        "reason": "no_end_offset" if records is None else None,
        "partitions": 3,
        "partitions_unknown": 3 if records is None else 0,
        **told,
    }


def history(rows):
    return of_moments(pa.Table.from_pylist(rows, LAG.arrow))


lags = st.one_of(st.none(), st.integers(0, 9))
moments = st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 9000), lags, lags)
series = st.lists(moments, max_size=40, unique_by=lambda one: one[:2])


def rows_of(drawn):
    """Now and then a lag in records comes without one in seconds, or the other way round."""
    return history([lag_row(group, at, records, seconds) for group, at, records, seconds in drawn])


@given(drawn=series, data=st.data())
def test_cut_anywhere_and_thinned_by_and_by_it_is_the_whole(drawn, data):
    whole = rows_of(drawn)
    order = data.draw(st.permutations(range(whole.num_rows)))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(order)), max_size=4)))
    pieces = []
    for first, last in zip([0, *cuts], [*cuts, len(order)], strict=True):
        piece = whole.take(pa.array(order[first:last], pa.int64()))
        pieces.append(downsample(piece, data.draw(st.sampled_from([ONE_MOMENT, FINE.step_us]))))

    by_and_by = downsample(pa.concat_tables(pieces), COARSE.step_us)

    assert by_and_by.to_pylist() == downsample(whole, COARSE.step_us).to_pylist()


@given(drawn=series, tier=st.sampled_from(ROLLUP_TIERS))
def test_a_step_keeps_the_extremes_the_last_and_every_count(drawn, tier):
    steps = defaultdict(list)
    for one in rows_of(drawn).to_pylist():
        number = (one["at"] - EPOCH) // timedelta(microseconds=1) // tier.step_us
        steps[one["group_id"], number].append(one)

    found = downsample(rows_of(drawn), tier.step_us).to_pylist()

    assert len(found) == len(steps)
    for row, (key, mine) in zip(found, sorted(steps.items()), strict=True):
        mine.sort(key=lambda one: one["at"])
        assert row["group_id"] == key[0]
        assert (row["first_at"], row["at"]) == (mine[0]["at"], mine[-1]["at"])
        assert (row["moments"], row["partitions"]) == (len(mine), 3)
        for name, unknown in (("lag_records", "unknown"), ("lag_seconds", "timeless")):
            known = [one[name] for one in mine if one[name] is not None]
            assert row[name] == mine[-1][name]
            assert row[f"{name}_min"] == min(known, default=None)
            assert row[f"{name}_max"] == max(known, default=None)
            assert row[f"moments_{unknown}"] == len(mine) - len(known)
        reasons = [one["reason"] for one in mine if one["reason"]]
        assert row["reason"] == (reasons[-1] if reasons else None)
        assert row["partitions_unknown"] == max(one["partitions_unknown"] for one in mine)


def test_a_moment_stays_as_lag_has_it():
    lag = [lag_row("a", 5, 3, 2.5, committed_offset=4, end_offset=7), lag_row("a", 1, None)]

    first, last = downsample(history(lag), ONE_MOMENT).to_pylist()

    assert (first["moments"], first["moments_unknown"], first["reason"]) == (1, 1, "no_end_offset")
    assert last == {
        **dict.fromkeys(LAG_HISTORY.names),
        **lag[0],
        "first_at": lag[0]["at"],
        "moments": 1,
        "moments_unknown": 0,
        "moments_timeless": 0,
        "lag_records_min": 3,
        "lag_records_max": 3,
        "lag_seconds_min": 2.5,
        "lag_seconds_max": 2.5,
    }


def test_levels_topics_and_partitions_are_never_merged():
    places = [
        {"level": "group"},
        {"level": "topic", "topic": "t"},
        {"level": "topic", "topic": "u"},
        *({"level": "partition", "topic": "t", "topic_partition": one} for one in (0, 1)),
        {"level": "group", "partition": 8},
    ]
    rows = [lag_row("a", second, 1, **place) for place in places for second in (1, 2, 3)]

    found = downsample(history(rows), FINE.step_us)

    assert found["moments"].to_pylist() == [3] * len(places)


@given(now=st.integers(0, 2**51))
def test_whole_files_get_old_and_each_at_its_age(now):
    for tier in ROLLUP_TIERS:
        until = tier.due_before(now)
        assert until % tier.file_us == 0
        assert tier.after_us <= now - until < tier.after_us + tier.file_us
    assert COARSE.due_before(now) <= FINE.due_before(now)
    assert FINE.file_us % FINE.step_us == COARSE.file_us % FINE.file_us == 0
