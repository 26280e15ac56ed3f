# SPDX-License-Identifier: Apache-2.0
"""The files of logs: at most a share is open, and nothing is lost with one that is closed."""

import errno
import gc
import os
import threading
from pathlib import Path
from random import Random

import pytest
from tests.storage.contract import ALL, LogContract, batch, filled, values
from tests.storage.starts import begin_at

from kohort.errors import Broken, StorageError
from kohort.sim.disk import MachineCrash, SimulatedFiles
from kohort.storage.compaction import CleaningRules, compact
from kohort.storage.files import DiskFiles, UnsyncedError, make_durable_directory
from kohort.storage.log import LogConfig
from kohort.storage.open_files import OpenFiles
from kohort.storage.segments import SegmentLog

SMALL = LogConfig(segment_bytes=700, index_interval_bytes=150)


class Watched(DiskFiles):
    """The real disk. `opens` names the files in the order in which they were opened."""

    def __init__(self):
        self.opens = []

    def open(self, path):
        self.opens.append(Path(path).name)
        return super().open(path)

    def reopen(self, path):
        self.opens.append(Path(path).name)
        return super().reopen(path)


def held(folder):
    """The names of the files below a folder that this process has open."""
    found = []
    for link in Path("/proc/self/fd").iterdir():
        try:
            target = str(link.readlink())
        except FileNotFoundError:  # the listing itself
            continue
        if target.startswith(str(folder)):
            found.append(target.removeprefix(f"{folder}/"))
    return sorted(found)


@pytest.fixture
def disk():
    disk = SimulatedFiles()
    make_durable_directory(disk, "/data")
    return disk


def test_the_file_that_nobody_has_used_for_longest_is_closed(tmp_path):
    disk = Watched()
    pool = OpenFiles(disk, 2)
    a, b = (pool.open(f"{tmp_path}/{name}") for name in "ab")
    a.read(0, 1)
    c = pool.open(f"{tmp_path}/c")
    assert held(tmp_path) == ["a", "c"]
    a.read(0, 1)
    b.read(0, 1)
    assert held(tmp_path) == ["a", "b"]
    c.read(0, 1)
    assert held(tmp_path) == ["b", "c"]
    assert disk.opens == ["a", "b", "c", "b", "c"]
    assert (pool.opened, pool.count) == (5, 2)


@pytest.mark.parametrize("share", [1, 2, 3, 10, 29])
def test_any_use_in_any_order_finds_what_was_written_and_never_more_files_are_open(tmp_path, share):
    """Compared with what should be there, and with the order of an exact list of uses."""
    random = Random(share)
    pool = OpenFiles(Watched(), share)
    files = [pool.open(f"{tmp_path}/{number:02d}") for number in range(30)]
    expected = [bytearray() for _ in files]
    recent = list(range(30 - share, 30))
    for _ in range(1500):
        number = random.randrange(30) if random.random() < 0.5 else random.randrange(4)
        file, content = files[number], expected[number]
        if random.random() < 0.3:
            data = random.randbytes(3)
            file.write(len(content), data)
            file.sync()
            content += data
        assert file.read(0, 1 << 20) == content
        recent = [*(one for one in recent if one != number), number][-share:]
        assert pool.count <= share
        if random.random() < 0.05:
            assert held(tmp_path) == sorted(f"{one:02d}" for one in recent)


def test_what_was_written_is_synced_before_the_file_is_closed(disk):
    pool = OpenFiles(disk, 1)
    file = pool.open("/data/a")
    file.write(0, b"written")
    assert disk.files["/data/a"].synced == b""
    pool.open("/data/b")
    assert disk.files["/data/a"].synced == b"written"
    steps = disk.steps
    file.sync()
    assert disk.steps == steps  # it was synced


def test_a_file_that_is_synced_is_closed_before_an_older_one_that_is_not(disk):
    pool = OpenFiles(disk, 3)
    unsynced, synced = pool.open("/data/a"), pool.open("/data/b")
    unsynced.write(0, b"a")
    synced.write(0, b"b")
    synced.sync()
    for name in "cdefg":
        pool.open(f"/data/{name}")
    assert disk.files["/data/a"].synced == b""


