# SPDX-License-Identifier: Apache-2.0
import errno
import os
import subprocess
import sys
from threading import Event, Thread
from unittest import mock

import pytest

from kohort.storage import files as files_module
from kohort.storage.files import (
    DiskFiles,
    ReadOnlyFiles,
    is_in_use,
    read_whole,
    replace_whole,
    system,
)


@pytest.fixture
def files():
    return DiskFiles()


def test_a_file_is_addressed_by_position(files, tmp_path):
    file = files.open(f"{tmp_path}/one")
    file.write(0, b"hello world")
    file.write(6, b"there")
    assert file.read(0, 100) == b"hello there"
    assert file.read(6, 3) == b"the"
    assert file.read(50, 3) == b""
    file.truncate(5)
    file.sync()
    assert file.size() == 5
    file.close()
    file.close()
    again = files.open(f"{tmp_path}/one")
    assert again.read(0, 10) == b"hello"
    again.close()


def test_short_writes_and_reads_are_finished(files, tmp_path, monkeypatch):
    file = files.open(f"{tmp_path}/one")
    pwrite, pread = os.pwrite, os.pread
    monkeypatch.setattr(system, "pwrite", lambda fd, data, at: pwrite(fd, data[:3], at))
    monkeypatch.setattr(system, "pread", lambda fd, count, at: pread(fd, min(count, 2), at))
    file.write(0, b"0123456789")
    assert file.read(0, 10) == b"0123456789"
    assert file.read(7, 10) == b"789"
    file.close()


def test_a_failed_sync_is_not_forgotten(files, tmp_path, monkeypatch):
    """The system tells of it once; a later success would promise what is not there."""
    file = files.open(f"{tmp_path}/one")

    def refuse(_descriptor):
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(files_module, "_sync_data", refuse)
        with pytest.raises(OSError, match="Input/output error"):
            file.sync()
    for _ in range(2):
        with pytest.raises(OSError, match="Input/output error"):
            file.sync()
    file.close()
    again = files.open(f"{tmp_path}/one")
    again.sync()
    again.close()


def test_of_two_syncs_at_a_time_both_fail(files, tmp_path, monkeypatch):
    file = files.open(f"{tmp_path}/one")
    begun, go_on = Event(), Event()
    calls = []

    def tell_one_of_two(_descriptor):
        calls.append(None)
        if len(calls) == 1:
            begun.set()
            go_on.wait()
            raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(files_module, "_sync_data", tell_one_of_two)
    outcomes = []

    def sync():
        try:
            outcomes.append(file.sync())
        except OSError as error:
            outcomes.append(error.errno)

    first, second = Thread(target=sync), Thread(target=sync)
    first.start()
    begun.wait()
    second.start()
    second.join(0.2)  # without a lock it ends meanwhile; with one it waits
    go_on.set()
    for thread in (first, second):
        thread.join()
    assert outcomes == [errno.EIO, errno.EIO]
    file.close()


def test_a_forgotten_file_closes_itself(files, tmp_path):
    file = files.open(f"{tmp_path}/one")
    descriptor = file._descriptor
    del file
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


def test_a_lock_file_that_was_removed_lets_nobody_in(files, tmp_path):
    lock = files.lock(f"{tmp_path}/.lock")
    files.unlink(f"{tmp_path}/.lock")
    with pytest.raises(BlockingIOError):
        files.lock(f"{tmp_path}/.lock")
    assert is_in_use(str(tmp_path))
    lock.close()
    assert not is_in_use(str(tmp_path))
    files.lock(f"{tmp_path}/.lock").close()


def test_files_to_look_at_only(files, tmp_path):
    files.open(f"{tmp_path}/one").write(0, b"text")
    looking = ReadOnlyFiles()
    assert looking.open(f"{tmp_path}/one").read(0, 10) == b"text"
    for change in (
        lambda: looking.open(f"{tmp_path}/two"),
        lambda: looking.open(f"{tmp_path}/one").write(0, b"x"),
        lambda: looking.make_directory(f"{tmp_path}/two"),
        lambda: looking.remove_directory(str(tmp_path)),
        lambda: looking.rename(f"{tmp_path}/one", f"{tmp_path}/two"),
        lambda: looking.unlink(f"{tmp_path}/one"),
        lambda: looking.sync_directory(str(tmp_path)),
        lambda: looking.lock(f"{tmp_path}/.lock"),
    ):
        with pytest.raises(OSError):
            change()
    assert files.names(str(tmp_path)) == ["one"]


