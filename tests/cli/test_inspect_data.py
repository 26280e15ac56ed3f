# SPDX-License-Identifier: Apache-2.0
"""`kohort inspect data`: it finds damage, changes nothing unasked, and what it mends is served."""

import hashlib
import os
import shutil
from pathlib import Path

import pytest
from tests import golden_logs
from tests.server.desk import Desk
from tests.storage.contract import ALL

from kohort.storage.files import DiskFiles
from kohort.wire.batch import header_at


def everything(path):
    """Each file below a path, with its content and when it was written last."""
    return {
        str(one): (hashlib.sha256(one.read_bytes()).hexdigest(), one.stat().st_mtime_ns)
        for one in sorted(Path(path).rglob("*"))
        if one.is_file()
    }


@pytest.fixture
def path(tmp_path):
    """A directory whose broker was stopped: 9 batches of 3 records in 3 segments."""
    desk = Desk(files=DiskFiles(), path=str(tmp_path / "data"))
    desk.create()
    for number in range(9):
        assert desk.produce(records=3, value=b"%d" % number).base_offset == 3 * number
        if number in (2, 5):
            desk.cluster.partition("orders", 0).log.roll()
    desk.cluster.close()
    return tmp_path / "data"


def flip(file, position):
    data = bytearray(file.read_bytes())
    data[position] ^= 1
    file.write_bytes(data)


def segment(path, base):
    return path / "orders-0" / f"{base:020d}.log"


def served(path):
    """The base offsets that a broker hands out, and the offset of the next record."""
    desk = Desk(files=DiskFiles(), path=str(path))
    assert desk.told.errors == []
    try:
        log = desk.cluster.partition("orders", 0).log
        headers = [header_at(data) for data in log.read(log.start, ALL)]
        found = [header.base_offset for header in headers if header.count]
        return found, desk.produce().base_offset
    finally:
        desk.cluster.close()


def orders(ran):
    (one,) = [one for one in ran.json["partitions"] if one["partition"] == "orders-0"]
    return one


def test_a_whole_directory(kohort, path):
    before = everything(path)
    ran = kohort("inspect", "data", str(path))
    assert (ran.code, ran.err) == (0, "")
    assert "orders-0              whole" in ran.out
    assert "All 5 partitions are whole." in ran.out
    assert everything(path) == before
    assert orders(kohort("inspect", "data", str(path), "--json")) == {
        "partition": "orders-0",
        "whole": True,
        "error": None,
        "segments": 3,
        "bytes": sum(segment(path, base).stat().st_size for base in (0, 9, 18)),
        "batches": 9,
        "records": 27,
        "start_offset": 0,
        "end_offset": 27,
        "synced_offset": 27,
        "damages": [],
    }


def damage_middle(path):
    """The second batch of the second segment."""
    size = segment(path, 9).stat().st_size // 3
    flip(segment(path, 9), size + 70)
    return [0, 3, 6, 9, 15, 18, 21, 24], (12, 15, 1)


def damage_closed_end(path):
    flip(segment(path, 0), segment(path, 0).stat().st_size - 1)
    return [0, 3, 9, 12, 15, 18, 21, 24], (6, 9, 1)


def damage_last(path):
    flip(segment(path, 18), segment(path, 18).stat().st_size - 1)
    return [0, 3, 6, 9, 12, 15, 18, 21], (24, 27, 1)


def damage_length(path):
    """The length of a batch: the next one has to be looked for."""
    size = segment(path, 18).stat().st_size // 3
    flip(segment(path, 18), size + 10)
    return [0, 3, 6, 9, 12, 15, 18, 24], (21, 24, 1)


def damage_offset(path):
    """The base offset of a batch: no crc covers it."""
    size = segment(path, 9).stat().st_size // 3
    flip(segment(path, 9), size + 3)
    return [0, 3, 6, 9, 15, 18, 21, 24], (12, 15, 1)


def lose_middle(path):
    segment(path, 9).unlink()
    return [0, 3, 6, 18, 21, 24], (9, 18, 0)


def lose_first(path):
    segment(path, 0).unlink()
    return [9, 12, 15, 18, 21, 24], (0, 9, 0)


def lose_last(path):
    segment(path, 18).unlink()
    return [0, 3, 6, 9, 12, 15], (18, 27, 0)


