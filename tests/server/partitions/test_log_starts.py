# SPDX-License-Identifier: Apache-2.0
"""Logs begin later: DeleteRecords and retention, and the disk that both wait for."""

import errno
import weakref
from types import SimpleNamespace

import pytest
from tests.server.desk import Desk

from kohort.errors import ErrorCode
from kohort.machines.effects import Call, Client
from kohort.server.apis.delete_records import delete_records
from kohort.server.descriptors import Limit
from kohort.server.partitions.disk_work import DiskWork
from kohort.server.partitions.log_starts import SYNC_SLICE_LOGS
from kohort.server.requests.steps import STEP_ELEMENTS
from kohort.sim.disk import SimulatedFiles
from kohort.storage.checkpoints import START_OFFSETS
from kohort.storage.files import DiskFiles
from kohort.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kohort.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kohort.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState

NOTE = f"/data/{START_OFFSETS}"


@pytest.fixture
def disk():
    return SimulatedFiles()


class Syncs:
    """The syncs of a disk since `clear`, on the loop and beside it."""

    def __init__(self, disk, monkeypatch):
        self.loop = self.beside = 0
        self._out = False
        disk.spends_sync = self._count
        run = DiskWork.run

        def counted(work):
            self._out = True
            try:
                run(work)
            finally:
                self._out = False

        monkeypatch.setattr(DiskWork, "run", counted)

    def clear(self):
        self.loop = self.beside = 0

    def _count(self):
        self.beside += self._out
        self.loop += not self._out


@pytest.fixture
def syncs(disk, monkeypatch):
    return Syncs(disk, monkeypatch)


def filled(disk, partitions=1, records=3, *, rolls=False, **settings):
    """A broker whose topic has records in each partition; in a file each with `rolls`."""
    desk = Desk(files=disk, **settings)
    desk.create(partitions=partitions)
    for index in range(partitions):
        for number in range(records):
            assert desk.produce(partition=index, value=b"%d" % number).error_code == 0
            if rolls:
                desk.cluster.partition("orders", index).log.roll()
    return desk


def asked(desk, offsets, topic="orders", node=0):
    """DeleteRecords of these partitions; nothing but the request has arrived."""
    partitions = [
        DeleteRecordsPartition(partition_index=index, offset=offset)
        for index, offset in offsets.items()
    ]
    topics = [DeleteRecordsTopic(name=topic, partitions=partitions)]
    return desk.send(DeleteRecordsRequest(topics=topics, timeout_ms=1000), 2, node=node)


def results(asked):
    return [
        (part.error_code, part.low_watermark)
        for topic in asked.answer.topics
        for part in topic.partitions
    ]


def starts(disk, **settings):
    """Where the logs of the topic begin for the next broker."""
    disk.locked.clear()
    again = Desk(files=disk, **settings)
    count = again.cluster.catalog.by_name["orders"].partitions
    assert again.told.errors == []
    return [again.cluster.partition("orders", index).log.start for index in range(count)]


@pytest.mark.parametrize("partitions", [1, 300])
def test_all_starts_of_a_request_are_noted_with_one_sync_beside_the_loop(disk, syncs, partitions):
    desk = filled(disk, partitions, max_request_partition_size_limit="1000")
    syncs.clear()

    deleted = asked(desk, dict.fromkeys(range(partitions), 2))
    desk.settle()

    assert results(deleted) == [(0, 2)] * partitions
    assert (syncs.loop, syncs.beside) == (0, 2), "of the file and of its name"
    assert starts(disk.after_power_loss()) == [2] * partitions


def test_requests_that_wait_share_a_sync(disk, syncs):
    desk = filled(disk, 2)
    desk.another()
    syncs.clear()
    first = asked(desk, {0: 2})
    second = asked(desk, {0: 1, 1: 3}, node=1)
    desk.settle()
    assert results(first) == [(0, 2)]
    assert results(second) == [(0, 2), (0, 3)], "a start never moves back"
    assert (syncs.loop, syncs.beside) == (0, 2)
    assert starts(disk.after_power_loss()) == [2, 3]


