# SPDX-License-Identifier: Apache-2.0
"""Transactions on the wire: written, seen, ended, timed out, and carried over a crash."""

from contextlib import suppress
from random import Random

import pytest
from tests.server.desk import Desk
from tests.server.transactional import (
    FIRST,
    SECOND,
    Producing,
    committed,
    end_of,
    fetched,
    seen,
)

from kohort.errors import Broken, ErrorCode
from kohort.machines.effects import Call, Client, Producer
from kohort.server.access import TOPIC, WRITE
from kohort.server.catalog import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from kohort.server.coordinators.marker_sender import DiscardToken
from kohort.server.metrics.metrics import missing
from kohort.sim.disk import MachineCrash, SimulatedFiles
from kohort.terms import TopicPartition
from kohort.transactions.messages import Enrol
from kohort.wire.batch import peek
from kohort.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kohort.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kohort.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kohort.wire.messages.describe_transactions import DescribeTransactionsRequest
from kohort.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kohort.wire.messages.list_transactions import ListTransactionsRequest

ABORTABLE = ErrorCode.TRANSACTION_ABORTABLE
kinds = pytest.mark.parametrize("kind", [FIRST, SECOND], ids=["first", "second"])
either = pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])


@pytest.fixture
def desk():
    desk = Desk()
    desk.create(partitions=2)
    desk.create("payments")
    return desk


@kinds
@either
def test_records_of_a_transaction_are_seen_when_it_is_committed_and_only_then(desk, kind, commit):
    desk.produce(value=b"before")
    one = Producing(desk, kind=kind)
    one.write(b"a", b"b")
    desk.produce(value=b"between")
    one.write(b"c", partition=1)
    assert one.state() == "Ongoing"

    assert (seen(desk), seen(desk, partition=1)) == ([b"before"], [])
    answer = fetched(desk)
    assert (answer.last_stable_offset, answer.high_watermark) == (1, 4)
    assert (end_of(desk, committed=True), end_of(desk, committed=False)) == (1, 4)
    assert fetched(desk, committed=False).aborted_transactions is None

    assert one.end(commit=commit) == 0

    assert one.state() == ("CompleteCommit" if commit else "CompleteAbort")
    between = [b"a", b"b"] if commit else []
    assert seen(desk) == [b"before", *between, b"between"]
    assert seen(desk, partition=1) == ([b"c"] if commit else [])
    assert end_of(desk, committed=True) == end_of(desk, committed=False) == 5


@kinds
def test_a_producer_goes_on_with_the_next_transaction(desk, kind):
    one = Producing(desk, kind=kind)
    for number in range(6):
        one.write(b"%d" % number)
        assert one.end(commit=number % 2 == 0) == 0

    assert seen(desk) == [b"0", b"2", b"4"]
    assert one.epoch == (0 if kind == FIRST else 6)
    aborted = fetched(desk).aborted_transactions
    assert [(each.producer_id, each.first_offset) for each in aborted] == [
        (one.id, 2),
        (one.id, 6),
        (one.id, 10),
    ]
    (last,) = fetched(desk, offset=8).aborted_transactions
    assert last.first_offset == 10


@either
def test_transactions_of_two_producers_end_for_themselves(desk, commit):
    one, other = Producing(desk, "a"), Producing(desk, "b")
    one.write(b"a1")
    other.write(b"b1")
    one.write(b"a2")
    assert other.end() == 0
    assert seen(desk) == []
    assert one.end(commit=commit) == 0

    assert seen(desk) == ([b"a1", b"b1", b"a2"] if commit else [b"b1"])


@kinds
@either
def test_offsets_of_a_transaction_count_when_it_is_committed(desk, kind, commit):
    """K709-12, KIP-98."""
    one = Producing(desk, kind=kind)
    assert one.commit_offsets(5) == 0
    assert committed(desk) == -ErrorCode.UNSTABLE_OFFSET_COMMIT
    assert committed(desk, stable=False) == -1

    assert one.end(commit=commit) == 0

    assert committed(desk) == (5 if commit else -1)


def test_a_producer_of_the_second_version_begins_at_sequence_0(desk):
    """Each of its transactions has an epoch of its own: what came before a batch was lost."""
    one = Producing(desk)
    one.sequences["orders", 0] = 1
    assert one.send(b"second").error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    one.sequences["orders", 0] = 2
    assert one.send(b"third", version=9).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    one.sequences.clear()
    one.write(b"first")
    one.write(b"second")
    assert one.end() == 0
    assert seen(desk) == [b"first", b"second"]


