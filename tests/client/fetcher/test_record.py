# SPDX-License-Identifier: Apache-2.0
"""A record and a place as an application sees them."""

import pickle

from kohort.client.fetcher.record import ConsumerRecord, OffsetAndEpoch


def test_a_record_reads_as_it_is_written() -> None:
    record = ConsumerRecord("t", 1, 7, 1000, "create", b"k", None, (("h", b"x"), ("h", None)), 3)
    assert (record.topic, record.partition, record.offset) == ("t", 1, 7)
    assert (record.timestamp_ms, record.timestamp_type) == (1000, "create")
    assert (record.key, record.value, record.leader_epoch) == (b"k", None, 3)
    assert record.headers == (("h", b"x"), ("h", None))
    assert pickle.loads(pickle.dumps(record)) == record


def test_what_a_test_of_an_application_need_not_say() -> None:
    record = ConsumerRecord("t", 1, 7, 1000, "create", b"k", b"v")
    assert (record.headers, record.leader_epoch) == ((), -1)


def test_a_place_of_an_unknown_epoch() -> None:
    assert OffsetAndEpoch(7) == (7, -1)
    assert OffsetAndEpoch(7, 3).leader_epoch == 3
