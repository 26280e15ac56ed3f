# SPDX-License-Identifier: Apache-2.0
"""The command `python -m kohort.sim`: plays seeds, one process for each, and says what was found.

python -m kohort.sim --seed 7                 one seed; the last line is its outcome
python -m kohort.sim --seeds 1-1000           many, on every core, with progress
python -m kohort.sim --seeds 1-10000 --state FILE    the same, to be stopped and resumed
python -m kohort.sim --plant NAME --seeds 1-200      until a planted bug is found
python -m kohort.sim --plant NAME --seed 1 --story   and what a find looks like
python -m kohort.sim --takeovers --seeds 1-1000      owners that take a remote log from each other
"""

import argparse
import gc
import logging
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from itertools import islice
from math import inf
from multiprocessing import active_children
from pathlib import Path
from traceback import format_exception

from kohort.cli.main import Parser
from kohort.sim.disk import MachineCrash
from kohort.sim.injected_bugs.table import INJECTED_BUGS
from kohort.sim.remote.injected_bugs import TAKEOVER_BUGS
from kohort.sim.remote.run import simulate_takeovers
from kohort.sim.run import Outcome, simulate
from kohort.sim.trace import shortest_trace

logging.getLogger("kohort").addHandler(logging.NullHandler())  # clients in trouble say much

PROGRESS_SECONDS = 2.0
PROGRESS_IN_FILE_SECONDS = 30.0  # where nobody watches
SEEDS_PER_PROCESS = 50  # then a new process is spawned: what a run leaves in memory goes with it


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one seed or many. Exit codes: 0 nothing was found, 1 something was. With a plant it is
    the other way round: the planted bug must be found.
    """
    parser = _parser()
    given = parser.parse_args(arguments)
    if given.takeovers != (given.plant in TAKEOVER_BUGS) and given.plant is not None:
        parser.error(f"--plant {given.plant!r}: it is {_where(given.plant)} --takeovers")
    seeds = range(given.seed, given.seed + 1) if given.seeds is None else given.seeds
    try:
        if len(seeds) == 1:
            found = _play(seeds[0], given.minutes, given.plant, takeovers=given.takeovers)
        else:
            found = Campaign(seeds, given).run()
        if found is None:
            if given.plant is not None:
                _say(f"the planted bug {given.plant!r} was not found")
            return 0 if given.plant is None else 1
        if _wants_story(given) and not found.broken.startswith("raised: "):
            _say(shortest_trace(found, given.minutes, given.plant, _show))
        _say(found.line())
    except StateError as error:
        parser.error(f"--state {given.state} {error}")
    except KeyboardInterrupt:
        kept = "" if given.state is None else f"; the same command goes on from {given.state}"
        _say(f"stopped{kept}")
        return 130
    return 0 if given.plant is not None else 1


def _where(plant: str) -> str:
    return "one of" if plant in TAKEOVER_BUGS else "none of"


def _wants_story(given: argparse.Namespace) -> bool:
    """A shorter story takes some dozens of runs: of a planted bug only who asks for it wants it.
    There is none of a takeover.
    """
    if given.takeovers:
        return False
    return bool(given.story if given.plant is not None else not given.no_story)


def _parser() -> Parser:
    parser = Parser(
        prog="python -m kohort.sim",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("--seed", type=_seed, default=1, help="one seed (default 1)")
    parser.add_argument("--seeds", type=_range, help="FIRST-LAST: many seeds, up to the first find")
    parser.add_argument(
        "--minutes", type=_minutes, default=3.0, help="virtual minutes with faults (default 3)"
    )
    names = sorted((*INJECTED_BUGS, *TAKEOVER_BUGS))
    plants = ",\n".join(", ".join(some) for some in _in_rows(4, names))
    parser.add_argument(
        "--plant",
        metavar="NAME",
        choices=names,
        help=f"a bug to be found:\n{plants}",
    )
    parser.add_argument(
        "--takeovers",
        action="store_true",
        help="nodes that take a log on another cluster from each other, instead of a broker",
    )
    parser.add_argument(
        "--state", metavar="FILE", type=_file, help="remembers which seeds were played"
    )
    parser.add_argument(
        "--processes",
        metavar="N",
        type=_processes,
        default=os.cpu_count() or 1,
        help="how many seeds are played at a time (default: one for each core)",
    )
    parser.add_argument("--no-story", action="store_true", help="do not look for a shorter story")
    parser.add_argument(
        "--story", action="store_true", help="look for a shorter story of a planted bug, too"
    )
    return parser


def _in_rows(count: int, names: Sequence[str]) -> Iterator[Sequence[str]]:
    for first in range(0, len(names), count):
        yield names[first : first + count]


def _seed(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no seed, expected a whole number")
    return int(text)


def _range(text: str) -> range:
    first, _, last = text.partition("-")
    numbers = first.isdecimal() and (last or first).isdecimal()
    seeds = range(int(first), int(last or first) + 1) if numbers else range(0)
    if not seeds:
        raise argparse.ArgumentTypeError(f"{text!r} has no seeds, expected FIRST-LAST")
    return seeds


def _minutes(text: str) -> float:
    try:
        minutes = float(text)
    except ValueError:
        minutes = 0.0
    if not 0 < minutes < inf:
        raise argparse.ArgumentTypeError(f"{text!r}, expected more than 0 minutes")
    return minutes


def _processes(text: str) -> int:
    if not (text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r}, expected 1 or more")
    return int(text)


def _file(text: str) -> Path:
    path = Path(text)
    if not path.parent.is_dir() or path.is_dir():
        raise argparse.ArgumentTypeError(f"{text!r}, expected a file in a directory that exists")
    return path


def _begin_process() -> None:
    """Ctrl-C reaches all processes of a terminal; the first one ends the others. Little of what a
    run makes is garbage in a circle: looking for it seldom saves a seventh of the time.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.set_threshold(200_000, 50, 50)