def test_nobody_is_answered_and_nothing_is_hidden_before_it_is_durable(disk):
    desk = filled(disk)
    deleted = asked(desk, {0: 2})
    desk.cluster.turn(desk.now)
    work = desk.cluster.begin_work()
    log = desk.cluster.partition("orders", 0).log
    assert (deleted.answer, log.start) == (None, 0)
    work.run()
    assert (deleted.answer, log.start) == (None, 0)
    desk.cluster.end_work(work, desk.now)
    desk.settle()
    assert results(deleted) == [(0, 2)]
    assert log.start == 2


def test_a_smaller_offset_that_comes_meanwhile_moves_nothing_back(disk):
    desk = filled(disk)
    desk.another()
    first = asked(desk, {0: 3})
    desk.cluster.turn(desk.now)
    work = desk.cluster.begin_work()
    second = asked(desk, {0: 1}, node=1)
    desk.cluster.turn(desk.now)
    work.run()
    desk.cluster.end_work(work, desk.now)
    desk.settle()
    assert results(first) == results(second) == [(0, 3)]
    assert starts(disk.after_power_loss()) == [3]


def test_the_log_goes_on_while_the_disk_is_busy(disk):
    """It is appended to, begins a new file, and is read from where it has begun."""
    desk = filled(disk, rolls=True)
    deleted = asked(desk, {0: 2})
    desk.cluster.turn(desk.now)
    work = desk.cluster.begin_work()
    partition = desk.cluster.partition("orders", 0)
    desk.another()
    sent = desk.send_batch(value=b"meanwhile", node=1)
    desk.cluster.turn(desk.now)
    partition.log.roll()
    assert partition.read(0, 1, partition.log.end)
    work.run()
    assert partition.read(0, 1, partition.log.end)
    desk.cluster.end_work(work, desk.now)
    desk.settle()
    assert results(deleted) == [(0, 2)]
    assert sent.answer.responses[0].partition_responses[0].base_offset == 3
    assert [segment.base_offset for segment in partition.log.closed] == [2, 3]
    assert starts(disk.after_power_loss()) == [2]


def test_a_log_is_synced_before_it_begins_where_nobody_has_synced_it(disk, syncs):
    desk = filled(disk, SYNC_SLICE_LOGS + 9, log_sync="none")
    syncs.clear()
    deleted = asked(desk, dict.fromkeys(range(SYNC_SLICE_LOGS + 9), -1))
    desk.settle()
    assert results(deleted) == [(0, 3)] * (SYNC_SLICE_LOGS + 9)
    assert syncs.loop == 0
    assert syncs.beside == SYNC_SLICE_LOGS + 9 + 2 * 2, "a note for each piece of work"
    assert starts(disk.after_power_loss()) == [3] * (SYNC_SLICE_LOGS + 9)


def test_a_file_that_others_have_closed_is_opened_to_be_synced(disk):
    desk = filled(disk, 40, log_sync="none", limit=Limit(400))
    open_files = desk.cluster.logs.open_files
    open_files.share = 3
    for _ in range(4):
        open_files.open("/data/another").close()
    assert open_files.count <= 4
    assert results_of(desk, dict.fromkeys(range(40), -1)) == [(0, 3)] * 40
    assert open_files.count <= 4
    assert starts(disk.after_power_loss()) == [3] * 40


def test_a_topic_that_goes_meanwhile_is_answered_as_gone(disk):
    desk = filled(disk, 2)
    desk.another()
    wanted = DeleteTopicsRequest(topics=[DeleteTopicState(name="orders")], timeout_ms=60_000)
    gone = desk.send(wanted, 6, node=1)
    desk.cluster.turn(desk.now)
    work = desk.cluster.begin_work()
    deleted = asked(desk, {0: 2, 1: 1})
    desk.cluster.turn(desk.now)
    work.run()
    desk.cluster.end_work(work, desk.now)
    desk.settle()
    assert gone.answer.responses[0].error_code == 0
    assert results(deleted) == [(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)] * 2


