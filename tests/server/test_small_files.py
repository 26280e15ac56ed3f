# SPDX-License-Identifier: Apache-2.0
"""A flipped bit in one of the small files takes out the partition it is in, or stops the start with
an error that names the file; everybody else is served.
"""

import pytest
from tests.server.desk import Desk
from tests.server.mutations import records_deleted

from kohort.cli.inspect_data import inspect_folders
from kohort.errors import Broken, KohortError
from kohort.server.partitions.logs import CATALOG_COPY, CATALOG_FILE
from kohort.sim.disk import SimulatedFiles
from kohort.storage import checkpoints
from kohort.storage.directory import META_PROPERTIES
from kohort.storage.files import replace_whole

PLACES = [("__consumer_offsets", 0), ("orders", 0), ("payments", 0)]
FOLDER = "/data/orders-0"
FILES = {  # each with the step between the bits that are flipped
    f"{FOLDER}/{checkpoints.PARTITION_METADATA}": 1,
    f"{FOLDER}/{checkpoints.LEADER_EPOCHS}": 1,
    f"{FOLDER}/{checkpoints.START_OFFSETS}": 1,
    f"{FOLDER}/{checkpoints.HOLES}": 3,
    f"/data/{checkpoints.START_OFFSETS}": 3,
    f"/data/{checkpoints.RECOVERY_POINTS}": 5,
    f"/data/{META_PROPERTIES}": 7,
    f"/data/{CATALOG_FILE}": 41,
    f"/data/{CATALOG_COPY}": 41,
}


@pytest.fixture(scope="module")
def stopped():
    """The disk of a broker that was stopped in order, with each of the small files on it."""
    files = SimulatedFiles()
    desk = Desk(files=files, offsets_topic_num_partitions="1")
    for name in ("orders", "payments"):
        desk.create(name)
        for _ in range(3):
            assert desk.produce(name).error_code == 0
    (deleted,) = records_deleted("orders", 1)(desk)
    desk.settle()
    assert deleted.answer.topics[0].partitions[0].low_watermark == 1
    desk.cluster.close()
    checkpoints.write_holes(files, FOLDER, [(100, 200)])
    checkpoints.write_start_offsets(files, FOLDER, {("orders", 0): 1})
    return files


def flipped(stopped, path):
    """The disk again and again, with another bit flipped each time; and which one."""
    for bit in range(0, 8 * len(stopped.files[path].now), FILES[path]):
        files = stopped.after_crash()
        files.flip(path, bit // 8, bit % 8)
        yield files, f"bit {bit % 8} of byte {bit // 8} of {path}"


@pytest.mark.parametrize("path", FILES)
def test_a_flipped_bit_takes_out_one_partition_at_most(stopped, path):
    for files, where in flipped(stopped, path):
        desk, refused = None, ""
        try:
            desk = Desk(files=files, offsets_topic_num_partitions="1")
        except KohortError as error:
            refused = str(error)
        if desk is None:
            assert path == f"/data/{META_PROPERTIES}", where
            assert path in refused, where
            continue
        out = [place for place in PLACES if desk.cluster.partition(*place) is None]
        assert len(out) <= 1, where
        if path.startswith(FOLDER):
            assert out in ([], [("orders", 0)]), where
        if out:
            name, index = out[0]
            told = [*desk.told.errors, *desk.told.warnings]
            assert any(f"/data/{name}-{index}" in line for line in told), where
        for name in ("orders", "payments"):
            assert (desk.produce(name).error_code == 0) is ((name, 0) not in out), where
        desk.housekeep()
        desk.cluster.close()


@pytest.mark.parametrize("path", FILES)
def test_a_flipped_bit_does_not_stop_an_inspection(stopped, path):
    for files, where in flipped(stopped, path):
        for mend in (False, True):
            found, failed = inspect_folders(files, "/data", mend=mend)
            assert {one.name for one in found} >= {f"{name}-{at}" for name, at in PLACES}, where
            assert failed == {}, where


@pytest.mark.parametrize("number", ["²", "٣", "9" * 30, "-", "--1", "1_0"])
def test_what_only_looks_like_a_number_is_refused(number):
    files = SimulatedFiles()
    files.make_directory(FOLDER)
    replace_whole(files, FOLDER, checkpoints.LEADER_EPOCHS, f"0\n1\n0 {number}\n".encode())
    with pytest.raises(Broken, match="leader-epoch-checkpoint: not a checkpoint"):
        checkpoints.leader_epochs(files, FOLDER)


def test_an_epoch_that_no_batch_has_room_for_is_refused():
    files = SimulatedFiles()
    files.make_directory(FOLDER)
    replace_whole(files, FOLDER, checkpoints.LEADER_EPOCHS, f"0\n1\n{1 << 31} 0\n".encode())
    with pytest.raises(Broken, match="leader-epoch-checkpoint: epoch 2147483648, expected"):
        checkpoints.leader_epochs(files, FOLDER)


def test_a_start_behind_a_log_that_was_closed_in_order_takes_no_record_away(stopped):
    """A bit of it may have flipped; the log would begin anew there, without a word."""
    files = stopped.after_crash()
    path = f"{FOLDER}/{checkpoints.START_OFFSETS}"
    replace_whole(files, FOLDER, checkpoints.START_OFFSETS, b"0\n1\norders 0 9\n")
    log = bytes(files.files[f"{FOLDER}/{0:020d}.log"].now)
    desk = Desk(files=files.after_crash(), offsets_topic_num_partitions="1")
    assert desk.produce().error_code != 0
    assert desk.produce("payments").error_code == 0
    (told,) = desk.told.errors
    assert f"{path}: {FOLDER} begins at offset 9, it ends at 3: " in told

    (found,) = [one for one in inspect_folders(files, "/data")[0] if one.name == "orders-0"]
    assert [one.file for one in found.damages] == [checkpoints.START_OFFSETS]
    inspect_folders(files, "/data", mend=True)
    desk = Desk(files=files, offsets_topic_num_partitions="1")
    assert desk.produce().base_offset == 3
    assert files.files[f"{FOLDER}/{0:020d}.log"].now.startswith(log)


def test_a_log_that_begins_anew_behind_its_end_is_told(stopped):
    files = stopped.after_crash()
    files.unlink("/data/.kafka_cleanshutdown")
    files.unlink(f"/data/{checkpoints.RECOVERY_POINTS}")
    replace_whole(files, FOLDER, checkpoints.START_OFFSETS, b"0\n1\norders 0 9\n")
    size = len(files.files[f"{FOLDER}/{0:020d}.log"].now)
    desk = Desk(files=files, offsets_topic_num_partitions="1")
    assert desk.produce().base_offset == 9
    told = f"{FOLDER} begins at offset 9: 1 files of {size} bytes, offsets 0 to 2, are set aside"
    assert told in desk.told.warnings