@pytest.mark.parametrize("look", [DiskFiles(), ReadOnlyFiles()])
def test_what_is_no_file_is_refused_and_nobody_waits_for_it(look, tmp_path):
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "directory").mkdir()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for name in ("fifo", "directory", "loop"):
        with pytest.raises(OSError, match=name):
            look.open(f"{tmp_path}/{name}")


def test_names_and_directories(files, tmp_path):
    root = f"{tmp_path}/a/b"
    files.make_directory(root)
    files.make_directory(root)
    for name in ("2", "1", "3"):
        files.open(f"{root}/{name}").close()
    assert files.names(root) == ["1", "2", "3"]
    assert files.names(f"{tmp_path}/nowhere") == []
    files.rename(f"{root}/1", f"{root}/2")
    files.unlink(f"{root}/3")
    files.unlink(f"{root}/3")
    files.sync_directory(root)
    assert files.names(root) == ["2"]
    files.unlink(f"{root}/2")
    files.remove_directory(root)
    assert files.names(f"{tmp_path}/a") == []


def test_small_files_are_replaced_as_a_whole(files, tmp_path):
    assert read_whole(files, str(tmp_path), "note") is None
    replace_whole(files, str(tmp_path), "note", b"a longer text")
    replace_whole(files, str(tmp_path), "note", b"short")
    assert read_whole(files, str(tmp_path), "note") == b"short"
    assert files.names(str(tmp_path)) == ["note"]


def test_a_lock_is_held_once(files, tmp_path):
    path = f"{tmp_path}/.lock"
    held = files.lock(path)
    with pytest.raises(BlockingIOError):
        files.lock(path)
    assert _other_process(path) == "taken"
    held.close()
    assert _other_process(path) == "free"
    files.lock(path).close()


def test_a_refused_lock_leaves_the_first_one_in_force(files, tmp_path):
    path = f"{tmp_path}/.lock"
    held = files.lock(path)
    with pytest.raises(BlockingIOError):
        files.lock(path)
    assert _other_process(path) == "taken"
    held.close()


def _other_process(path):
    code = (
        "import sys\n"
        "from kohort.storage.files import DiskFiles\n"
        "try:\n"
        "    DiskFiles().lock(sys.argv[1])\n"
        "    print('free')\n"
        "except BlockingIOError:\n"
        "    print('taken')\n"
    )
    command = [sys.executable, "-c", code, path]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_what_is_not_there_is_neither_renamed_nor_removed(files, tmp_path):
    with pytest.raises(FileNotFoundError):
        files.rename(f"{tmp_path}/a", f"{tmp_path}/b")
    with pytest.raises(FileNotFoundError):
        files.remove_directory(f"{tmp_path}/a")


def test_there_is_a_sync_on_every_system():
    assert files_module._sync_data in {getattr(os, "fdatasync", os.fsync), os.fsync}


@pytest.mark.parametrize("what", ["file", "link to nothing", "below a file"])
def test_what_stands_in_the_place_of_a_directory_is_refused(files, tmp_path, what):
    place = tmp_path / "place"
    if what == "link to nothing":
        place.symlink_to(tmp_path / "nothing")
    else:
        place.touch()
    wanted = place / "one" if what == "below a file" else place
    with pytest.raises(NotADirectoryError if what == "below a file" else FileExistsError):
        files.make_directory(str(wanted))
    assert [one.name for one in tmp_path.iterdir()] == ["place"]


def test_a_directory_is_made_with_those_above_it(files, tmp_path):
    above = [str(tmp_path / "one"), str(tmp_path / "one" / "two")]
    assert files.make_directory(above[1]) == above
    assert files.make_directory(above[1]) == []
    assert files.make_directory(f"{tmp_path}/three/")[0] == f"{tmp_path}/three"
    assert (tmp_path / "three").is_dir()


def test_what_a_test_patches_is_not_asked(tmp_path):
    (tmp_path / "a").touch()
    with mock.patch("os.listdir", return_value=[]), mock.patch("os.open", side_effect=OSError):
        assert DiskFiles().names(str(tmp_path)) == ["a"]
        DiskFiles().open(str(tmp_path / "a")).close()
    assert system.listdir is os.listdir
