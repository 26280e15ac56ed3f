# SPDX-License-Identifier: Apache-2.0
"""Topics that come and go while the disk refuses one folder of many."""

import errno

import pytest
from tests.server.desk import Desk

from kohort.errors import ErrorCode
from kohort.sim.disk import SimulatedFiles
from kohort.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kohort.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kohort.wire.messages.metadata import MetadataRequest


def delete(desk, name="orders"):
    wanted = DeleteTopicState(name=name)
    (answer,) = desk.ask(DeleteTopicsRequest(topics=[wanted], timeout_ms=1000), 6).responses
    return answer.error_code


def folders(files):
    return [name for name in files.names("/data") if name.startswith("orders-")]


def test_a_topic_made_anew_is_not_deleted_with_the_old_one():
    """Its name is free at once, whatever is left of the old one."""
    files = SimulatedFiles()
    desk = Desk(files=files)
    desk.create(partitions=2)
    assert desk.produce(value=b"old").error_code == 0
    files.immovable["/data/orders-1"] = errno.EBUSY

    assert delete(desk) == 0
    desk.create(partitions=2)
    for number in range(3):
        assert desk.produce().base_offset == number
        desk.housekeep()
    assert desk.produce(partition=1).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    told = [line for line in desk.told.warnings if "is deleted" in line]
    assert len(told) == 1
    assert "orders is deleted, 1 of its 2 logs are not yet: /data/orders-1" in told[0]

    files.immovable.clear()
    desk.housekeep()
    assert desk.produce(partition=1).base_offset == 0
    assert "the logs of the deleted topic orders are gone now" in desk.told.warnings
    desk.cluster.close()
    again = Desk(files=files)
    assert again.produce().base_offset == 3
    assert again.produce(partition=1).base_offset == 1
    assert again.cluster.catalog.deleting == []


def test_the_other_folders_of_a_topic_go_where_one_refuses():
    files = SimulatedFiles()
    desk = Desk(files=files)
    desk.create(partitions=3)
    files.immovable["/data/orders-0"] = errno.EBUSY

    assert delete(desk) == 0
    assert folders(files) == ["orders-0"]
    listed = files.listed.get("/data/orders-1")
    desk.housekeep()
    assert files.listed.get("/data/orders-1") == listed, "what is gone is not looked for again"

    desk.cluster.close()
    files.immovable.clear()
    again = Desk(files=files)
    assert folders(files) == []
    assert again.cluster.catalog.deleting == []


def test_what_is_deleted_stays_deleted_after_a_loss_of_power():
    files = SimulatedFiles()
    desk = Desk(files=files)
    desk.create()
    assert desk.produce(value=b"old").error_code == 0
    assert delete(desk) == 0

    again = Desk(files=files.after_power_loss())

    assert "orders" not in again.cluster.catalog.by_name
    again.create()
    assert again.produce().base_offset == 0


def test_what_a_new_topic_has_acknowledged_is_there_after_a_loss_of_power():
    files = SimulatedFiles()
    desk = Desk(files=files)
    desk.create(partitions=2)
    desk.create("payments")
    for name in ("orders", "payments"):
        assert desk.produce(name).error_code == 0

    again = Desk(files=files.after_power_loss())

    for name in ("orders", "payments"):
        assert again.produce(name).base_offset == 1


def test_a_log_whose_folder_may_be_lost_is_not_written_to():
    files = SimulatedFiles()
    desk = Desk(files=files)
    synced = files.sync_directory

    def refuse(path):
        if path == "/data" and "orders-0" in files.names("/data"):
            raise OSError(errno.EIO, "Input/output error")
        synced(path)

    files.sync_directory = refuse
    desk.create()
    assert desk.produce().error_code == ErrorCode.KAFKA_STORAGE_ERROR
    files.sync_directory = synced
    desk.housekeep()
    assert desk.produce().base_offset == 0


def test_a_log_is_opened_once():
    """A second one would not know what the first has written, and write over it."""
    files = SimulatedFiles()
    desk = Desk(files=files)
    opened = []
    open_log = desk.cluster.logs.open

    def count(topic, index, *rest):
        opened.append((topic.name, index))
        return open_log(topic, index, *rest)

    desk.cluster.logs.open = count
    desk.create(partitions=3)
    desk.create("payments")
    desk.housekeep()
    assert sorted(opened) == [("orders", 0), ("orders", 1), ("orders", 2), ("payments", 0)]


