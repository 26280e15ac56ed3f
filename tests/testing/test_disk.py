"""The disk of a broker under test."""

import errno
import os

import pytest

from kohort.testing.disk import TestDisk


def test_it_is_full_for_a_while(tmp_path):
    disk = TestDisk(synced=True)
    file = disk.open(f"{tmp_path}/a")
    file.write(0, b"abc")
    disk.full = True
    with pytest.raises(OSError, match="No space left") as raised:
        file.write(3, b"d")
    assert (raised.value.errno, raised.value.filename) == (errno.ENOSPC, f"{tmp_path}/a")
    with pytest.raises(OSError, match="No space left"):
        disk.make_directory(f"{tmp_path}/folder")
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
    disk = TestDisk(synced=synced)
    file = disk.open(f"{tmp_path}/a")
    file.sync()
    disk.sync_directory(f"{tmp_path}")
    file.close()
    assert len(calls) == (2 if synced else 0)
