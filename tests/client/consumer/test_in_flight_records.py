# SPDX-License-Identifier: Apache-2.0
"""What was handed out, what is processed, and where a partition goes on, after every step."""

from tests.client.consumer.fakes import record

from kohort.client.consumer.in_flight_records import InFlightRecords
from kohort.client.fetcher import ConsumerRecord, OffsetAndEpoch
from kohort.terms import TopicPartition

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
END = OffsetAndEpoch(100, 7)  # where the runs of a partition end


def run(partition: TopicPartition, *offsets: int, epoch: int = 3) -> list[ConsumerRecord]:
    return [record(partition, offset, epoch) for offset in offsets]


def offsets(in_flight: InFlightRecords, partition: TopicPartition) -> tuple[int, int]:
    """The next record to hand out, and the first that is not processed."""
    return in_flight.position(partition, END).offset, in_flight.processed(partition, END).offset


def test_a_record_is_processed_when_the_application_asks_for_the_next() -> None:
    in_flight = InFlightRecords()
    assert offsets(in_flight, A) == (100, 100)
    in_flight.line_up({A: run(A, 5, 6, 9)})
    assert offsets(in_flight, A) == (5, 5)
    for taken, after in ((5, 6), (6, 7), (9, 10)):
        got = in_flight.take()
        assert got is not None
        assert got.offset == taken
        assert offsets(in_flight, A) == (after, taken)
        assert in_flight.works_on([A])
        assert not in_flight.works_on([B])
    assert in_flight.take() is None
    assert offsets(in_flight, A) == (100, 100)  # what follows the last record may be no record
    assert not in_flight.works_on([A])


def test_the_epoch_of_the_last_record_goes_with_a_place() -> None:
    in_flight = InFlightRecords()
    in_flight.line_up({A: [record(A, 5, 1), record(A, 6, 2)]})
    in_flight.take()
    assert in_flight.position(A, END) == OffsetAndEpoch(6, 1)
    in_flight.take()
    assert in_flight.position(A, END) == OffsetAndEpoch(7, 2)


def test_runs_come_one_after_the_other() -> None:
    in_flight = InFlightRecords()
    in_flight.line_up({A: run(A, 1), B: run(B, 2)})
    in_flight.take()
    assert offsets(in_flight, A) == (2, 1)
    assert offsets(in_flight, B) == (2, 2)
    in_flight.take()
    assert offsets(in_flight, A) == (100, 100)
    assert offsets(in_flight, B) == (3, 2)


def test_coming_back_says_that_all_is_processed() -> None:
    in_flight = InFlightRecords()
    in_flight.line_up({A: run(A, 5, 6)})
    in_flight.take()
    in_flight.mark_processed()
    assert offsets(in_flight, A) == (6, 6)
    assert not in_flight.works_on([A])
    got = in_flight.take()
    assert got is not None
    assert got.offset == 6


def test_a_batch_is_processed_as_a_whole() -> None:
    in_flight = InFlightRecords()
    in_flight.note({A: run(A, 5, 6), B: run(B, 50)})
    assert offsets(in_flight, A) == (100, 5)
    assert offsets(in_flight, B) == (100, 50)
    assert in_flight.works_on([B])
    in_flight.mark_processed()
    assert offsets(in_flight, A) == (100, 100)
    assert not in_flight.works_on([A, B])


def test_what_is_put_back_is_read_again_and_the_record_in_work_stays_so() -> None:
    in_flight = InFlightRecords()
    in_flight.line_up({A: run(A, 5, 6, 7), B: run(B, 8)})
    in_flight.take()
    assert in_flight.put_back([A, B]) == {A: OffsetAndEpoch(6, 3), B: OffsetAndEpoch(8, 3)}
    assert in_flight.works_on([A])
    again = OffsetAndEpoch(6, 3)
    assert in_flight.position(A, again) == again
    assert in_flight.processed(A, again).offset == 5
    in_flight.mark_processed()
    assert in_flight.processed(A, again) == again
    assert in_flight.take() is None


def test_what_is_not_lined_up_is_not_put_back() -> None:
    in_flight = InFlightRecords()
    assert in_flight.put_back([A]) == {}
    in_flight.line_up({A: run(A, 5)})
    assert in_flight.put_back([B]) == {}
    assert in_flight.take() is not None


def test_what_is_dropped_is_forgotten() -> None:
    in_flight = InFlightRecords()
    in_flight.line_up({A: run(A, 5, 6), B: run(B, 8)})
    in_flight.take()
    in_flight.drop([A])
    assert not in_flight.works_on([A])
    assert offsets(in_flight, A) == (100, 100)
    got = in_flight.take()
    assert got is not None
    assert got.partition == B.partition
    in_flight.note({A: run(A, 20)})
    in_flight.drop([A, B])
    assert offsets(in_flight, A) == offsets(in_flight, B) == (100, 100)


def test_what_is_sought_while_it_is_in_work_is_not_processed_by_that() -> None:
    """Committed is neither what was skipped while its record was in work, nor what is read anew."""
    for position, processed in ((50, 5), (2, 2)):
        in_flight = InFlightRecords()
        in_flight.line_up({A: run(A, 5, 6)})
        in_flight.take()
        in_flight.on_seek(A)
        place = OffsetAndEpoch(position)
        assert in_flight.position(A, place) == place
        assert in_flight.processed(A, place).offset == processed
        assert in_flight.works_on([A])
        assert in_flight.in_work
        in_flight.mark_processed()
        assert in_flight.processed(A, place) == place
        assert not in_flight.in_work


def test_a_batch_that_is_sought_keeps_its_beginning() -> None:
    in_flight = InFlightRecords()
    in_flight.note({A: run(A, 5, 6), B: run(B, 8)})
    in_flight.on_seek(A)
    in_flight.on_seek(A)
    assert in_flight.processed(A, OffsetAndEpoch(70)).offset == 5
    assert in_flight.take_back() == {
        B: OffsetAndEpoch(8, 3)
    }  # the other goes on where it was sought
    assert not in_flight.in_work
    assert in_flight.processed(A, OffsetAndEpoch(70)) == OffsetAndEpoch(70)


def test_what_nobody_works_on_any_more_is_read_again() -> None:
    in_flight = InFlightRecords()
    assert in_flight.take_back() == {}
    in_flight.line_up({A: run(A, 5, 6, 7), B: run(B, 8)})
    in_flight.take()
    in_flight.take()
    assert in_flight.take_back() == {A: OffsetAndEpoch(6, 3)}
    assert not in_flight.works_on([A, B])
    got = in_flight.take()
    assert got is not None
    assert got.offset == 8  # the rest of the run comes again behind what was given up


def test_what_is_dropped_while_it_was_sought_is_forgotten() -> None:
    in_flight = InFlightRecords()
    in_flight.note({A: run(A, 5)})
    in_flight.on_seek(A)
    in_flight.drop([A])
    assert not in_flight.in_work
