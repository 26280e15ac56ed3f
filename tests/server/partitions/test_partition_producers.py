# SPDX-License-Identifier: Apache-2.0
"""The producers of a partition, read from its log in slices or at once."""

import pytest

from kohort.server.partitions.partition_producers import PartitionProducers
from kohort.storage.log import EVERY_BATCH
from kohort.storage.memory import MemoryLog
from kohort.terms import Millis, Offset
from kohort.wire import batch

NOW, DAY_MS = 1_700_000_000_000, 86_400_000


def data(producer, sequence=0, *, time=NOW):
    return batch.build(
        [(b"k", b"v")], time, producer_id=producer, producer_epoch=0, base_sequence=sequence
    )


def marker(producer, coordinator_epoch=0):
    return batch.build_marker(
        commit=True,
        timestamp=NOW,
        producer_id=producer,
        producer_epoch=0,
        coordinator_epoch=coordinator_epoch,
    )


def log_of(*written):
    log = MemoryLog()
    for one in written:
        log.append(one, 1)
    return log


def reading(log, noted=None):
    note = (lambda _: None) if noted is None else noted.append
    return PartitionProducers(log.start, note, Millis(NOW), DAY_MS)


def read(log, most):
    known = reading(log)
    while known.read_on(log, most):
        pass
    assert known.seen == log.end
    return list(known.producers.active())


@pytest.mark.parametrize("most", [1, 2, 3])
def test_slices_find_what_one_reading_finds(most):
    log = log_of(
        data(1), data(-1), data(2), data(1, 1), marker(2, 5), data(3, 7), data(1, 2), data(-1)
    )
    whole = read(log, EVERY_BATCH)
    assert [(one.producer_id, one.last_sequence, one.coordinator_epoch) for one in whole] == [
        (2, 0, 5),
        (3, 7, -1),
        (1, 2, -1),
    ]
    assert read(log, most) == whole


def test_what_is_written_meanwhile_is_read_as_well():
    log = log_of(data(1), data(2))
    known = reading(log)
    assert known.read_on(log, 1)
    log.append(data(3), 1)
    while known.read_on(log, 1):
        pass
    assert [one.producer_id for one in known.producers.active()] == [1, 2, 3]
    log.append(data(4), 1)
    assert known.seen < log.end
    assert not known.read_on(log, EVERY_BATCH)
    assert [one.producer_id for one in known.producers.active()] == [1, 2, 3, 4]


def test_a_marker_that_is_cleaned_away_meanwhile_says_nothing_of_its_coordinator(monkeypatch):
    log = log_of(data(1), marker(1, 5), data(2))
    known = reading(log)
    assert known.read_on(log, 1)
    fetch = log.fetch
    monkeypatch.setattr(log, "fetch", lambda _start, limit: fetch(Offset(2), limit))
    assert not known.read_on(log, EVERY_BATCH)
    assert {one.producer_id: one.coordinator_epoch for one in known.producers.active()} == {
        1: -1,
        2: -1,
    }


def test_those_who_have_been_silent_for_long_are_not_read_and_ids_are_noted():
    log = log_of(data(1, time=NOW - 2 * DAY_MS), data(2), data(2, 1))
    noted = []
    known = reading(log, noted)
    assert not known.read_on(log, EVERY_BATCH)
    assert noted == [2]
    assert [one.producer_id for one in known.producers.active()] == [2]
