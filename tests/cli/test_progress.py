# SPDX-License-Identifier: Apache-2.0
"""A line about what takes long: on a terminal only, and gone before anything else."""

import asyncio
import io
import sys

from kohort.cli.command import complain
from kohort.cli.progress import Progress
from kohort.cli.render import ERASE, Output


class Terminal(io.StringIO):
    def isatty(self):
        return True


def shown(stream, **times):
    """What stands on the stream after a block that waited for the second line, if any comes."""

    async def run():
        output = Output(io.StringIO())
        async with Progress(output, stream, **times):
            output.doing = "counting\x07 sheep"
            if stream.isatty() and not times["patience_s"]:
                while stream.getvalue().count("sheep") < 2:  # noqa: ASYNC110  (nobody tells)
                    await asyncio.sleep(0)
            else:
                await asyncio.sleep(0)
        return stream.getvalue()

    return asyncio.run(run())


def test_a_terminal_is_told_and_left_clean():
    first, *_, last = shown(Terminal(), patience_s=0, every_s=0)[len(ERASE) :].split(ERASE)
    assert first == "counting\\x07 sheep … 0 s"
    assert last == ""


def test_what_is_quick_is_not_worth_a_line():
    assert shown(Terminal(), patience_s=600) == ERASE


def test_a_pipe_never_sees_it():
    assert shown(io.StringIO(), patience_s=0, every_s=0) == ""


def test_it_is_erased_before_a_result_and_a_complaint(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    Output(terminal).line("result")
    complain("sorry")
    assert terminal.getvalue() == f"{ERASE}result\n{ERASE}kohort: sorry\n"
