# SPDX-License-Identifier: Apache-2.0
"""Days played anew, by real clients on real brokers, and what a history tells of each held against
what was done and what the clients saw.

All are played side by side, as far as the machine allows, since they mostly wait: four minutes
each. A loaded machine lets every process be late, by `SLACK_MS`.
"""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip("pyspark")

from tests.peers.kafka import unavailable
from tests.spark.downtime import checks, reading
from tests.spark.downtime.days import KINDS
from tests.spark.downtime.record import record
from tests.spark.downtime.replay import Story

from kohort.history.rows import WENT_SILENT

pytestmark = [pytest.mark.prove, pytest.mark.clients, pytest.mark.timeout(1800)]

SEEDS = (1, 2)
AT_ONCE = 2 if (os.cpu_count() or 1) < 8 else 4


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """(broker, seed) -> the day, or why it could not be played."""
    out = tmp_path_factory.mktemp("felt")
    brokers = ["kohort"] if unavailable() else ["kafka", "kohort"]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return {(on, seed): pool.submit(record, seed, on, out) for seed in SEEDS for on in brokers}


def wrong(story):
    """Everything that is wrong, of all groups."""
    for group in KINDS:
        told = story.rebalances(group, proof=False)
        known = story.rebalances(group, proof=False, session_ms=story.truth["session_ms"])
        proven = story.rebalances(group, proof=True)
        for rows in (told, known, proven):
            yield from checks.wrong_guesses(story, rows)
            yield from checks.wrong_proofs(story, rows)
        yield from checks.contradictions(told, proven)
        yield from checks.contradictions(known, proven)
        yield from reading.wrong_lengths(story, group, proven, checks.SLACK_MS)
        yield from reading.wrong_reasons(story, group, proven, checks.SLACK_MS)


def judge(story):
    assert [*wrong(story)] == []
    rows = {group: story.rebalances(group, proof=True) for group in KINDS}
    found = [one for group in KINDS for one in checks.removals(story, rows[group])]
    silent = [one for one in found if one.likely == WENT_SILENT]
    felt = [part for group in KINDS for part in reading.measured(story, group, rows[group])]
    longest_ms = max(part.longer_ms for part in felt)
    print(  # what a run has seen, for who runs it with -s
        f"{story}: {len(found)} removals, {len(silent)} went silent, {len(felt)} intervals, at"
        f" most {longest_ms:.0f} ms short, with a rhythm of {reading.rhythm_ms(story):.0f} ms"
    )
    assert len(silent) >= 2 * len(KINDS)  # of three that were done to each group amid its work
    assert len(felt) > 15 * len(KINDS)


@pytest.mark.java
@pytest.mark.parametrize("seed", SEEDS)
def test_on_apache_kafka(played, seed):
    if reason := unavailable():
        pytest.skip(reason)
    judge(Story(played["kafka", seed].result()))


@pytest.mark.parametrize("seed", SEEDS)
def test_on_our_broker(played, seed):
    judge(Story(played["kohort", seed].result()))
