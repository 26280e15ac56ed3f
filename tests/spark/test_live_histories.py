"""The scripts played anew, by real clients on real brokers; the tables held against them."""

import pytest

pytest.importorskip("pyspark")

from tests.peers.kafka import unavailable
from tests.spark.histories import replay
from tests.spark.histories.gold import CHECKS, compute, problems
from tests.spark.histories.record import record
from tests.spark.histories.scripts import SCRIPTS

pytestmark = [pytest.mark.prove, pytest.mark.clients, pytest.mark.timeout(900)]

SEVERAL = ("consumer-life", "classic-life", "migration-up", "deletes", "transactions", "lag")
"""Played anew on Apache Kafka; on our broker all are that it serves."""


def wrong(spark, archive):
    """Everything that is wrong with every table of a history that was just recorded."""
    history = replay.load(archive)
    gold = compute(spark, history.rows, history.end_offsets, replay.AS_OF)
    return {table: found for table in CHECKS if (found := problems(table, history.truth, gold))}


@pytest.mark.java
@pytest.mark.parametrize("name", SEVERAL)
def test_on_apache_kafka(spark, tmp_path, name):
    if reason := unavailable():
        pytest.skip(reason)
    assert wrong(spark, record(SCRIPTS[name], "kafka", tmp_path)) == {}


@pytest.mark.parametrize("name", SCRIPTS)
def test_on_our_broker(spark, tmp_path, name):
    if reason := SCRIPTS[name].kohort_lacks:
        pytest.skip(reason)
    assert wrong(spark, record(SCRIPTS[name], "kohort", tmp_path)) == {}
