# SPDX-License-Identifier: Apache-2.0
"""The scripts played anew, by real clients on real brokers; the tables held against them.

All are played first, some at a time, since they mostly wait; gold is computed over all of them at
once. A history that did not go as its script says fails alone.
"""

from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest

pytest.importorskip("pyspark")

from tests.peers.kafka import unavailable
from tests.spark.histories import replay
from tests.spark.histories.gold import CHECKS, Gold, compute, part, problems
from tests.spark.histories.record import record
from tests.spark.histories.scripts import SCRIPTS

pytestmark = [pytest.mark.prove, pytest.mark.clients, pytest.mark.timeout(1800)]

AT_ONCE = 2


class Played(NamedTuple):
    """Every history, as it was recorded or why not, and all tables over those that were."""

    recorded: dict[tuple[str, str], Future[Path]]
    histories: dict[tuple[str, str], replay.History]
    gold: Gold


@pytest.fixture(scope="module")
def played(spark, tmp_path_factory):
    out = tmp_path_factory.mktemp("histories")
    wanted = [("kohort", name) for name in SCRIPTS]
    if unavailable() is None:
        wanted += [("kafka", name) for name in SCRIPTS]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        recorded = {(on, name): pool.submit(record, SCRIPTS[name], on, out) for on, name in wanted}
    done = [key for key, future in recorded.items() if future.exception() is None]
    histories = {
        key: replay.load(recorded[key].result(), number) for number, key in enumerate(done)
    }
    rows = replay.merged([history.rows for history in histories.values()])
    ends = replay.merged([history.end_offsets for history in histories.values()])
    return Played(recorded, histories, compute(spark, rows, ends, replay.AS_OF))


def wrong(played, on, name):
    """Everything that is wrong with every table of a history."""
    key = on, name
    played.recorded[key].result()
    first = replay.SPREAD * list(played.histories).index(key)
    gold = part(played.gold, range(first, first + replay.SPREAD))
    truth = played.histories[key].truth
    return {table: found for table in CHECKS if (found := problems(table, truth, gold))}


@pytest.mark.java
@pytest.mark.parametrize("name", SCRIPTS)
def test_on_apache_kafka(played, name):
    if reason := unavailable():
        pytest.skip(reason)
    assert wrong(played, "kafka", name) == {}


@pytest.mark.parametrize("name", SCRIPTS)
def test_on_our_broker(played, name):
    assert wrong(played, "kohort", name) == {}
