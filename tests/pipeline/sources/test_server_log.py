# SPDX-License-Identifier: Apache-2.0
"""Log files as they lie about: compressed, rotated, missing, huge."""

import gzip
import tracemalloc
from pathlib import Path

import pytest
from tests.archives import unpack_into

from kohort.pipeline.sources.server_log import ServerLogError, files_of, read

DATA = Path(__file__).parents[2] / "data" / "server_logs"
LINE = (
    b"[2026-11-24 06:55:06,214] INFO [GroupId g] Member m left the consumer group. "
    b"(org.apache.kafka.coordinator.group.GroupMetadataManager)\n"
)
OTHER = b"[2026-11-24 06:55:06,214] INFO a group of words (org.apache.kafka.Other)\n"
RECORDED = {
    "classic-life": {"leave", "session timeout"},
    "classic-stall": {"rebalance timeout"},
    "consumer-life": {"leave", "session timeout"},
    "consumer-stall": {"rebalance timeout"},
    "consumer-static": set(),
    "kicked": {"leave"},
    "kicked-consumer": {"leave"},
    "kicked-static": {"leave"},
}


@pytest.mark.parametrize("name", RECORDED)
def test_what_a_real_broker_has_said(tmp_path, name):
    unpack_into(tmp_path, DATA / f"{name}.tar.xz")
    found = read(tmp_path / "server.log").lines
    assert {one.trigger for one in found} == RECORDED[name]
    assert all(one.number for one in found)


def test_every_recording_is_read():
    assert {path.name.removesuffix(".tar.xz") for path in DATA.glob("*.tar.xz")} == {*RECORDED}


def test_compressed_or_not_it_says_the_same(tmp_path):
    (tmp_path / "server.log").write_bytes(LINE)
    (tmp_path / "server.log.1.gz").write_bytes(gzip.compress(LINE))
    plain, packed = map(read, files_of([tmp_path / "server.log*"]))
    assert plain.lines == packed.lines != []


def test_each_file_counts_once_however_it_is_named(tmp_path):
    for name in ("server.log", "server.log.1", "server.log[2]"):
        (tmp_path / name).write_bytes(LINE)
    given = [tmp_path / "server.log", f"{tmp_path}/*", tmp_path / "server.log[2]"]
    assert len(files_of(given)) == 3


@pytest.mark.parametrize("name", ["none.log", "none*"])
def test_a_missing_file_is_named(tmp_path, name):
    with pytest.raises(ServerLogError, match=r"none.* does not exist"):
        files_of([tmp_path / name])


def test_a_directory_and_a_damaged_archive_are_named(tmp_path):
    with pytest.raises(ServerLogError, match="is a directory"):
        files_of([tmp_path])
    (tmp_path / "cut.gz").write_bytes(gzip.compress(LINE * 100)[:-20])
    with pytest.raises(ServerLogError, match=r"cut\.gz cannot be read"):
        read(tmp_path / "cut.gz")
    whole = bytearray(gzip.compress(OTHER * 500 + LINE, mtime=0))
    whole[12] ^= 0xFF  # a block of a kind that there is not
    (tmp_path / "bent.gz").write_bytes(whole)
    with pytest.raises(ServerLogError, match=r"bent\.gz cannot be read"):
        read(tmp_path / "bent.gz")


def test_a_name_that_no_disk_has_is_one_sentence(tmp_path):
    with pytest.raises(ServerLogError, match="cannot be read: File name too long"):
        files_of([tmp_path / ("x" * 300)])


def test_a_large_file_is_not_in_memory(tmp_path):
    path = tmp_path / "server.log"
    with path.open("wb") as file:
        for _ in range(200):
            file.write(OTHER * 1000)
        file.write(b"x" * 20_000_000 + b"\n" + OTHER + LINE)
    tracemalloc.start()
    found = read(path)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(found.lines) == 1
    assert most < 2_000_000