DAMAGES = [
    damage_middle,
    damage_closed_end,
    damage_last,
    damage_length,
    damage_offset,
    lose_middle,
    lose_first,
    lose_last,
]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda one: one.__name__)
def test_damage_is_told_and_mended(kohort, path, damage):
    left, (first, behind, batches) = damage(path)
    before = everything(path)

    ran = kohort("inspect", "data", str(path), "--json")

    assert ran.code == 1
    assert everything(path) == before, "nothing is changed"
    (told,) = orders(ran)["damages"]
    assert (told["first_offset"], told["next_offset"], told["batches"]) == (first, behind, batches)
    table = kohort("inspect", "data", str(path))
    assert table.code == 1
    assert f"{first}-{behind - 1}" in table.out
    assert (
        f"1 of 5 partitions is damaged; --repair would give up {batches} "
        f"{'batch' if batches == 1 else 'batches'} and up to {behind - first} records" in table.out
    )

    mended = kohort("inspect", "data", str(path), "--repair")

    assert mended.code == 0
    assert "1 of 5 partitions is repaired" in mended.out
    aside = list((path / "orders-0").glob("*.damaged"))
    assert [before[str(one).removesuffix(".damaged")][0] for one in aside] == [
        hashlib.sha256(one.read_bytes()).hexdigest() for one in aside
    ]
    assert bool(aside) == (batches > 0)
    again = kohort("inspect", "data", str(path))
    assert (again.code, "All 5 partitions are whole." in again.out) == (0, True), again.out
    assert served(path) == (left, 27)
    assert kohort("inspect", "data", str(path)).code == 0


def test_a_torn_tail_after_a_crash(kohort, path):
    """Behind what was synced nothing is promised: it is what the next start would cut."""
    (path / ".kafka_cleanshutdown").unlink()
    points = path / "recovery-point-offset-checkpoint"
    points.write_text(points.read_text().replace("orders 0 27", "orders 0 18"))
    size = segment(path, 18).stat().st_size // 3
    flip(segment(path, 18), size + 70)
    (told,) = orders(kohort("inspect", "data", str(path), "--json"))["damages"]
    assert told["reason"].startswith("torn: ")
    assert (told["first_offset"], told["bytes"], told["batches"]) == (21, 2 * size, 2)
    assert kohort("inspect", "data", str(path), "--repair").code == 0
    assert served(path) == ([0, 3, 6, 9, 12, 15, 18], 21)


@pytest.mark.parametrize("name", ["partition.metadata", "log-start-offset-checkpoint"])
def test_small_files(kohort, path, name):
    (path / "orders-0" / name).write_text("nonsense")
    ran = kohort("inspect", "data", str(path))
    assert (ran.code, name in ran.out) == (1, True)
    assert kohort("inspect", "data", str(path), "--repair").code == 0
    assert (path / "orders-0" / f"{name}.damaged").read_text() == "nonsense"
    assert served(path)[1] == 27


def test_a_folder_that_is_gone(kohort, path):
    for one in (path / "orders-0").iterdir():
        one.unlink()
    (path / "orders-0").rmdir()
    ran = kohort("inspect", "data", str(path), "--json")
    assert "offsets before 27 have been synced" in orders(ran)["damages"][0]["reason"]
    assert kohort("inspect", "data", str(path), "--repair").code == 0
    assert served(path) == ([], 0)


def point(path, text):
    points = path / "recovery-point-offset-checkpoint"
    points.write_text(points.read_text().replace("orders 0 27", f"orders 0 {text}"))


def other_id(path):
    (path / "orders-0" / "partition.metadata").write_text(
        "version: 0\ntopic_id: AQEBAQEBAQEBAQEBAQEBAQ"
    )


SINGLE = {
    "nothing": lambda _: None,
    "the point is too early": lambda path: point(path, "18"),
    "the point is negative": lambda path: point(path, "-5"),
    "the point is too late": lambda path: point(path, "30"),
    "another topic's id": other_id,
    "garbage for an id": lambda path: (path / "orders-0/partition.metadata").write_text("x"),
    "garbage for epochs": lambda path: (path / "orders-0/leader-epoch-checkpoint").write_text("x"),
    "garbage for a start": lambda path: (path / "orders-0/log-start-offset-checkpoint").write_text(
        "x"
    ),
    "garbage for holes": lambda path: (path / "orders-0/known-holes-checkpoint").write_text("x"),
    "garbage for points": lambda path: (path / "recovery-point-offset-checkpoint").write_text("x"),
    "garbage for Kafka's starts": lambda path: (path / "log-start-offset-checkpoint").write_text(
        "x"
    ),
    "no segments": lambda path: [segment(path, base).unlink() for base in (0, 9, 18)],
    "an empty folder": lambda path: [one.unlink() for one in (path / "orders-0").iterdir()],
    "an id of another file": lambda path: (path / "orders-0/partition.metadata").unlink(),
    "no clean mark": lambda path: (path / ".kafka_cleanshutdown").unlink(),
}


