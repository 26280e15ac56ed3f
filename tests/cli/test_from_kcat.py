# SPDX-License-Identifier: Apache-2.0
"""The page for users of kcat: each line of ours is run, and does what it says there."""

import re
import shlex
import sys
from pathlib import Path

import pytest

from kohort.cli.main import main
from kohort.testing import Broker

PAGE = Path("docs/cli.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("\n## From kcat\n")[2].partition("\n## ")[0]
ROWS = re.findall(r"^\| `kcat (.+?)` \| `kohort (.+?)` \|$", SECTION, re.MULTILINE)
TIME_MS = 1_795_244_400_000

PRINTED = {
    "-C -t orders -o beginning -e": b"first\n\nthird\n",
    "-C -t orders -p 0 -o -5 -e": b"first\n\nthird\n",
    "-C -t orders -p 0 -o 1 -c 1": b"\n",
    "-C -t orders -o s@1795244400000 -o e@1795244460000": b"first\n\n",
    "-C -t orders -o beginning -e -K: -D ';'": b"k:first;k:;k:third;",
    "-C -t orders -o beginning -e -Z": b"first\nNULL\nthird\n",
    "-Q -t orders:0:1795244400000": b"0\n",
    "-G audit -e orders payments": b"",
    "-G audit -e '^order.*'": b"",
}
"""What the first of our lines prints, where it is short."""

WRITTEN = {
    "-P -t orders": [(None, b"a:1"), (None, b"")],
    "-P -t orders -K: -p 1": None,
    "-P -t orders -k customer -H source=cli -Z": [(b"customer", b"a:1"), (b"customer", None)],
    "-P -t orders -D '\\0' -z zstd -X acks=1": [(None, b"a:1\n\n")],
    "-P -t orders -l orders.txt": [(None, b"1"), (None, b"2")],
    "-P -t orders one.bin two.bin": [(None, b"\x00\n"), (None, b"\xff")],
}
"""The keys and values that our lines write, of `a:1` and an empty line on stdin; None where the
empty line is refused.
"""


@pytest.fixture(scope="module")
def broker():
    with Broker(in_memory=True) as broker:
        yield broker


@pytest.fixture
def run(broker, tmp_path, monkeypatch, capfdbinary):
    for topic in ("orders", "payments"):
        broker.create_topic(topic, 2)
    for number, value in enumerate([b"first", None, b"third"]):
        at = {"partition": 0, "timestamp_ms": TIME_MS + number * 30_000}
        broker.produce("orders", value, key=b"k", **at)
    for name, data in {"orders.txt": b"1\n2\n", "one.bin": b"\0\n", "two.bin": b"\xff"}.items():
        (tmp_path / name).write_bytes(data)
    (tmp_path / "stdin").write_bytes(b"a:1\n\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KOHORT_BOOTSTRAP_SERVER", broker.bootstrap)

    def run(line):
        with (tmp_path / "stdin").open() as stdin:
            monkeypatch.setattr(sys, "stdin", stdin)
            return main(shlex.split(line)), capfdbinary.readouterr()

    yield run
    for topic in ("orders", "payments"):
        broker.delete_topic(topic)


def test_the_page_has_what_is_expected_here():
    theirs = {kcat for kcat, _ in ROWS}
    assert len(theirs) == len(ROWS) >= 20
    assert not {*PRINTED, *WRITTEN} - theirs
    assert {kcat for kcat in theirs if "-P" in kcat} == set(WRITTEN)


@pytest.mark.parametrize(("kcat", "ours"), ROWS, ids=[kcat for kcat, _ in ROWS])
def test_each_line_is_run(broker, run, kcat, ours):
    before = [len(broker.read("orders", partition=index)) for index in (0, 1)]
    code, printed = run(ours)
    if WRITTEN.get(kcat, ()) is None:
        assert code == 1
        assert printed.err == b"kohort: line 2 has no ':', expected a key before it\n"
        (record,) = broker.read("orders", partition=1)
        assert (record.key, record.value) == (b"a", b"1")
        return
    assert (code, printed.err) == (0, b"")
    if kcat in PRINTED:
        assert printed.out == PRINTED[kcat]
    elif kcat in WRITTEN:
        new = [
            (record.key, record.value)
            for index in (0, 1)
            for record in broker.read("orders", partition=index)[before[index] :]
        ]
        assert new == WRITTEN[kcat]
    else:
        assert b"orders" in printed.out or b"first" in printed.out