def test_a_batch_that_was_refused_goes_before_those_behind_it(desk):
    """They were under way together; else the first would be out of order when it comes again."""
    one = Producing(desk, kind=FIRST)
    assert one.send(b"first").error_code == ErrorCode.INVALID_TXN_STATE
    assert one.add(("orders", 0)) == [0]
    one.sequences["orders", 0] = 1
    assert one.send(b"second").error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    one.sequences.clear()
    assert one.send(b"first").error_code == 0
    assert one.send(b"second").error_code == 0
    assert one.end() == 0
    assert seen(desk) == [b"first", b"second"]


@pytest.mark.parametrize("version", [9, 10, 11])
def test_the_first_version_must_enrol_a_partition_before_it_writes(desk, version):
    """KIP-890: otherwise no marker would ever come."""
    one = Producing(desk, kind=FIRST)
    refused = one.send(b"x", version=version)

    assert refused.error_code == (ABORTABLE if version >= 11 else ErrorCode.INVALID_TXN_STATE)
    assert (refused.base_offset, refused.log_start_offset) == (-1, -1)
    assert one.add(("orders", 0)) == [0]
    assert one.send(b"x", version=version).error_code == 0
    assert one.send(b"x", partition=1, version=version).error_code == refused.error_code
    one.end()
    assert one.send(b"late", version=version).error_code == refused.error_code
    assert seen(desk) == [b"x"]


@pytest.mark.parametrize(
    ("version", "code"), [(0, 48), (3, 48), (4, ABORTABLE), (5, 0)], ids=["v0", "v3", "v4", "v5"]
)
def test_offsets_must_be_enrolled_before_they_are_committed(desk, version, code):
    one = Producing(desk)

    assert one.commit_offsets(5, version=version) == code


def test_a_fenced_producer_writes_nothing_more(desk):
    one = Producing(desk)
    one.write(b"zombie")
    other = Producing.__new__(Producing)
    other.__dict__.update(one.__dict__, sequences={})
    assert other.init() == ErrorCode.CONCURRENT_TRANSACTIONS
    assert other.init() == 0

    assert one.send(b"late").error_code == ErrorCode.INVALID_PRODUCER_EPOCH
    assert one.commit_offsets(5) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert one.end() == ErrorCode.PRODUCER_FENCED
    assert one.add(("orders", 0), version=1) == [ErrorCode.INVALID_PRODUCER_EPOCH]
    assert one.add_offsets() == ErrorCode.PRODUCER_FENCED
    other.write(b"mine")
    assert other.end() == 0
    assert seen(desk) == [b"mine"]


def test_an_open_transaction_is_aborted_when_its_time_is_over(desk):
    one = Producing(desk)
    one.init(timeout=1000)
    one.write(b"x")
    assert one.commit_offsets(5) == 0
    desk.produce(value=b"behind")

    desk.wait(999)
    assert seen(desk) == []
    desk.wait(1)

    assert one.state() == "CompleteAbort"
    assert seen(desk) == [b"behind"]
    assert committed(desk) == -1
    assert one.send(b"late").error_code == ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_reader_who_waits_is_woken_by_the_marker(desk):
    one = Producing(desk)
    one.write(b"x")
    wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    asked = desk.send(
        FetchRequest(
            max_wait_ms=10_000,
            min_bytes=1,
            isolation_level=1,
            session_epoch=-1,
            topics=[FetchTopic(topic="orders", partitions=[wanted])],
        ),
        12,
    )
    desk.settle()
    assert asked.answer is None
    desk.another()
    one.node = 1
    one.end()

    assert asked.answer is not None
    assert asked.answer.responses[0].partitions[0].records


def test_a_transaction_with_a_deleted_topic_ends(desk):
    """Its partition has nothing to end any more."""
    one = Producing(desk)
    one.write(b"x")
    one.write(b"y", topic="payments")
    state = DeleteTopicState(name="payments")
    desk.ask(DeleteTopicsRequest(topics=[state], timeout_ms=1000), 6)

    assert one.end() == 0
    assert one.state() == "CompleteCommit"
    assert seen(desk) == [b"x"]


