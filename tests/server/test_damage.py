# SPDX-License-Identifier: Apache-2.0
"""What was synced is whole or out of service; the others are served; and everything is told."""

import errno

import pytest
from tests.server.desk import Desk
from tests.server.test_cluster import GROUPS, commit, committed

from kohort.cli.inspect_data import inspect_folders
from kohort.errors import Broken, ErrorCode
from kohort.sim.disk import SimulatedFiles
from kohort.storage import checkpoints
from kohort.storage.files import replace_whole
from kohort.wire.batch import build
from kohort.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kohort.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kohort.wire.messages.list_groups import ListGroupsRequest

LOG = "/data/orders-0/00000000000000000000.log"
POINTS = f"/data/{checkpoints.RECOVERY_POINTS}"
CLEAN = ".kafka_cleanshutdown"
GONE = ErrorCode.COORDINATOR_NOT_AVAILABLE
MINUTE = 60_000


@pytest.fixture
def files():
    return SimulatedFiles()


def written(files, *, count=5, **settings):
    """A broker that has written to two topics and goes on."""
    desk = Desk(files=files, **settings)
    desk.create()
    desk.create("payments")
    for number in range(count):
        for name in ("orders", "payments"):
            assert desk.produce(name, value=b"%d" % number).error_code == 0
    return desk


def end(desk, name="orders"):
    return desk.cluster.partition(name, 0).log.end


def fetch(desk, offset, name="orders"):
    place = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    request = FetchRequest(
        max_wait_ms=0, min_bytes=0, topics=[FetchTopic(topic=name, partitions=[place])]
    )
    return desk.ask(request, 12).responses[0].partitions[0]


def test_what_has_been_synced_is_noted_now_and_then(files):
    desk = written(files)
    desk.housekeep()
    assert checkpoints.recovery_points(files, "/data")["orders", 0] == 5
    desk.produce()
    desk.housekeep()
    assert checkpoints.recovery_points(files, "/data")["orders", 0] == 5
    desk.wait(MINUTE)
    desk.housekeep()
    points = checkpoints.recovery_points(files, "/data")
    assert (points["orders", 0], points["payments", 0]) == (6, 5)


@pytest.mark.parametrize("position", [0, 16, 30, 70, -1])
@pytest.mark.parametrize("power", [False, True])
def test_damage_before_the_checkpoint_takes_out_one_partition(files, position, power):
    desk = written(files)
    desk.housekeep()
    files = files.after_power_loss() if power else files.after_crash()
    before = bytes(files.files[LOG].now)
    files.flip(LOG, position % len(before))
    damaged = bytes(files.files[LOG].now)

    again = Desk(files=files)

    answer = again.produce()
    assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert fetch(again, 0).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert again.produce("payments").base_offset == 5
    assert f"{LOG} is damaged at byte" in again.told.errors[0]
    assert "offsets before 5 have been synced" in again.told.errors[0]
    again.cluster.close()
    assert files.files[LOG].now == damaged, "nothing is cut"
    assert CLEAN not in files.names("/data")


def test_damage_behind_the_checkpoint_is_cut_and_told(files):
    desk = written(files)
    desk.housekeep()
    desk.produce()
    size = len(files.files[LOG].now)
    desk.produce()
    desk.produce()
    files = files.after_crash()
    files.flip(LOG, size + 70)

    again = Desk(files=files)

    assert end(again) == 6
    assert again.told.errors == []
    (told,) = [line for line in again.told.warnings if "torn" in line]
    assert f"{LOG} is torn at byte {size} and cut there" in told
    assert "from offset 6 on are given up, among them 1 that look like batches" in told


def test_damage_after_a_clean_stop_is_never_cut(files):
    written(files).cluster.close()
    assert CLEAN in files.names("/data")
    files.unlink(POINTS)
    size = len(files.files[LOG].now)
    files.flip(LOG, size - 1)

    again = Desk(files=files)

    assert CLEAN not in files.names("/data")
    assert again.produce().error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert "the log was closed in order" in again.told.errors[0]
    assert len(files.files[LOG].now) == size


def test_the_word_of_a_clean_stop_is_taken_back_for_good(files):
    """Else the next loss of power would leave a torn tail that may not be cut."""
    written(files).cluster.close()
    desk = Desk(files=files)
    desk.send_batch()
    desk.settle(sync=False)
    files = files.after_power_loss(kept=0.5)
    assert CLEAN not in files.names("/data")
    again = Desk(files=files)
    assert end(again) == 5
    assert again.told.errors == []