def test_of_many_files_that_are_not_synced_the_oldest_is_closed(disk):
    pool = OpenFiles(disk, 200)
    files = [pool.open(f"/data/{number:03d}") for number in range(200)]
    for file in files:
        file.write(0, b"x")
    more = [pool.open(f"/data/m{number:03d}") for number in range(3)]
    for file in more:
        file.write(0, b"x")
    for number in range(200, 210):
        file = pool.open(f"/data/{number}")
        file.write(0, b"x")
        files.append(file)
    synced = [path for path, one in disk.files.items() if one.synced]
    assert len(synced) == 13
    assert pool.count == 200


def test_a_sync_that_fails_while_a_file_is_closed_is_told_to_whoever_writes_or_syncs(disk):
    pool = OpenFiles(disk, 1)
    file = pool.open("/data/a")
    file.write(0, b"written")
    disk.refuses_sync = True
    pool.open("/data/b")
    disk.refuses_sync = False
    for _ in range(2):
        with pytest.raises(OSError, match=os.strerror(errno.EIO)):
            file.sync()
        with pytest.raises(UnsyncedError):
            file.write(7, b"more")
        with pytest.raises(UnsyncedError):
            file.truncate(0)
    assert file.read(0, 10) == b"written"


@pytest.mark.parametrize("call", ["append", "sync", "roll"])
def test_a_log_whose_file_could_not_be_synced_when_it_was_closed_is_broken(disk, call):
    pool = OpenFiles(disk, 1)
    log = SegmentLog("/data/t-0", disk, SMALL, open_files=pool)
    log.append(batch("lost"), 1)
    disk.refuses_sync = True
    pool.open("/data/another")
    disk.refuses_sync = False
    other = SegmentLog("/data/t-1", disk, SMALL, open_files=pool)
    calls = {"append": lambda: log.append(batch("x"), 1), "sync": log.sync, "roll": log.roll}
    for name in (call, "append", "sync"):
        with pytest.raises(Broken, match="cannot be synced"):
            calls[name]()
    other.append(batch("fine"), 1)
    assert other.sync() == 1


def test_a_power_loss_at_any_step_keeps_what_a_sync_has_said(disk):
    """Logs that take the only open file from each other."""
    for step in range(400):
        disk = SimulatedFiles()
        make_durable_directory(disk, "/data")
        pool = OpenFiles(disk, 1)
        promised = [0, 0, 0]
        disk.crash_at = disk.steps + step
        try:
            logs = [SegmentLog(f"/data/t-{at}", disk, SMALL, open_files=pool) for at in range(3)]
            disk.sync_directory("/data")
            for number in range(12):
                at = number % 3
                logs[at].append(batch(f"{number}", size=120), 1)
                if number % 2:
                    promised[at] = logs[at].sync()
        except MachineCrash:
            pass
        else:
            assert step > 50
            return
        disk = disk.after_power_loss(random=Random(step))
        for at, end in enumerate(promised):
            if end:
                assert SegmentLog(f"/data/t-{at}", disk, SMALL).end >= end
    raise AssertionError("there are more steps than were tried")


def test_a_file_that_is_gone_is_not_made_again(tmp_path):
    pool = OpenFiles(DiskFiles(), 1)
    file = pool.open(f"{tmp_path}/a")
    file.write(0, b"here")
    pool.open(f"{tmp_path}/b")
    (tmp_path / "a").unlink()
    for use in (lambda: file.read(0, 1), lambda: file.write(4, b"x"), file.size):
        with pytest.raises(FileNotFoundError):
            use()
    assert not (tmp_path / "a").exists()


def test_a_link_that_has_taken_the_place_of_a_file_is_refused(tmp_path):
    pool = OpenFiles(DiskFiles(), 1)
    file = pool.open(f"{tmp_path}/a")
    pool.open(f"{tmp_path}/b")
    (tmp_path / "a").unlink()
    (tmp_path / "precious").write_bytes(b"precious")
    (tmp_path / "a").symlink_to(tmp_path / "precious")
    with pytest.raises(OSError, match="it is a link"):
        file.write(0, b"x")
    assert (tmp_path / "precious").read_bytes() == b"precious"


