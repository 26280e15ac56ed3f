# SPDX-License-Identifier: Apache-2.0
"""The records of `kohort produce`: how many were acknowledged, and which were not, and why."""

import asyncio
from collections.abc import Iterator

from kohort.cli.command import reason
from kohort.cli.record_input import Piece, place_text
from kohort.client.producer.producer import Delivery
from kohort.errors import ApiError

MOST = 10  # lines of a report


class Deliveries:
    """Counts what was acknowledged, and keeps what was not. `failed` is done at the first failure.

    It belongs to a running event loop.
    """

    def __init__(self, topic: str) -> None:
        self.acknowledged = 0
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._topic = topic
        self._failures: list[tuple[str, int, str]] = []  # file, line, what is said of it

    def add(self, piece: Piece, delivery: Delivery) -> None:
        """Watch a record that was taken."""
        file, number = piece.file, piece.number  # without its bytes

        def settled(done: Delivery) -> None:
            error = None if done.cancelled() else done.exception()
            if done.cancelled() or error is not None:
                self._refuse(file, number, error)
            else:
                self.acknowledged += 1

        delivery.add_done_callback(settled)

    def refuse(self, piece: Piece, error: ApiError) -> None:
        """A record was not taken."""
        self._refuse(piece.file, piece.number, error)

    def _refuse(self, file: str, number: int, error: BaseException | None) -> None:
        unsure = error is None or getattr(error, "maybe_written", False)
        why = reason(error) if isinstance(error, Exception) else "it was given up"
        doubt = ", or may be, as the broker has not answered" if unsure else ""
        self._failures.append((file, number, f"not in {self._topic}{doubt}: {why}"))
        if not self.failed.done():
            self.failed.set_result(None)

    def report(self) -> Iterator[str]:
        """A line for each run of lines with one fate, in their order."""
        runs: list[tuple[str, int, int, str]] = []
        for file, number, what in sorted(self._failures, key=lambda one: one[:2]):
            if runs and runs[-1][::3] == (file, what) and runs[-1][2] == number - 1:
                runs[-1] = (file, runs[-1][1], number, what)
            else:
                runs.append((file, number, number, what))
        for file, first, last, what in runs[:MOST]:
            yield f"{place_text(file, first, last)} {'is' if first == last else 'are'} {what}"
        if len(runs) > MOST:
            hidden = sum(last - first + 1 for _, first, last, _ in runs[MOST:])
            yield f"and {hidden:,} more were not acknowledged"
