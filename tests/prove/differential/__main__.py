# SPDX-License-Identifier: Apache-2.0
"""Play sequences by hand: `python -m tests.prove.differential --mode classic --seed 7`."""

import argparse
import asyncio
import sys
import time

from tests.peers.kafka import unavailable
from tests.prove.differential.campaign import campaign, seeds
from tests.prove.differential.modes import MODES


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.prove.differential", description=__doc__)
    parser.add_argument("--mode", action="append", choices=MODES, help="default: all of them")
    parser.add_argument("--seed", type=int, help="the first seed (default: from the clock)")
    parser.add_argument("--sequences", type=int, default=1)
    parser.add_argument("--pairs", type=int, help="stop when so many have been compared")
    parser.add_argument("--workers", type=int, help="sequences at a time")
    args = parser.parse_args()
    if reason := unavailable():
        print(f"no Kafka to compare with: {reason}")
        return 2
    first = int(time.time()) if args.seed is None else args.seed
    todo = seeds(args.mode or MODES, first, args.sequences)
    report = asyncio.run(
        campaign(
            todo,
            workers=args.workers,
            wanted_pairs=args.pairs,
            tell=lambda line: print(line, flush=True),
        )
    )
    print(f"seeds from {first} on: {report}")
    return 1 if report.differing else 0


if __name__ == "__main__":
    sys.exit(main())
