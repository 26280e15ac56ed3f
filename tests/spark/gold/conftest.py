# SPDX-License-Identifier: Apache-2.0
"""The stories as tables, computed once for all tests that read them."""

from datetime import UTC, datetime

import pytest


@pytest.fixture(scope="session")
def told(spark):
    """Table -> story -> its rows, in the order of the log."""
    from tests.spark import rows
    from tests.spark.gold.stories import STORIES, all_rows

    from kohort.pipeline.schemas import END_OFFSETS
    from kohort.spark.engine.frames import struct_of
    from kohort.spark.gold import Context
    from kohort.spark.gold.membership import assignments, members, rebalances

    context = Context(datetime(2030, 1, 1, tzinfo=UTC))
    frames = dict(rows.frames(spark, all_rows()))
    frames["end_offsets"] = spark.createDataFrame([], struct_of(END_OFFSETS))
    tables = {}
    known = context._replace(session_timeout_ms=45_000)
    for name, compute in {
        "members": lambda: members(frames, context),
        "assignments": lambda: assignments(frames, context),
        "rebalances": lambda: rebalances(frames, context),
        "rebalances, session known": lambda: rebalances(frames, known),
    }.items():
        kept = compute().toArrow()
        frames[name] = spark.createDataFrame(kept)
        found = sorted(
            kept.to_pylist(), key=lambda row: row["offset" if "offset" in row else "from_offset"]
        )
        tables[name] = {
            script: [row for row in found if row["partition"] == number]
            for number, script in enumerate(STORIES)
        }
    return tables
