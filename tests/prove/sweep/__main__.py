# SPDX-License-Identifier: Apache-2.0
"""Sweep the APIs, or one of them, and print what holds others up.

python -m tests.prove.sweep [--api NAME]... [--way TEXT]
"""

import argparse
import time

from tests.prove.sweep.sweeping import Row, sweeping, swept_apis, table


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.prove.sweep", description=__doc__)
    parser.add_argument("--api", action="append", default=[], help="one API alone; may be repeated")
    parser.add_argument("--way", default="", help="the ways whose name has this text in it")
    options = parser.parse_args()
    apis = swept_apis(*options.api)
    if not apis:
        parser.error(f"none of {options.api} is served")
    rows: list[Row] = []
    begun = time.monotonic()
    with sweeping() as sweep:
        print(f"prepared in {time.monotonic() - begun:.1f} s", flush=True)
        for api in apis:
            for row in sweep.rows(api, options.way):
                print(row, flush=True)
                rows.append(row)
    print(f"\n{len(rows)} in {time.monotonic() - begun:.0f} s, longest wait first:\n{table(rows)}")


if __name__ == "__main__":
    main()