def test_a_log_that_cannot_open_its_file_refuses_and_goes_on_when_it_can(disk):
    pool = OpenFiles(disk, 1)
    log = SegmentLog("/data/t-0", disk, SMALL, open_files=pool)
    log.append(batch("first"), 1)
    log.sync()
    other = SegmentLog("/data/t-1", disk, SMALL, open_files=pool)
    disk.refused["/data/t-0"] = errno.EMFILE
    with pytest.raises(StorageError, match="Too many open files"):
        log.append(batch("refused"), 1)
    with pytest.raises(Broken, match="cannot be read"):
        log.fetch(0, ALL)
    assert other.append(batch("other"), 1) == 1
    disk.refused.clear()
    assert log.append(batch("second"), 1) == 2
    assert log.sync() == 2
    assert values(log) == [(0, "first"), (1, "second")]


def test_where_the_system_has_no_descriptor_left_another_file_is_closed(tmp_path):
    class Crowded(DiskFiles):
        """Somebody else has taken all descriptors but those of two files."""

        def open(self, path):
            self._check()
            return super().open(path)

        def reopen(self, path):
            self._check()
            return super().reopen(path)

        def _check(self):
            if len(held(tmp_path)) == 2:
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    pool = OpenFiles(Crowded(), 100)
    files = [pool.open(f"{tmp_path}/{number}") for number in range(5)]
    for file in files:
        file.write(0, b"x")
    assert [file.read(0, 1) for file in files] == [b"x"] * 5
    pool = OpenFiles(Crowded(), 100)
    with pytest.raises(OSError, match="Too many open files"):
        pool.open(f"{tmp_path}/another")


def test_a_pinned_file_stays_open_and_counts_for_itself(tmp_path):
    pool = OpenFiles(DiskFiles(), 1)
    pinned, other = pool.open(f"{tmp_path}/pinned"), pool.open(f"{tmp_path}/other")
    pinned.pin()
    pool.open(f"{tmp_path}/third")
    other.read(0, 1)
    assert held(tmp_path) == ["other", "pinned"]
    assert (pool.count, pool.pinned) == (1, 1)
    pinned.unpin()
    assert (pool.count, pool.pinned) == (2, 0)
    fourth = pool.open(f"{tmp_path}/fourth")
    assert held(tmp_path) == ["fourth"]
    assert fourth.size() == 0


def test_the_file_that_a_log_of_a_coordinator_writes_to_stays_open(tmp_path):
    disk = DiskFiles()
    pool = OpenFiles(disk, 1)
    config = LogConfig(segment_bytes=700, stays_open=True)
    log = SegmentLog(f"{tmp_path}/t-0", disk, config, open_files=pool)
    other = SegmentLog(f"{tmp_path}/t-1", disk, SMALL, open_files=pool)
    filled(log, 20)
    other.append(batch("x"), 1)
    assert len(log.closed) > 1
    assert held(tmp_path) == [f"t-0/{log.active.base_offset:020d}.log", "t-1/" + "0" * 20 + ".log"]
    log.close()
    other.close()
    assert (pool.count, pool.pinned) == (0, 0)


def test_a_file_that_nobody_has_any_more_is_closed(tmp_path):
    pool = OpenFiles(DiskFiles(), 9)
    log = SegmentLog(f"{tmp_path}/t-0", DiskFiles(), SMALL, open_files=pool)
    filled(log, 20)
    assert len(held(tmp_path)) == pool.count >= 3
    del log
    gc.collect()
    assert held(tmp_path) == []
    assert pool.count == 0


def test_a_closed_file_stays_closed(tmp_path):
    pool = OpenFiles(DiskFiles(), 9)
    file = pool.open(f"{tmp_path}/a")
    file.close()
    file.close()
    for use in (lambda: file.read(0, 1), lambda: file.write(0, b"x"), file.size, file.sync):
        with pytest.raises(OSError, match="it is closed"):
            use()


