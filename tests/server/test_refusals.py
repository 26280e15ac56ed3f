# SPDX-License-Identifier: Apache-2.0
"""Refused means unchanged, now and after a restart, for every API and every step that can fail.

Here the first step of each kind fails; in `tests/prove` each of them does, in every way.
"""

import errno

import pytest
from tests.server import mutations, refusals
from tests.server.desk import Desk
from tests.server.mutations import CASES, READS, codes

from kohort.errors import StorageError
from kohort.server.network.routes import ROUTES
from kohort.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kohort.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState


def test_every_request_either_has_a_case_or_changes_nothing():
    names = {request.__name__.removesuffix("Request") for request in ROUTES}
    assert {name.partition(" ")[0] for name in CASES} - {"several", "retention"} == names - READS
    assert names >= READS


@pytest.mark.parametrize("name", CASES)
def test_what_is_refused_is_unchanged_and_what_is_acknowledged_is_there(name):
    for fault in refusals.first_faults(name):
        refusals.tried(name, fault)


@pytest.fixture
def disk():
    disk = refusals.FailingFiles()
    desk = Desk(files=disk)
    desk.create()
    assert desk.produce(value=b"old").error_code == 0
    desk.cluster.close()
    return disk.after_crash()


def deletion(desk):
    wanted = DeleteTopicsRequest(topics=[DeleteTopicState(name="orders")], timeout_ms=60_000)
    return desk.send(wanted, 6)


def test_a_change_that_may_be_lost_is_answered_when_the_disk_has_it(disk):
    """A directory that refuses syncs: the catalog is there, and a loss of power may take it."""
    desk = Desk(files=disk)
    disk.faults["sync_directory", "/data"] = errno.EIO
    asked = deletion(desk)
    desk.settle()
    desk.housekeep()
    assert asked.answer is None
    assert "orders" not in desk.cluster.catalog.by_name, "a restart would not find it"
    assert disk.names("/data/orders-0"), "its records stay until the deletion is durable"
    assert "orders" in Desk(files=without_fault(disk.after_power_loss())).cluster.catalog.by_name
    (told,) = [line for line in desk.told.warnings if "may not be durable" in line]
    assert told.startswith("/data/kohort.catalog.json is written, and may not be durable: ")

    disk.faults.clear()
    desk.housekeep()

    assert asked.answer.responses[0].error_code == 0
    assert "the catalog of topics is durable again" in desk.told.warnings
    assert "orders" not in Desk(files=disk.after_power_loss()).cluster.catalog.by_name
    assert not disk.names("/data/orders-0")


def without_fault(disk):
    disk.faults.clear()
    return disk


def test_a_change_settles_the_one_before_it(disk):
    desk = Desk(files=disk)
    disk.faults["sync_directory", "/data"] = errno.EIO
    asked = deletion(desk)
    desk.settle()
    disk.faults.clear()
    desk.another()
    sent = CreatableTopic(
        name="apples", num_partitions=1, replication_factor=1, assignments=[], configs=[]
    )
    wanted = desk.send(CreateTopicsRequest(topics=[sent], timeout_ms=60_000), 7, node=1)
    desk.settle()
    assert asked.answer.responses[0].error_code == 0
    assert not codes(wanted.answer)


def test_no_producer_id_is_given_that_a_loss_of_power_gives_again(disk):
    desk = Desk(files=disk)
    disk.faults["sync_directory", "/data"] = errno.EIO
    asked = mutations.initialised(None)(desk)[0]
    desk.settle()
    assert asked.answer is None
    disk.faults.clear()
    desk.housekeep()
    given = asked.answer.producer_id
    disk.faults.clear()
    again = Desk(files=disk.after_power_loss())
    (other,) = mutations.initialised(None)(again)
    again.settle()
    assert other.answer.producer_id > given


def test_a_stop_leaves_no_torn_end_that_a_start_takes_for_damage(disk):
    """A write fails half way, and so does the cut behind it."""
    desk = Desk(files=disk)
    path = "/data/orders-0/00000000000000000000.log"
    disk.room_bytes = 30
    disk.faults["truncate", path] = errno.EIO
    assert desk.produce(value=b"refused").error_code == 56
    disk.faults.clear()
    disk.room_bytes = None
    desk.cluster.close()
    again = Desk(files=disk.after_crash())
    assert again.produce().base_offset == 1


def test_a_stop_that_cannot_cut_a_torn_end_does_not_call_it_whole(disk):
    desk = Desk(files=disk)
    path = "/data/orders-0/00000000000000000000.log"
    disk.room_bytes = 30
    disk.faults["truncate", path] = errno.EIO
    assert desk.produce(value=b"refused").error_code == 56
    desk.cluster.close()
    after = without_fault(disk.after_crash())
    after.room_bytes = None
    again = Desk(files=after)
    assert again.produce().base_offset == 1