def test_a_log_that_is_being_opened_is_not_opened_again():
    files = SimulatedFiles()
    desk = Desk(files=files)
    files.refused["/data/orders-0"] = errno.EACCES
    desk.create()
    files.refused.clear()
    cluster = desk.cluster
    cluster.housekeep(desk.now)
    work = cluster.begin_work()
    work.run()
    cluster.housekeep(desk.now)
    cluster.end_work(work, desk.now)
    log = cluster.partition("orders", 0).log
    desk.produce()
    assert cluster.partition("orders", 0).log is log
    assert log.end == 1


def works(desk):
    """How many pieces of work for the disk there are until nothing is left to do."""
    for count in range(20):
        work = desk.cluster.begin_work()
        if work is None:
            return count
        work.run()
        desk.cluster.end_work(work, desk.now)
    pytest.fail("there is no end of work for the disk")


def test_a_deletion_that_cannot_be_forgotten_waits_for_the_next_sweep():
    """The folders are gone, and the disk is too full to note that."""
    files = SimulatedFiles()
    desk = Desk(files=files)
    desk.create()
    desk.cluster.table.change(lambda real: real.delete(real.by_name["orders"]) or _nobody)
    work = desk.cluster.begin_work()
    work.run()
    desk.cluster.end_work(work, desk.now)
    files.faults["open", "/data/kohort.catalog.json"] = errno.ENOSPC

    assert works(desk) == 2
    for _ in range(3):
        desk.cluster.housekeep(desk.now)
        works(desk)
    told = [line for line in desk.told.warnings if "cannot be forgotten" in line]
    assert len(told) == 1
    assert "orders" in told[0]
    assert "No space left on device" in told[0]

    files.faults.clear()
    desk.cluster.housekeep(desk.now)
    works(desk)
    assert desk.cluster.catalog.deleting == []


def test_a_deletion_is_noted_with_one_write():
    files = SimulatedFiles()
    desk = Desk(files=files)
    desk.create()
    saved = []
    save = desk.cluster.catalog.save
    desk.cluster.catalog.save = lambda draft: saved.append(draft) or save(draft)
    assert delete(desk) == 0
    assert len(saved) == 2, "that it goes, and that it is gone"


def _nobody(_error):
    """Nobody waits."""


def fails(*_arguments):
    raise ValueError("nobody has thought of this")


def test_an_opening_that_fails_in_a_way_nobody_thought_of_is_damage_of_one_partition():
    desk = Desk(files=SimulatedFiles())
    open_log = desk.cluster.logs.open
    desk.cluster.logs.open = lambda topic, *rest: (
        fails() if topic.name == "orders" else open_log(topic, *rest)
    )
    desk.create()
    desk.create("payments")
    assert desk.produce().error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert desk.produce("payments").error_code == 0
    told = "orders-0 is damaged and out of service: ValueError: nobody has thought of this"
    assert desk.told.errors == [told]


@pytest.mark.parametrize("place", ["delete", "sync_names", "note_synced"])
def test_work_that_fails_in_a_way_nobody_thought_of_is_tried_again(place):
    desk = Desk(files=SimulatedFiles())
    desk.create()
    right = getattr(desk.cluster.logs, place)
    setattr(desk.cluster.logs, place, fails)
    desk.cluster.table.change(lambda real: real.delete(real.by_name["orders"]) or _nobody)
    desk.create("payments")
    desk.housekeep()
    told = [*desk.told.warnings, *desk.told.errors]
    assert any("ValueError: nobody has thought of this" in line for line in told)

    setattr(desk.cluster.logs, place, right)
    desk.housekeep()
    assert desk.produce("payments").error_code == 0
    assert desk.cluster.catalog.deleting == []
    assert "orders" not in desk.cluster.catalog.by_name


def test_a_change_whose_write_fails_in_a_way_nobody_thought_of_is_refused():
    desk = Desk(files=SimulatedFiles())
    desk.create()
    save = desk.cluster.catalog.save
    desk.cluster.catalog.save = fails
    assert delete(desk) == ErrorCode.KAFKA_STORAGE_ERROR
    assert any("ValueError: nobody has thought of this" in line for line in desk.told.errors)
    desk.cluster.catalog.save = save
    assert desk.produce().error_code == 0
    assert delete(desk) == 0


