# SPDX-License-Identifier: Apache-2.0
import errno
import itertools
from contextlib import suppress

import pytest
from tests import golden_logs
from tests.storage.contract import batch, values

from kohort.errors import StorageError
from kohort.sim.disk import SimulatedFiles
from kohort.storage import checkpoints
from kohort.storage.directory import LogDirectory
from kohort.storage.files import DiskFiles, replace_whole
from kohort.storage.log import LogConfig
from kohort.terms import uuid_text

ORDERS = bytes(range(16))


def opened(disk, node_id=1, path="/data"):
    count = itertools.count(1)
    return LogDirectory(
        path, disk, node_id=node_id, new_uuid=lambda: next(count).to_bytes(16, "big")
    )


@pytest.fixture
def disk():
    return SimulatedFiles()


def test_a_new_directory_says_whose_it_is(disk):
    directory = opened(disk)
    text = bytes(disk.files["/data/meta.properties"].now).decode()
    assert text.splitlines() == [
        f"cluster.id={uuid_text((1).to_bytes(16, 'big'))}",
        f"directory.id={uuid_text((2).to_bytes(16, 'big'))}",
        "node.id=1",
        "version=1",
    ]
    assert directory.node_id == 1
    directory.close()
    again = opened(disk)
    assert (again.cluster_id, again.directory_id) == (directory.cluster_id, directory.directory_id)


def test_one_broker_at_a_time(disk):
    first = opened(disk)
    with pytest.raises(StorageError, match="/data is in use by another broker"):
        opened(disk)
    first.close()
    opened(disk)


def test_another_node_is_refused_and_the_lock_is_given_back(disk):
    opened(disk).close()
    for _ in range(2):
        with pytest.raises(StorageError, match=r"node.id is 1, this broker's is 2"):
            opened(disk, node_id=2)
    opened(disk)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("version=0\nbroker.id=1\n", "version is 0, expected 1"),
        ("", "version is None"),
        ("version=1\nnode.id=1\n", r"cluster.id is missing"),
    ],
)
def test_what_is_not_ours_is_refused(disk, text, complaint):
    disk.make_directory("/data")
    replace_whole(disk, "/data", "meta.properties", text.encode())
    with pytest.raises(StorageError, match=complaint):
        opened(disk)


def test_meta_properties_of_a_real_broker(disk):
    disk.make_directory("/data")
    text = (
        "#\n#Sat Nov 21 03:54:00 UTC 2026\nnode.id=1\nversion=1\n"
        "directory.id=qO1XSg3n6WkQV6MdOQ1rqA\ncluster.id=Mum3idoTSZOW-6psC2Nhig\n"
    )
    replace_whole(disk, "/data", "meta.properties", text.encode())
    directory = opened(disk)
    assert directory.cluster_id == "Mum3idoTSZOW-6psC2Nhig"
    assert directory.directory_id == "qO1XSg3n6WkQV6MdOQ1rqA"
    assert bytes(disk.files["/data/meta.properties"].now).decode() == text


def test_a_directory_id_is_added_where_an_older_broker_left_none(disk):
    disk.make_directory("/data")
    replace_whole(disk, "/data", "meta.properties", b"version=1\nnode.id=1\ncluster.id=abc\n")
    first = opened(disk)
    first.close()
    assert first.directory_id
    assert opened(disk).directory_id == first.directory_id


def test_logs_are_made_and_found_again(disk):
    directory = opened(disk)
    log = directory.open_log("orders", 1, ORDERS, LogConfig(segment_bytes=500))
    log.append(batch("a"), 1)
    directory.open_log("orders", 0, ORDERS)
    directory.open_log("a-b", 10, bytes(16))
    assert directory.partitions() == {"a-b": [10], "orders": [0, 1]}
    assert [directory.topic_id("orders", one) for one in (0, 1, 2)] == [ORDERS, ORDERS, None]
    directory.close()
    assert values(opened(disk).open_log("orders", 1, ORDERS)) == [(0, "a")]


def test_a_folder_of_another_topic_is_refused(disk):
    directory = opened(disk)
    directory.open_log("orders", 0, ORDERS)
    with pytest.raises(StorageError, match=f"belongs to topic id {uuid_text(ORDERS)}"):
        directory.open_log("orders", 0, bytes(16))


def test_delete(disk):
    directory = opened(disk)
    directory.open_log("orders", 0, ORDERS).close()
    directory.delete("orders", [0], ORDERS)
    directory.delete("orders", [0], ORDERS)
    assert directory.partitions() == {}
    assert disk.names("/data") == [".lock", "meta.properties"]


def assert_what_is_synced_stays(directory, disk):
    log = directory.open_log("orders", 0, ORDERS)
    directory.sync_names()
    log.append(batch("a"), 1)
    log.sync()
    again = opened(disk.after_power_loss())
    assert values(again.open_log("orders", 0, ORDERS)) == [(0, "a")]


