# SPDX-License-Identifier: Apache-2.0
"""Whoever may put a link into the data directory must not make a broker write elsewhere.

And nobody but the owner reads the file with the credentials.
"""

import os
import stat
from pathlib import Path

import pytest
from tests.server.desk import Desk

from kohort.errors import KohortError, StorageError
from kohort.server.partitions.logs import CATALOG_COPY, CATALOG_FILE
from kohort.storage import checkpoints
from kohort.storage.files import DiskFiles, replace_whole
from kohort.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState

PRECIOUS = b"of somebody else"
SEGMENT = f"{0:020d}.log"


@pytest.fixture
def data(tmp_path):
    return tmp_path / "data"


@pytest.fixture
def precious(tmp_path):
    path = tmp_path / "precious"
    path.write_bytes(PRECIOUS)
    return path


def opened(data):
    return Desk(files=DiskFiles(), path=str(data), offsets_topic_num_partitions="1")


def stopped(data):
    desk = opened(data)
    desk.create()
    assert desk.produce().error_code == 0
    desk.cluster.close()


def linked(path, target):
    path.unlink(missing_ok=True)
    path.symlink_to(target)


@pytest.mark.parametrize(
    "name",
    [
        f"{CATALOG_FILE}.tmp",
        f"{CATALOG_COPY}.tmp",
        f"{checkpoints.RECOVERY_POINTS}.tmp",
        f"{checkpoints.START_OFFSETS}.tmp",
        f"orders-0/{checkpoints.START_OFFSETS}.tmp",
        f"orders-0/{checkpoints.LEADER_EPOCHS}.tmp",
        f"orders-0/{SEGMENT}.cleaned",
    ],
)
def test_a_link_with_the_name_of_a_temporary_file_is_not_written_through(data, precious, name):
    stopped(data)
    linked(data / name, precious)
    desk = opened(data)
    desk.create("more")
    log = desk.cluster.partition("orders", 0).log
    desk.cluster.logs.note_starts({("orders", 0): 1})
    log.note_start(1)
    log.move_start(1)
    log.next_leader()
    desk.housekeep()
    desk.cluster.close()
    assert precious.read_bytes() == PRECIOUS
    assert not (data / name).exists()


@pytest.mark.parametrize(
    "name",
    [
        SEGMENT,
        checkpoints.LEADER_EPOCHS,
        checkpoints.START_OFFSETS,
        checkpoints.HOLES,
        checkpoints.PARTITION_METADATA,
    ],
)
def test_a_link_in_the_folder_of_a_partition_takes_that_one_out_of_service(data, precious, name):
    stopped(data)
    linked(data / "orders-0" / name, precious)
    desk = opened(data)
    desk.create("more")
    assert desk.produce("more").error_code == 0
    assert desk.produce().error_code == 56
    assert any("it is a link, expected a file" in line for line in desk.told.warnings)
    desk.cluster.close()
    assert precious.read_bytes() == PRECIOUS


@pytest.mark.parametrize("name", [".lock", "meta.properties", CATALOG_FILE])
def test_a_broker_does_not_start_with_a_link_that_it_would_write_to(data, precious, name):
    stopped(data)
    linked(data / name, precious)
    if name == CATALOG_FILE:
        linked(data / CATALOG_COPY, precious)
    with pytest.raises(KohortError, match=f"{name}.*it is a link, expected a file"):
        opened(data)
    assert precious.read_bytes() == PRECIOUS


def test_a_folder_that_is_a_link_is_neither_served_nor_emptied(data, tmp_path):
    stopped(data)
    elsewhere = tmp_path / "elsewhere"
    (data / "orders-0").rename(elsewhere)
    (data / "orders-0").symlink_to(elsewhere)
    before = {path.name: path.read_bytes() for path in elsewhere.iterdir()}
    desk = opened(data)
    assert desk.produce().error_code == 56
    assert any("it is a link, expected a directory" in line for line in desk.told.warnings)
    wanted = DeleteTopicsRequest(topics=[DeleteTopicState(name="orders")], timeout_ms=60_000)
    assert desk.ask(wanted, 6).responses[0].error_code == 0
    desk.housekeep()
    desk.cluster.close()
    assert {path.name: path.read_bytes() for path in elsewhere.iterdir()} == before


