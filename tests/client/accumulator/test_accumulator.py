# SPDX-License-Identifier: Apache-2.0
"""What is sent when, and what becomes of it; and that nothing is lost, doubled or told wrong."""

from random import Random

import pytest
from tests.client.accumulator.fake_leader import (
    ID,
    T0,
    T1,
    Leader,
    put,
    queue_of,
    taken,
    told,
    values_of,
)

from kohort.client.accumulator.accumulator import EPOCH_MAX, UNKNOWN, Outcome, RecordAccumulator
from kohort.client.accumulator.batch import Batch, ProducerId
from kohort.client.accumulator.errors import DeliveryError
from kohort.errors import ApiError, ErrorCode
from kohort.terms import TopicPartition

LOST = ApiError(ErrorCode.NETWORK_EXCEPTION, "lost")
MOVED = ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
OUT_OF_ORDER = ApiError(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
REFUSED = ApiError(ErrorCode.INVALID_RECORD)


# What is sent when


def test_the_partitions_of_a_topic_that_have_something_to_send() -> None:
    queue = queue_of()
    put(queue, "a", T1)
    put(queue, "b", TopicPartition("other", 2))
    assert queue.partitions("t") == [1]
    assert queue.partitions("none") == []


def test_records_linger_until_there_are_more() -> None:
    queue = queue_of()
    assert put(queue, "a")
    assert not put(queue, "b", now=3)
    assert queue.wake_at(0) == 5
    assert taken(queue, 4) == []
    (share,) = taken(queue, 5)
    assert [values_of(one) for one in share] == [["a", "b"]]
    assert taken(queue, 5) == []


def test_a_full_batch_does_not_linger() -> None:
    queue = queue_of()
    put(queue, "a" * 30)
    assert put(queue, "b" * 30), "a second batch is something new"
    (share,) = taken(queue, 0)
    assert [values_of(one) for one in share] == [["a" * 30]]
    assert taken(queue, 4) == []


def test_nothing_lingers_while_somebody_waits() -> None:
    queue = queue_of()
    put(queue, "a")
    queue.is_urgent = True
    assert len(taken(queue, 0)) == 1


def test_what_is_due_soon_goes_along() -> None:
    queue = queue_of(linger_ms=6)
    put(queue, "a", T0)
    put(queue, "b", T1, now=3)
    put(queue, "c", TopicPartition("t", 2), now=4)
    (share,) = taken(queue, 6)
    assert [one.place for one in share] == [T0, T1]


def test_a_request_has_a_bound_and_the_rest_is_first_the_next_time() -> None:
    queue = queue_of(max_request_size=150)
    put(queue, "a", T0)
    put(queue, "b", T1)
    put(queue, "c", TopicPartition("t", 2))
    order = [one.place.partition for share in (taken(queue, 5) + taken(queue, 5)) for one in share]
    assert order == [0, 1, 2]


def test_each_node_gets_its_own() -> None:
    queue = queue_of()
    put(queue, "a", T0)
    put(queue, "b", T1)
    shares = queue.take(5, lambda place: place.partition, lambda _: True, lambda _: True).shares
    assert [(node, values_of(one)) for node, (one,) in shares] == [(0, ["a"]), (1, ["b"])]


def test_a_node_that_is_not_free_is_left_alone() -> None:
    queue = queue_of()
    put(queue, "a")
    assert taken(queue, 5, is_free=lambda _: False) == []
    assert taken(queue, 5, may_send=lambda _: False) == []
    assert len(taken(queue, 5)) == 1


def test_a_topic_without_a_leader_is_named() -> None:
    queue = queue_of()
    put(queue, "a")
    found = queue.take(0, lambda _: None, lambda _: True, lambda _: True)
    assert (found.shares, found.leaderless) == ([], {"t"})


def test_nothing_is_sent_before_there_is_a_producer_id() -> None:
    queue = queue_of()
    queue.producer = None
    put(queue, "a")
    assert taken(queue, 5) == []
    queue.producer = ID
    ((batch,),) = taken(queue, 5)
    assert (batch.producer, batch.sequence) == (ID, 0)


# What became of it


def sent(queue: RecordAccumulator, *values: str, now: int = 5) -> list[Batch]:
    """A batch under way for each value, after one that was taken."""
    batches = []
    queue.is_urgent = True
    put(queue, "first", now=now)
    ((first,),) = taken(queue, now)
    queue.acked(first, 0, UNKNOWN)
    for value in values:
        put(queue, value, now=now)
        ((batch,),) = taken(queue, now)
        batches.append(batch)
    return batches


def test_a_batch_that_is_taken_is_told_once() -> None:
    queue = queue_of()
    (batch,) = sent(queue, "a")
    assert queue.used == 10
    assert told(queue.acked(batch, 42, UNKNOWN)) == [(["a"], 42, None)]
    assert (queue.used, queue.is_empty) == (0, True)


def test_what_passes_is_sent_again_after_a_pause() -> None:
    queue = queue_of(pause_ms=lambda attempt: 10 * (attempt + 1))
    (batch,) = sent(queue, "a")
    assert queue.refused(batch, MOVED, 7) == []
    assert taken(queue, 16) == []
    assert queue.wake_at(7) == 17
    assert taken(queue, 17) == [[batch]]
    queue.refused(batch, MOVED, 20)
    assert queue.wake_at(20) == 40


def test_what_never_left_was_not_written() -> None:
    queue = queue_of()
    (batch,) = sent(queue, "a")
    queue.unsent(batch, LOST, 7)
    (outcome,) = queue.expire(2000)
    assert isinstance(outcome.error, DeliveryError)
    assert not outcome.error.maybe_written
    assert outcome.error.message == (
        "t:0: not delivered within 1000 ms (NETWORK_EXCEPTION: lost); it was not written"
    )


def test_a_lost_answer_is_never_told_as_a_certain_failure() -> None:
    queue = queue_of()
    (batch,) = sent(queue, "a")
    queue.refused(batch, LOST, 7)
    (outcome,) = queue.expire(2000)
    assert isinstance(outcome.error, DeliveryError)
    assert outcome.error.maybe_written
    assert outcome.error.code is ErrorCode.REQUEST_TIMED_OUT
    assert "it may have been written" in outcome.error.message


def test_what_is_under_way_when_time_is_up_may_be_written() -> None:
    queue = queue_of()
    (batch,) = sent(queue, "a")
    (outcome,) = queue.expire(2000)
    assert isinstance(outcome.error, DeliveryError)
    assert outcome.error.maybe_written
    assert queue.used == 0
    assert queue.acked(batch, 1, UNKNOWN) == []
    assert queue.is_empty


def test_what_was_not_sent_says_why() -> None:
    queue = queue_of()
    put(queue, "a")
    (outcome,) = queue.expire(1000, "no broker answers")
    assert outcome.error is not None
    assert "(no broker answers); it was not written" in outcome.error.message


def test_what_is_refused_for_good_fails() -> None:
    queue = queue_of()
    (batch,) = sent(queue, "a")
    assert told(queue.refused(batch, REFUSED, 7)) == [(["a"], UNKNOWN, "INVALID_RECORD")]
    assert queue.is_empty


def test_a_batch_that_the_log_has_already_is_delivered() -> None:
    queue = queue_of()
    (batch,) = sent(queue, "a")
    error = ApiError(ErrorCode.DUPLICATE_SEQUENCE_NUMBER)
    assert told(queue.refused(batch, error, 7)) == [(["a"], UNKNOWN, None)]


def test_what_waits_for_a_partition_that_is_gone_goes_elsewhere_and_is_counted_once() -> None:
    queue = queue_of()
    for value in "abc":
        put(queue, value, T1)
    used, number = queue.used, queue.last_number
    (batch,) = queue.displace("t", [1])
    assert (queue.used, queue.is_empty) == (0, True)
    put(queue, "newer", T0, now=3)
    for at, record in enumerate(batch.contents()):
        queue.replace(batch, at, record, 0, 4)
    put(queue, "d", T0, now=4)
    assert not queue.is_done(number), "who has flushed waits for them"
    assert queue.displace("t", [1]) == []
    (share,) = taken(queue, 99)
    values = [value for one in share for value in values_of(one)]
    for one in share:
        queue.acked(one, 7, -1)
    (share,) = taken(queue, 99)
    values += [value for one in share for value in values_of(one)]
    for one in share:
        queue.acked(one, 8, -1)
    assert values == ["newer", "a", "b", "c", "d"]
    assert queue.used == 0 < used
    assert queue.is_done(queue.last_number)


def test_what_is_under_way_is_not_taken_to_another_partition() -> None:
    queue = queue_of()
    (batch,) = sent(queue, "a")
    assert queue.displace("t", [batch.place.partition]) == []
    queue.refused(batch, MOVED, 5)
    assert queue.displace("t", [batch.place.partition]) == [batch]
    assert queue.is_empty


def test_a_record_whose_partition_was_chosen_keeps_that_mark_in_halves() -> None:
    batch = Batch(T0, 1, limit=1 << 20, codec=0, created=0, expires=99)
    for at in range(4):
        batch.take(0, None, b"%d" % at, (), object(), 10, pinned=at in (1, 2))
    assert [batch.is_pinned(at) for at in range(4)] == [False, True, True, False]
    first, second = batch.halves()
    assert [first.is_pinned(at) for at in range(2)] == [False, True]
    assert [second.is_pinned(at) for at in range(2)] == [True, False]


def test_a_batch_that_is_too_large_is_split_until_it_fits() -> None:
    queue = queue_of()
    queue.is_urgent = True
    for value in "abcd":
        put(queue, value)
    outcomes, order = [], []
    for _ in range(9):
        for (batch,) in taken(queue, 5):
            order.append((values_of(batch), batch.sequence))
            if batch.count > 1:
                outcomes += queue.refused(batch, ApiError(ErrorCode.MESSAGE_TOO_LARGE), 5)
            else:
                outcomes += queue.acked(batch, 0, UNKNOWN)
    assert order == [
        (["a", "b", "c", "d"], 0),
        (["a", "b"], 0),
        (["a"], 0),
        (["b"], 1),
        (["c", "d"], 2),
        (["c"], 2),
        (["d"], 3),
    ]
    assert [values for values, _, _ in told(outcomes)] == [["a"], ["b"], ["c"], ["d"]]
    assert queue.used == 0


def test_what_may_be_written_is_not_split() -> None:
    """Its halves would be written beside it: the broker knows it again by all of its sequences."""
    for idempotent in (True, False):
        queue = queue_of(idempotent=idempotent)
        put(queue, "a")
        put(queue, "b")
        ((batch,),) = taken(queue, 5)
        queue.refused(batch, ApiError(ErrorCode.NETWORK_EXCEPTION), 5)
        ((batch,),) = taken(queue, 50)
        outcomes = queue.refused(batch, ApiError(ErrorCode.MESSAGE_TOO_LARGE), 50)
        if not idempotent:
            assert not outcomes
            ((half,),) = taken(queue, 50)
            outcomes = queue.refused(half, ApiError(ErrorCode.INVALID_RECORD), 50)
        (outcome,) = outcomes
        assert isinstance(outcome.error, DeliveryError)
        assert outcome.error.maybe_written


def test_a_leader_that_went_away_after_it_had_appended() -> None:
    """The offset beside NOT_LEADER_OR_FOLLOWER says that it has."""
    for offset, maybe in ((-1, False), (0, True), (70, True)):
        queue = queue_of()
        put(queue, "a")
        ((batch,),) = taken(queue, 5)
        refusal = ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        assert queue.refused(batch, refusal, 5, offset) == []
        (outcome,) = queue.expire(2000, "")
        assert isinstance(outcome.error, DeliveryError)
        assert outcome.error.maybe_written is maybe
        assert ("may have been written" in outcome.error.message) is maybe


def test_one_record_that_is_too_large_fails_alone() -> None:
    queue = queue_of()
    first, second = sent(queue, "a", "b")
    outcomes = queue.refused(first, ApiError(ErrorCode.MESSAGE_TOO_LARGE), 5)
    assert told(outcomes) == [(["a"], UNKNOWN, "MESSAGE_TOO_LARGE")]
    assert queue.refused(second, OUT_OF_ORDER, 6) == []
    ((again,),) = taken(queue, 16)
    assert (again, again.producer, again.sequence) == (second, ProducerId(ID.id, 1), 0)


def test_an_order_that_is_broken_at_the_broker_goes_on_at_a_newer_epoch() -> None:
    queue = queue_of()
    first, second = sent(queue, "a", "b")
    queue.refused(first, OUT_OF_ORDER, 5)
    assert taken(queue, 50) == [], "not before the answer to what is under way"
    queue.refused(second, OUT_OF_ORDER, 50)
    ((one,),) = taken(queue, 60)
    assert (one, one.producer, one.sequence) == (first, ProducerId(ID.id, 1), 0)
    assert queue.producer == ProducerId(ID.id, 1)
    queue.acked(first, 0, UNKNOWN)
    ((two,),) = taken(queue, 60)
    assert (two, two.sequence) == (second, 1)


def test_epochs_that_are_used_up_need_a_new_id() -> None:
    queue = queue_of()
    queue.producer = ProducerId(7, EPOCH_MAX)
    (batch,) = sent(queue, "a")
    queue.refused(batch, OUT_OF_ORDER, 5)
    assert taken(queue, 50) == []
    assert queue.producer is None
    queue.producer = ProducerId(8, 0)
    ((again,),) = taken(queue, 50)
    assert (again.producer, again.sequence) == (ProducerId(8, 0), 0)


def test_a_transaction_goes_on_at_a_newer_epoch_only_when_it_is_given_one() -> None:
    queue = queue_of(transactional=True)
    first, second = sent(queue, "a", "b")
    queue.refused(first, REFUSED, 5)
    queue.refused(second, REFUSED, 5)
    put(queue, "c", now=6)
    assert taken(queue, 50) == []
    queue.producer = ProducerId(7, 1)
    ((third,),) = taken(queue, 50)
    assert (third.producer, third.sequence) == (ProducerId(7, 1), 0)


def test_all_of_a_topic_is_dropped_but_what_is_under_way() -> None:
    queue = queue_of()
    (batch,) = sent(queue, "a")
    put(queue, "b", T1)
    put(queue, "c", TopicPartition("u", 0))
    outcomes = queue.drop(ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION), topic="t")
    assert told(outcomes) == [(["b"], UNKNOWN, "INVALID_TOPIC_EXCEPTION")]
    assert told(queue.drop(LOST)) == [(["c"], UNKNOWN, "NETWORK_EXCEPTION")]
    assert told(queue.acked(batch, 3, UNKNOWN)) == [(["a"], 3, None)]