def _say(text: str) -> None:
    _show("")
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _show(text: str) -> None:
    """What is done at the moment, where somebody watches; the next line takes its place."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()


def _play(seed: int, minutes: float, plant: str | None, *, takeovers: bool) -> Outcome | None:
    """One seed in this process; its outcome when something was found."""
    _show(f"playing {minutes:g} minutes of seed {seed}")
    outcome = _simulated(seed, minutes, plant, takeovers)
    if outcome.broken:
        return outcome
    _say(outcome.line())
    return None


def _simulated(seed: int, minutes: float, plant: str | None, takeovers: bool) -> Outcome:  # noqa: FBT001  (of a pool)
    """The outcome; a fault of the simulator itself, or what the broker has raised where nothing
    catches it, is one too.
    """
    try:
        if takeovers:
            return simulate_takeovers(seed, minutes, plant=plant)
        return simulate(seed, minutes, plant=plant)
    except (Exception, MachineCrash) as error:  # noqa: BLE001  (whatever it is, it must come with its seed)
        sys.stderr.write("".join(format_exception(error)))
        text = f"raised: {type(error).__name__}: {error}"
        return Outcome(seed, text, "none", 0.0, 0, 0)


class StateError(Exception):
    """The file of the seeds that were played cannot be read, or not be written."""


class Campaign:
    """Many seeds, `--processes` of them at a time. Stops with the first that finds something."""

    def __init__(self, seeds: range, given: argparse.Namespace) -> None:
        self.seeds = seeds
        self.minutes: float = given.minutes
        self.plant: str | None = given.plant
        self.takeovers: bool = given.takeovers
        self.processes: int = given.processes
        self.state: Path | None = given.state
        self.done = self._remembered()
        self.played = 0
        self.virtual_seconds = 0.0
        self._began = time.monotonic()
        self._told = self._began
        self._pause = PROGRESS_SECONDS if sys.stdout.isatty() else PROGRESS_IN_FILE_SECONDS

    def run(self) -> Outcome | None:
        """The outcome of a seed that has found something, or None."""
        if self.done:
            _say(f"{len(self.done)} seeds were played before")
        left = (seed for seed in self.seeds if seed not in self.done)
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            found = self._played(left)
        finally:
            signal.signal(signal.SIGTERM, before)
        _say(self._progress())
        return found

    def _played(self, left: Iterator[int]) -> Outcome | None:
        """Play on every process, and end them all, however it ends."""
        with ProcessPoolExecutor(
            self.processes,
            initializer=_begin_process,
            max_tasks_per_child=SEEDS_PER_PROCESS,
        ) as pool:
            try:
                return self._first_find(pool, left)
            except KeyboardInterrupt:
                for child in active_children():  # a pool that replaces its processes may not end
                    child.kill()
                raise
            finally:
                pool.shutdown(cancel_futures=True)

    def _first_find(self, pool: ProcessPoolExecutor, left: Iterator[int]) -> Outcome | None:
        found = None
        waiting: set[Future[Outcome]] = set()
        while found is None:
            for seed in islice(left, 2 * self.processes - len(waiting)):
                waiting.add(pool.submit(_simulated, seed, self.minutes, self.plant, self.takeovers))
            if not waiting:
                break
            ended, waiting = wait(waiting, PROGRESS_SECONDS, FIRST_COMPLETED)
            found = self._take(sorted((future.result() for future in ended), key=_seed_of))
        return found

    def _take(self, outcomes: list[Outcome]) -> Outcome | None:
        for outcome in outcomes:
            self.played += 1
            self.virtual_seconds += outcome.virtual_seconds
            if outcome.broken:
                return outcome
            self._remember(outcome.seed)
        if time.monotonic() - self._told > self._pause:
            self._told = time.monotonic()
            _say(self._progress())
        return None

    def _progress(self) -> str:
        minutes = (time.monotonic() - self._began) / 60
        hours = self.virtual_seconds / 3600
        return (
            f"{self.played + len(self.done)} of {len(self.seeds)} seeds, {hours:.1f} simulated "
            f"hours in {minutes:.1f} minutes ({hours / minutes:.1f} a minute)"
        )

    def _remembered(self) -> set[int]:
        """The seeds of this length and plant that a state file says were played."""
        if self.state is None:
            return set()
        try:
            self.state.open("a").close()  # hours later would be too late
            return set(self._lines(self.state))
        except (OSError, UnicodeDecodeError) as error:
            raise StateError(f"cannot be used: {_reason(error)}") from None

    def _lines(self, state: Path) -> Iterator[int]:
        for line in state.read_text(encoding="utf-8").splitlines():
            minutes, _, rest = line.partition(" ")
            seed, _, plant = rest.partition(" ")
            if minutes == f"{self.minutes:g}" and plant == self._world() and seed.isdigit():
                yield int(seed)

    def _remember(self, seed: int) -> None:
        if self.state is None:
            return
        try:
            with self.state.open("a", encoding="utf-8") as file:
                file.write(f"{self.minutes:g} {seed} {self._world()}".rstrip() + "\n")
        except OSError as error:
            raise StateError(f"cannot be written: {_reason(error)}") from None

    def _world(self) -> str:
        """What tells its seeds from those of other campaigns."""
        return " ".join(word for word in ("takeovers" * self.takeovers, self.plant) if word)


def _reason(error: OSError | UnicodeDecodeError) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "it is no text"
    return error.strerror or str(error)


def _seed_of(outcome: Outcome) -> int:
    return outcome.seed


if __name__ == "__main__":
    sys.exit(main())
