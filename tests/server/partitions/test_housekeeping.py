# SPDX-License-Identifier: Apache-2.0
"""Retention and cleaning, on real folders."""

import errno

import pytest
from tests.observer import RecordingObserver
from tests.server.desk import START, Desk

from kohort.config import BrokerConfig
from kohort.errors import Broken, ErrorCode, StorageError
from kohort.server.catalog import Topic
from kohort.server.partitions.housekeeping import STEP_BATCHES, Housekeeping
from kohort.server.partitions.log_starts import LogStarts
from kohort.server.partitions.logs import MemoryLogs
from kohort.server.partitions.partition import Partition
from kohort.server.scheduler import MACHINES_NS, Scheduler
from kohort.storage.compaction import CleaningRules, compact
from kohort.storage.files import DiskFiles
from kohort.storage.memory import MemoryLog
from kohort.terms import Millis
from kohort.wire.batch import entries, header_at
from kohort.wire.messages.delete_groups import DeleteGroupsRequest
from kohort.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

MEGABYTE = 1 << 20


@pytest.fixture
def open_desk(tmp_path):
    """A broker on a folder; opening it again is a restart."""
    opened = []

    def open_one(**settings):
        while opened:
            opened.pop().close()
        desk = Desk(files=DiskFiles(), path=str(tmp_path / "data"), **settings)
        opened.append(desk.cluster)
        return desk

    yield open_one
    while opened:
        opened.pop().close()


def housekeep(desk, ms=0):
    """Let time pass, and do what is due then; in how many turns, of which each takes one step."""
    desk.wait(ms)
    desk.cluster.housekeep(desk.now)
    desk.step_ns, turns = MACHINES_NS, 1
    while desk.step():
        turns += 1
    desk.step_ns = 0
    return turns


def test_retention_drops_what_is_too_old(open_desk):
    desk = open_desk()
    desk.create(retention_ms="60000", segment_ms="1000")
    desk.produce()
    desk.wait(50_000)
    desk.produce()
    partition = desk.cluster.partition("orders", 0)
    housekeep(desk)
    assert partition.log.start == 0

    housekeep(desk, 300_000)
    assert (partition.log.start, partition.log.end) == (2, 2)
    assert desk.produce().base_offset == 2


def test_retention_begins_a_while_after_the_start(open_desk):
    """A broker that was away for long must be able to serve what is just too old."""
    desk = open_desk(log_initial_task_delay_ms="30000")
    desk.create(retention_ms="60000", segment_ms="1000")
    desk.produce()
    desk.wait(100_000)
    desk.produce()
    desk = open_desk(log_initial_task_delay_ms="30000")
    desk.wait(1_000_000)  # long after the records
    partition = desk.cluster.partition("orders", 0)
    housekeep(desk)
    assert partition.log.start == 0
    housekeep(desk, 29_000)
    assert partition.log.start == 0
    housekeep(desk, 1_000)
    assert partition.log.start == 2


def test_a_compacted_topic_keeps_the_last_value_of_a_key(open_desk):
    desk = open_desk()
    desk.create(cleanup_policy="compact", segment_bytes=str(MEGABYTE))
    for number in range(6):
        desk.produce(value=bytes([number]) * 400_000)
    log = desk.cluster.partition("orders", 0).log
    before = log.size_bytes

    assert housekeep(desk, 20_000) > 10

    assert log.size_bytes < before
    kept = [
        (offset, value[:1])
        for data in log.read(log.start, 10 * MEGABYTE)
        for offset, _, _, value in entries(data)
    ]
    assert kept[-1] == (5, b"\x05")
    assert len(kept) < 6
    cleaned = log.closed
    housekeep(desk, 20_000)
    assert log.closed == cleaned, "there is nothing new"


def aged(desk, partitions):
    """A topic with a file in each partition that is too old."""
    desk.create(partitions=partitions, retention_ms="60000", segment_ms="1000")
    for _ in range(2):
        for index in range(partitions):
            assert desk.produce(partition=index).error_code == 0
        desk.wait(50_000)


