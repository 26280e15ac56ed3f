# SPDX-License-Identifier: Apache-2.0
"""Segments of a log: rolled, read, cut, told by their files; and a disk that refuses or crashes."""

import errno
from contextlib import nullcontext

import pytest
from tests import golden_logs
from tests.storage.contract import ALL, batch, filled, values
from tests.storage.starts import begin_at, retain

from kohort.errors import Broken, StorageError
from kohort.sim.disk import MachineCrash, SimulatedFiles
from kohort.storage import checkpoints
from kohort.storage.directory import delete_partition
from kohort.storage.files import DiskFiles, make_durable_directory, replace_whole
from kohort.storage.log import Log, LogConfig
from kohort.storage.recovery import RecoveryPoint
from kohort.storage.segments import SegmentLog
from kohort.wire import batch as batches

FOLDER = "/data/topic-0"

SMALL = LogConfig(segment_bytes=700, index_interval_bytes=150)


def opened(disk, config=SMALL, **options):
    make_durable_directory(disk, FOLDER)
    return SegmentLog(FOLDER, disk, config, **options)


def test_it_is_a_log():
    log: Log = opened(SimulatedFiles())
    assert log.leader_epoch == 0


def test_everything_is_there_after_opening_again():
    disk = SimulatedFiles()
    log = opened(disk)
    written = filled(log, 50)
    end = log.end
    log.close()
    log = opened(disk)
    assert (log.start, log.end) == (0, end)
    assert list(log.read(0, ALL)) == written
    assert log.max_timestamp == 1049
    assert log.find_timestamp(1030) is not None


@pytest.mark.parametrize(
    "look",
    [
        lambda log: log.max_timestamp == 1039,
        lambda log: log.find_timestamp(5000) is None,
        lambda log: len(list(log.headers(0))) == 40,
        lambda log: retain(log, 1039, 1039, -1) == 0,
    ],
)
def test_the_records_of_large_batches_are_not_read_for_what_headers_tell(look):
    disk = SimulatedFiles()
    config = LogConfig(segment_bytes=3_000_000, index_interval_bytes=4096)
    filled(opened(disk, config), 40, size=100_000)
    log = opened(disk, config)
    closed_bytes = sum(segment.size for segment in log.closed)
    assert closed_bytes > 4_000_000
    disk.read_bytes = 0
    assert look(log)
    assert disk.read_bytes <= (len(log.closed) + 1) * 8192 + 40 * batches.HEADER_SIZE


def test_headers_go_back_only_as_far_as_they_are_asked_for():
    disk = SimulatedFiles()
    filled(opened(disk, LogConfig(segment_bytes=30_000)), 40, size=10_000)
    log = opened(disk, LogConfig(segment_bytes=30_000))
    disk.read_bytes = 0
    recent = log.headers(log.first_since(1038))
    assert [one.max_timestamp for one in recent][-1] == 1039
    assert disk.read_bytes < log.size_bytes / 5


def test_headers_go_on_where_they_ended_and_not_at_the_begin_of_the_file():
    """Whoever follows a log asks for what is new, again and again."""
    disk = SimulatedFiles()
    log = opened(disk, LogConfig(segment_bytes=3_000_000))
    filled(log, 2000, size=100)
    disk.read_bytes = 0
    assert [one.last_offset for one in log.headers(log.end - 3)][-1] == log.end - 1
    assert disk.read_bytes < 40_000


def test_the_first_file_that_is_not_too_old_is_found_in_slices():
    disk = SimulatedFiles()
    filled(opened(disk, LogConfig(segment_bytes=30_000)), 40, size=1000)
    log, again = (opened(disk, LogConfig(segment_bytes=30_000)) for _ in range(2))
    asked = 1
    while (found := log.first_since(1008, 3)) is None:
        asked += 1
    assert asked > 5
    assert found == again.first_since(1008)


