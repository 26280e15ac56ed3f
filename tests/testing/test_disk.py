"""The disks of brokers under test."""

import errno
import os

import pytest
from tests.storage.contract import LogContract

from kohort.storage.files import make_durable_directory
from kohort.storage.log import LogConfig
from kohort.storage.segments import SegmentLog
from kohort.testing.disk import MemoryDisk, RealDisk


class TestALogInMemory(LogContract):
    @pytest.fixture
    def log(self):
        disk = MemoryDisk()
        make_durable_directory(disk, "/data/topic-0")
        return SegmentLog("/data/topic-0", disk, LogConfig(segment_bytes=700))


@pytest.fixture(params=["real", "memory"])
def disk(request):
    return RealDisk(synced=True) if request.param == "real" else MemoryDisk()


def test_it_is_full_for_a_while(disk, tmp_path):
    disk.make_directory(f"{tmp_path}")
    file = disk.open(f"{tmp_path}/a")
    file.write(0, b"abc")
    disk.full = True
    with pytest.raises(OSError, match="No space left") as raised:
        file.write(3, b"d")
    assert (raised.value.errno, raised.value.filename) == (errno.ENOSPC, f"{tmp_path}/a")
    with pytest.raises(OSError, match="No space left"):
        disk.make_directory(f"{tmp_path}/folder")
    for make in (disk.open, disk.lock):
        with pytest.raises(OSError, match="No space left") as raised:
            make(f"{tmp_path}/b")
        assert raised.value.filename == f"{tmp_path}/b"
    assert disk.names(f"{tmp_path}") == ["a"]
    assert disk.make_directory(f"{tmp_path}") == [], "what is there needs no room"
    again = disk.open(f"{tmp_path}/a")
    assert again.read(0, 9) == b"abc"
    again.truncate(3)
    again.close()
    assert file.read(0, 9) == b"abc"
    disk.full = False
    file.write(3, b"d")
    assert disk.make_directory(f"{tmp_path}/folder") == [f"{tmp_path}/folder"]
    assert file.read(0, 9) == b"abcd"
    file.close()


@pytest.mark.parametrize("synced", [False, True])
def test_nothing_is_synced_where_nothing_can_be_lost(synced, tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr("kohort.storage.files._sync_data", calls.append)
    monkeypatch.setattr(os, "fsync", calls.append)
    disk = RealDisk(synced=synced)
    file = disk.open(f"{tmp_path}/a")
    file.sync()
    disk.sync_directory(f"{tmp_path}")
    file.close()
    assert len(calls) == (2 if synced else 0)


def test_files_are_read_and_written_by_position(disk, tmp_path):
    disk.make_directory(f"{tmp_path}")
    file = disk.open(f"{tmp_path}/a")
    assert (file.size(), file.read(0, 9)) == (0, b"")
    file.write(2, b"xy")
    assert (file.size(), file.read(0, 9), file.read(3, 9)) == (4, b"\0\0xy", b"y")
    file.write(1, b"abc")
    file.truncate(3)
    assert file.read(0, 9) == b"\0ab"
    file.truncate(5)
    assert file.read(0, 9) == b"\0ab\0\0"
    file.sync()
    again = disk.open(f"{tmp_path}/a")
    assert again.read(0, 9) == file.read(0, 9)
    file.close()
    again.close()


def test_names(disk, tmp_path):
    top = f"{tmp_path}/top"
    assert disk.names(top) == []
    with pytest.raises(FileNotFoundError):
        disk.open(f"{top}/a")
    assert disk.make_directory(f"{top}/one/two")[-3:] == [top, f"{top}/one", f"{top}/one/two"]
    assert disk.make_directory(f"{top}/one") == []
    disk.open(f"{top}/b").close()
    disk.open(f"{top}/a").close()
    assert disk.names(top) == ["a", "b", "one"]
    assert disk.names(f"{top}/one") == ["two"]
    disk.rename(f"{top}/a", f"{top}/b")
    disk.rename(f"{top}/one", f"{top}/three")
    assert disk.names(top) == ["b", "three"]
    assert disk.names(f"{top}/three") == ["two"]
    disk.unlink(f"{top}/b")
    disk.unlink(f"{top}/b")
    for gone in (lambda: disk.rename(f"{top}/no", f"{top}/x"), lambda: disk.remove_directory(top)):
        with pytest.raises(OSError, match=r"No such|not empty"):
            gone()
    disk.sync_directory(top)
    disk.remove_directory(f"{top}/three/two")
    disk.remove_directory(f"{top}/three")
    with pytest.raises(FileNotFoundError):
        disk.remove_directory(f"{top}/three")
    assert disk.names(top) == []


def test_a_folder_is_no_file(disk, tmp_path):
    disk.make_directory(f"{tmp_path}/folder")
    with pytest.raises(OSError, match="directory"):
        disk.open(f"{tmp_path}/folder")
    disk.make_directory(f"{tmp_path}/other/within")
    with pytest.raises(OSError, match="not empty"):
        disk.rename(f"{tmp_path}/folder", f"{tmp_path}/other")


def test_a_lock_is_held_until_it_is_closed(disk, tmp_path):
    disk.make_directory(f"{tmp_path}")
    held = disk.lock(f"{tmp_path}/.lock")
    with pytest.raises(BlockingIOError):
        disk.lock(f"{tmp_path}/.lock")
    held.close()
    disk.lock(f"{tmp_path}/.lock").close()
