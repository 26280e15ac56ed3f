# SPDX-License-Identifier: Apache-2.0
"""Many sequences on one pair of brokers after the other, and what came of them.

A difference is believed when a second run of the same sequence shows it too, with long rests where
something is parked. What does not come again is told as unsteady: it is a race, in one of the
brokers or in here.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice

from tests.prove.differential import transcript
from tests.prove.differential.brokers import Pair
from tests.prove.differential.modes import IMPATIENT, MODES, RESTARTING, RESTING, SETTINGS, sequence
from tests.prove.differential.player import Outcome, Play
from tests.prove.differential.shrinking import shortest
from tests.prove.differential.steps import RESTART, SETTLE, Step

BATCH = 100  # sequences of one pair of brokers
SPARE = 120  # further ones, to confirm and to shrink
RESERVE = 4  # of those: to confirm one more difference
WORKERS = 8
RESTING_WORKERS = 24  # where most of the time is waited for groups to come to rest
TRIES = 40
MEETING = 40  # sequences that share a restart: it takes long with many logs
STORIES = 12  # of one campaign: the first ones are shrunk, the others only counted


@dataclass
class Report:
    """What a campaign has found."""

    sequences: int = 0
    pairs: int = 0
    seconds: float = 0.0
    apis: Counter[str] = field(default_factory=Counter)
    modes: Counter[str] = field(default_factory=Counter)
    explained: Counter[str] = field(default_factory=Counter)
    shown_by: dict[str, tuple[str, int]] = field(default_factory=dict)
    differing: Counter[tuple[str, str]] = field(default_factory=Counter)
    stories: list[str] = field(default_factory=list)
    unsteady: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        rate = self.pairs / max(self.seconds, 0.001) * 60
        summary = (
            f"{self.pairs} pairs in {self.sequences} sequences, {self.seconds:.0f} s,"
            f" {rate:.0f} pairs a minute; {sum(self.differing.values())} sequences differ,"
            f" {len(self.unsteady)} unsteady"
        )
        lines = [
            summary,
            "by API: " + _counted(self.apis),
            "by mode: " + _counted(self.modes),
            "explained: " + (_counted(self.explained) or "nothing"),
            "shown by: " + ", ".join(f"{name}: {one}" for name, one in self.shown_by.items()),
        ]
        lines += [f"{n} x {api} {path}" for (api, path), n in self.differing.most_common()]
        return "\n".join([*lines, *self.stories, *self.unsteady])


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.most_common())


def seeds(modes: Iterable[str], first: int, count: int) -> list[tuple[str, int]]:
    """So many seeds, the modes in turns."""
    wheel = list(modes)
    return [(wheel[n % len(wheel)], first + n // len(wheel)) for n in range(count)]


async def campaign(
    todo: Sequence[tuple[str, int]],
    *,
    workers: int | None = None,
    wanted_pairs: int | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> Report:
    """Play these seeds; stop early when so many pairs have been compared."""
    report = Report()
    start = time.monotonic()
    by_kind: dict[tuple[bool, str], list[tuple[str, int]]] = defaultdict(list)
    for mode, seed in todo:
        by_kind[mode in RESTARTING, mode if mode in SETTINGS else ""].append((mode, seed))
    for (restarting, settings), some in by_kind.items():
        left = iter(some)
        while batch := list(islice(left, MEETING if restarting else BATCH)):
            if wanted_pairs is not None and report.pairs >= wanted_pairs:
                break
            spare = len(batch) if restarting else min(SPARE, 24 + 2 * len(batch))
            async with Pair(
                len(batch) + spare, SETTINGS.get(settings), impatient=settings in IMPATIENT
            ) as pair:
                await Batch(pair, report, batch, restarting=restarting).run(
                    workers or (RESTING_WORKERS if settings in RESTING else WORKERS)
                )
            report.seconds = time.monotonic() - start
            tell(f"{report.pairs} pairs, {report.seconds:.0f} s")
    report.seconds = time.monotonic() - start
    return report


class Rendezvous:
    """All sequences of a batch come to their restart before the brokers are restarted once."""

    def __init__(self, pair: Pair, count: int) -> None:
        self.pair = pair
        self.absent = count
        self.over = asyncio.Event()

    async def arrive(self) -> None:
        self.absent -= 1
        await self._perhaps()
        await self.over.wait()

    async def stay_away(self) -> None:
        """A sequence that has ended will not come any more."""
        self.absent -= 1
        await self._perhaps()

    async def _perhaps(self) -> None:
        if self.absent == 0:
            await self.pair.restart()
            self.over.set()


class Batch:
    """Sequences that share a pair of brokers."""

    def __init__(
        self, pair: Pair, report: Report, todo: list[tuple[str, int]], *, restarting: bool
    ) -> None:
        self.pair = pair
        self.report = report
        self.todo = todo
        self.restarting = restarting
        self.suspects: list[tuple[str, int, list[Step], Outcome]] = []

    async def run(self, workers: int) -> None:
        left = iter(self.todo)
        meeting = Rendezvous(self.pair, len(self.todo)) if self.restarting else None

        async def work() -> None:
            for mode, seed in left:
                await self._first(mode, seed, meeting)

        count = len(self.todo) if self.restarting else workers
        await asyncio.gather(*(work() for _ in range(count)))
        if self.restarting and self.suspects:
            meeting = Rendezvous(self.pair, len(self.suspects))
            await asyncio.gather(*(self._once_more(meeting, *one) for one in self.suspects))
            return
        suspects = iter(self.suspects)

        async def look_again() -> None:
            for suspect in suspects:
                await self._again(*suspect)

        await asyncio.gather(*(look_again() for _ in range(3)))

    async def _once_more(
        self, meeting: Rendezvous, mode: str, seed: int, steps: list[Step], before: Outcome
    ) -> None:
        """Play it again, slowly, together with all others that differ."""
        play = Play(self.pair, steps, slow=True, restarted=meeting.arrive)
        outcome = await play.run()
        if not any(one.step is RESTART for one in outcome.told):
            await meeting.stay_away()
        if outcome.signature is None:
            title = f"\n{mode} {seed} differed once: {before.signature}"
            self.report.unsteady.append(transcript.transcript_lines(before, play.memories, title))
            return
        self.report.differing[outcome.signature] += 1
        if self.report.differing[outcome.signature] == 1 and len(self.report.stories) < STORIES:
            title = f"\n{mode} {seed}: {outcome.signature[0]} {outcome.signature[1]}"
            self.report.stories.append(transcript.transcript_lines(outcome, play.memories, title))

    async def _first(self, mode: str, seed: int, meeting: Rendezvous | None) -> None:
        steps = sequence(mode, seed)
        play = Play(self.pair, steps, restarted=meeting.arrive if meeting else None)
        outcome = await play.run()
        if meeting is not None and not any(one.step is RESTART for one in outcome.told):
            await meeting.stay_away()
        report = self.report
        report.sequences += 1
        report.modes[mode] += 1
        report.pairs += outcome.pairs
        report.apis.update(outcome.apis)
        report.explained.update(outcome.explained)
        for name in outcome.explained:
            report.shown_by.setdefault(name, (mode, seed))
        if outcome.differences:
            self.suspects.append((mode, seed, steps, outcome))

    async def _again(self, mode: str, seed: int, steps: list[Step], before: Outcome) -> None:
        """Play it again, slowly; then make it short."""
        report = self.report
        assert before.signature is not None
        if len(self.pair.prefixes) < RESERVE:
            report.differing[before.signature] += 1
            return
        for _ in range(2):
            play = Play(self.pair, steps, slow=True)
            outcome = await play.run()
            if outcome.signature is not None:
                break
        else:
            title = f"\n{mode} {seed} differed once: {before.signature}"
            report.unsteady.append(transcript.transcript_lines(before, play.memories, title))
            return
        report.differing[outcome.signature] += 1
        if report.differing[outcome.signature] > 1 or len(report.stories) >= STORIES:
            return
        assert outcome.at is not None
        wanted = outcome.signature

        async def shows(some: list[Step]) -> bool:
            if len(self.pair.prefixes) < RESERVE:
                return False
            some = _settling(some) if SETTLE in steps else some
            return (await Play(self.pair, some).run()).signature == wanted

        short = await shortest(list(steps[: outcome.seen_at + 1]), shows, TRIES)
        play = Play(self.pair, _settling(short) if SETTLE in steps else short)
        outcome = await play.run()
        title = f"\n{mode} {seed}, {len(short)} of {len(steps)} steps: {wanted[0]} {wanted[1]}"
        report.stories.append(transcript.transcript_lines(outcome, play.memories, title))


def _settling(steps: list[Step]) -> list[Step]:
    """Behind every request that others follow, members come to rest."""
    requests = [one for one in steps if one is not SETTLE]
    return [one for step in requests for one in ((step, SETTLE) if step.unsettles else (step,))]


def all_modes() -> list[str]:
    return list(MODES)
