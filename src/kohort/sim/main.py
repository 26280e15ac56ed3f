"""The command `kohort-sim`."""

import argparse
import sys
from collections.abc import Sequence

from kohort.sim.run import simulate


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one seed or many. Exit codes: 0 nothing was found, 1 something was."""
    parser = argparse.ArgumentParser(prog="kohort-sim", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=5.0, help="virtual minutes with faults")
    given = parser.parse_args(arguments)
    outcome = simulate(given.seed, given.minutes)
    sys.stdout.write(outcome.line() + "\n")
    return 1 if outcome.broken else 0


if __name__ == "__main__":
    sys.exit(main())
