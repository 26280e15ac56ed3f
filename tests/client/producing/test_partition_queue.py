"""One partition: what may be sent next, and which sequences it has, step by step."""

from tests.client.producing.fake_leader import ID, T0, batch_of

from kohort.client.producing.batch import NOBODY, SEQUENCES, Batch, ProducerId
from kohort.client.producing.partition_queue import AT_ONCE_MAX, Lane

NEXT = ProducerId(ID.id, ID.epoch + 1)


def lane_of(count: int) -> tuple[Lane, list[Batch]]:
    """A lane with batches of two records, that has written two records before."""
    lane = Lane(T0)
    lane.start_anew(ID)
    lane.next_sequence, lane.last_acked = 2, 1
    batches = [batch_of(b"a", b"b") for _ in range(count)]
    lane.fresh.extend(batches)
    return lane, batches


def send(lane: Lane, count: int = 1, producer: ProducerId = ID) -> None:
    for _ in range(count):
        batch = lane.candidate(0, producer)
        assert batch is not None
        lane.leave(batch)


def lost(*batches: Batch) -> None:
    for batch in batches:
        batch.on_wire = False
        batch.maybe_written = True


def test_batches_have_one_sequence_after_the_other() -> None:
    lane, batches = lane_of(3)
    send(lane, 3)
    assert [one.sequence for one in batches] == [2, 4, 6]
    assert {one.producer for one in batches} == {ID}
    assert lane.candidate(0, ID) is None


def test_no_more_are_under_way_than_a_broker_knows_again() -> None:
    lane, batches = lane_of(AT_ONCE_MAX + 1)
    send(lane, AT_ONCE_MAX)
    assert lane.candidate(0, ID) is None
    lane.acked(batches[0])
    assert lane.candidate(0, ID) is batches[-1]


def test_the_first_of_all_goes_alone() -> None:
    """A broker that knows nothing of a producer would take the second one without the first."""
    lane, batches = lane_of(2)
    lane.start_anew(ID)
    send(lane)
    assert lane.candidate(0, ID) is None
    lane.acked(batches[0])
    assert lane.candidate(0, ID) is batches[1]


def test_nothing_is_sent_before_the_producer_has_an_id() -> None:
    lane, _ = lane_of(1)
    assert lane.candidate(0, None) is None


def test_without_idempotence_there_are_no_sequences() -> None:
    lane, batches = lane_of(2)
    send(lane, 2, NOBODY)
    assert [one.sequence for one in batches] == [-1, -1]
    lane.dropped(batches[0])
    assert lane.gap is None


def test_what_is_sent_again_goes_first_and_alone() -> None:
    lane, batches = lane_of(4)
    send(lane, 3)
    lost(batches[0], batches[1])
    assert lane.candidate(0, ID) is batches[0]
    lane.leave(batches[0])
    assert lane.candidate(0, ID) is None
    lane.acked(batches[0])
    assert lane.candidate(0, ID) is batches[1]
    assert [one.sequence for one in batches[:3]] == [2, 4, 6]
    assert batches[0].attempts == 2


def test_a_pause_holds_up_what_comes_after_it() -> None:
    lane, batches = lane_of(2)
    send(lane)
    lost(batches[0])
    batches[0].not_before = 50
    assert lane.candidate(49, ID) is None
    assert lane.candidate(50, ID) is batches[0]


def test_the_sequence_of_what_was_certainly_not_written_is_used_again() -> None:
    lane, batches = lane_of(2)
    send(lane)
    lane.dropped(batches[0])
    assert lane.gap is None
    send(lane)
    assert batches[1].sequence == 2


def test_a_hole_before_others_is_a_gap() -> None:
    lane, batches = lane_of(3)
    send(lane, 2)
    lane.dropped(batches[0])
    assert lane.has_to_start_anew
    assert lane.candidate(0, ID) is None
    batches[1].on_wire = False
    lane.start_anew(NEXT)
    assert (batches[1].sequence, batches[1].producer) == (0, NEXT)
    assert lane.candidate(0, NEXT) is batches[1]


def test_a_lost_answer_is_resolved_by_what_follows() -> None:
    lane, batches = lane_of(3)
    send(lane, 2)
    lost(batches[0])
    lane.dropped(batches[0])
    assert lane.unresolved
    assert lane.candidate(0, ID) is None, "nothing new before it is known"
    lane.acked(batches[1])
    assert (lane.unresolved, lane.gap) == (False, None)
    send(lane)
    assert batches[2].sequence == 6


def test_a_lost_answer_that_nothing_follows_is_a_gap() -> None:
    lane, batches = lane_of(2)
    send(lane)
    lost(batches[0])
    lane.dropped(batches[0])
    assert (lane.unresolved, lane.gap) == (False, 2)
    assert lane.has_to_start_anew


def test_what_may_be_written_before_a_gap_is_settled_first() -> None:
    """At a newer epoch it might be written twice."""
    lane, batches = lane_of(4)
    send(lane, 3)
    lost(batches[0])
    lane.dropped(batches[1])
    assert (lane.gap, lane.has_to_start_anew) == (4, False)
    batches[2].on_wire = False
    assert lane.candidate(0, ID) is batches[0]
    lane.leave(batches[0])
    lane.acked(batches[0])
    assert lane.has_to_start_anew
    lane.start_anew(NEXT)
    assert batches[2].sequence == 0


def test_a_newer_epoch_begins_when_nothing_of_the_former_is_under_way() -> None:
    lane, batches = lane_of(2)
    send(lane)
    assert lane.candidate(0, NEXT) is None
    lane.acked(batches[0])
    send(lane, producer=NEXT)
    assert (batches[1].sequence, batches[1].producer) == (0, NEXT)


def test_halves_stand_where_the_whole_stood() -> None:
    lane, batches = lane_of(2)
    send(lane, 2)
    halves = batches[0].halves()
    lane.split(batches[0], halves)
    assert lane.flying == [*halves, batches[1]]
    assert [one.sequence for one in lane.flying] == [2, 3, 4]
    assert lane.candidate(0, ID) is halves[0]
    assert lane.is_next(halves[0])
    assert not lane.is_next(batches[1])


def test_sequences_go_on_from_0_after_the_last_one() -> None:
    lane, batches = lane_of(2)
    lane.next_sequence = SEQUENCES - 1
    lane.last_acked = SEQUENCES - 2
    send(lane, 2)
    assert [one.sequence for one in batches] == [SEQUENCES - 1, 0]
    lost(batches[1])
    lane.acked(batches[0])
    assert lane.last_acked == SEQUENCES
    lane.acked(batches[1])
    assert lane.last_acked == 1


def test_answers_of_the_former_epoch_say_nothing_of_this_one() -> None:
    lane, batches = lane_of(2)
    send(lane)
    lane.producer, lane.last_acked = NEXT, -1
    lane.acked(batches[0])
    assert lane.last_acked == -1
