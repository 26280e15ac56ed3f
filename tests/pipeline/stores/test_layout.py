# SPDX-License-Identifier: Apache-2.0
"""The names that writers give, and those that are somebody else's."""

import pytest

from kohort.pipeline.stores import layout


@pytest.mark.parametrize("what", ["", "names-", "increment="])
def test_what_a_writer_has_named_is_known_as_made(what):
    name = layout.name(what, 7, "0a1b2c3d", 12)

    assert layout.is_made(name)
    assert layout.is_made(f"gold/lag/{name}/part-0.parquet")


@pytest.mark.parametrize(
    "path",
    [
        "server_logs/server.log",
        "gold/sales/2026",
        "past/2026-11-24",
        "rows/increment=1",
        "000001-x-1",
    ],
)
def test_what_somebody_else_has_put_there_is_not(path):
    assert not layout.is_made(path)