def test_a_directory_without_checkpoint_is_opened_as_kafka_does(files):
    written(files)
    files = files.after_crash()
    assert POINTS not in files.files
    size = len(files.files[LOG].now)
    files.flip(LOG, size // 5 * 2 + 30)
    again = Desk(files=files)
    assert end(again) == 2
    assert any(f"{LOG} is torn" in line for line in again.told.warnings)


@pytest.mark.parametrize("content", [b"", b"0\n1\norders", b"\xff\xfe"])
def test_a_checkpoint_that_cannot_be_read_is_told(files, content):
    written(files).cluster.close()
    replace_whole(files, "/data", checkpoints.RECOVERY_POINTS, content)
    again = Desk(files=files)
    assert end(again) == 5
    assert any(f"{POINTS}: not a checkpoint file" in line for line in again.told.warnings)


def test_nothing_is_cut_while_nobody_knows_what_has_been_synced(files):
    """Two faults at once: a damaged checkpoint, and damage to what it had a line for."""
    desk = written(files)
    desk.housekeep()
    files = files.after_crash()
    replace_whole(files, "/data", checkpoints.RECOVERY_POINTS, b"0\n1\norders")
    files.flip(LOG, len(files.files[LOG].now) // 5 * 2 + 30)
    log = bytes(files.files[LOG].now)
    for _ in range(2):  # also not by the next start, when the others have been noted again
        again = Desk(files=files)
        assert again.produce().error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert "what has been synced is not known" in again.told.errors[0]
        assert again.produce("payments").error_code == 0
        again.wait(MINUTE)
        again.housekeep()
        assert any("orders-0 is not open, and what was" in line for line in again.told.warnings)
        again.cluster.close()
        assert files.files[LOG].now == log

    (found,) = [one for one in inspect_folders(files, "/data")[0] if one.name == "orders-0"]
    assert [(one.first, one.behind) for one in found.damages] == [(2, 3)]
    inspect_folders(files, "/data", mend=True)
    again = Desk(files=files)
    assert again.produce().base_offset == 5
    assert again.told.errors == []


def test_a_damaged_checkpoint_is_replaced_when_every_log_is_open(files):
    written(files)
    files = files.after_crash()
    replace_whole(files, "/data", checkpoints.RECOVERY_POINTS, b"0\n1\norders")
    again = Desk(files=files)
    again.produce()
    again.wait(MINUTE)
    again.housekeep()
    assert checkpoints.recovery_points(files, "/data")["orders", 0] == 6


def test_a_checkpoint_that_the_disk_does_not_give_now_is_not_forgotten(files):
    desk = written(files)
    desk.housekeep()
    files = files.after_crash()
    files.flip(LOG, len(files.files[LOG].now) // 5 * 2 + 30)
    files.faults["open", POINTS] = errno.EIO
    again = Desk(files=files)
    assert again.produce().error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert f"is not known: [Errno 5] Input/output error: '{POINTS}'" in again.told.errors[0]
    assert again.produce("payments").error_code == 0
    again.cluster.close()
    files.faults.clear()
    again = Desk(files=files)
    assert again.produce().error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert "offsets before 5 have been synced" in again.told.errors[0]


def test_a_topic_that_goes_before_its_line_can_owes_nothing_when_it_comes_again(files):
    desk = written(files)
    desk.housekeep()
    files = files.after_crash()
    files.faults["open", POINTS] = errno.EIO
    again = Desk(files=files)
    wanted = DeleteTopicState(name="orders")
    again.ask(DeleteTopicsRequest(topics=[wanted], timeout_ms=1000), 6)
    files.faults.clear()
    files = files.after_crash()
    again = Desk(files=files)
    again.create()
    assert again.produce().base_offset == 0
    for left in (files.after_crash(), files.after_power_loss()):
        again = Desk(files=left)
        assert again.told.errors == []
        assert end(again) == 1


def test_a_last_segment_that_is_gone_is_not_passed_over(files):
    written(files).cluster.close()
    files.unlink(LOG)
    again = Desk(files=files)
    assert again.produce().error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert "/data/orders-0 ends at offset 0, expected 5 at least" in again.told.errors[0]
    assert again.produce("payments").base_offset == 5
    again.cluster.close()
    assert checkpoints.recovery_points(files, "/data")["orders", 0] == 5, "it is still owed"


def test_a_topic_made_anew_owes_nothing_of_the_old_one(files):
    desk = written(files)
    desk.housekeep()
    wanted = DeleteTopicState(name="orders")
    desk.ask(DeleteTopicsRequest(topics=[wanted], timeout_ms=1000), 6)
    desk.create()
    desk.produce()
    for left in (files.after_crash(), files.after_power_loss()):
        again = Desk(files=left)
        assert again.told.errors == []
        assert end(again) == 1


def test_a_log_that_could_not_be_synced_is_not_called_clean(files):
    desk = written(files)
    desk.housekeep()
    files.faults["sync", LOG] = errno.EIO
    desk.send_batch()
    desk.settle()
    files.faults.clear()
    desk.cluster.close()
    assert CLEAN not in files.names("/data")
    assert checkpoints.recovery_points(files, "/data")["orders", 0] == 5


def test_a_log_that_could_not_be_synced_where_a_segment_ended_is_told_of(files):
    """Nobody waited for that sync: the next write finds it."""
    desk = written(files)
    log = desk.cluster.partition("orders", 0).log
    log.append(build([(b"k", b"v")], desk.now), 1)
    files.faults["sync", LOG] = errno.EIO
    with pytest.raises(Broken):
        log.roll()
    files.faults.clear()
    for _ in range(2):
        assert desk.produce().error_code == ErrorCode.KAFKA_STORAGE_ERROR
        desk.housekeep()
        desk.wait(MINUTE)
    (told,) = desk.told.errors
    assert told.startswith("orders-0 could not be synced and is out of service: ")


def test_a_checkpoint_that_cannot_be_written_is_told_once(files):
    desk = written(files)
    files.faults["open", POINTS] = errno.ENOSPC
    for _ in range(3):
        desk.housekeep()
        desk.wait(MINUTE)
    assert len([one for one in desk.told.warnings if "not noted what has been synced" in one]) == 1
    assert desk.produce().error_code == 0


def closed_segment(files, name, index=0):
    """The path of a closed segment; opening again will not look at it at once."""
    desk = Desk(files=files)
    log = desk.cluster.partition(name, index).log
    path = log.active.path
    log.roll()
    return desk, path


def test_a_flipped_bit_in_a_closed_segment_of_a_topic(files):
    written(files).cluster.close()
    desk, path = closed_segment(files, "orders")
    desk.produce()
    desk.cluster.close()
    size = len(files.files[path].now)
    files.flip(path, size // 5 * 3 + 70)

    again = Desk(files=files)

    assert fetch(again, 0).error_code == 0
    assert fetch(again, 3).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert fetch(again, 5).error_code == 0, "what stands behind it is whole"
    assert again.produce().base_offset == 6
    again.housekeep()
    again.housekeep()
    told = [
        line for line in again.told.warnings if "orders-0 is damaged and cannot be read" in line
    ]
    assert len(told) == 1
    assert path in told[0]


def test_a_flipped_bit_in_a_closed_segment_of_groups(files):
    """It is no other offset, but an error, and for the groups of that shard alone."""
    desk = written(files)
    assert {commit(desk, one, 100) for one in GROUPS} == {0}
    lost = [one for one in GROUPS if desk.cluster.placement.shard_of(one) == 1]
    log = desk.cluster.partition("__consumer_offsets", 1).log
    path = log.active.path
    log.roll()
    assert {commit(desk, one, 200) for one in GROUPS} == {0}
    desk.cluster.close()
    files.flip(path, 100)

    again = Desk(files=files)

    for one in GROUPS:
        assert committed(again, one) == (GONE.name if one in lost else 200)
        assert commit(again, one, 300) == (GONE if one in lost else 0)
    assert any("__consumer_offsets-1 cannot be loaded" in line for line in again.told.errors)
    listed = again.ask(ListGroupsRequest(), 5)
    assert (listed.error_code, len(listed.groups)) == (0, len(GROUPS) - len(lost))
    assert not {one.group_id for one in listed.groups} & set(lost)


def test_damage_is_not_cleaned(files):
    desk = Desk(files=files)
    desk.create(cleanup_policy="compact", min_cleanable_dirty_ratio="0.01")
    log = desk.cluster.partition("orders", 0).log
    for _ in range(3):
        for number in range(20):
            desk.produce(value=b"%d" % number)
        log.roll()
    desk.cluster.close()
    files.flip(LOG, 310)
    before = {path: bytes(one.now) for path, one in files.files.items() if path.endswith(".log")}

    again = Desk(files=files)
    for _ in range(4):
        again.housekeep()
        again.wait(20_000)

    after = {path: bytes(one.now) for path, one in files.files.items() if path.endswith(".log")}
    assert before.items() <= after.items()
    told = [line for line in again.told.warnings if "orders-0 is damaged and not cleaned" in line]
    assert len(told) == 1


def test_a_torn_tail_of_groups_loses_nothing_acknowledged(files):
    desk = written(files)
    assert {commit(desk, one, 100) for one in GROUPS} == {0}
    desk.housekeep()
    files = files.after_power_loss(kept=0.5)
    again = Desk(files=files)
    assert {committed(again, one) for one in GROUPS} == {100}


def test_writes_that_a_full_disk_refuses_are_counted_and_told(files):
    """Once in a while, however many there are; and never again when there is room."""
    desk = written(files)
    files.faults["write", LOG] = errno.ENOSPC
    answers = [desk.produce().error_code for _ in range(3)]
    assert answers == [ErrorCode.KAFKA_STORAGE_ERROR] * 3
    assert desk.produce("payments").error_code == 0
    desk.housekeep()
    (told,) = [one for one in desk.told.warnings if "refused" in one]
    assert told.startswith("writes were refused: 3, to partitions: 1, the last to orders-0: ")
    files.faults.clear()
    assert desk.produce().error_code == 0
    desk.housekeep()
    assert len([one for one in desk.told.warnings if "refused" in one]) == 1


@pytest.mark.parametrize("name", [POINTS, f"/data/{checkpoints.START_OFFSETS}"])
def test_a_checkpoint_that_cannot_be_read_stops_nobody(files, name):
    desk = written(files)
    desk.cluster.close()
    files.faults["open", name] = errno.EIO
    files.faults["read", name] = errno.EIO
    desk = Desk(files=files)
    assert (end(desk), end(desk, "payments")) == (5, 5)
    if name == POINTS:
        assert any(f"{POINTS}" in one and "not used" in one for one in desk.told.warnings)


def test_a_file_that_is_named_beyond_all_offsets_is_not_ours(files):
    desk = written(files)
    desk.cluster.close()
    files.unlink(f"/data/{CLEAN}")
    files.open("/data/orders-0/99999999999999999999.log").close()
    desk = Desk(files=files)
    assert end(desk) == 5
    assert fetch(desk, 0).error_code == 0


def test_a_segment_that_is_gone_is_named_by_the_first_read(files):
    """Whoever looks for the reason of an error finds it beside it, and once."""
    desk = written(files, count=1)
    for number in range(3):
        desk.cluster.partition("orders", 0).log.roll()
        assert desk.produce(value=b"%d" % number).error_code == 0
    desk.housekeep()
    files = files.after_crash()
    files.unlink("/data/orders-0/00000000000000000001.log")
    again = Desk(files=files)
    again.housekeep()
    before = len(again.told.warnings)

    for _ in range(3):
        assert fetch(again, 1).error_code == ErrorCode.KAFKA_STORAGE_ERROR

    (told,) = again.told.warnings[before:]
    assert told == (
        "orders-0 is damaged and cannot be read there: /data/orders-0: "
        "/data/orders-0/00000000000000000000.log ends at offset 1, the next segment begins at 2, "
        "expected 1"
    )
    again.housekeep()
    assert len(again.told.warnings) == before + 1
    assert fetch(again, 2).error_code == 0


def test_a_damaged_batch_is_named_by_the_first_read(files):
    desk = written(files, count=1)
    desk.cluster.partition("orders", 0).log.roll()
    assert desk.produce().error_code == 0
    desk.cluster.close()
    files = files.after_crash()
    files.flip("/data/orders-0/00000000000000000000.log", 70)
    again = Desk(files=files)
    before = len(again.told.warnings)
    assert fetch(again, 0).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    (told,) = again.told.warnings[before:]
    assert "00000000000000000000.log is damaged at byte 0" in told


def test_a_sync_that_fails_in_a_write_is_told_at_once(files):
    """A segment that is closed is synced by the write that closes it."""
    desk = written(files, count=1, log_sync="none")
    desk.create("small", segment_bytes="1048576")
    assert desk.produce("small", value=b"x" * 700_000).error_code == 0
    files.faults["sync", "/data/small-0/00000000000000000000.log"] = errno.EIO
    for _ in range(2):
        answer = desk.produce("small", value=b"x" * 700_000)
        assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    (told,) = desk.told.errors
    assert told.startswith("small-0 could not be synced and is out of service: /data/small-0/")
    desk.housekeep()
    assert len(desk.told.errors) == 1