def starts(desk, partitions):
    return [desk.cluster.partition("orders", index).log.start for index in range(partitions)]


def test_others_are_served_between_the_logs_that_retention_looks_at(open_desk):
    desk = open_desk()
    aged(desk, 20)
    desk.another()
    desk.wait(30_000)
    desk.cluster.housekeep(desk.now)  # from now on it is 30 seconds
    desk.settle()
    desk.wait(30_000)
    desk.cluster.housekeep(desk.now)
    desk.step_ns = MACHINES_NS
    waited = []
    for _ in range(8):
        asked = desk.send_batch(partition=19, node=1)
        turns = 0
        while asked.answer is None:
            desk.step()
            desk.take()
            turns += 1
        waited.append(turns)
        assert starts(desk, 20) != [2] * 20, "it goes on all the time"
    assert max(waited) <= 3
    desk.step_ns = 0
    desk.settle()
    assert starts(desk, 19) == [2] * 19


def test_retention_of_many_logs_waits_for_the_disk_beside_the_loop(open_desk):
    """The folders say where the logs begin before a file goes, and no file goes before."""
    desk = open_desk()
    aged(desk, 5)
    desk.cluster.housekeep(desk.now)
    desk.settle()
    desk.wait(300_000)
    desk.cluster.housekeep(desk.now)
    desk.cluster.turn(desk.now)
    assert starts(desk, 5) == [0] * 5
    work = desk.cluster.begin_work()
    work.run()
    assert starts(desk, 5) == [0] * 5
    desk.cluster.end_work(work, desk.now)
    assert starts(desk, 5) == [2] * 5
    desk.settle()
    sizes = [desk.cluster.partition("orders", index).log.size_bytes for index in range(5)]
    assert sizes == [0] * 5


def test_others_are_served_while_retention_reads_a_file_that_nobody_has_used(open_desk):
    """After a start it does not know yet how old its records are."""
    desk = open_desk(log_sync="none")
    desk.create(retention_ms="60000", segment_ms="1000")
    for _ in range(2 * STEP_BATCHES + 1):
        desk.send_batch()
    desk.settle()
    desk.wait(50_000)
    desk.produce()
    desk = open_desk(log_sync="none", log_initial_task_delay_ms="0")
    log = desk.cluster.partition("orders", 0).log
    desk.wait(300_000)
    desk.cluster.housekeep(desk.now)
    desk.step_ns = MACHINES_NS
    turns = 0
    while not desk.cluster.table.starts.waiting:
        desk.cluster.turn(desk.now)
        turns += 1
        assert turns < 100
    assert turns > 2
    desk.step_ns = 0
    desk.settle()
    assert log.start == log.end == 2 * STEP_BATCHES + 2