def test_what_is_under_way_at_the_end_may_be_written() -> None:
    queue = queue_of()
    sent(queue, "a")
    put(queue, "b", T1)
    found = {
        one.error.maybe_written
        for one in queue.abandon(LOST)
        if isinstance(one.error, DeliveryError) and one.batch.place == T0
    }
    assert found == {True}
    assert queue.is_empty


def test_a_flush_waits_for_what_was_there() -> None:
    queue = queue_of()
    (batch,) = sent(queue, "a")
    number = queue.last_number
    queue.is_urgent = False
    put(queue, "b", T1)
    assert not queue.is_done(number)
    queue.acked(batch, 0, UNKNOWN)
    assert queue.is_done(number)
    assert not queue.is_done(queue.last_number)


def test_a_batch_that_is_complete_does_not_linger() -> None:
    queue = queue_of()
    put(queue, "a")
    assert queue.queued("t", 0) == 1
    queue.complete(T0)
    queue.complete(T1)
    assert put(queue, "b"), "in a batch of its own"
    ((one,),) = taken(queue, 0)
    assert values_of(one) == ["a"]


# Whatever the network does


class World:
    """A queue, its leader, and a network that loses what it is told to lose."""

    def __init__(self) -> None:
        self.queue = queue_of(delivery_timeout_ms=400, batch_size=80, linger_ms=0)
        self.leader = Leader()
        self.now = 0
        self.wire: list[tuple[Batch, bytes]] = []
        self.outcomes: list[Outcome] = []
        self.count = 0

    def put(self, partition: int) -> None:
        self.count += 1
        put(self.queue, f"v{self.count}", TopicPartition("t", partition), self.now)

    def send(self) -> None:
        for share in taken(self.queue, self.now):
            self.wire += [(batch, batch.sealed(transactional=False)) for batch in share]

    def answer(self) -> None:
        if self.wire:
            batch, data = self.wire.pop(0)
            code, offset = self.leader.append(batch.place, data)
            if code:
                self.outcomes += self.queue.refused(batch, ApiError(code), self.now)
            else:
                self.outcomes += self.queue.acked(batch, offset, UNKNOWN)

    def refuse(self, code: ErrorCode) -> None:
        """What passes, or what is wrong with the batch: that is said at the first attempt."""
        if self.wire:
            batch, _ = self.wire.pop(0)
            if batch.attempts > 1:
                code = ErrorCode.NOT_LEADER_OR_FOLLOWER
            self.outcomes += self.queue.refused(batch, ApiError(code), self.now)

    def lose(self, arrived: int) -> None:
        """The connection breaks: so many requests had arrived, and nobody hears the answers."""
        for at, (batch, data) in enumerate(self.wire):
            if at < arrived:
                self.leader.append(batch.place, data)
            self.outcomes += self.queue.refused(batch, LOST, self.now)
        self.wire.clear()

    def wait(self, time: int) -> None:
        self.now += time
        self.outcomes += self.queue.expire(self.now)

    def end(self) -> None:
        """The network is well again, and time goes on."""
        for _ in range(100):
            self.send()
            while self.wire:
                self.answer()
            if self.queue.is_empty:
                return
            self.wait(10)

    def step(self, chance: Random) -> None:
        """Anything."""
        match chance.choice(STEPS):
            case "put":
                self.put(chance.randint(0, 1))
            case "send":
                self.send()
            case "answer":
                self.answer()
            case "refuse":
                self.refuse(chance.choice(CODES))
            case "lose":
                self.lose(chance.randint(0, 4))
            case _:
                self.wait(chance.choice([1, 10, 150]))

    def judge(self) -> None:
        assert self.queue.is_empty, "nothing waits for ever"
        assert self.queue.used == 0
        fates = [value for one in self.outcomes for value in values_of(one.batch)]
        assert sorted(fates, key=number_of) == [f"v{n + 1}" for n in range(self.count)], "each once"
        for log in self.leader.log.values():
            assert log == sorted(set(log), key=number_of), "once and in order"
        for outcome in self.outcomes:
            log = self.leader.log[outcome.batch.place]
            values = values_of(outcome.batch)
            if outcome.error is None:
                if outcome.offset != UNKNOWN:
                    assert log[outcome.offset : outcome.offset + len(values)] == values
                assert set(values) <= set(log), "what was acknowledged is there"
            else:
                assert isinstance(outcome.error, DeliveryError)
                if not outcome.error.maybe_written:
                    assert not set(values) & set(log), "what was certainly not written is not there"