def test_headers_are_not_kept_while_they_are_read():
    """A log has as many as it likes: only a piece of a file is read before the first comes."""
    disk = SimulatedFiles()
    config = LogConfig(segment_bytes=3_000_000)
    filled(opened(disk, config), 400, size=10_000)
    log = opened(disk, config)
    disk.read_bytes = 0
    next(log.headers(0))
    assert disk.read_bytes < 10_000


def test_headers_go_on_where_segments_were_cleaned_meanwhile():
    """What takes their place is read from where the reader has come to."""
    disk = SimulatedFiles()
    log = opened(disk, LogConfig(segment_bytes=5_000))
    filled(log, 40, size=1_000)
    reading = log.headers(0)
    seen = [next(reading).base_offset for _ in range(6)]
    cleaned = log.closed[:3]
    path = f"{FOLDER}/{0:020d}.log.swap"
    file = disk.open(path)
    file.write(0, b"".join(data for one in cleaned for _, data in one.chunks()))
    file.sync()
    log.replace(cleaned, log.opened(0, ".log.swap"))
    seen += [one.base_offset for one in reading]

    assert seen == [batches.peek(data).base_offset for data in log.read(0, ALL)]


def log_files(disk):
    return [name for name in disk.names(FOLDER) if name.endswith(".log")]


def test_segments_roll_by_size():
    disk = SimulatedFiles()
    log = opened(disk)
    filled(log, 30)
    names = log_files(disk)
    assert len(names) > 3
    assert names[0] == "00000000000000000000.log"
    for name in names[:-1]:
        assert len(disk.files[f"{FOLDER}/{name}"].now) <= 700
        first = batches.header_at(bytes(disk.files[f"{FOLDER}/{name}"].now))
        assert name == f"{first.base_offset:020d}.log"


def test_a_batch_larger_than_a_segment_has_one_of_its_own():
    disk = SimulatedFiles()
    log = opened(disk)
    for size in (0, 5000, 0):
        log.append(batch("x", size=size), 1)
    assert len(log_files(disk)) == 3


def test_segments_roll_by_age():
    disk = SimulatedFiles()
    log = opened(disk, LogConfig(segment_ms=100))
    for timestamp in (1000, 1100, 1101, 1150, 1202):
        log.append(batch("x", timestamp=timestamp), 1)
    assert [int(name[:20]) for name in log_files(disk)] == [0, 2, 4]


def test_a_closed_segment_is_durable():
    disk = SimulatedFiles()
    log = opened(disk)
    written = filled(log, 30)
    after = opened(disk.after_power_loss())
    assert log_files(disk.after_power_loss()) == log_files(disk)
    kept = list(after.read(0, ALL))
    assert kept == written[: len(kept)]
    assert after.end == int(log_files(disk)[-1][:20])


def test_retention_takes_whole_segments():
    disk = SimulatedFiles()
    log = opened(disk)
    filled(log, 30)
    names = log_files(disk)
    second = int(names[1][:20])
    begin_at(log, second)
    assert log_files(disk) == names[1:]
    begin_at(log, second + 1)
    assert log_files(disk) == names[1:]
    again = opened(disk)
    assert again.start == second + 1


def test_no_file_goes_that_the_folder_does_not_know_to_be_gone():
    """The start has moved on since that was noted."""
    disk = SimulatedFiles()
    log = opened(disk)
    filled(log, 30)
    noted, beyond = log.closed[1].base_offset, log.closed[2].base_offset
    log.note_start(noted)
    log.move_start(beyond)
    assert [log.remove_oldest() for _ in range(3)] == [True, False, False]
    assert log.has_old_files
    assert opened(disk, recovery_point=RecoveryPoint(synced=log.end)).start == noted


@pytest.mark.parametrize("kept", [0, 1, 2])
def test_a_log_that_ends_too_early_is_damaged(kept):
    """Segments that are missing at its end, as somebody has removed them."""
    disk = SimulatedFiles()
    log = opened(disk)
    filled(log, 30, records=1)
    for name in log_files(disk)[kept:]:
        disk.unlink(f"{FOLDER}/{name}")
    with pytest.raises(Broken, match=f"{FOLDER} ends at offset .*, expected {log.end} at least"):
        opened(disk, recovery_point=RecoveryPoint(synced=log.end))
    assert len(log_files(disk)) == kept