@pytest.mark.parametrize("kind", SINGLE)
def test_damaged_is_what_a_broker_would_not_serve_as_it_is(kohort, path, tmp_path, kind):
    SINGLE[kind](path)
    shutil.copytree(path, tmp_path / "copy")
    desk = Desk(files=DiskFiles(), path=str(tmp_path / "copy"))
    refused = [*desk.told.errors, *desk.told.warnings]
    desk.cluster.close()

    ran = kohort("inspect", "data", str(path))
    assert ran.code == bool(refused), (refused, ran.out)
    mended = kohort("inspect", "data", str(path), "--repair")
    assert mended.code == 0, mended.out
    again = kohort("inspect", "data", str(path))
    assert again.code == 0, again.out
    desk = Desk(files=DiskFiles(), path=str(path))
    assert [*desk.told.errors, *desk.told.warnings] == []
    assert desk.produce().base_offset == (30 if "late" in kind else 27)
    desk.cluster.close()


def test_points_that_were_lost_are_written_anew(kohort, path):
    points = path / "recovery-point-offset-checkpoint"
    before = sorted(points.read_text().splitlines())
    points.write_text("x")
    ran = kohort("inspect", "data", str(path), "--json")
    (told,) = ran.json["damages"]
    assert (ran.code, ran.json["whole"], told["file"]) == (1, False, points.name)
    assert all(one["whole"] for one in ran.json["partitions"])
    assert kohort("inspect", "data", str(path), "--repair").code == 0
    assert sorted(points.read_text().splitlines()) == before
    assert (path / f"{points.name}.damaged").read_text() == "x"


def test_a_catalog_of_which_no_copy_can_be_read(kohort, path):
    for name in ("kohort.catalog.json", "kohort.catalog.json.former"):
        (path / name).write_text("{}")
    ran = kohort("inspect", "data", str(path))
    assert ran.code == 1
    assert "no copy of the catalog of topics can be read" in ran.out
    mended = kohort("inspect", "data", str(path), "--repair")
    assert mended.code == 1
    assert ". is not repaired: the catalog of topics has to be brought back" in mended.out


def directory_for_log(path):
    segment(path, 9).unlink()
    segment(path, 9).mkdir()


def fifo_for_log(path):
    segment(path, 9).unlink()
    os.mkfifo(segment(path, 9))


def directory_for_id(path):
    (path / "orders-0" / "partition.metadata").unlink()
    (path / "orders-0" / "partition.metadata").mkdir()


def loop_for_folder(path):
    shutil.rmtree(path / "orders-0")
    (path / "orders-0").symlink_to(path / "orders-0")


def file_for_folder(path):
    shutil.rmtree(path / "orders-0")
    (path / "orders-0").write_text("")


@pytest.mark.parametrize(
    "spoil",
    [directory_for_log, fifo_for_log, directory_for_id, loop_for_folder, file_for_folder],
    ids=lambda one: one.__name__,
)
@pytest.mark.parametrize("mend", [[], ["--repair"]], ids=["look", "repair"])
def test_what_cannot_be_read_stops_no_other_inspection(kohort, path, spoil, mend):
    spoil(path)
    ran = kohort("inspect", "data", str(path), *mend)
    assert (ran.code, ran.err) == (1, "")
    assert "orders-0 cannot be read: " in ran.out
    assert ran.out.count(" whole ") == 4
    assert "1 of 5 partitions cannot be read, the others are whole." in ran.out
    json = kohort("inspect", "data", str(path), "--json", *mend)
    assert (json.json["whole"], orders(json)["whole"]) == (False, False)
    assert orders(json)["error"].startswith("cannot be read: ")


@pytest.mark.parametrize("name", golden_logs.NAMES)
def test_a_copy_of_a_part_of_kafkas_directory(kohort, tmp_path, name):
    """Its checkpoints speak of folders that were not copied."""
    folder = golden_logs.unpack(name, tmp_path)
    ran = kohort("inspect", "data", str(folder))
    assert (ran.code, " whole." in ran.out) == (0, True), ran.out


def test_a_running_broker(kohort, path):
    desk = Desk(files=DiskFiles(), path=str(path))
    try:
        ran = kohort("inspect", "data", str(path))
        assert ran.code == 0
        assert "A broker is running on this directory" in ran.out
        refused = kohort("inspect", "data", str(path), "--repair")
        assert refused.code == 1
        assert "is in use by a broker, expected one that is stopped" in refused.err
    finally:
        desk.cluster.close()


def test_what_is_no_directory(kohort, tmp_path):
    ran = kohort("inspect", "data", str(tmp_path / "nowhere"), "--json")
    assert ran.code == 1
    assert ran.json["message"].endswith("nowhere is no directory")
    assert not (tmp_path / "nowhere").exists()
    empty = kohort("inspect", "data", str(tmp_path))
    assert (empty.code, empty.out) == (1, "")
    assert empty.complaints == [f"kohort: {tmp_path} holds no logs of partitions"]