@pytest.mark.parametrize("change", ["retention", "cleaning"])
def test_whoever_reads_a_segment_reads_it_to_its_end_though_it_is_replaced(disk, change):
    pool = OpenFiles(disk, 1)
    log = SegmentLog("/data/t-0", disk, SMALL, open_files=pool)
    filled(log, 40)
    expected = [header.base_offset for header in log.headers(0)]
    segments, reading = log.closed, log.headers(0)
    found = [next(reading).base_offset]
    if change == "retention":
        begin_at(log, log.end)
    else:
        for _ in compact(log, disk, CleaningRules(5000)):
            pass
    replaced = [one for one in segments if one not in log.closed]
    assert len(replaced) > 2
    found += [header.base_offset for header in reading]
    assert found == sorted(set(found))
    assert set(found) <= set(expected)
    in_first = [offset for offset in expected if offset < segments[0].end]
    assert found[: len(in_first)] == in_first
    assert found[-1] == expected[-1] or change == "retention"
    del reading, segments, replaced
    assert pool.take_nameless()
    assert pool.count <= 1
    assert pool.pinned == 0


def test_a_cleaning_that_cannot_open_what_it_replaces_changes_nothing(disk):
    pool = OpenFiles(disk, 2)
    log = SegmentLog("/data/t-0", disk, SMALL, open_files=pool)
    filled(log, 30)
    log.sync()
    before = values(log)
    cleaning = compact(log, disk, CleaningRules(5000))
    while not any(name.endswith(".cleaned") for name in disk.names("/data/t-0")):
        next(cleaning)
    disk.faults["open", "/data/t-0/0000"] = errno.EMFILE
    with pytest.raises(StorageError, match="cannot be cleaned"):
        list(cleaning)
    disk.faults.clear()
    assert values(log) == before
    assert not [name for name in disk.names("/data/t-0") if name.endswith((".cleaned", ".swap"))]
    list(compact(log, disk, CleaningRules(5000)))
    assert values(log) != before


def test_threads_that_use_the_same_files_find_what_they_have_written(tmp_path):
    """Writers and syncs on several threads, with room for two files."""
    pool = OpenFiles(DiskFiles(), 2)
    files = [pool.open(f"{tmp_path}/{number}") for number in range(6)]
    errors = []

    def work(own):
        try:
            random = Random(own)
            written = {own: b"", own + 3: b""}
            for _ in range(300):
                number = random.choice([own, own + 3])
                data = random.randbytes(8)
                files[number].write(len(written[number]), data)
                written[number] += data
                if random.random() < 0.3:
                    files[random.randrange(6)].sync()
                assert files[number].read(0, 1 << 20) == written[number]
        except BaseException as error:  # noqa: BLE001  (told below)
            errors.append(error)

    threads = [threading.Thread(target=work, args=(own,)) for own in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    pool.open(f"{tmp_path}/another")  # those that were used just then are closed now
    assert len(held(tmp_path)) == pool.count <= 2


def test_a_file_that_is_written_to_while_it_is_being_closed_stays_open(tmp_path):
    """Else what was written then would be in a file that was closed without a sync."""

    class Late(DiskFiles):
        def open(self, path):
            file = super().open(path)
            sync = file.sync

            def synced():
                sync()
                late = [one for one in files if one.path == path]
                for one in late:
                    one.write(3, b"late")

            file.sync = synced
            return file

    files = []
    pool = OpenFiles(Late(), 1)
    file = pool.open(f"{tmp_path}/a")
    file.write(0, b"abc")
    files.append(file)
    pool.open(f"{tmp_path}/b")
    assert file.unsynced
    assert "a" in held(tmp_path)
    files.clear()
    assert file.read(0, 10) == b"abclate"


class TestAnyLogWithOneOpenFile(LogContract):
    @pytest.fixture
    def log(self, disk):
        pool = OpenFiles(disk, 1)
        log = SegmentLog("/data/topic-0", disk, SMALL, open_files=pool)
        yield log
        assert pool.count <= 1