def test_a_log_that_begins_too_late_is_damaged():
    disk = SimulatedFiles()
    log = opened(disk)
    filled(log, 30)
    first, second = log.closed[0], log.closed[1]
    disk.unlink(first.path)
    with pytest.raises(Broken, match=f"begins at offset {second.base_offset}, expected 0"):
        opened(disk, recovery_point=RecoveryPoint(synced=log.end))
    checkpoints.write_holes(disk, FOLDER, [(0, second.base_offset)])
    assert opened(disk, recovery_point=RecoveryPoint(synced=log.end)).start == second.base_offset


def test_a_segment_that_is_missing_in_the_middle_is_not_passed_over():
    disk = SimulatedFiles()
    log = opened(disk)
    written = filled(log, 30)
    gone = log.closed[1]
    disk.unlink(gone.path)
    log = opened(disk)
    found = []
    with pytest.raises(Broken, match=f"the next segment begins at {gone.end}, expected"):
        found.extend(log.read(0, ALL))
    assert list(log.read(gone.end, ALL)) == written[-len(list(log.read(gone.end, ALL))) :]
    checkpoints.write_holes(disk, FOLDER, [(gone.base_offset, gone.end)])
    again = opened(disk)
    assert len(list(again.read(0, ALL))) < len(written)


@pytest.mark.parametrize("at", [30, 65])
def test_a_flipped_bit_in_a_closed_segment_is_not_handed_out(at):
    disk = SimulatedFiles()
    log = opened(disk, LogConfig(segment_bytes=1000))
    written = filled(log, 60)
    path = log.closed[1].path
    first = log.closed[1].base_offset
    good = next(iter(log.read(first, 1)))
    disk.flip(path, len(good) + at)
    log = opened(disk, LogConfig(segment_bytes=1000))
    assert log.fetch(first, ALL) == good, "what stands before it is given"
    next_offset = batches.header_at(good).last_offset + 1
    for _ in range(2):
        with pytest.raises(Broken, match=f"{path} is damaged at byte {len(good)}: .* has crc"):
            log.fetch(next_offset, ALL)
    behind = log.closed[2].base_offset
    assert next(iter(log.read(behind, 1))) in written


def test_damage_to_a_header_does_not_take_away_what_stands_before_it():
    disk = SimulatedFiles()
    log = opened(disk, LogConfig(segment_bytes=2000))
    filled(log, 60)
    path = log.closed[0].path
    good = next(iter(log.read(0, 1)))
    disk.files[path].now[len(good) + 16] = 1
    log = opened(disk, LogConfig(segment_bytes=2000))
    assert log.fetch(0, ALL) == good
    for _ in range(2):
        with pytest.raises(Broken, match=f"{path} is damaged at byte {len(good)}, offset"):
            log.fetch(batches.header_at(good).last_offset + 1, ALL)


def test_bytes_are_checked_once(monkeypatch):
    disk = SimulatedFiles()
    filled(opened(disk), 30)
    log = opened(disk)
    looked = []
    check = batches.check
    monkeypatch.setattr(
        batches, "check", lambda data, at, header: [looked.append(at), check(data, at, header)]
    )
    list(log.read(0, ALL))
    assert looked
    looked.clear()
    list(log.read(0, ALL))
    filled(log, 10)
    log.roll()
    list(log.read(0, ALL))
    assert not looked


