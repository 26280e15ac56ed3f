# SPDX-License-Identifier: Apache-2.0
"""A line on stderr that says what a command is doing, once that takes more than two seconds.

Only a terminal gets the line, and it is removed before anything else is written.
"""

import asyncio
import sys
from types import TracebackType
from typing import Self, TextIO

from kohort.cli.render import ERASE, Output, printable

PATIENCE_S = 2.0
EVERY_S = 0.5


class Progress:
    """Shows `output.doing` while its block lasts."""

    def __init__(
        self,
        output: Output,
        stream: TextIO | None = None,
        *,
        patience_s: float = PATIENCE_S,
        every_s: float = EVERY_S,
    ) -> None:
        self._output = output
        self._stream = stream or sys.stderr
        self._patience_s = patience_s
        self._every_s = every_s
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        if self._stream.isatty():
            self._task = asyncio.create_task(self._show())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._task is not None:
            self._task.cancel()
            self._write("")

    async def _show(self) -> None:
        began = asyncio.get_running_loop().time()
        await asyncio.sleep(self._patience_s)
        while True:
            passed = asyncio.get_running_loop().time() - began
            self._write(f"{printable(self._output.doing)} … {passed:.0f} s")
            await asyncio.sleep(self._every_s)

    def _write(self, text: str) -> None:
        self._stream.write(ERASE + text)
        self._stream.flush()