def test_a_partition_that_cannot_be_written_holds_the_end_up_and_no_other(desk):
    """The decision stands: the marker is asked for again and again."""
    files = SimulatedFiles()
    desk = Desk(files=files)
    desk.create(partitions=2)
    one = Producing(desk)
    one.write(b"x")
    one.write(b"y", partition=1)
    files.faults["write", "/data/orders-1/"] = 28
    assert one.end() == 0
    assert one.state() == "PrepareCommit"
    assert seen(desk) == [b"x"]
    assert "cannot be ended in orders:1 yet" in desk.told.warnings[-1]
    assert one.send(b"next").error_code == ErrorCode.CONCURRENT_TRANSACTIONS

    files.faults.clear()
    desk.wait(500)

    assert one.state() == "CompleteCommit"
    assert seen(desk, partition=1) == [b"y"]


def test_a_partition_that_is_not_there_is_not_added_by_a_write(desk):
    one = Producing(desk)
    assert one.send(b"x", topic="nowhere").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert one.send(b"x", partition=7).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert one.state() == "Empty"


@pytest.mark.parametrize("version", [12, 11])
def test_what_a_producer_may_not_write_to_gets_no_marker_of_it(version):
    """Another client's right, a log that could not be synced, a topic of the coordinators: the
    refusal is the answer, whatever the transaction says, and the end of it writes nothing there.
    """
    allowed = True

    def may(_client, operation, kind, name):
        return allowed or (operation, kind, name) != (WRITE, TOPIC, "secret")

    desk = Desk(may=may)
    desk.create(partitions=2)
    desk.create("secret")
    one = Producing(desk)
    allowed = False
    desk.cluster.partition("orders", 1).lost(Broken("EIO"))
    places = {
        ("secret", 0): ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ("orders", 1): ErrorCode.KAFKA_STORAGE_ERROR,
        (TRANSACTIONS_TOPIC, 0): ErrorCode.INVALID_TOPIC_EXCEPTION,
    }
    for (topic, partition), code in places.items():
        answer = one.send(b"x", topic=topic, partition=partition, version=version)
        assert answer.error_code == code
    assert one.state() == "Empty"
    one.write(b"good")
    assert one.end(commit=False) == 0

    assert one.state() == "CompleteAbort"
    assert desk.cluster.partition("secret", 0).log.end == 0


def test_a_right_that_comes_too_late_is_told_to_try_again(desk, monkeypatch):
    """A write that the transaction does not know of would never be ended."""
    allowed = False

    def may(_client, operation, kind, _name):
        return allowed or (operation, kind) != (WRITE, TOPIC)

    monkeypatch.setattr(desk.cluster, "may", may)
    one = Producing(desk)
    submit = desk.cluster.submit

    def granted(driver, call):
        nonlocal allowed
        allowed = True
        submit(driver, call)

    monkeypatch.setattr(desk.cluster, "submit", granted)
    assert one.send(b"x").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    monkeypatch.undo()
    assert one.state() == "Empty"
    assert one.send(b"x").error_code == 0


def test_records_of_an_open_transaction_may_be_deleted(desk):
    one = Producing(desk)
    one.write(b"x", b"y")
    wanted = DeleteRecordsPartition(partition_index=0, offset=1)
    topic = DeleteRecordsTopic(name="orders", partitions=[wanted])
    desk.ask(DeleteRecordsRequest(topics=[topic], timeout_ms=1000), 2)

    assert end_of(desk, committed=True) == 1
    assert fetched(desk, offset=1).records == b""
    one.end()
    assert end_of(desk, committed=True) == 3


def test_what_names_no_partition_adds_none(desk):
    """All of a request, or nothing of it."""
    one = Producing(desk)
    codes = one.add(("orders", 0), ("nowhere", 0), ("orders", 7))
    assert codes == [ErrorCode.OPERATION_NOT_ATTEMPTED, 3, 3]
    assert one.state() == "Empty"


