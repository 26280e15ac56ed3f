# SPDX-License-Identifier: Apache-2.0
"""Somebody who works with a broker that dies again and again, and knows what it has promised."""

import sys
import threading
import time
import traceback
from random import Random

from tests.prove.killing.away import code_of, is_away
from tests.prove.killing.journal import Journal

END_SECONDS = 180.0
ACT_SECONDS = 300.0  # no client waits so long for a broker that comes back again and again


class Actor:
    """Does one thing after the other, on a thread of its own, until `end`.

    `act` raises AssertionError when a promise is broken, and what `is_away` knows when the broker
    is away. What was under way then is in doubt. Any other error is a failure, but for the codes of
    `excused`, which a broker may well answer in this campaign.
    """

    def __init__(self, name: str, seed: int, journal: Journal) -> None:
        self.name = name
        self.random = Random(f"{seed}/{name}")
        self.failure = ""
        self.ending = threading.Event()
        self.excused: frozenset[int] = frozenset()
        self._journal = journal
        self._said = ""
        self._began = time.monotonic()  # what it does now
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def act(self) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """Let go of what it holds."""

    def say(self, what: str) -> None:
        self._said = what
        self._journal.say(self.name, what)

    def done(self, what: str) -> None:
        """Something was acknowledged."""
        self._journal.count(what)
        self._journal.say(self.name, f"{what}: acknowledged")

    def _run(self) -> None:
        while not self.ending.is_set():
            self._began = time.monotonic()
            try:
                self.act()
            except BaseException as error:  # noqa: BLE001  (told by the test's own thread)
                if not self.excuses(error):
                    self.failure = traceback.format_exc()
                    self.say(self.failure)
                    return
                self.say(f"{error!r}")
                self.ending.wait(0.05)

    def excuses(self, error: BaseException) -> bool:
        return is_away(error) or code_of(error) in self.excused

    def check(self) -> None:
        assert not self.failure, f"{self.name}: {self.failure}"
        lasts_s = time.monotonic() - self._began
        assert not self._thread.is_alive() or lasts_s < ACT_SECONDS, self._hangs()

    def _hangs(self) -> str:
        """What it has said last, and the call that it is in."""
        frame = sys._current_frames().get(self._thread.ident or 0)
        stack = "" if frame is None else "".join(traceback.format_stack(frame))
        lasts_s = time.monotonic() - self._began
        return f"{self.name} hangs in its client for {lasts_s:.0f} s: {self._said}\n{stack}"

    def end(self) -> None:
        self.ending.set()
        self._thread.join(END_SECONDS)
        assert not self._thread.is_alive(), self._hangs()
        self.close()
        self.check()
