# SPDX-License-Identifier: Apache-2.0
"""Records of transactions, against those that Apache Kafka wrote."""

import json

import pytest
from tests import golden_logs

from kohort.errors import WireError
from kohort.records.transactions import (
    PartitionsSchema,
    Record,
    TransactionLogValue,
    Unknown,
    decode,
    encode,
)
from kohort.wire import codec

pytestmark = pytest.mark.usefixtures("each_codec")

CAPTURES = ["1-written", "2-compacted", "3-compacted-again", "4-killed"]


def captured(name):
    return [
        one
        for one in golden_logs.dump(name)
        if one["kind"] == "record" and one["file"].startswith("__transaction_state")
    ]


def told(text):
    """Key and payload as the dump tool writes them."""
    _, key, payload = text.replace(" payload: ", "key: ").split("key: ")
    return json.loads(key)["data"], json.loads(payload)["data"]


@pytest.mark.parametrize("name", CAPTURES)
def test_captured_records_are_read_and_written_to_the_byte(name):
    """A log may move between an Apache Kafka and ours."""
    lines = captured(name)
    assert name != "1-written" or lines
    for line in lines:
        key, value = bytes.fromhex(line["key_hex"]), bytes.fromhex(line["value_hex"])
        record = decode(key, value)
        names, payload = told(line["text"])

        assert encode(record) == (key, value)
        assert record.transactional_id == names["transactionalId"]
        assert record.value.producer_id == payload["producerId"]
        assert record.value.previous_producer_id == payload["previousProducerId"]
        assert record.value.transaction_status == payload["transactionStatus"]
        partitions = payload["transactionPartitions"]
        found = record.value.transaction_partitions
        assert (found is None) == (partitions is None)
        assert [(one.topic, one.partition_ids) for one in found or ()] == [
            (one["topic"], one["partitionIds"]) for one in partitions or ()
        ]


VALUE = TransactionLogValue(
    producer_id=7,
    previous_producer_id=6,
    next_producer_id=8,
    producer_epoch=3,
    transaction_timeout_ms=1000,
    transaction_status=1,
    transaction_partitions=[PartitionsSchema(topic="orders", partition_ids=[0, 2])],
    transaction_last_update_timestamp_ms=11,
    transaction_start_timestamp_ms=10,
    client_transaction_version=2,
)


def test_every_field_comes_back():
    record = Record("größe", VALUE)
    assert decode(*encode(record)) == record
    assert decode(*encode(Record("t"))) == Record("t", None)


def test_the_older_version_has_no_tags():
    old = decode(encode(Record("t"))[0], b"\0\0" + codec.encode(VALUE, 0)).value

    assert (old.producer_id, old.transaction_status) == (7, 1)
    assert (old.previous_producer_id, old.next_producer_id) == (-1, -1)
    assert old.client_transaction_version == 0


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        (b"\0", None, "key of 1 bytes"),
        (encode(Record("t"))[0], b"\0", "value of 1 bytes"),
        (encode(Record("t"))[0], b"\0\2", "'t' has version 2, expected 0 or 1"),
        (b"\0\0\0\5abc", None, "TransactionLogKey"),
    ],
)
def test_bytes_that_are_no_record_are_an_error(key, value, text):
    with pytest.raises(WireError, match=text):
        decode(key, value)


def test_another_type_is_left_alone():
    assert decode(b"\0\1whatever", b"x") == Unknown(1)
