# SPDX-License-Identifier: Apache-2.0
"""Kafka's dump tool reads every kind of folder that we write, without a complaint."""

import pytest
from tests.peers.kafka import dump_log, run_tool, unavailable
from tests.replay.player import RecordedScenario
from tests.replay.test_golden_scenarios import STORIES
from tests.server.test_golden_logs import Started

from kohort.storage.compaction import CleaningRules, compact
from kohort.storage.directory import LogDirectory
from kohort.storage.files import DiskFiles
from kohort.storage.log import LogConfig
from kohort.terms import Millis, TopicId
from kohort.wire import batch

pytestmark = [pytest.mark.java, pytest.mark.timeout(600)]

COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")
MOMENT = 1_700_000_000_000
COMPLAINTS = ("isvalid: false", "Could not", "Found ", "Exception", "mismatch")


@pytest.fixture(scope="module", autouse=True)
def _needs_java():
    if reason := unavailable():
        pytest.skip(reason)


def without_complaint(done):
    assert done.returncode == 0, done.stderr
    text = done.stdout + done.stderr
    assert [line for line in text.splitlines() if any(one in line for one in COMPLAINTS)] == []
    return done.stdout


def test_user_topics_with_every_compression_rolled_and_compacted(tmp_path):
    files = DiskFiles()
    directory = LogDirectory(str(tmp_path), files, node_id=1, new_uuid=lambda: bytes(range(16)))
    cut = LogConfig(segment_bytes=1500, index_interval_bytes=200)
    for codec, name in enumerate(COMPRESSIONS):
        for topic in (f"plain-{name}", f"compacted-{name}"):
            log = directory.open_log(topic, 0, TopicId(bytes(15) + bytes([codec + 1])), cut)
            for turn in range(20):
                entries = [
                    (b"key %d" % (key % (3 + turn % 4)), b"value %d of turn %d" % (key, turn) * 3)
                    for key in range(7)
                ]
                log.append(batch.build(entries, MOMENT + turn, compression=codec), 7)
            log.sync()
            assert len(log.closed) > 1
            if topic.startswith("compacted"):
                list(compact(log, files, CleaningRules(Millis(MOMENT + 100))))
            log.close()
    directory.close()

    segments = sorted(tmp_path.glob("*/*.log"))
    text = without_complaint(
        run_tool(
            "org.apache.kafka.tools.DumpLogSegments",
            *("--deep-iteration", "--print-data-log", "--files", ",".join(map(str, segments))),
        )
    )
    for name in COMPRESSIONS:
        assert f"compresscodec: {name}" in text
    payloads = text.count(" payload: value ")
    assert len(COMPRESSIONS) * 140 < payloads < len(COMPRESSIONS) * 280
    assert payloads == sum(
        header_count for segment in segments for header_count in counts(segment.read_bytes())
    )


def counts(data):
    position = 0
    while position < len(data):
        header = batch.header_at(data, position)
        yield header.count
        position += header.length


def test_groups_of_both_protocols_before_and_after_compaction(tmp_path):
    """All that the golden scenarios make a broker write about groups."""
    with Started(tmp_path) as broker:
        for name in ("offsets", "classic_versions", "consumer_reconcile", "listing"):
            RecordedScenario(broker.world, STORIES[name]).play()
    segments = sorted(tmp_path.glob("__consumer_offsets-*/*.log"))
    text = without_complaint(dump_log(*segments))
    for kind in (1, 2, 3, 5, 6, 7, 8):
        assert f'key: {{"type":"{kind}"' in text
    before = text.count("| offset:")

    with Started(tmp_path) as broker:
        broker.compact()
    segments = sorted(tmp_path.glob("__consumer_offsets-*/*.log"))
    text = without_complaint(dump_log(*segments))
    assert 0 < text.count("| offset:") < before
