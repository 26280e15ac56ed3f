# SPDX-License-Identifier: Apache-2.0
"""Which offsets are missing in a log, told by its headers alone."""

from tests.storage.logs import END, FOLDER, damage, segment, three_segments

from kohort.storage.holes import survey


def test_a_whole_log_has_none():
    assert survey(three_segments(), FOLDER, 0) == ([], END, -1)


def test_a_segment_that_is_gone_is_a_hole():
    disk = three_segments()
    disk.unlink(segment(9))
    assert survey(disk, FOLDER, 0) == ([(9, 18)], END, -1)


def test_so_is_what_should_stand_before_the_first():
    disk = three_segments()
    disk.unlink(segment(0))
    assert survey(disk, FOLDER, 0).holes == [(0, 9)]
    assert survey(disk, FOLDER, 4).holes == [(4, 9)]
    assert survey(disk, FOLDER, 9).holes == []


def test_records_are_not_looked_at_and_a_header_that_is_none_ends_it():
    disk = three_segments()
    damage(disk, 9, 1)
    assert survey(disk, FOLDER, 0) == ([], END, -1)
    disk.files[segment(9)].now[16] = 7  # no magic that there is
    assert survey(disk, FOLDER, 0) == ([], 9, -1)