def number_of(value: str) -> int:
    return int(value[1:])


STEPS = ["put", "put", "put", "send", "send", "answer", "answer", "refuse", "lose", "wait"]
CODES = [
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.INVALID_RECORD,
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.CORRUPT_MESSAGE,
]


@pytest.mark.parametrize("first", range(0, 2000, 200))
def test_nothing_is_lost_or_doubled_or_told_wrong(first: int) -> None:
    for seed in range(first, first + 200):
        world, chance = World(), Random(seed)
        for _ in range(chance.randint(5, 80)):
            world.step(chance)
        world.end()
        try:
            world.judge()
        except AssertionError as error:
            pytest.fail(f"seed {seed}: {error}")


# Topics that are made anew


def test_the_first_batch_to_a_topic_that_was_made_anew_goes_alone_by_the_next_sequence() -> None:
    """Its leader knows nothing of the producer, and takes any sequence: the second without the
    first, and one that it has had already for something new.
    """
    queue = queue_of()
    put(queue, "a")
    ((first,),) = taken(queue, 5)
    queue.acked(first, 0, UNKNOWN)
    assert not queue.topic_recreated("t")
    put(queue, "b" * 30, now=5)
    put(queue, "c" * 30, now=5)
    ((second,),) = taken(queue, 10)
    assert second.sequence == 1
    assert taken(queue, 10) == []
    queue.acked(second, 0, UNKNOWN)
    assert len(taken(queue, 10)) == 1


def test_what_the_former_topic_has_not_taken_goes_to_the_new_one_by_its_sequence() -> None:
    queue = queue_of()
    put(queue, "a")
    ((batch,),) = taken(queue, 5)
    assert queue.refused(batch, ApiError(ErrorCode.UNKNOWN_TOPIC_ID), 5) == []
    assert not queue.topic_recreated("t")
    ((again,),) = taken(queue, 1000)
    assert again is batch
    assert again.sequence == 0


@pytest.mark.parametrize("wrote", [True, False])
def test_a_transaction_has_lost_what_the_former_topic_had(*, wrote: bool) -> None:
    queue = queue_of(transactional=True)
    put(queue, "a")
    if wrote:
        ((batch,),) = taken(queue, 5)
        queue.acked(batch, 0, UNKNOWN)
    assert not queue.topic_recreated("other")
    assert queue.topic_recreated("t") is wrote