def test_what_a_deletion_has_left_is_not_followed(data, tmp_path):
    stopped(data)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "mine").write_bytes(PRECIOUS)
    left = data / f"old-0.{'0' * 32}-delete"
    left.symlink_to(elsewhere)
    opened(data).cluster.close()
    assert (elsewhere / "mine").read_bytes() == PRECIOUS
    assert not left.is_symlink()


def test_a_folder_that_is_a_link_is_no_topic(data, tmp_path):
    stopped(data)
    (data / "strange-0").symlink_to(data / "orders-0")
    desk = opened(data)
    assert "strange" not in desk.cluster.catalog.by_name
    assert any("strange-0 is left alone" in line for line in desk.told.warnings)
    desk.cluster.close()


def test_the_data_directory_itself_may_be_a_link(data, tmp_path):
    stopped(data)
    other = tmp_path / "other"
    other.symlink_to(data)
    desk = opened(other)
    assert desk.produce().base_offset == 1
    desk.cluster.close()


# --- who may read


def mode(path):
    return stat.S_IMODE(Path(path).stat().st_mode)


def test_nobody_but_the_owner_reads_the_credentials(data):
    stopped(data)
    for name in (CATALOG_FILE, CATALOG_COPY):
        assert mode(data / name) == 0o600, name
    assert mode(data / "orders-0" / SEGMENT) & 0o600 == 0o600


def test_a_new_data_directory_is_its_owners_alone(data):
    """Whatever the umask says."""
    before = os.umask(0)
    try:
        stopped(data / "deep")
    finally:
        os.umask(before)
    assert [mode(path) for path in (data, data / "deep")] == [0o700, 0o700]


def test_a_directory_that_others_can_read_is_warned_of_and_left_as_it_is(data):
    stopped(data)
    desk = opened(data)
    assert desk.told.warnings == []
    desk.cluster.close()
    data.chmod(0o755)
    desk = opened(data)
    (warning,) = desk.told.warnings
    assert f"{data} can be read by other users of this machine" in warning
    assert f"`chmod 700 {data}`" in warning
    assert mode(data) == 0o755
    desk.cluster.close()


def test_a_catalog_that_others_could_read_is_closed_to_them_at_the_start(data):
    stopped(data)
    for name in (CATALOG_FILE, CATALOG_COPY):
        (data / name).chmod(0o644)
    (data / f"{CATALOG_FILE}.tmp").write_bytes(b"")
    (data / f"{CATALOG_FILE}.tmp").chmod(0o644)
    desk = opened(data)
    assert [mode(data / name) for name in (CATALOG_FILE, CATALOG_COPY)] == [0o600, 0o600]
    desk.create("more")
    assert [mode(data / name) for name in (CATALOG_FILE, CATALOG_COPY)] == [0o600, 0o600]
    desk.cluster.close()


def test_a_damaged_catalog_that_is_set_aside_stays_private(data):
    stopped(data)
    (data / CATALOG_FILE).write_bytes(b"{")
    (data / CATALOG_FILE).chmod(0o644)
    opened(data).cluster.close()
    assert mode(data / f"{CATALOG_FILE}.damaged") == 0o600


def test_a_private_file_is_private_from_its_first_byte(tmp_path):
    """Also where a file of the temporary name is there already."""
    seen = []

    class Looking(DiskFiles):
        def create(self, path, *, private=False):
            file = super().create(path, private=private)
            seen.append(mode(path))
            return file

    (tmp_path / "secret.tmp").write_bytes(b"older")
    replace_whole(Looking(), str(tmp_path), "secret", b"new", private=True)
    assert seen == [0o600]
    assert mode(tmp_path / "secret") == 0o600


def test_an_error_for_a_lock_names_it(data, precious):
    stopped(data)
    linked(data / ".lock", precious)
    with pytest.raises(StorageError, match=r"\.lock: it is a link"):
        opened(data)
