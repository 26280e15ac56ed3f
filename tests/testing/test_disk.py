# SPDX-License-Identifier: Apache-2.0
"""The disks of brokers under test."""

import errno

import pytest

from kohort.sim.disk import SimulatedFiles
from kohort.storage.files import system
from kohort.testing.disk import MemoryDisk, RealDisk


@pytest.fixture(params=["real", "memory"])
def disk(request):
    return RealDisk(synced=True) if request.param == "real" else MemoryDisk()


@pytest.fixture(params=["real", "memory", "simulated"])
def any_disk(request):
    """Also that of the simulator: a log must not see which one it is on."""
    if request.param == "simulated":
        return SimulatedFiles()
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
    monkeypatch.setattr(system, "fsync", calls.append)
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


def test_names(any_disk, tmp_path):
    top = f"{tmp_path}/top"
    assert any_disk.names(top) == []
    with pytest.raises(FileNotFoundError):
        any_disk.open(f"{top}/a")
    assert any_disk.make_directory(f"{top}/one/two")[-3:] == [top, f"{top}/one", f"{top}/one/two"]
    assert any_disk.make_directory(f"{top}/one") == []
    any_disk.open(f"{top}/b").close()
    any_disk.open(f"{top}/a").close()
    assert any_disk.names(top) == ["a", "b", "one"]
    assert any_disk.names(f"{top}/one") == ["two"]
    any_disk.rename(f"{top}/a", f"{top}/b")
    any_disk.rename(f"{top}/one", f"{top}/three")
    assert any_disk.names(top) == ["b", "three"]
    assert any_disk.names(f"{top}/three") == ["two"]
    any_disk.unlink(f"{top}/b")
    any_disk.unlink(f"{top}/b")
    for gone in (
        lambda: any_disk.rename(f"{top}/no", f"{top}/x"),
        lambda: any_disk.remove_directory(top),
    ):
        with pytest.raises(OSError, match=r"No such|not empty"):
            gone()
    any_disk.sync_directory(top)
    any_disk.remove_directory(f"{top}/three/two")
    any_disk.remove_directory(f"{top}/three")
    with pytest.raises(FileNotFoundError):
        any_disk.remove_directory(f"{top}/three")
    assert any_disk.names(top) == []


def test_a_folder_is_no_file(any_disk, tmp_path):
    any_disk.make_directory(f"{tmp_path}/folder")
    with pytest.raises(OSError, match="directory"):
        any_disk.open(f"{tmp_path}/folder")
    any_disk.make_directory(f"{tmp_path}/other/within")
    with pytest.raises(OSError, match="not empty"):
        any_disk.rename(f"{tmp_path}/folder", f"{tmp_path}/other")
    any_disk.open(f"{tmp_path}/file").close()
    for path in (f"{tmp_path}/file", f"{tmp_path}/file/within"):
        with pytest.raises(OSError, match=r"File exists|Not a directory"):
            any_disk.make_directory(path)
    with pytest.raises(OSError, match=r"Not a directory|No such"):
        any_disk.open(f"{tmp_path}/file/within")
    with pytest.raises(OSError, match=r"Is a directory|Operation not permitted"):
        any_disk.unlink(f"{tmp_path}/folder")


def test_a_lock_is_held_until_it_is_closed(any_disk, tmp_path):
    any_disk.make_directory(f"{tmp_path}")
    held = any_disk.lock(f"{tmp_path}/.lock")
    with pytest.raises(BlockingIOError):
        any_disk.lock(f"{tmp_path}/.lock")
    held.close()
    any_disk.lock(f"{tmp_path}/.lock").close()
