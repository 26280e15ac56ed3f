# SPDX-License-Identifier: Apache-2.0
"""What stands in a partition's folder and is no file: nothing may wait for it."""

import os
import socket

import pytest
from tests.spark.sources.test_end_offsets import ends, partition

from kohort.pipeline.sources import files, sampling
from kohort.pipeline.sources.files import index_entries, segment_files
from kohort.spark.sources.log import LogSource
from kohort.wire.batch import build


def fifo(path):
    os.mkfifo(path)


def link(path):
    target = path.parent.parent / "elsewhere"
    target.write_bytes(build([(None, b"x")], 10, base_offset=9))
    path.symlink_to(target)


def listens(path):
    descriptor = os.open(path.parent, os.O_RDONLY)
    try:  # the name of a socket has few bytes
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(f"/proc/self/fd/{descriptor}/{path.name}")
    finally:
        os.close(descriptor)


def folder(path):
    path.mkdir()


KINDS = {"fifo": fifo, "link": link, "socket": listens, "folder": folder}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("suffix", [".log", ".log.swap"])
def test_what_is_no_regular_file_is_no_segment(kind, suffix, tmp_path, caplog):
    segment = partition(tmp_path, (0, 5, 10))
    other = segment.with_name(f"{9:020d}{suffix}")
    KINDS[kind](other)
    files._warn_once.cache_clear()

    assert [one.base for one in segment_files(str(segment.parent))] == [0]
    assert ends(sampling.sample_folders(str(tmp_path))) == {"orders-0": [(10, 5)]}

    (said,) = caplog.messages
    assert said == f"{other} is no regular file, so it is no segment: it is skipped"


@pytest.mark.timeout(60)
def test_a_run_does_not_wait_for_a_pipe_beside_the_group_log(tmp_path):
    segment = partition(tmp_path, (0, 5, 10), name="__consumer_offsets-0")
    fifo(segment.with_name(f"{9:020d}.log"))
    for name in ("partition.metadata", "leader-epoch-checkpoint", f"{0:020d}.index"):
        fifo(segment.with_name(name))
    fifo(tmp_path / "meta.properties")
    source = LogSource(str(tmp_path))

    assert source.identity().topic_id is None
    assert source.plan({}).ranges == {0: (0, 5)}
    assert index_entries(str(segment)) == []
