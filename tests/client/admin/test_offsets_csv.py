# SPDX-License-Identifier: Apache-2.0
"""Files of offsets, in both forms of upstream."""

import pytest

from kohort.client.admin import CommittedOffset, TopicPartition
from kohort.client.admin.offsets_csv import NegativeOffsetError, offsets_csv, read_offsets

PARTITION = TopicPartition("cli-a", 0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cli-a,0,8\n", {None: {PARTITION: 8}}),
        ('"cli-a",0,8', {None: {PARTITION: 8}}),
        ("\ufeffcli-a, 0 ,8\r\n\r\n", {None: {PARTITION: 8}}),
        ("g,cli-a,0,8\nh,cli-a,0,2\n", {"g": {PARTITION: 8}, "h": {PARTITION: 2}}),
        ('"a ""b"", c",cli-a,0,8\n', {'a "b", c': {PARTITION: 8}}),
        ("cli-a,0,9223372036854775807", {None: {PARTITION: 2**63 - 1}}),
    ],
)
def test_a_file_is_read_as_upstream_reads_it_and_written_so_that_it_can_be_read(text, expected):
    found = read_offsets(text)
    assert found == {
        group: {key: CommittedOffset(offset) for key, offset in offsets.items()}
        for group, offsets in expected.items()
    }
    assert read_offsets(offsets_csv(found)) == found


NAMES = ["a,b", 'a"b', "a\rb", "a\nb", "a\r\nb", "\r", "", " a ", "a\0b", "\ufeffa"]


def test_what_is_written_for_any_groups_is_read_as_it_was():
    offsets = {name: {PARTITION: CommittedOffset(8)} for name in NAMES}
    assert read_offsets(offsets_csv(offsets)) == offsets
    for name, alone in offsets.items():
        assert read_offsets(offsets_csv({name: alone})) == {name: alone}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "the file has no line, expected topic,partition,offset"),
        (
            "nonsense\n",
            "line 1 has 1 fields, expected topic,partition,offset or group,topic,partition,offset",
        ),
        ("cli-a,0,8\ng,cli-a,0,8\n", "line 2 has 4 fields, expected 3 as in the first line"),
        ("cli-a,zero,8", "the partition in line 1 is 'zero', expected a number from 0 to 2147483"),
        ("cli-a,2147483648,8", "the partition in line 1 is 2147483648, expected 2147483647 at mo"),
        ("cli-a,0,-8", "the offset in line 1 is '-8', expected a number from 0 to 922337203685"),
        ("cli-a,0,", "the offset in line 1 is '', expected a number"),
        ("cli-a,0,٣", "the offset in line 1 is '٣', expected a number"),
        ("cli-a,0,99999999999999999999", "the offset in line 1 is '99999999999999999999', expec"),
        ("cli-a,0,1\ncli-b,0,1\ncli-a,0,2", "line 3 has partition cli-a:0 again, expected it on"),
        ('cli-a,0,"1', "line 1 is no CSV: unexpected end of data"),
    ],
)
def test_what_is_wrong_in_a_file_is_named_with_its_line(text, why):
    with pytest.raises(ValueError) as raised:
        read_offsets(text)
    assert str(raised.value).startswith(why)


def test_a_negative_offset_is_an_error_of_its_own():
    """Tools of Java refuse it in another way than all else."""
    with pytest.raises(NegativeOffsetError):
        read_offsets("cli-a,0,1\ncli-a,1,-8")
    for text in ("cli-a,-1,-8", "cli-a,0,--8", "cli-a,0,-x"):
        with pytest.raises(ValueError) as raised:
            read_offsets(text)
        assert not isinstance(raised.value, NegativeOffsetError)