def test_folders_are_durable_once_their_names_are_synced(disk):
    directory = opened(disk)
    assert_what_is_synced_stays(directory, disk)
    directory.open_log("orders", 0, ORDERS)
    disk.faults["sync_directory", "/data"] = errno.EIO
    directory.sync_names()  # nothing has changed, so nothing is synced


@pytest.mark.parametrize("refusals", [1, 2, 3, 4])
def test_a_log_is_durable_once_it_is_open_however_often_the_disk_has_refused_names(disk, refusals):
    """Each attempt finds what the last one has made, and a little more is made each time."""
    directory = opened(disk)
    for _ in range(refusals):
        disk.faults["sync_directory", "/data/orders-0"] = errno.EIO
        with suppress(StorageError):
            directory.open_log("orders", 0, ORDERS)
        disk.faults.clear()
    assert_what_is_synced_stays(directory, disk)


def test_what_a_killed_process_has_made_is_durable_once_the_next_one_has_opened_it(disk):
    first = opened(disk)
    disk.faults["sync_directory", "/data/orders-0"] = errno.EIO
    with pytest.raises(StorageError):
        first.open_log("orders", 0, ORDERS)
    disk.faults.clear()
    disk = disk.after_crash()
    directory = opened(disk)
    assert_what_is_synced_stays(directory, disk)


def test_a_folder_of_another_topic_is_not_deleted(disk):
    directory = opened(disk)
    directory.open_log("orders", 0, ORDERS).append(batch("a"), 1)
    directory.delete("orders", [0], bytes(16))
    assert values(directory.open_log("orders", 0, ORDERS)) == [(0, "a")]


def test_a_folder_that_does_not_say_whose_it_is_is_not_deleted(disk):
    directory = opened(disk)
    directory.open_log("orders", 0, ORDERS).close()
    replace_whole(disk, "/data/orders-0", checkpoints.PARTITION_METADATA, b"version: 0\n")
    assert "/data/orders-0 may be another topic's" in directory.delete("orders", [0], ORDERS)[0]
    assert directory.partitions() == {"orders": [0]}


def test_many_partitions_are_opened_and_deleted_without_a_look_at_the_others(disk):
    directory = opened(disk)
    before = disk.listed["/data"]
    for index in range(20):
        directory.open_log("orders", index, ORDERS).close()
    for index in range(20):
        directory.delete("orders", [index], ORDERS)
    assert disk.listed["/data"] == before
    assert disk.names("/data") == [".lock", "meta.properties"]


def test_a_topic_made_anew_does_not_begin_where_kafka_said_of_the_old_one(disk):
    opened(disk).close()
    noted = b"0\n2\norders 0 2\npayments 1 7\n"
    replace_whole(disk, "/data", checkpoints.START_OFFSETS, noted)
    directory = opened(disk)
    directory.open_log("orders", 0, ORDERS).close()
    directory.delete("orders", [0], ORDERS)
    directory.open_log("orders", 0, bytes(16)).append(batch("new"), 1)
    directory.close()
    directory = opened(disk)
    assert values(directory.open_log("orders", 0, bytes(16))) == [(0, "new")]
    assert directory.open_log("payments", 1, ORDERS).start == 7


def test_opening_finishes_deletions_and_forgets_kafkas_clean_stop(disk):
    opened(disk).close()
    disk.make_directory(f"/data/orders-0.{'a' * 32}-delete")
    disk.open(f"/data/orders-0.{'a' * 32}-delete/00000000000000000000.log")
    disk.open("/data/.kafka_cleanshutdown")
    opened(disk)
    assert disk.names("/data") == [".lock", "meta.properties"]


def test_a_start_that_kafka_has_noted_for_the_directory(disk):
    directory = opened(disk)
    log = directory.open_log("orders", 0, ORDERS)
    for name in "abc":
        log.append(batch(name), 1)
    replace_whole(disk, "/data", checkpoints.START_OFFSETS, b"0\n1\norders 0 2\n")
    directory.close()
    assert opened(disk).open_log("orders", 0, ORDERS).start == 2


def test_a_directory_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    refused = "cannot be used as data directory: "
    with pytest.raises(
        StorageError, match=f"{refused}a part of it is a file, expected directories"
    ):
        opened(DiskFiles(), path=f"{tmp_path}/file/data")
    with pytest.raises(StorageError, match=f"{refused}it is a file, expected a directory"):
        opened(DiskFiles(), path=f"{tmp_path}/file")
    with pytest.raises(StorageError, match=f"^/proc/nowhere {refused}No such file or directory$"):
        opened(DiskFiles(), path="/proc/nowhere")


def test_a_copy_of_a_real_directory(tmp_path):
    folder = golden_logs.unpack("1-written", tmp_path)
    directory = opened(DiskFiles(), path=str(folder))
    found = directory.partitions()
    assert list(found) == ["__consumer_offsets", "__transaction_state"]
    assert found["__consumer_offsets"] == [0, 1, 2, 3]
    topic_id = directory.topic_id("__consumer_offsets", 0)
    assert directory.open_log("__consumer_offsets", 3, topic_id).end == 205
    directory.close()