def test_records_of_a_topic_that_is_made_anew_between_two_steps_stay(disk):
    """They began where those of the former topic were to begin, and the first ones were lost."""
    count = 2 * STEP_ELEMENTS
    desk = filled(disk, count)
    told = []
    token = SimpleNamespace(gone=False, answer=told.append)
    partitions = [DeleteRecordsPartition(partition_index=at, offset=2) for at in range(count)]
    topics = [DeleteRecordsTopic(name="orders", partitions=partitions)]
    request = DeleteRecordsRequest(topics=topics, timeout_ms=1000)
    node = desk.dispatchers[0].node
    steps = delete_records(node, Call(token, request, 2, Client("c", "/h")), desk.now)
    next(steps)
    wanted = DeleteTopicsRequest(topics=[DeleteTopicState(name="orders")], timeout_ms=60_000)
    assert desk.ask(wanted, 6).responses[0].error_code == 0
    desk.create(partitions=count)
    desk.produce(value=b"first")
    for _ in steps:
        pass
    desk.settle()
    codes = {one.error_code for one in told[0].topics[0].partitions}
    assert ErrorCode.UNKNOWN_TOPIC_OR_PARTITION in codes
    desk.cluster.close()
    assert starts(disk) == [0] * count


def test_no_records_are_deleted_where_the_log_is_out_of_service(disk):
    desk = filled(disk)
    desk.cluster.partition("orders", 0).failed = True
    deleted = asked(desk, {0: 1})
    desk.settle()
    assert results(deleted) == [(ErrorCode.KAFKA_STORAGE_ERROR, -1)]


@pytest.mark.parametrize("first", ["the deletion of records", "the deletion of the topic"])
def test_a_topic_that_is_made_anew_begins_at_0(disk, first):
    desk = filled(disk)
    desk.another()
    wanted = DeleteTopicsRequest(topics=[DeleteTopicState(name="orders")], timeout_ms=60_000)
    if first == "the deletion of records":
        asked(desk, {0: 2})
        desk.send(wanted, 6, node=1)
    else:
        desk.send(wanted, 6, node=1)
        asked(desk, {0: 2})
    topic = CreatableTopic(
        name="orders", num_partitions=1, replication_factor=1, assignments=[], configs=[]
    )
    desk.settle()
    made = desk.send(CreateTopicsRequest(topics=[topic], timeout_ms=60_000), 7, node=1)
    desk.settle()
    assert made.answer.topics[0].error_code == 0
    assert desk.produce().base_offset == 0
    assert starts(disk.after_crash()) == [0]


def test_a_note_that_is_refused_moves_nothing(disk):
    desk = filled(disk, 2)
    assert results_of(desk, {0: 1}) == [(0, 1)]
    disk.faults["open", f"{NOTE}.tmp"] = errno.ENOSPC
    assert results_of(desk, {0: 2, 1: 2}) == [(ErrorCode.KAFKA_STORAGE_ERROR, -1)] * 2
    assert desk.cluster.partition("orders", 0).log.start == 1
    assert desk.produce().error_code == 0
    disk.faults.clear()
    assert starts(disk.after_power_loss()) == [1, 0]
    assert results_of(desk, {0: 2, 1: 2}) == [(0, 2)] * 2


def results_of(desk, offsets):
    deleted = asked(desk, offsets)
    desk.settle()
    return results(deleted)


def test_a_log_that_cannot_be_synced_is_out_of_service_and_the_others_begin_later(disk):
    desk = filled(disk, 3, log_sync="none")
    disk.faults["sync", "/data/orders-1/"] = errno.EIO
    assert results_of(desk, dict.fromkeys(range(3), -1)) == [
        (0, 3),
        (ErrorCode.KAFKA_STORAGE_ERROR, -1),
        (0, 3),
    ]
    assert [desk.produce(partition=index).error_code for index in range(3)] == [0, 56, 0]
    assert [line for line in desk.told.errors if "orders-1" in line and "out of service" in line]