@pytest.mark.parametrize("left", ["a torn end", "a segment without a use"])
def test_a_stop_syncs_what_was_written_also_where_it_cannot_remove_what_was_not(disk, left):
    """Nobody waits for a sync here, but a stop makes every log durable, and those behind it."""
    desk = Desk(files=disk, log_sync="none")
    desk.create("others")
    directory = "/data/orders-0"
    log = desk.cluster.partition("orders", 0).log
    if left == "a torn end":
        assert desk.produce(value=b"new").error_code == 0
        disk.room_bytes = 30
        disk.faults["truncate", directory] = errno.EIO
        assert desk.produce(value=b"refused").error_code == 56
        disk.room_bytes = None
    else:
        disk.faults["sync_directory", directory] = errno.EIO
        disk.faults["unlink", directory] = errno.EIO
        with pytest.raises(StorageError, match="no room for a segment"):
            log.roll()
    assert desk.produce("others", value=b"new").error_code == 0
    written = log.end

    desk.cluster.close()

    again = Desk(files=without_fault(disk.after_power_loss()))
    assert again.cluster.partition("orders", 0).log.end == written
    assert again.cluster.partition("others", 0).log.end == 1
    (said,) = [line for line in desk.told.warnings if "is not closed in order" in line]
    assert said.startswith("orders-0 is not closed in order: ")
    assert ".kafka_cleanshutdown" not in disk.names("/data")


def moved(desk):
    (asked,) = mutations.records_deleted("orders", 1)(desk)
    desk.settle()
    return asked


def test_a_start_that_is_moved_back_durably_is_refused(disk):
    """The directory is synced when the former start is written again."""
    desk = Desk(files=disk)
    before, refused = disk.before, []

    def refuse_twice(operation, path):
        if operation == "sync_directory" and len(refused) < 2:
            refused.append(path)
            raise disk.refusal(errno.EIO, path)
        before(operation, path)

    disk.before = refuse_twice
    assert codes(moved(desk).answer) == [56]
    assert refused == ["/data"] * 2
    assert desk.cluster.partition("orders", 0).log.start == 0
    for after in (disk.after_crash(), disk.after_power_loss()):
        assert Desk(files=after).cluster.partition("orders", 0).log.start == 0


def start_after(disk):
    disk.disarm()
    return Desk(files=without_fault(disk)).cluster.partition("orders", 0).log.start


@pytest.mark.parametrize("steps", ["the syncs of the directory", "everything"])
def test_nobody_is_told_of_a_start_that_a_restart_may_find_either_way(disk, steps):
    """Neither the new start nor the former one is known to be on the disk. Whoever was refused
    would find the records gone where the power fails now.
    """
    desk = Desk(files=disk)
    found = []  # by a start after a loss of power that keeps the renames up to then, and no more
    disk.told_refusal = lambda: found.append(disk.after_crash())
    if steps == "everything":
        disk.arm(4, errno.EIO, lasts=refusals.EVERYTHING)  # behind the rename
    else:
        disk.faults["sync_directory", "/data"] = errno.EIO

    asked = moved(desk)

    disk.disarm()
    assert {start_after(one) for one in (*found, disk.after_power_loss())} == {0, 1}
    assert asked.answer is None, "either may be what the next one finds"
    assert desk.clients[0].connection.finished or desk.clients[0].connection.closed
    (told,) = [line for line in desk.told.errors if "out of service" in line]
    assert "/data/log-start-offset-checkpoint: starts not moved" in told
    assert "nor moved back" in told


def test_records_are_deleted_although_a_file_of_them_stays(disk):
    """The start is moved, durably; the file goes later."""
    desk = Desk(files=disk)
    log = desk.cluster.partition("orders", 0).log
    log.roll()
    assert desk.produce(value=b"new").error_code == 0
    first = log.closed[0].path
    disk.faults["unlink", first] = errno.EIO
    (asked,) = mutations.records_deleted("orders", 1)(desk)
    desk.settle()
    assert not codes(asked.answer)
    assert log.start == 1
    assert first in disk.files
    (told,) = [line for line in desk.told.warnings if "old segments not removed" in line]
    assert told.startswith("retention of orders-0: ")
    disk.faults.clear()
    desk.housekeep()
    desk.wait(desk.cluster.config.log_retention_check_interval_ms + 60_000)
    desk.housekeep()
    assert first not in disk.files