@pytest.mark.parametrize("change", ["a read", "a cleaning", "DeleteRecords"])
def test_the_log_may_change_while_retention_reads_it(open_desk, change):
    desk = open_desk(log_sync="none")
    desk.create(
        retention_ms="60000",
        segment_ms="1000",
        cleanup_policy="compact,delete",
        min_cleanable_dirty_ratio="0",
    )
    for _ in range(3):
        for _ in range(STEP_BATCHES // 2 + 1):
            desk.send_batch(value=b"of one key")
        desk.settle()
        desk.wait(10_000)
    desk = open_desk(log_sync="none", log_initial_task_delay_ms="0")
    partition = desk.cluster.partition("orders", 0)
    log, end = partition.log, partition.log.end
    desk.wait(300_000)
    desk.cluster.housekeep(desk.now)
    desk.step_ns = MACHINES_NS
    desk.cluster.turn(desk.now)
    if change == "a read":
        assert partition.read(3, 100, end)
    elif change == "DeleteRecords":
        log.note_start(STEP_BATCHES)
        log.move_start(STEP_BATCHES)
        while log.remove_oldest():
            pass
    else:
        for _ in compact(log, DiskFiles(), CleaningRules(desk.now)):
            pass
    desk.step_ns = 0
    desk.settle()
    assert (log.start, log.end) == (end, end)
    assert desk.told.warnings == []


def test_a_topic_may_go_while_retention_waits_for_the_disk(open_desk):
    desk = open_desk()
    aged(desk, 3)
    desk.cluster.housekeep(desk.now)
    desk.settle()
    desk.wait(300_000)
    desk.cluster.housekeep(desk.now)
    desk.cluster.turn(desk.now)
    delete(desk)
    desk.settle()
    assert desk.told.warnings == []
    desk.create()
    assert desk.produce().base_offset == 0


def test_deleted_groups_give_their_room_back(open_desk):
    """K229-24, also where the log rolls while it is cleaned."""
    desk = open_desk(
        offsets_topic_num_partitions="1",
        log_cleaner_delete_retention_ms="0",
        log_cleaner_min_cleanable_ratio="0.001",
        log_cleaner_backoff_ms="1000",
    )
    desk.create()
    log = desk.cluster.partition("__consumer_offsets", 0).log
    names = [f"group-{number}" for number in range(300)]
    for name in names:
        commit(desk, name)
        if name.endswith("00"):
            log.roll()
    full = log.size_bytes
    assert len(log.closed) >= 2

    begin_cleaning(desk, 1000)
    deleted = desk.ask(DeleteGroupsRequest(groups_names=names), 2).results
    assert {one.error_code for one in deleted} == {0}
    commit(desk, "last")
    log.roll()
    for _ in range(4):
        housekeep(desk, 20_000)
        commit(desk, "last")
        log.roll()

    assert log.size_bytes < full / 20


def begin_cleaning(desk, ms):
    """Take the first step of what is due after so long."""
    desk.wait(ms)
    desk.cluster.housekeep(desk.now)
    desk.step_ns = MACHINES_NS
    desk.step()
    desk.step()
    desk.step_ns = 0
    assert desk.cluster.has_more, "it is being cleaned"


def commit(desk, group_id):
    place = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topic = OffsetCommitRequestTopic(name="orders", partitions=[place])
    answer = desk.ask(OffsetCommitRequest(group_id=group_id, topics=[topic]), 8)
    assert answer.topics[0].partitions[0].error_code == 0


def test_cleaning_can_be_switched_off_and_the_young_are_left_alone(open_desk):
    for settings, configs in (
        ({"log_cleaner_enable": "false"}, {}),
        ({}, {"min_compaction_lag_ms": "1000000"}),
    ):
        desk = open_desk(**settings)
        name = f"orders-{len(settings)}"
        desk.create(name, cleanup_policy="compact", segment_bytes=str(MEGABYTE), **configs)
        for _ in range(6):
            desk.produce(name, value=b"x" * 400_000)
        log = desk.cluster.partition(name, 0).log
        before = log.size_bytes
        housekeep(desk, 20_000)
        assert log.size_bytes == before


def test_the_young_are_left_alone_after_a_restart_too(open_desk):
    desk = open_desk()
    desk.create(
        cleanup_policy="compact", segment_bytes=str(MEGABYTE), min_compaction_lag_ms="1000000"
    )
    for _ in range(6):
        desk.produce(value=b"x" * 400_000)
    before = desk.cluster.partition("orders", 0).log.size_bytes
    desk = open_desk()
    housekeep(desk, 20_000)
    assert desk.cluster.partition("orders", 0).log.size_bytes == before


def test_damage_that_is_found_before_the_cleaning_does_not_stop_the_sweep(open_desk, tmp_path):
    desk = open_desk()
    desk.create(
        cleanup_policy="compact", segment_bytes=str(MEGABYTE), min_compaction_lag_ms="1000000"
    )
    for _ in range(6):
        desk.produce(value=b"x" * 400_000)
    path = desk.cluster.partition("orders", 0).log.closed[0].path
    desk.cluster.close()
    file = DiskFiles().open(path)
    file.write(16, b"\x01")
    file.close()
    desk = Desk(files=DiskFiles(), path=str(tmp_path / "data"))
    housekeep(desk, 20_000)
    assert any("orders-0 is damaged and not cleaned" in line for line in desk.told.warnings)
    desk.cluster.close()


def test_a_topic_may_go_while_it_is_being_cleaned(open_desk):
    """Its files are closed then: that is no damage."""
    desk = open_desk()
    for name in ("orders", "payments"):
        desk.create(name, cleanup_policy="compact", segment_bytes=str(MEGABYTE))
        for _ in range(6):
            desk.produce(name, value=b"x" * 400_000)
    logs = {name: desk.cluster.partition(name, 0).log for name in ("orders", "payments")}
    before = logs["payments"].size_bytes
    begin_cleaning(desk, 20_000)
    desk.step_ns = MACHINES_NS
    while logs["orders"].directory + "/00000000000000000000.log.cleaned" not in cleaned(logs):
        assert desk.step(), "it is being cleaned"
    desk.step_ns = 0
    delete(desk)
    desk.settle()
    housekeep(desk, 20_000)
    assert desk.told.warnings == []
    assert logs["payments"].size_bytes < before


def test_a_log_that_is_lost_meanwhile_is_cleaned_no_further(open_desk):
    desk = open_desk()
    desk.create("orders", cleanup_policy="compact", segment_bytes=str(MEGABYTE))
    for _ in range(6):
        desk.produce("orders", value=b"x" * 400_000)
    partition = desk.cluster.partition("orders", 0)
    logs, before = {"orders": partition.log}, partition.log.size_bytes
    begin_cleaning(desk, 20_000)
    desk.step_ns = MACHINES_NS
    while not cleaned(logs):
        assert desk.step(), "it is being cleaned"
    desk.step_ns = 0
    partition.lost(Broken("its sync has failed"))
    desk.settle()
    assert (partition.log.size_bytes, cleaned(logs)) == (before, [])


def cleaned(logs):
    files = DiskFiles()
    found = [(log.directory, name) for log in logs.values() for name in files.names(log.directory)]
    return [f"{folder}/{name}" for folder, name in found if name.endswith(".cleaned")]


class Sick(MemoryLogs):
    """Logs that cannot be cleaned, or not to the end."""

    def __init__(self, error):
        self.error = error
        self.asked = 0

    def clean(self, log, config, rules):
        self.asked += 1

        def steps():
            yield 1
            raise self.error

        return steps()


class SickLog(MemoryLog):
    def __init__(self, error):
        super().__init__()
        self.error = error

    def retention_start(self, now, retention_ms, retention_bytes, most):
        raise self.error


class Kept:
    """Partitions whose housekeeping is due, and what it tells."""

    def __init__(self, logs, policy, **partitions):
        self.told = RecordingObserver()
        config = BrokerConfig(log_initial_task_delay_ms=0)
        self.partitions = [
            Partition(Topic(name, bytes(16), 1, 1, {"cleanup.policy": policy}), 0, log, config)
            for name, log in partitions.items()
        ]
        self._scheduler = Scheduler(lambda: 0)
        self._keeping = Housekeeping(
            config, logs, self.told, self._scheduler, LogStarts(lambda _: None), lambda _: True
        )

    def look(self, now):
        """Do what is due; whether anything was."""
        self._keeping.look(self.partitions, now)
        due = bool(self._scheduler.waiting)
        self._scheduler.run_round()
        assert not self._scheduler.waiting
        return due


@pytest.mark.parametrize("error", [StorageError("no room"), Broken("a bad batch")])
def test_what_cannot_be_done_is_told_and_does_not_stop_the_rest(error):
    logs = Sick(error)
    kept = Kept(logs, "compact,delete", a=SickLog(error), b=MemoryLog())
    assert kept.look(START)

    def cleaning(name):
        damaged = isinstance(error, Broken)
        return f"{name} is damaged and not cleaned any more" if damaged else f"cleaning of {name}"

    assert logs.asked == 2
    assert kept.told.warnings == [
        f"retention of a-0: {error}",
        f"{cleaning('a-0')}: {error}",
        f"{cleaning('b-0')}: {error}",
    ]
    assert not kept.look(Millis(START + 1))


# --- restarts


def test_everything_is_there_after_a_restart(open_desk):
    desk = open_desk()
    topic_id = desk.create(partitions=2, retention_ms="-1")
    desk.produce(partition=1, records=3, producer_id=5, producer_epoch=0)

    again = open_desk()

    known = again.cluster.catalog.by_name["orders"]
    assert (known.topic_id, known.partitions, known.configs) == (
        topic_id,
        2,
        {"retention.ms": "-1"},
    )
    repeated = again.produce(partition=1, records=3, producer_id=5, producer_epoch=0)
    assert repeated.base_offset == 0
    assert again.produce(partition=1).base_offset == 3
    data = again.cluster.partition("orders", 1).read(0, 1000, 4)
    assert header_at(data).count == 3


def test_a_deletion_that_a_crash_has_cut_short_is_finished(open_desk):
    """Records of the old topic must not show under a new one of its name."""
    desk = open_desk()
    desk.create()
    desk.produce()
    draft = desk.cluster.catalog.draft()
    draft.delete(draft.by_name["orders"])
    desk.cluster.catalog.save(draft)

    again = open_desk()

    assert not again.cluster.catalog.deleting
    again.create()
    assert again.produce().base_offset == 0


def test_a_log_that_cannot_be_opened_now_is_opened_later(open_desk, monkeypatch):
    desk = open_desk()
    logs = desk.cluster.logs
    whole = logs.open

    def full(*arguments):
        raise StorageError("no space left")

    monkeypatch.setattr(logs, "open", full)
    desk.create()
    assert desk.produce().error_code == ErrorCode.KAFKA_STORAGE_ERROR
    monkeypatch.setattr(logs, "open", whole)
    desk.housekeep()

    assert desk.produce().error_code == 0


def delete(desk):
    """The topic goes; nothing else happens yet."""
    desk.cluster.table.change(lambda real: real.delete(real.by_name["orders"]) or _nobody)
    work = desk.cluster.begin_work()
    work.run()
    desk.cluster.end_work(work, desk.now)


def _nobody(_error):
    """Nobody waits."""


def test_a_topic_may_go_while_its_records_wait_for_the_disk(open_desk):
    desk = open_desk()
    desk.create()
    desk.send_batch()
    delete(desk)
    desk.settle()

    assert desk.cluster.begin_sync() == []


def test_a_topic_may_go_while_the_disk_is_busy_with_it(open_desk):
    """Its file must stay open until the sync has ended: an error there would stop the broker."""
    desk = open_desk()
    desk.create()
    asked = desk.send_batch()
    desk.settle(sync=False)
    begun = desk.cluster.begin_sync()
    delete(desk)
    for one in begun:
        desk.cluster.end_sync(one, one.log.sync())
    desk.settle()

    assert asked.answer.responses[0].partition_responses[0].error_code == 0
    assert desk.create()
    assert desk.produce().base_offset == 0


def test_a_log_that_could_not_be_opened_for_want_of_descriptors_is_cleaned_later():
    """It is not damaged."""
    error = Broken("cannot be read")
    error.__cause__ = OSError(errno.EMFILE, "Too many open files")
    logs = Sick(error)
    kept = Kept(logs, "compact", a=MemoryLog())
    for now in (START, START + 60_000):
        assert kept.look(now)
    assert logs.asked == 2
    assert kept.told.warnings == ["cleaning of a-0: cannot be read"] * 2