def test_a_fault_of_ours_refuses_and_ends_nothing_else(disk, monkeypatch):
    desk = filled(disk)

    def broken(_starts):
        raise ValueError("nobody has thought of it")

    with monkeypatch.context() as patched:
        patched.setattr(desk.cluster.logs, "note_starts", broken)
        assert results_of(desk, {0: 2}) == [(ErrorCode.KAFKA_STORAGE_ERROR, -1)]
    assert results_of(desk, {0: 2}) == [(0, 2)]


def test_files_go_once_the_folder_says_where_the_log_begins(disk, syncs):
    """Without the note of the directory the log must not be taken for one that lacks files."""
    desk = filled(disk, rolls=True)
    syncs.clear()
    assert results_of(desk, {0: 2}) == [(0, 2)]
    assert log_files(disk) == [2, 3]
    assert (syncs.loop, syncs.beside) == (0, 4)
    for left in (disk.after_power_loss(), disk.after_crash()):
        left.unlink(NOTE)
        assert starts(left) == [2]


def log_files(disk):
    return [int(name[:-4]) for name in disk.names("/data/orders-0") if name.endswith(".log")]


@pytest.mark.parametrize("damage", ["unreadable", "garbage"])
def test_a_note_that_cannot_be_used_is_set_aside_before_the_next_is_written(disk, damage):
    desk = filled(disk, 2)
    assert results_of(desk, {0: 1, 1: 2}) == [(0, 1), (0, 2)]
    desk.cluster.close()
    if damage == "garbage":
        disk.flip(NOTE, 0)
    else:
        disk.faults["read", NOTE] = errno.EIO
    before = bytes(disk.files[NOTE].now)
    desk = Desk(files=disk)
    assert any(NOTE in line or damage == "unreadable" for line in desk.told.warnings)
    disk.faults.clear()
    assert results_of(desk, {0: 3}) == [(0, 3)]
    assert bytes(disk.files[f"{NOTE}.damaged"].now) == before
    assert starts(disk.after_power_loss())[0] == 3


def test_a_stop_removes_the_files_that_were_about_to_go(disk):
    """The next start would set them aside for somebody to look at."""
    desk = filled(disk, rolls=True)
    asked(desk, {0: 2})
    desk.cluster.turn(desk.now)
    work = desk.cluster.begin_work()
    work.run()
    desk.cluster.end_work(work, desk.now)
    assert log_files(disk) == [0, 1, 2, 3]
    desk.cluster.close()
    assert log_files(disk) == [2, 3]
    assert starts(disk) == [2]
    assert not [name for name in disk.names("/data/orders-0") if "damaged" in name]


class Closings(DiskFiles):
    """Real files; `count` is how many are open."""

    def __init__(self):
        self.opened = []

    def open(self, path):
        file = super().open(path)
        self.opened.append(weakref.ref(file))
        return file

    def reopen(self, path):
        return self.open(path)

    @property
    def count(self):
        return sum(one() is not None for one in self.opened)


@pytest.mark.parametrize("change", ["DeleteRecords", "a cleaning"])
def test_files_that_have_lost_their_name_are_closed_beside_the_loop(tmp_path, monkeypatch, change):
    """To free a gigabyte takes half a second."""
    files = Closings()
    desk = Desk(files=files, path=str(tmp_path / "data"), log_sync="none")
    desk.create(cleanup_policy="compact,delete", min_cleanable_dirty_ratio="0")
    partition = desk.cluster.partition("orders", 0)
    for _ in range(4):
        assert desk.produce(value=b"of one key").error_code == 0
        partition.log.roll()
    closed, run = [], DiskWork.run

    def counted(work):
        before = files.count
        run(work)
        closed.append(before - files.count)

    monkeypatch.setattr(DiskWork, "run", counted)
    going = [weakref.ref(segment.file) for segment in partition.log.closed[:3]]
    reading = partition.log.headers(0)
    next(reading)
    if change == "DeleteRecords":
        assert results_of(desk, {0: 3}) == [(0, 3)]
    else:
        desk.wait(20_000)
        desk.housekeep()
    assert sum(closed) >= 2, "but for the one that is being read"
    assert [header.base_offset for header in reading]
    del reading
    assert [file() for file in going] == [None] * 3
    desk.cluster.close()
