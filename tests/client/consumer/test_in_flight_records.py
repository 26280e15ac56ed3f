"""What was handed out, what is processed, and where a partition goes on, after every step."""

from tests.client.consumer.fakes import record

from kohort.client.consumer.in_flight_records import Handing
from kohort.client.fetching import ConsumerRecord, Place
from kohort.terms import TopicPartition

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
END = Place(100, 7)  # where the runs of a partition end


def run(partition: TopicPartition, *offsets: int, epoch: int = 3) -> list[ConsumerRecord]:
    return [record(partition, offset, epoch) for offset in offsets]


def offsets(handing: Handing, partition: TopicPartition) -> tuple[int, int]:
    """The next record to hand out, and the first that is not processed."""
    return handing.position(partition, END).offset, handing.processed(partition, END).offset


def test_a_record_is_processed_when_the_application_asks_for_the_next() -> None:
    handing = Handing()
    assert offsets(handing, A) == (100, 100)
    handing.line_up({A: run(A, 5, 6, 9)})
    assert offsets(handing, A) == (5, 5)
    for taken, after in ((5, 6), (6, 7), (9, 10)):
        got = handing.take()
        assert got is not None
        assert got.offset == taken
        assert offsets(handing, A) == (after, taken)
        assert handing.works_on([A])
        assert not handing.works_on([B])
    assert handing.take() is None
    assert offsets(handing, A) == (100, 100)  # what follows the last record may be no record
    assert not handing.works_on([A])


def test_the_epoch_of_the_last_record_goes_with_a_place() -> None:
    handing = Handing()
    handing.line_up({A: [record(A, 5, 1), record(A, 6, 2)]})
    handing.take()
    assert handing.position(A, END) == Place(6, 1)
    handing.take()
    assert handing.position(A, END) == Place(7, 2)


def test_runs_come_one_after_the_other() -> None:
    handing = Handing()
    handing.line_up({A: run(A, 1), B: run(B, 2)})
    handing.take()
    assert offsets(handing, A) == (2, 1)
    assert offsets(handing, B) == (2, 2)
    handing.take()
    assert offsets(handing, A) == (100, 100)
    assert offsets(handing, B) == (3, 2)


def test_coming_back_says_that_all_is_processed() -> None:
    handing = Handing()
    handing.line_up({A: run(A, 5, 6)})
    handing.take()
    handing.came_back()
    assert offsets(handing, A) == (6, 6)
    assert not handing.works_on([A])
    got = handing.take()
    assert got is not None
    assert got.offset == 6


def test_a_batch_is_processed_as_a_whole() -> None:
    handing = Handing()
    handing.note({A: run(A, 5, 6), B: run(B, 50)})
    assert offsets(handing, A) == (100, 5)
    assert offsets(handing, B) == (100, 50)
    assert handing.works_on([B])
    handing.came_back()
    assert offsets(handing, A) == (100, 100)
    assert not handing.works_on([A, B])


def test_what_is_put_back_is_read_again_and_the_record_in_work_stays_so() -> None:
    handing = Handing()
    handing.line_up({A: run(A, 5, 6, 7), B: run(B, 8)})
    handing.take()
    assert handing.put_back([A, B]) == {A: Place(6, 3), B: Place(8, 3)}
    assert handing.works_on([A])
    again = Place(6, 3)
    assert handing.position(A, again) == again
    assert handing.processed(A, again).offset == 5
    handing.came_back()
    assert handing.processed(A, again) == again
    assert handing.take() is None


def test_what_is_not_lined_up_is_not_put_back() -> None:
    handing = Handing()
    assert handing.put_back([A]) == {}
    handing.line_up({A: run(A, 5)})
    assert handing.put_back([B]) == {}
    assert handing.take() is not None


def test_what_is_dropped_is_forgotten() -> None:
    handing = Handing()
    handing.line_up({A: run(A, 5, 6), B: run(B, 8)})
    handing.take()
    handing.drop([A])
    assert not handing.works_on([A])
    assert offsets(handing, A) == (100, 100)
    got = handing.take()
    assert got is not None
    assert got.partition == B.partition
    handing.note({A: run(A, 20)})
    handing.drop([A, B])
    assert offsets(handing, A) == offsets(handing, B) == (100, 100)


def test_what_is_sought_while_it_is_in_work_is_not_processed_by_that() -> None:
    """Committed is neither what was skipped while its record was in work, nor what is read anew."""
    for position, processed in ((50, 5), (2, 2)):
        handing = Handing()
        handing.line_up({A: run(A, 5, 6)})
        handing.take()
        handing.sought(A)
        place = Place(position)
        assert handing.position(A, place) == place
        assert handing.processed(A, place).offset == processed
        assert handing.works_on([A])
        assert handing.in_work
        handing.came_back()
        assert handing.processed(A, place) == place
        assert not handing.in_work


def test_a_batch_that_is_sought_keeps_its_beginning() -> None:
    handing = Handing()
    handing.note({A: run(A, 5, 6), B: run(B, 8)})
    handing.sought(A)
    handing.sought(A)
    assert handing.processed(A, Place(70)).offset == 5
    assert handing.gave_up() == {B: Place(8, 3)}  # the other goes on where it was sought
    assert not handing.in_work
    assert handing.processed(A, Place(70)) == Place(70)


def test_what_nobody_works_on_any_more_is_read_again() -> None:
    handing = Handing()
    assert handing.gave_up() == {}
    handing.line_up({A: run(A, 5, 6, 7), B: run(B, 8)})
    handing.take()
    handing.take()
    assert handing.gave_up() == {A: Place(6, 3)}
    assert not handing.works_on([A, B])
    got = handing.take()
    assert got is not None
    assert got.offset == 8  # the rest of the run comes again behind what was given up


def test_what_is_dropped_while_it_was_sought_is_forgotten() -> None:
    handing = Handing()
    handing.note({A: run(A, 5)})
    handing.sought(A)
    handing.drop([A])
    assert not handing.in_work
