# SPDX-License-Identifier: Apache-2.0
"""Files in memory behave as those of a system do; tests/testing/test_disk.py holds both to it."""

import errno

import pytest
from tests.storage.contract import LogContract

from kohort.storage.files import DiskFiles, make_durable_directory
from kohort.storage.log import LogConfig
from kohort.storage.memory_files import MemoryFiles
from kohort.storage.segments import SegmentLog


class TestALogOnThem(LogContract):
    @pytest.fixture
    def log(self):
        files = MemoryFiles()
        make_durable_directory(files, "/data/topic-0")
        return SegmentLog("/data/topic-0", files, LogConfig(segment_bytes=700))


@pytest.fixture(params=[MemoryFiles, DiskFiles])
def files(request):
    return request.param()


def test_a_file_is_no_folder(files, tmp_path):
    files.make_directory(f"{tmp_path}")
    files.open(f"{tmp_path}/file").close()
    for ask in (
        lambda: files.names(f"{tmp_path}/file"),
        lambda: files.remove_directory(f"{tmp_path}/file"),
        lambda: files.open(f"{tmp_path}/file/within"),
    ):
        with pytest.raises(NotADirectoryError):
            ask()
    assert files.names(f"{tmp_path}") == ["file"]


def test_what_is_not_there_is_gone_already(files, tmp_path):
    files.unlink(f"{tmp_path}/nowhere/file")
    with pytest.raises(FileNotFoundError):
        files.reopen(f"{tmp_path}/file")


def test_a_rename_that_cannot_be_loses_nothing(files, tmp_path):
    files.make_directory(f"{tmp_path}")
    files.open(f"{tmp_path}/file").close()
    with pytest.raises(FileNotFoundError):
        files.rename(f"{tmp_path}/file", f"{tmp_path}/nowhere/file")
    assert files.names(f"{tmp_path}") == ["file"]


def test_a_subclass_hears_of_operations_and_changes():
    heard = []

    class Hearing(MemoryFiles):
        def before(self, operation, path):
            heard.append((operation, path))

        def change(self, operation, path):
            heard.append((f"{operation} changes", path))
            if operation == "lock":
                raise OSError(errno.ENOSPC, "full", path)

    files = Hearing()
    files.open("/a").write(0, b"x")
    files.rename("/a", "/b")
    files.unlink("/b")
    files.unlink("/b")
    with pytest.raises(OSError, match="full"):
        files.lock("/lock")
    assert files.names("") == []
    assert heard == [
        ("open", "/a"),
        ("open changes", "/a"),
        ("write", "/a"),
        ("rename", "/a"),
        ("rename changes", "/a"),
        ("unlink", "/b"),
        ("unlink changes", "/b"),
        ("lock changes", "/lock"),
        ("names", ""),
    ]