@pytest.mark.parametrize("topic", [OFFSETS_TOPIC, TRANSACTIONS_TOPIC])
def test_no_producer_adds_a_topic_of_the_coordinators(topic):
    """The end would write a marker into the log of a coordinator: for good, and over its head.
    Offsets come into a transaction by AddOffsetsToTxn alone.
    """
    files = SimulatedFiles()
    desk = Desk(files=files)
    desk.create()
    one = Producing(desk)
    count = desk.cluster.catalog.by_name[topic].partitions
    places = [(topic, index) for index in range(count)]
    ends = [desk.cluster.partition(*place).log.end for place in places]

    codes = one.add(*places, ("orders", 0))
    assert codes == [ErrorCode.TOPIC_AUTHORIZATION_FAILED] * count + [
        ErrorCode.OPERATION_NOT_ATTEMPTED
    ]
    written = [one.send(b"x", topic=topic, partition=index).error_code for index in range(count)]
    assert written == [ErrorCode.INVALID_TOPIC_EXCEPTION] * count
    assert [desk.cluster.partition(*place).log.end for place in places] == ends
    assert one.state() == "Empty"

    desk.cluster.close()
    after = Desk(files=files, now=desk.now + 1000)
    assert missing(after.cluster) == []


def test_a_transaction_that_a_broker_has_let_into_its_own_log_ends(desk):
    """Each partition of it has its marker, and nothing is written over the coordinator's head."""
    one = Producing(desk)
    one.write(b"x")
    places = (TopicPartition(TRANSACTIONS_TOPIC, 0), TopicPartition("orders", 1))
    enrol = Enrol(one.name, Producer(one.id, one.epoch), places, client_version=2)
    driver = desk.cluster.transaction_coordinators[
        desk.cluster.placement.transaction_coordinator_of(one.name)[0]
    ]
    desk.cluster.submit(driver, Call(DiscardToken(), enrol, 0, Client("", "")))
    desk.settle()
    log = desk.cluster.partition(*places[0]).log
    assert one.end() == 0

    assert (one.state(), seen(desk)) == ("CompleteCommit", [b"x"])
    assert [data for data in log.read(log.start, 1 << 62) if peek(data).is_control] == []
    (told,) = desk.told.warnings
    assert f"'t' has {TRANSACTIONS_TOPIC}:0 among its partitions" in told


def test_a_broker_asks_for_several_transactions_at_once(desk):
    one, other = Producing(desk, "a"), Producing(desk, "b")
    other.write(b"x")

    def transaction(producer, *, verify):
        return AddPartitionsToTxnTransaction(
            transactional_id=producer.name,
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            verify_only=verify,
            topics=[AddPartitionsToTxnTopic(name="orders", partitions=[0, 1])],
        )

    asked = AddPartitionsToTxnRequest(
        transactions=[transaction(one, verify=False), transaction(other, verify=True)]
    )
    answer = desk.ask(asked, 5)

    assert answer.error_code == 0
    codes = {
        result.transactional_id: [
            each.partition_error_code for each in result.topic_results[0].results_by_partition
        ]
        for result in answer.results_by_transaction
    }
    assert codes == {"a": [0, 0], "b": [0, ABORTABLE]}
    assert (one.state(), other.state()) == ("Ongoing", "Ongoing")
    assert desk.ask(AddPartitionsToTxnRequest(), 4).results_by_transaction == []


def test_tools_see_every_transaction_and_each_node_its_own():
    """KIP-664."""
    desk = Desk(nodes=3)
    desk.create()
    made = {name: Producing(desk, name) for name in map(str, range(8))}
    everything = ListTransactionsRequest(state_filters=[], producer_id_filters=[])
    listed = [desk.ask(everything, 1, node=node).transaction_states for node in range(3)]

    assert sorted(one.transactional_id for part in listed for one in part) == sorted(made)
    for node, part in enumerate(listed):
        assert {made[one.transactional_id].node for one in part} <= {node}
        asked = DescribeTransactionsRequest(transactional_ids=[*made, "nobody"])
        answer = desk.ask(asked, 0, node=node).transaction_states
        assert [one.transactional_id for one in answer] == [*made, "nobody"]
        for one in answer[:-1]:
            here = made[one.transactional_id].node == node
            assert one.error_code == (0 if here else ErrorCode.NOT_COORDINATOR)
    first = next(iter(made))
    pattern = ListTransactionsRequest(
        state_filters=[], producer_id_filters=[], transactional_id_pattern=first
    )
    (one,) = desk.ask(pattern, 2, node=made[first].node).transaction_states
    assert one.transactional_id == first


