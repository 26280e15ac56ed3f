# SPDX-License-Identifier: Apache-2.0
"""Where a reader begins and ends."""

from argparse import ArgumentTypeError

import pytest

from kohort.cli.positions import BEGINNING, END, Position, begin, time_ms, until


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("beginning", BEGINNING),
        ("end", END),
        ("0", Position("offset", 0)),
        ("9223372036854775807", Position("offset", (1 << 63) - 1)),
        ("-7", Position("last", 7)),
        ("@1700", Position("time", 1700)),
        ("1970-01-01T00:00:01.001Z", Position("time", 1001)),
        ("1970-01-02", Position("time", 86_400_000)),
    ],
)
def test_a_beginning(text, position):
    assert begin(text) == position


@pytest.mark.parametrize("text", ["", "-", "--1", "-x", "@", "@x", "start", "1e3", "9" * 20, "²"])
def test_what_is_no_position_is_refused(text):
    with pytest.raises(ArgumentTypeError, match="is no position, expected beginning, end, an off"):
        begin(text)


def test_an_end_is_no_beginning():
    assert until("end") == END
    for text in ("beginning", "-7"):
        with pytest.raises(ArgumentTypeError):
            until(text)
    with pytest.raises(ArgumentTypeError, match="9223372036854775808 is too large"):
        until("9223372036854775808")


def test_a_time_is_whole_milliseconds():
    assert time_ms("2026-11-21T07:00:00.29Z") % 1000 == 290
