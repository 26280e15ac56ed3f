# SPDX-License-Identifier: Apache-2.0
"""Many rounds on all cores. What is done is kept in a file, so that a run can be stopped at any
time, and goes on where it was.
"""

import json
import os
import resource
import time
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path
from random import SystemRandom
from typing import NamedTuple

from tests.prove.fuzzing.round import FRAMES, Round

RESIDENT_MIB = 600
"""What a process that plays round after round may need at most."""


class RoundResult(NamedTuple):
    """What one round has done."""

    number: int
    frames: int
    groups_compared: int
    most_groups: int
    seconds: float
    resident_mib: float


def play(seed: int, number: int, frames: int = FRAMES) -> RoundResult:
    begin = time.monotonic()
    one = Round(seed, number)
    try:
        arrived = one.play(frames)
    except Exception as error:
        raise AssertionError(
            f"seed {seed}, round {number}, {frames} frames a round: {error!r}\n"
            f"(again: tests.prove.fuzzing.campaign.play({seed}, {number}, {frames}))"
        ) from error
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    seconds = time.monotonic() - begin
    return RoundResult(number, arrived, one.groups_compared, one.most_groups, seconds, resident)


class Progress:
    """The seed and the rounds that are done, in a file if there is one."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        known = json.loads(path.read_text()) if path is not None and path.exists() else {}
        self.seed: int = known.get("seed", SystemRandom().getrandbits(32))
        self.frames: int = known.get("frames", 0)
        self._next: int = known.get("next", 0)
        self._beyond: set[int] = set(known.get("beyond", ()))
        self._handed_out: set[int] = set()

    def take(self) -> int:
        """The number of a round that is neither done nor under way."""
        number = self._next
        while number in self._beyond or number in self._handed_out:
            number += 1
        self._handed_out.add(number)
        return number

    def done(self, played: RoundResult) -> None:
        self.frames += played.frames
        self._beyond.add(played.number)
        self._handed_out.discard(played.number)
        while self._next in self._beyond:
            self._beyond.discard(self._next)
            self._next += 1
        if self._path is not None:
            state = {
                "seed": self.seed,
                "frames": self.frames,
                "next": self._next,
                "beyond": sorted(self._beyond),
            }
            temporary = self._path.with_suffix(".tmp")
            temporary.write_text(json.dumps(state))
            temporary.replace(self._path)


def run(frames: int, state: Path | None, processes: int | None = None) -> None:
    """Play rounds until so many frames have arrived. A round that fails is played again next time.

    Raises AssertionError, with what to play to see it again.
    """
    progress = Progress(state)
    begun, begin, told = progress.frames, time.monotonic(), 0.0
    groups = 0
    print(f"seed {progress.seed}, {progress.frames} frames are done", flush=True)
    workers = processes or os.cpu_count() or 1
    with ProcessPoolExecutor(workers) as pool:
        under_way: set[Future[RoundResult]] = set()
        while progress.frames < frames:
            while len(under_way) < workers:
                under_way.add(pool.submit(play, progress.seed, progress.take()))
            done, under_way = wait(under_way, return_when=FIRST_COMPLETED)
            for one in done:
                played = one.result()
                progress.done(played)
                groups += played.groups_compared
                assert played.resident_mib < RESIDENT_MIB, played
            seconds = time.monotonic() - begin
            if seconds - told > 30 or progress.frames >= frames:
                told = seconds
                print(
                    f"{progress.frames} of {frames} frames, "
                    f"{(progress.frames - begun) / seconds:.0f} a second, "
                    f"{groups} groups compared with their replay, {played}",
                    flush=True,
                )
