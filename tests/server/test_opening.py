# SPDX-License-Identifier: Apache-2.0
"""What a data directory may hold that no broker has put there."""

import pytest
from tests import golden_logs
from tests.server.desk import Desk

from kohort.errors import Broken, ErrorCode
from kohort.server.partitions.logs import CATALOG_COPY, CATALOG_FILE
from kohort.sim.disk import SimulatedFiles
from kohort.storage.files import DiskFiles, replace_whole
from kohort.wire.batch import header_at
from kohort.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kohort.wire.messages.init_producer_id import InitProducerIdRequest


def producer_id(desk):
    return desk.ask(
        InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1), 4
    ).producer_id


@pytest.fixture
def files():
    """A disk on which a producer has written, closed segments among it."""
    files = SimulatedFiles()
    desk = Desk(files=files)
    desk.create()
    first = producer_id(desk)
    for number in range(3):
        assert desk.produce(producer_id=first + 41, producer_epoch=0, base_sequence=number)
        desk.cluster.partition("orders", 0).log.roll()
    desk.cluster.close()
    return files


def test_a_lost_catalog_gives_no_producer_id_twice(files):
    for name in (CATALOG_FILE, CATALOG_COPY):
        files.unlink(f"/data/{name}")
    desk = Desk(files=files)
    assert producer_id(desk) == 42
    assert any("orders is taken in from its folders" in line for line in desk.told.warnings)
    (gone,) = [line for line in desk.told.warnings if CATALOG_FILE in line]
    assert gone.endswith(
        "has logs and no kohort.catalog.json: settings that were changed for topics and for "
        "brokers, rules (ACLs) and credentials of users are not known any more, if there were any"
    )
    answer = desk.produce(producer_id=42, producer_epoch=0, base_sequence=0)
    assert (answer.error_code, answer.base_offset) == (0, 3)


def test_a_log_with_ids_that_the_catalog_never_gave(files):
    desk = Desk(files=files)
    desk.produce(producer_id=7000, producer_epoch=0, base_sequence=0)
    desk.cluster.close()
    assert producer_id(Desk(files=files)) == 7001


@pytest.mark.parametrize("name", ["backup-20261122", "backup-99999", "my photos-2", "x-1", "x-01"])
def test_folders_that_only_look_like_partitions(files, name):
    files.make_directory(f"/data/{name}")
    replace_whole(files, f"/data/{name}", "mine.txt", b"keep")
    desk = Desk(files=files)
    assert sorted(desk.cluster.catalog.by_name) == ["__consumer_offsets", "orders"]
    assert "mine.txt" in files.names(f"/data/{name}")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("backup-20261122", "20261123 partitions, expected 10000 at most"),
        ("my photos-2", "contains one or more characters other than"),
    ],
)
def test_folders_with_a_log_that_no_topic_could_have(files, name, reason):
    files.make_directory(f"/data/{name}")
    files.open(f"/data/{name}/{0:020d}.log")
    desk = Desk(files=files)
    assert sorted(desk.cluster.catalog.by_name) == ["__consumer_offsets", "orders"]
    assert any("are left alone" in line and reason in line for line in desk.told.warnings)


@pytest.mark.parametrize("name", ["notes-2", "please-delete", f"a.{'0' * 32}-delete", ".hidden"])
def test_files_and_folders_of_somebody_else(files, name):
    replace_whole(files, "/data", name, b"keep")
    files.make_directory(f"/data/{name}2-delete")
    replace_whole(files, f"/data/{name}2-delete", "mine.txt", b"keep")
    desk = Desk(files=files)
    assert desk.produce().base_offset == 3
    assert bytes(files.files[f"/data/{name}"].now) == b"keep"
    assert bytes(files.files[f"/data/{name}2-delete/mine.txt"].now) == b"keep"


@pytest.mark.parametrize("name", ["notes.log", "5.log", "x.log.swap", "x.log.cleaned", "folder"])
def test_files_of_somebody_else_beside_the_segments(files, name):
    files.make_directory("/data/orders-0/folder")
    if name != "folder":
        replace_whole(files, "/data/orders-0", name, b"keep")
    desk = Desk(files=files)
    assert desk.produce().base_offset == 3
    if name != "folder":
        assert bytes(files.files[f"/data/orders-0/{name}"].now) == b"keep"
    wanted = DeleteTopicState(name="orders")
    desk.ask(DeleteTopicsRequest(topics=[wanted], timeout_ms=1000), 6)
    desk.housekeep()
    desk.create()
    assert desk.produce().base_offset == 0
    desk.cluster.close()
    again = Desk(files=files)
    assert again.produce().base_offset == 1


def test_holes_that_somebody_elses_cleaner_has_left_are_no_damage(files):
    """Kafka's keeps no last batch of a segment; what is missing later is told."""
    log = Desk(files=files).cluster.partition("orders", 0).log
    files.locked.clear()
    files.unlink(log.closed[1].path)
    for name in (CATALOG_FILE, CATALOG_COPY):
        files.unlink(f"/data/{name}")

    desk = Desk(files=files)

    log = desk.cluster.partition("orders", 0).log
    assert [header_at(data).base_offset for data in log.read(0, 1 << 30)] == [0, 2]
    for number in range(3):
        assert desk.produce().base_offset == 3 + number
        log.roll()
    log = desk.cluster.partition("orders", 0).log
    files.unlink(log.closed[-2].path)
    desk.cluster.close()
    again = Desk(files=files)
    log = again.cluster.partition("orders", 0).log
    with pytest.raises(Broken, match="the next segment begins at 5, expected 4"):
        list(log.read(0, 1 << 30))


def test_a_copy_of_kafkas_directory_is_taken_in(tmp_path):
    folder = golden_logs.unpack("1-written", tmp_path)
    desk = Desk(files=DiskFiles(), path=str(folder))
    assert desk.produce("nowhere").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert "__consumer_offsets" in desk.cluster.catalog.by_name
    desk.create("codec-zstd")  # its checkpoint speaks of this one, whose folder was not copied
    assert desk.produce("codec-zstd").base_offset == 0
    for place, partition in desk.cluster.table.open.items():
        partition.log.close()  # no clean stop, and no checkpoint
        assert place[0] in ("__consumer_offsets", "__transaction_state", "codec-zstd")
    desk.cluster.logs.close()
    again = Desk(files=DiskFiles(), path=str(folder))
    assert again.produce("codec-zstd").base_offset == 1
    again.cluster.close()
