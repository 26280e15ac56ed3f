# SPDX-License-Identifier: Apache-2.0
"""Topics that cannot be made are told of in one line, however often they are asked for."""

from tests.observer import RecordingObserver
from tests.server.apis.asking import metadata
from tests.server.desk import Desk

from kohort.server.topic_creation_failures import TopicCreationFailures
from kohort.sim.disk import SimulatedFiles


def told_of(desk):
    desk.cluster.housekeep(desk.now)
    lines = [line for line in (*desk.told.lines, *desk.told.warnings) if "not made" in line]
    desk.told.lines.clear()
    desk.told.warnings.clear()
    return lines


def test_many_that_are_refused_are_one_line():
    desk = Desk(max_partitions="6", offsets_topic_num_partitions="4")
    names = [f"t{index}" for index in range(100)]
    for _ in range(3):
        metadata(desk, *names)
    assert set(desk.cluster.catalog.by_name) == {"__consumer_offsets", "t0", "t1"}
    (line,) = told_of(desk)
    assert line.startswith("topics that were asked for and not made: 294, the last 't99': There ")
    assert told_of(desk) == []


def test_a_full_disk_is_one_warning():
    files = SimulatedFiles()
    desk = Desk(files=files)
    files.room_bytes = 0
    metadata(desk, *(f"t{index}" for index in range(100)))
    files.room_bytes = None
    (line,) = told_of(desk)
    assert line.startswith("topics that were asked for and not made: 100, the last 't99': /data/")


def test_a_failure_is_told_before_a_refusal():
    told, topic_creation_failures = RecordingObserver(), TopicCreationFailures()
    topic_creation_failures.note("a", "full", failed=True)
    topic_creation_failures.note("b", "no room")
    topic_creation_failures.tell(told)
    assert told.warnings == ["topics that were asked for and not made: 2, the last 'a': full"]
    topic_creation_failures.note("b", "no room")
    topic_creation_failures.tell(told)
    assert told.lines == ["topics that were asked for and not made: 1, the last 'b': no room"]
