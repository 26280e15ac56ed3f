# SPDX-License-Identifier: Apache-2.0
"""Kafka's own dump tool reads every kind of batch that we write."""

import re

import pytest
from tests.peers import kafka
from tests.storage.contract import ALL

from kohort.storage.compaction import CleaningRules, compact
from kohort.storage.files import DiskFiles
from kohort.storage.log import LogConfig
from kohort.storage.segments import SegmentLog
from kohort.wire import batch as batches

pytestmark = pytest.mark.java
NOW = 1_800_000_000_000


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A log with all codecs, headers, markers, an aborted transaction, and what cleaning leaves."""
    disk = DiskFiles()
    folder = tmp_path_factory.mktemp("logs") / "topic-0"
    log = SegmentLog(str(folder), disk, LogConfig(segment_bytes=2000))
    for turn in range(6):
        for codec in range(5):
            pairs = [(b"key-%d" % (at * turn), b"value %d" % at * 20) for at in range(6)]
            log.append(batches.build(pairs, NOW + turn, compression=codec), 6)
        log.append(batches.build([(b"key-%d" % turn, None)], NOW), 1)
        record = batches.Record(0, NOW, b"with headers", b"x", [("one", b"1"), ("null", None)])
        log.append(batches.build_records([record]), 1)
        pairs = [(b"in a transaction", b"%d" % turn)]
        identity = {"producer_id": 5, "producer_epoch": 1}
        log.append(batches.build(pairs, NOW, transactional=True, **identity), 1)
        commit = turn % 2 == 0
        marker = batches.build_marker(commit=commit, timestamp=NOW, coordinator_epoch=2, **identity)
        log.append(marker, 1)
    log.sync()
    for _ in compact(log, disk, CleaningRules(now=NOW)):
        pass
    yield folder, log
    log.close()


def test_the_dump_tool_agrees_batch_by_batch(written):
    reason = kafka.unavailable()
    if reason:
        pytest.skip(reason)
    folder, log = written
    done = kafka.run_tool(
        "org.apache.kafka.tools.DumpLogSegments",
        *("--deep-iteration", "--files", ",".join(map(str, sorted(folder.glob("*.log"))))),
    )
    assert done.returncode == 0, done.stderr
    told = re.findall(
        r"baseOffset: (\d+) lastOffset: (\d+) count: (\d+) "
        r".* deleteHorizonMs: (\S+) .* crc: (\d+) isvalid: true",
        done.stdout,
    )
    ours = [batches.header_at(data) for data in log.read(0, ALL)]
    assert told == [
        (
            *(str(one.base_offset), str(one.last_offset), str(one.count)),
            *(
                f"OptionalLong[{one.delete_horizon}]"
                if one.delete_horizon
                else "OptionalLong.empty",
            ),
            str(one.crc),
        )
        for one in ours
    ]
    offsets = [int(text) for text in re.findall(r"^\| offset: (\d+)", done.stdout, re.MULTILINE)]
    assert offsets == [entry[0] for data in log.read(0, ALL) for entry in batches.entries(data)]
    assert "COMMIT" in done.stdout
    assert "ABORT" in done.stdout
