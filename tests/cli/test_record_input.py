# SPDX-License-Identifier: Apache-2.0
"""Pieces of stdin and of files: every byte of them, and each by the place where it stands."""

import asyncio
import os
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.client.scripted import asynchronous

from kohort.cli import record_input
from kohort.cli.record_input import RecordInput, place_text
from kohort.errors import KohortError


def found(files, delimiter, *, stop=False):
    async def read():
        stopped = asyncio.get_running_loop().create_future()
        if stop:
            stopped.set_result(None)
        source = RecordInput([str(file) for file in files], delimiter, stopped)
        pieces = [piece async for piece in source.pieces()]
        assert source.ended is not stop
        return [(str(piece).rpartition("/")[2], piece.data) for piece in pieces]

    return asyncio.run(read())


@given(
    st.lists(st.binary(max_size=20).map(lambda data: data.replace(b";", b"")), max_size=8),
    st.integers(1, 5),
)
def test_every_piece_comes_wherever_a_read_ends(tmp_path_factory, pieces, size):
    file = tmp_path_factory.mktemp("input") / "f"
    file.write_bytes(b";;".join([*pieces, b""]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(record_input, "READ_BYTES", size)
        assert [data for _, data in found([file], b";;")] == pieces


def test_lines_are_counted_in_each_file(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_bytes(b"a\nb\n")
    two.write_bytes(b"c\nd")
    assert found([one, two], b"\n") == [
        ("one, line 1", b"a"),
        ("one, line 2", b"b"),
        ("two, line 1", b"c"),
        ("two, line 2", b"d"),
    ]
    assert found([one, two], None) == [("one", b"a\nb\n"), ("two", b"c\nd")]
    assert found([one], b"\n", stop=True) == found([one], None, stop=True) == []


@pytest.mark.parametrize("delimiter", [b"\n", None])
def test_a_piece_that_would_fill_the_memory_is_refused(tmp_path, monkeypatch, delimiter):
    monkeypatch.setattr(record_input, "PIECE_BYTES", 10)
    (tmp_path / "f").write_bytes(b"x" * 11)
    with pytest.raises(KohortError, match="is longer than 10 bytes"):
        found([tmp_path / "f"], delimiter)


def test_a_directory_is_no_file(tmp_path):
    with pytest.raises(KohortError, match=r"cannot read .*: Is a directory"):
        found([tmp_path], b"\n")


@asynchronous
async def test_who_waits_for_stdin_stops_at_once(monkeypatch):
    """A half line that was there is no record."""
    end, begin = os.pipe()
    monkeypatch.setattr("sys.stdin", SimpleNamespace(fileno=lambda: end))
    stop = asyncio.get_running_loop().create_future()
    source = RecordInput([], b"\n", stop)
    pieces = source.pieces()
    os.write(begin, b"whole\nhalf")
    assert (await anext(pieces)).data == b"whole"
    asyncio.get_running_loop().call_later(0.05, stop.set_result, None)
    assert [piece async for piece in pieces] == []
    assert not source.ended
    os.close(begin)  # ends the read of the thread, which has the other end


def test_places():
    assert place_text("", 0) == "stdin"
    assert place_text("f", 0) == "f"
    assert place_text("", 3) == place_text("", 3, 3) == "line 3"
    assert place_text("f", 3, 7) == "f, lines 3 to 7"
