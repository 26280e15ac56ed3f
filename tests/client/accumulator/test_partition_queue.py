# SPDX-License-Identifier: Apache-2.0
"""One partition: what may be sent next, and which sequences it has, step by step."""

from tests.client.accumulator.fake_leader import ID, T0, batch_of

from kohort.client.accumulator.batch import NOBODY, SEQUENCES, Batch, ProducerId
from kohort.client.accumulator.partition_queue import AT_ONCE_MAX, PartitionQueue

NEXT = ProducerId(ID.id, ID.epoch + 1)


def lane_of(count: int) -> tuple[PartitionQueue, list[Batch]]:
    """A lane with batches of two records, that has written two records before."""
    queue = PartitionQueue(T0)
    queue.restart_sequences(ID)
    queue.next_sequence, queue.last_acked = 2, 1
    batches = [batch_of(b"a", b"b") for _ in range(count)]
    queue.pending.extend(batches)
    return queue, batches


def send(queue: PartitionQueue, count: int = 1, producer: ProducerId = ID) -> None:
    for _ in range(count):
        batch = queue.next_sendable(0, producer)
        assert batch is not None
        queue.leave(batch)


def lost(*batches: Batch) -> None:
    for batch in batches:
        batch.on_wire = False
        batch.maybe_written = True


def test_batches_have_one_sequence_after_the_other() -> None:
    queue, batches = lane_of(3)
    send(queue, 3)
    assert [one.sequence for one in batches] == [2, 4, 6]
    assert {one.producer for one in batches} == {ID}
    assert queue.next_sendable(0, ID) is None


def test_no_more_are_under_way_than_a_broker_knows_again() -> None:
    queue, batches = lane_of(AT_ONCE_MAX + 1)
    send(queue, AT_ONCE_MAX)
    assert queue.next_sendable(0, ID) is None
    queue.acked(batches[0])
    assert queue.next_sendable(0, ID) is batches[-1]


def test_the_first_of_all_goes_alone() -> None:
    """A broker that knows nothing of a producer would take the second one without the first."""
    queue, batches = lane_of(2)
    queue.restart_sequences(ID)
    send(queue)
    assert queue.next_sendable(0, ID) is None
    queue.acked(batches[0])
    assert queue.next_sendable(0, ID) is batches[1]


def test_nothing_is_sent_before_the_producer_has_an_id() -> None:
    queue, _ = lane_of(1)
    assert queue.next_sendable(0, None) is None


def test_without_idempotence_there_are_no_sequences() -> None:
    queue, batches = lane_of(2)
    send(queue, 2, NOBODY)
    assert [one.sequence for one in batches] == [-1, -1]
    queue.dropped(batches[0])
    assert queue.gap is None


def test_what_is_sent_again_goes_first_and_alone() -> None:
    queue, batches = lane_of(4)
    send(queue, 3)
    lost(batches[0], batches[1])
    assert queue.next_sendable(0, ID) is batches[0]
    queue.leave(batches[0])
    assert queue.next_sendable(0, ID) is None
    queue.acked(batches[0])
    assert queue.next_sendable(0, ID) is batches[1]
    assert [one.sequence for one in batches[:3]] == [2, 4, 6]
    assert batches[0].attempts == 2


def test_a_pause_holds_up_what_comes_after_it() -> None:
    queue, batches = lane_of(2)
    send(queue)
    lost(batches[0])
    batches[0].not_before = 50
    assert queue.next_sendable(49, ID) is None
    assert queue.next_sendable(50, ID) is batches[0]


def test_the_sequence_of_what_was_certainly_not_written_is_used_again() -> None:
    queue, batches = lane_of(2)
    send(queue)
    queue.dropped(batches[0])
    assert queue.gap is None
    send(queue)
    assert batches[1].sequence == 2


def test_a_hole_before_others_is_a_gap() -> None:
    queue, batches = lane_of(3)
    send(queue, 2)
    queue.dropped(batches[0])
    assert queue.needs_new_epoch
    assert queue.next_sendable(0, ID) is None
    batches[1].on_wire = False
    queue.restart_sequences(NEXT)
    assert (batches[1].sequence, batches[1].producer) == (0, NEXT)
    assert queue.next_sendable(0, NEXT) is batches[1]


def test_a_lost_answer_is_resolved_by_what_follows() -> None:
    queue, batches = lane_of(3)
    send(queue, 2)
    lost(batches[0])
    queue.dropped(batches[0])
    assert queue.unresolved
    assert queue.next_sendable(0, ID) is None, "nothing new before it is known"
    queue.acked(batches[1])
    assert (queue.unresolved, queue.gap) == (False, None)
    send(queue)
    assert batches[2].sequence == 6


def test_a_lost_answer_that_nothing_follows_is_a_gap() -> None:
    queue, batches = lane_of(2)
    send(queue)
    lost(batches[0])
    queue.dropped(batches[0])
    assert (queue.unresolved, queue.gap) == (False, 2)
    assert queue.needs_new_epoch


def test_what_may_be_written_before_a_gap_is_settled_first() -> None:
    """At a newer epoch it might be written twice."""
    queue, batches = lane_of(4)
    send(queue, 3)
    lost(batches[0])
    queue.dropped(batches[1])
    assert (queue.gap, queue.needs_new_epoch) == (4, False)
    batches[2].on_wire = False
    assert queue.next_sendable(0, ID) is batches[0]
    queue.leave(batches[0])
    queue.acked(batches[0])
    assert queue.needs_new_epoch
    queue.restart_sequences(NEXT)
    assert batches[2].sequence == 0


def test_a_newer_epoch_begins_when_nothing_of_the_former_is_under_way() -> None:
    queue, batches = lane_of(2)
    send(queue)
    assert queue.next_sendable(0, NEXT) is None
    queue.acked(batches[0])
    send(queue, producer=NEXT)
    assert (batches[1].sequence, batches[1].producer) == (0, NEXT)


def test_halves_stand_where_the_whole_stood() -> None:
    queue, batches = lane_of(2)
    send(queue, 2)
    halves = batches[0].halves()
    queue.split(batches[0], halves)
    assert queue.in_flight == [*halves, batches[1]]
    assert [one.sequence for one in queue.in_flight] == [2, 3, 4]
    assert queue.next_sendable(0, ID) is halves[0]
    assert queue.is_next(halves[0])
    assert not queue.is_next(batches[1])


def test_sequences_go_on_from_0_after_the_last_one() -> None:
    queue, batches = lane_of(2)
    queue.next_sequence = SEQUENCES - 1
    queue.last_acked = SEQUENCES - 2
    send(queue, 2)
    assert [one.sequence for one in batches] == [SEQUENCES - 1, 0]
    lost(batches[1])
    queue.acked(batches[0])
    assert queue.last_acked == SEQUENCES
    queue.acked(batches[1])
    assert queue.last_acked == 1


def test_answers_of_the_former_epoch_say_nothing_of_this_one() -> None:
    queue, batches = lane_of(2)
    send(queue)
    queue.producer, queue.last_acked = NEXT, -1
    queue.acked(batches[0])
    assert queue.last_acked == -1