# --- small pieces


def pieces(desk, until):
    """How many pieces of work the disk does until something holds, and the logs it opened."""
    count, opened = 0, []
    while not until():
        work = desk.cluster.begin_work()
        assert work is not None, "it never comes"
        work.run()
        desk.cluster.end_work(work, desk.now)
        count += 1
        opened += [log.place for log in work.opened]
    return count, opened


def is_open(desk, name, partitions):
    return lambda: all((name, index) in desk.cluster.table.open for index in range(partitions))


def send_create(desk, names, partitions, node):
    """One request for all of them."""
    wanted = [
        CreatableTopic(
            name=name, num_partitions=partitions, replication_factor=1, assignments=[], configs=[]
        )
        for name in names
    ]
    desk.send(CreateTopicsRequest(topics=wanted, timeout_ms=60_000), 7, node=node)


def begun(desk):
    """A piece of work that is out."""
    work = desk.cluster.begin_work()
    assert work is not None
    return work


def test_a_small_topic_does_not_wait_for_a_large_one_that_is_made():
    desk = Desk(files=SimulatedFiles(), offsets_topic_num_partitions="1")
    desk.another()
    send_create(desk, ["large"], 500, node=0)
    out = begun(desk)
    send_create(desk, ["small"], 2, node=1)
    out.run()
    desk.cluster.end_work(out, desk.now)

    count, opened = pieces(desk, is_open(desk, "small", 2))

    assert count == 1
    assert len(opened) <= 16
    desk.settle()
    assert is_open(desk, "large", 500)()


def test_topics_that_are_made_at_once_come_in_turns():
    desk = Desk(files=SimulatedFiles(), offsets_topic_num_partitions="1")
    desk.another()
    send_create(desk, ["large"], 500, node=0)
    send_create(desk, ["small"], 8, node=1)
    count, _ = pieces(desk, is_open(desk, "small", 8))
    assert count == 1


def test_a_small_topic_does_not_wait_for_a_large_one_that_somebody_looks_at():
    """A tool that asks for all topics, again and again, asks for every log that is not open."""
    desk = Desk(files=SimulatedFiles(), offsets_topic_num_partitions="1")
    desk.another()
    desk.another()
    send_create(desk, ["large"], 500, node=0)
    pieces(desk, iter([False, True]).__next__)
    desk.send(MetadataRequest(topics=None), 12, node=2)
    names = [f"small-{number}" for number in range(8)]
    send_create(desk, names, 4, node=1)
    for _ in range(5):
        pieces(desk, iter([False, True]).__next__)
        desk.send(MetadataRequest(topics=None), 12, node=2)
    assert all(is_open(desk, name, 4)() for name in names)


def test_a_small_topic_does_not_wait_for_a_large_one_that_is_deleted():
    files = SimulatedFiles()
    desk = Desk(files=files, offsets_topic_num_partitions="1")
    desk.create("large", partitions=500)
    desk.another()
    wanted = DeleteTopicsRequest(topics=[DeleteTopicState(name="large")], timeout_ms=60_000)
    desk.send(wanted, 6)
    pieces(desk, lambda: "large" not in desk.cluster.catalog.by_name)
    send_create(desk, ["small"], 2, node=1)

    count, _ = pieces(desk, is_open(desk, "small", 2))

    left = [name for name in files.names("/data") if name.startswith("large-")]
    assert count == 1
    assert len(left) >= 500 - 64, "it has waited for all of them"
    desk.settle()
    assert not [name for name in files.names("/data") if name.startswith("large-")]
    assert not desk.cluster.catalog.deleting


def test_a_large_topic_is_made_anew_while_the_old_one_is_removed():
    """The folder of a partition is free before the new one is opened in it."""
    desk = Desk(files=SimulatedFiles(), offsets_topic_num_partitions="1")
    desk.create("large", partitions=300)
    desk.another()
    wanted = DeleteTopicsRequest(topics=[DeleteTopicState(name="large")], timeout_ms=60_000)
    desk.send(wanted, 6)
    pieces(desk, lambda: "large" not in desk.cluster.catalog.by_name)
    send_create(desk, ["large"], 300, node=1)
    desk.settle()
    assert is_open(desk, "large", 300)()
    assert not desk.told.warnings
