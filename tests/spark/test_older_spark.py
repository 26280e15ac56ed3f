# SPDX-License-Identifier: Apache-2.0
"""The oldest supported Spark, with Delta and the Kafka connector, which the newest one lacks."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests import golden_logs
from tests.peers import kafka, spark_jars

ROOT = Path(__file__).parents[2]
OLDER = ROOT / ".venv" / "spark-4.2"

pytestmark = [pytest.mark.prove, pytest.mark.spark, pytest.mark.java, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """One process does everything: a start of Spark costs more than what it then does."""
    if not (OLDER / "pyspark").exists():
        pytest.skip("Spark 4.2 is not installed: make prove does that")
    if why := spark_jars.unavailable() or kafka.unavailable():
        pytest.skip(why)
    directory = tmp_path_factory.mktemp("older")
    with kafka.Kafka({"offsets.topic.num.partitions": 4}) as broker:
        history(broker.address)
        done = subprocess.run(
            [
                sys.executable,
                str(Path(__file__).with_name("older_spark.py")),
                str(golden_logs.unpack("1-written", directory)),
                str(directory),
                spark_jars.jars(),
                broker.address,
            ],
            capture_output=True,
            text=True,
            timeout=500,
            check=False,
            env={**os.environ, "PYTHONPATH": f"{OLDER}:{ROOT}"},
        )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def history(bootstrap):
    """Commits, tombstones, and a transaction of each end in a real Kafka's group log."""
    from confluent_kafka import Consumer, Producer, TopicPartition
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics([NewTopic("orders", 3, 1)]).values():
        future.result(30)
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "billing"})
    for offset in range(5):
        consumer.commit(
            offsets=[TopicPartition("orders", index, offset) for index in range(3)],
            asynchronous=False,
        )
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "one"})
    producer.init_transactions(30)
    for ends_well in (True, False):
        producer.begin_transaction()
        producer.send_offsets_to_transaction(
            [TopicPartition("orders", 0, 100)], consumer.consumer_group_metadata()
        )
        producer.commit_transaction() if ends_well else producer.abort_transaction()
    consumer.close()
    admin.delete_consumer_groups(["billing"])["billing"].result(30)


def test_it_is_the_older_one(found):
    assert found["version"] == spark_jars.SPARK


def test_the_pipeline_runs_there(found):
    counts = {name: len(rows) for name, rows in found["tables"].items()}

    assert counts["offset_commit"] > 0
    assert counts["group_state"] > 0
    assert counts["quarantine"] == 0


def test_the_delta_logs_give_spark_the_same(found):
    assert found["by Arrow alone"] == found["tables"]
    assert found["by Delta"] == found["tables"]
    assert found["report"] == "report.html"


def test_the_connector_gives_the_rows_that_our_own_source_gives(found):
    assert found["connector"] == found["cluster"]
    assert len(found["cluster"]) > 20