def test_no_flipped_bit_gives_a_wrong_record():
    """Each bit of each byte of a log that was synced: what is read is right, or refused."""
    disk = SimulatedFiles()
    log = opened(disk, LogConfig(segment_bytes=300))
    written = filled(log, 9)
    right = {(at.base_offset, at.last_offset, at.crc) for at in map(batches.header_at, written)}
    recovery_point = RecoveryPoint(synced=log.end)
    refused = 0
    for path in [f"{FOLDER}/{name}" for name in log_files(disk)]:
        for bit in range(8 * len(disk.files[path].now)):
            disk.flip(path, bit // 8, bit % 8)
            found = []
            try:
                log = opened(disk, LogConfig(segment_bytes=300), recovery_point=recovery_point)
                for data in log.read(0, ALL):
                    header = batches.header_at(data)
                    found.append((header.base_offset, header.last_offset, header.crc))
            except Broken:
                refused += 1
            else:
                assert len(found) == len(written), (path, bit)
            assert right.issuperset(found), (path, bit)
            disk.flip(path, bit // 8, bit % 8)
    epochs = 32 * len(written)  # no crc covers them, and nothing is told by them
    assert refused == 8 * log.size_bytes - epochs


@pytest.mark.parametrize("content", [b"", b"0\n", b"\xff\x00", b"0\n1\nx y\n"])
def test_leader_epochs_that_cannot_be_read_are_told_and_made_anew(content):
    """A crash of Kafka leaves an empty file."""
    disk = SimulatedFiles()
    log = opened(disk)
    log.leader_epoch = 7
    filled(log, 3)
    replace_whole(disk, FOLDER, checkpoints.LEADER_EPOCHS, content)
    again = opened(disk)
    assert again.leader_epoch == 7
    assert "leader-epoch-checkpoint" in again.notices[0]
    assert opened(disk).notices == []


def test_a_lost_offset_does_not_take_the_batch_before_it():
    """No crc covers it, so the rest of its batch may be right."""
    disk = SimulatedFiles()
    written = filled(opened(disk, LogConfig()), 9, records=1)
    position = sum(map(len, written[:4]))
    disk.files[f"{FOLDER}/{0:020d}.log"].now[position : position + 8] = bytes(8)
    assert list(opened(disk).read(0, ALL)) == written[:4]


@pytest.mark.parametrize("stuck", [False, True])
@pytest.mark.parametrize("power", [False, True])
def test_a_segment_that_could_not_be_begun_hides_nothing(stuck, power):
    """The log goes on in the one before; the empty file must not be taken for its end."""
    disk = SimulatedFiles()
    log = opened(disk, LogConfig())
    written = filled(log, 3, records=1)
    disk.faults["sync_directory", FOLDER] = 5
    if stuck:
        disk.faults["unlink", FOLDER] = 5
    with pytest.raises(StorageError, match="has no room for a segment"):
        log.roll()
    if stuck:
        with pytest.raises(StorageError, match=r"3\.log is in the way"):
            log.append(batch("x"), 1)
        del disk.faults["unlink", FOLDER]
    log.append(batch("x"), 1)
    log.sync()
    disk.faults.clear()
    again = opened(disk.after_power_loss() if power else disk.after_crash())
    assert (again.end, len(log_files(again._files))) == (4, 1)
    log.roll()
    log.append(batch("y"), 1)
    assert [name for _, name in values(opened(disk))][-2:] == ["x", "y"]
    assert len(written) == 3


def test_what_a_crash_has_left_unsynced_in_a_folder_is_synced_before_it_is_served():
    """Else a segment that a cleaning has replaced comes back two lives later."""
    disk = SimulatedFiles()
    filled(opened(disk, LogConfig()), 3, records=1)
    again = disk.after_crash()
    again.faults["sync_directory", FOLDER] = 5
    with pytest.raises(StorageError, match="cannot be opened"):
        opened(again)
    assert opened(again, recovery_point=RecoveryPoint(clean=True)).end == 3


@pytest.mark.parametrize("torn", [False, True])
def test_an_empty_segment_that_a_loss_of_power_has_brought_back(torn):
    disk = SimulatedFiles()
    log = opened(disk, LogConfig())
    filled(log, 4, records=1)
    disk.open(f"{FOLDER}/{3:020d}.log")
    if torn:
        del disk.files[f"{FOLDER}/{0:020d}.log"].now[-1:]
    again = opened(disk, recovery_point=RecoveryPoint(synced=3))
    assert (again.end, again.append(batch("x"), 1)) == ((3, 4) if torn else (4, 5))
    assert log_files(disk) == [f"{0:020d}.log"]


def test_what_is_synced():
    disk = SimulatedFiles()
    log = opened(disk, LogConfig())
    filled(log, 3, records=1)
    assert log.synced == 0
    assert log.sync() == log.synced == 3
    filled(log, 2, records=1)
    assert log.synced == 3
    log.roll()
    assert log.synced == 5
    filled(log, 2, records=1)
    assert opened(disk.after_power_loss()).synced == 5
    found = opened(disk.after_crash())
    assert found.synced == 7
    assert opened(found._files.after_power_loss()).end == 7, "opening has synced what it found"


def test_damage_in_a_closed_segment_is_found_when_it_is_read():
    disk = SimulatedFiles()
    log = opened(disk)
    written = filled(log, 30)
    disk.files[f"{FOLDER}/00000000000000000000.log"].now[16] = 1
    log = opened(disk)
    last = list(log.read(log.active.base_offset, ALL))
    assert last == written[-len(last) :]
    with pytest.raises(Broken, match=r"00000000000000000000.log is damaged at byte 0, .* magic 1"):
        list(log.read(0, ALL))


def test_every_crc_is_checked_on_request():
    disk = SimulatedFiles()
    filled(opened(disk), 30)
    disk.files[f"{FOLDER}/00000000000000000000.log"].now[65] ^= 1
    opened(disk)
    with pytest.raises(Broken, match=r"is damaged at byte 0, .* crc"):
        opened(disk, check_all=True)


def test_index_files_of_a_killed_broker_are_ignored_and_removed_when_wrong():
    disk = SimulatedFiles()
    written = filled(opened(disk, LogConfig()), 3)
    disk.open(f"{FOLDER}/00000000000000000000.index").write(0, bytes(1000))
    disk.open(f"{FOLDER}/00000000000000000000.timeindex").write(0, bytes(1000))
    assert list(opened(disk).read(0, ALL)) == written
    assert "00000000000000000000.index" in disk.names(FOLDER)
    del disk.files[f"{FOLDER}/00000000000000000000.log"].now[-1:]
    opened(disk)
    assert "00000000000000000000.index" not in disk.names(FOLDER)


@pytest.mark.parametrize("room", [0, 1, 30, 61, 100])
def test_a_full_disk_leaves_the_log_as_it_was(room):
    disk = SimulatedFiles()
    log = opened(disk, LogConfig())
    written = filled(log, 5)
    end = log.end
    disk.room_bytes = room
    with pytest.raises(StorageError, match="No space left"):
        log.append(batch("does not fit", size=100), 1)
    assert log.end == end
    assert list(log.read(0, ALL)) == written
    assert len(disk.files[f"{FOLDER}/00000000000000000000.log"].now) == sum(map(len, written))
    disk.room_bytes = None
    assert log.append(batch("fits"), 1) == end + 1
    assert values(opened(disk))[-1] == (end, "fits")


def test_a_full_disk_at_the_roll():
    disk = SimulatedFiles()
    log = opened(disk)
    while log.size_bytes < 600:
        log.append(batch("x"), 1)
    before = list(log.read(0, ALL))
    disk.room_bytes = 10
    with pytest.raises(StorageError):
        log.append(batch("y", size=200), 1)
    assert list(log.read(0, ALL)) == before
    disk.room_bytes = None
    log.append(batch("y", size=200), 1)
    assert len(list(opened(disk).read(0, ALL))) == len(before) + 1


def test_a_tail_that_could_not_be_cut_back_is_cut_before_the_next_write():
    disk = SimulatedFiles()
    log = opened(disk, LogConfig())
    log.append(batch("a"), 1)
    disk.room_bytes = 200
    disk.refuses_truncate = True
    with pytest.raises(StorageError):
        log.append(batch("b", size=500), 1)
    disk.room_bytes = None
    with pytest.raises(StorageError, match="torn tail"):
        log.append(batch("c"), 1)
    disk.refuses_truncate = False
    log.append(batch("d"), 1)
    assert values(log) == values(opened(disk)) == [(0, "a"), (1, "d")]


def test_a_failed_sync_breaks():
    disk = SimulatedFiles()
    log = opened(disk)
    log.append(batch("a"), 1)
    disk.refuses_sync = True
    with pytest.raises(Broken, match="cannot be synced"):
        log.sync()


def refusing(disk, log):
    """The log after a sync that failed, on a disk that would not fail again."""
    disk.refuses_sync = True
    with pytest.raises(Broken, match="cannot be synced"):
        log.sync()
    disk.refuses_sync = False


def rolled_in_vain(disk, log):
    disk.refuses_sync = True
    with pytest.raises(Broken, match="cannot be synced"):
        log.append(batch("too much for the segment", size=700), 1)
    disk.refuses_sync = False


@pytest.mark.parametrize("fail", [refusing, rolled_in_vain])
def test_after_a_failed_sync_nothing_is_promised_until_it_is_opened_anew(fail):
    disk = SimulatedFiles()
    log = opened(disk)
    log.append(batch("a"), 1)
    fail(disk, log)
    for refused in (log.sync, log.roll, lambda: log.append(batch("b"), 1)):
        with pytest.raises(Broken, match=r"cannot be synced: .* Input/output error"):
            refused()
    assert values(log) == [(0, "a")]
    again = opened(disk)
    again.append(batch("b"), 1)
    assert again.sync() == 2


@pytest.mark.parametrize(
    "look",
    [
        lambda log: log.fetch(0, ALL),
        lambda log: list(log.read(0, ALL)),
        lambda log: log.find_timestamp(1001),
        lambda log: log.max_timestamp,
    ],
)
def test_a_file_that_cannot_be_read_breaks(look):
    disk = SimulatedFiles()
    filled(opened(disk), 30)
    log = opened(disk)
    disk.refuses_read = True
    with pytest.raises(Broken, match=r"00000000000000000000\.log cannot be read.* Input/output"):
        look(log)
    disk.refuses_read = False
    assert len(list(log.read(0, ALL))) == 30


def test_an_unusable_directory_is_a_storage_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot be opened"):
        SegmentLog(f"{tmp_path}/file/topic-0", DiskFiles())


def work(disk, told):
    """Append, sync and let go; what has been promised is noted as it is."""
    log = opened(disk)
    for number in range(12):
        told["batches"].append((log.end, f"{number}"))
        log.append(batch(f"{number}", size=100), 1)
        if number % 3 == 2:
            told["durable"] = log.sync()
        if number == 7:
            begin_at(log, 4)
            told["start"] = 4


def test_a_crash_at_every_step_loses_nothing_that_was_promised():
    steps = 0
    crashed = True
    while crashed:
        steps += 1
        disk = SimulatedFiles()
        disk.crash_at = steps
        told = {"batches": [], "durable": 0, "start": 0}
        try:
            work(disk, told)
            crashed = False
        except MachineCrash:
            pass
        for kept in (None, 0.0, 0.5, 1.0):
            left = disk.after_crash() if kept is None else disk.after_power_loss(kept)
            log = opened(left)
            for above in ("", "/data"):  # the name of its folder is not its own business
                left.sync_directory(above)
            assert log.start >= told["start"]
            assert log.end >= told["durable"]
            if kept is None:
                assert log.end >= len(told["batches"]) - 1
            expected = [(offset, name) for offset, name in told["batches"] if offset < log.end]
            found = [(offset, value.strip(".")) for offset, value in values(log)]
            assert found == [one for one in expected if one[0] >= (found or expected)[0][0]]
            end = log.end
            log.append(batch("on it goes"), 1)
            log.sync()
            assert values(opened(left.after_power_loss()))[-1] == (end, "on it goes")
    assert steps > 30


def test_offsets_are_not_given_out_twice_when_the_start_is_all_that_is_left():
    disk = SimulatedFiles()
    log = opened(disk)
    filled(log, 2)
    begin_at(log, log.end)
    end = log.end
    log = opened(disk.after_power_loss())
    assert (log.start, log.end) == (end, end)


def test_kafka_finds_its_checkpoint_of_leader_epochs():
    disk = SimulatedFiles()
    opened(disk)
    assert bytes(disk.files[f"{FOLDER}/leader-epoch-checkpoint"].now) == b"0\n1\n0 0\n"


def test_the_leader_epoch_of_a_folder_goes_on():
    disk = SimulatedFiles()
    disk.make_directory(FOLDER)
    checkpoints.write_leader_epochs(disk, FOLDER, [(0, 0), (5, 20)])
    log = opened(disk)
    assert log.leader_epoch == 5
    log.append(batch("a"), 1)
    assert batches.header_at(log.fetch(0, 1)).partition_leader_epoch == 5


def test_the_epoch_of_another_leader_is_durable_and_begins_where_its_records_do():
    """Also one that has led and written nothing."""
    disk = SimulatedFiles()
    log = opened(disk)
    filled(log, 2, records=1)
    log.sync()
    for _ in range(3):
        log.next_leader()
    disk = disk.after_power_loss()
    log = opened(disk)
    assert log.leader_epoch == 3
    end = log.end
    assert checkpoints.leader_epochs(disk, FOLDER) == [(0, 0), (3, end)]
    log.append(batch("a"), 1)
    log.next_leader()
    log.next_leader()
    assert checkpoints.leader_epochs(disk, FOLDER)[-2:] == [(3, end), (5, end + 1)]


def test_an_epoch_that_cannot_be_written_counts_all_the_same():
    disk = SimulatedFiles()
    log = opened(disk)
    filled(log, 1, records=1)
    disk.refused[f"{FOLDER}/{checkpoints.LEADER_EPOCHS}"] = errno.ENOSPC
    with pytest.raises(StorageError, match=FOLDER):
        log.next_leader()
    assert (log.leader_epoch, log.epochs.at(log.end)) == (1, 1)
    disk.refused.clear()
    assert opened(disk.after_power_loss()).epochs.entries == ((0, 0),)
    filled(log, 1, records=1)
    assert opened(disk).epochs.entries == ((0, 0), (1, 1))


def test_what_epochs_began_where_is_read_from_the_batches_when_nothing_else_tells():
    """A log that was copied without the small files, and one whose epoch could not be noted."""
    disk = SimulatedFiles()
    log = opened(disk)
    for _ in range(3):
        filled(log, 2, records=2)
        log.next_leader()
    filled(log, 1, records=1)
    noted = [(0, 0), (1, 4), (2, 8), (3, 12)]
    for content in (None, b"0\n1\n0 0\n", b"0\n2\n3 0\n1 4\n", b"0\n2\n1 9\n3 4\n"):
        if content is None:
            disk.unlink(f"{FOLDER}/{checkpoints.LEADER_EPOCHS}")
        else:
            replace_whole(disk, FOLDER, checkpoints.LEADER_EPOCHS, content)
        assert opened(disk).epochs.entries == tuple(noted), content
        assert checkpoints.leader_epochs(disk, FOLDER) == noted


def test_the_start_that_kafka_knew_is_kept():
    disk = SimulatedFiles()
    filled(opened(disk), 20)
    assert opened(disk, known_start=9).start == 9


@pytest.mark.parametrize("room", [None, 0, 100])
def test_a_crash_while_it_looks_for_room_loses_nothing(room):
    step, crashed = 0, True
    while crashed:
        step += 1
        disk = SimulatedFiles()
        log = opened(disk)
        written = filled(log, 10)
        log.sync()
        disk.room_bytes = room
        disk.crash_at = disk.steps + step
        try:
            with nullcontext() if room is None else pytest.raises(StorageError, match="No space"):
                log.try_room()
            crashed = False
        except MachineCrash:
            again = opened(disk.after_crash())
            assert list(again.read(0, ALL)) == written
    assert step > 2
    assert list(log.read(0, ALL)) == written


def test_where_nothing_can_be_taken_back_there_is_no_room():
    disk = SimulatedFiles()
    log = opened(disk)
    written = filled(log, 3)
    log.sync()
    disk.refuses_truncate = True
    for _ in range(2):
        with pytest.raises(StorageError, match="torn tail"):
            log.try_room()
    assert list(opened(disk.after_crash()).read(0, ALL)) == written
    disk.refuses_truncate = False
    log.try_room()
    assert list(log.read(0, ALL)) == written


def test_long_names_can_be_deleted(tmp_path):
    folder = f"{tmp_path}/{'t' * 249}-0"
    SegmentLog(folder, DiskFiles()).close()
    delete_partition(DiskFiles(), folder, "ab" * 16)
    assert list(tmp_path.iterdir()) == []


def test_a_half_done_deletion_is_gone_over_again():
    steps = 0
    crashed = True
    while crashed:
        steps += 1
        disk = SimulatedFiles()
        filled(opened(disk), 10)
        disk.crash_at = disk.steps + steps
        try:
            delete_partition(disk, FOLDER, "1" * 32)
            crashed = False
        except MachineCrash:
            left = disk.after_crash()
            assert left.names("/data") in (["topic-0"], [f"topic-0.{'1' * 32}-delete"])
    assert disk.names("/data") == []


@pytest.mark.parametrize("name", golden_logs.NAMES)
def test_real_folders_open_and_read(name, tmp_path):
    folder = golden_logs.unpack(name, tmp_path)
    lines = golden_logs.dump(name)
    for path in golden_logs.partitions(folder):
        told = [one for one in lines if one["file"].startswith(f"{path.name}/")]
        before = b"".join(file.read_bytes() for file in sorted(path.glob("*.log")))
        log = SegmentLog(str(path), DiskFiles(), check_all=True)
        assert b"".join(log.read(0, ALL)) == before
        records = [one for one in told if one["kind"] == "record"]
        found = [entry for data in log.read(0, ALL) for entry in batches.entries(data)]
        assert [(offset, time, _hex(key), _hex(value)) for offset, time, key, value in found] == [
            (one["offset"], one["timestamp"], one["key_hex"], one["value_hex"]) for one in records
        ]
        for offset, time, _, _ in found:
            header = batches.header_at(log.fetch(offset, 1))
            assert header.base_offset <= offset <= header.last_offset
            latest = log.find_timestamp(time)
            assert latest is not None
            assert latest[0] >= time
        log.close()


def _hex(blob):
    return None if blob is None else blob.hex()


def test_the_end_of_a_real_folder(tmp_path):
    folder = golden_logs.unpack("4-killed", tmp_path)
    ends = {}
    for path in golden_logs.partitions(folder):
        log = SegmentLog(str(path), DiskFiles())
        ends[path.name] = log.end
        log.append(batch("ours"), 1)
        log.close()
        assert values(SegmentLog(str(path), DiskFiles()), log.end - 1)[-1][1] == "ours"
    for name, end in ends.items():
        told = [one for one in golden_logs.dump("4-killed") if one["file"].startswith(name)]
        assert end == max(one["lastOffset"] for one in told if one["kind"] == "batch") + 1


def test_holes_read_like_everything_else(tmp_path):
    folder = golden_logs.unpack("2-compacted", tmp_path)
    log = SegmentLog(str(folder / "__consumer_offsets-0"), DiskFiles())
    assert batches.header_at(log.fetch(0, 1)).base_offset == 5
    assert batches.header_at(log.fetch(6, 1)).base_offset == 5
    assert batches.header_at(log.fetch(19, 1)).base_offset == 20
    assert batches.header_at(log.fetch(30, 1)).base_offset == 31