def test_without_any_transaction_there_is_nothing_to_see(desk):
    everything = ListTransactionsRequest(state_filters=["Nap"], producer_id_filters=[])
    assert desk.ask(everything, 1).transaction_states == []
    everything.transactional_id_pattern = "("
    assert desk.ask(everything, 2).error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    asked = DescribeTransactionsRequest(transactional_ids=["t"])
    (one,) = desk.ask(asked, 0).transaction_states
    assert one.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    (one,) = desk.ask(asked, 0).transaction_states
    assert one.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


@kinds
@either
def test_everything_is_the_same_after_a_restart(kind, commit):
    """Open transactions stay open, ended ones ended; what was aborted is read from the log."""
    files = SimulatedFiles()
    desk = Desk(files=files)
    desk.create()
    ended, left = Producing(desk, "ended", kind=kind), Producing(desk, "open", kind=kind)
    ended.write(b"a")
    ended.end(commit=commit)
    ended.write(b"b")
    ended.end(commit=not commit)
    left.write(b"c")
    left.commit_offsets(5)
    desk.produce(value=b"d")
    before = seen(desk), fetched(desk).aborted_transactions, end_of(desk, committed=True)
    desk.cluster.close()
    desk = left.desk = ended.desk = Desk(files=files)

    after = seen(desk), fetched(desk).aborted_transactions, end_of(desk, committed=True)
    assert after == before
    assert committed(desk) == -ErrorCode.UNSTABLE_OFFSET_COMMIT
    left.write(b"e")
    assert left.end() == 0
    ended.write(b"f")
    assert ended.end() == 0
    assert seen(desk) == [b"a" if commit else b"b", b"c", b"d", b"e", b"f"]
    assert committed(desk) == 5


class Crashing:
    """A worker that reads numbers and writes them on, with its offset, and a disk that stops at a
    given step.
    """

    def __init__(self, kind):
        self.kind = kind
        self.files = SimulatedFiles()
        desk = self.started()
        desk.create("numbers")
        desk.create("squares", partitions=2)
        for number in range(4):
            desk.produce("numbers", value=b"%d" % number)
        Producing(desk, kind=kind)
        desk.cluster.close()
        self.begun = self.files.steps

    def started(self):
        return Desk(files=self.files)

    def work(self, desk, rounds=9):
        """Transactions until everything is done; one is aborted on the way."""
        one = Producing.__new__(Producing)
        one.__dict__.update(
            desk=desk, name="t", kind=self.kind, node=0, sequences={}, id=-1, epoch=-1
        )
        while (code := one.init()) == ErrorCode.CONCURRENT_TRANSACTIONS:
            desk.wait(100)
        assert code == 0
        for _ in range(rounds):
            at = max(0, committed(desk, topic="numbers"))
            if at == 4:
                return
            if at == 2 and not self.files.crash_at:
                one.write(b"never", topic="squares")
                assert one.commit_offsets(4, topic="numbers") == 0
                assert one.end(commit=False) == 0
            one.write(b"%d" % at, topic="squares", partition=0)
            one.write(b"%d" % (at * at), topic="squares", partition=1)
            assert one.commit_offsets(at + 1, topic="numbers") == 0
            assert one.end() == 0

    def result(self, desk):
        return [seen(desk, "squares", index) for index in (0, 1)]


@kinds
def test_a_crash_at_any_step_of_the_disk_leaves_each_transaction_whole_or_not_there(kind):
    """Exactly once: a number is read, written on and counted in one transaction."""
    whole = [[b"0", b"1", b"2", b"3"], [b"0", b"1", b"4", b"9"]]
    probe = Crashing(kind)
    desk = probe.started()
    start = probe.files.steps
    probe.files.crash_at = 1 << 60
    probe.work(desk)
    assert probe.result(desk) == whole
    steps = probe.files.steps - start
    assert steps > 40

    for step in range(1, steps, 3):
        town = Crashing(kind)
        desk = town.started()
        town.files.crash_at = town.files.steps + step
        with suppress(MachineCrash):
            town.work(desk)
        disk = town.files
        town.files = disk.after_crash() if step % 2 else disk.after_power_loss(random=Random(step))
        desk = town.started()
        at = max(0, committed(desk, topic="numbers", stable=False))
        assert town.result(desk) == [one[:at] for one in whole], f"crash at step {step}"
        town.files.crash_at = 1 << 60
        town.work(desk)
        assert town.result(desk) == whole, f"crash at step {step}"
