# SPDX-License-Identifier: Apache-2.0
"""The bare readers of the pipeline, without Spark: segment files to raw rows, and to typed ones.

    python benchmarks/spark_parse.py [--records 600000] [--passes 3]

Batches of 30 records, 1 and 1,000, and batches of 30 and 1,000 with each compression. The unit is
records per CPU-second of this process, of the best pass; crcs are checked.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from group_log import write_log

from kohort.pipeline.columns.decode import decode, offset_commits
from kohort.pipeline.columns.record_positions import Rows, raw, sliced
from kohort.pipeline.columns.segments import parse
from kohort.spark.sources.reader import ROWS_AT_ONCE
from kohort.wire.compression import Compression

PIECE_BYTES = 4 << 20
SHAPES = [
    (30, 0),
    (1, 0),
    (1000, 0),
    *((size, one) for one in Compression if one for size in (30, 1000)),
]
WAYS: dict[str, Callable[[Rows], object]] = {
    "raw": raw,
    "commits": offset_commits,
    "decoded": decode,
}


def read(directory: Path, way: Callable[[Rows], object]) -> int:
    """How many rows there are."""
    rows = 0
    for file in sorted(directory.glob("*/*.log")):
        data = file.read_bytes()
        position = 0
        while position < len(data):
            parsed = parse(data[position : position + PIECE_BYTES], 0)
            position += parsed.used
            for piece in parsed.pieces:
                for some in sliced(piece, ROWS_AT_ONCE):
                    rows += len(some)
                    way(some)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=600_000)
    parser.add_argument("--passes", type=int, default=3)
    options = parser.parse_args()
    print(f"{'M records per CPU-second':28}" + "".join(f"{name:>10}" for name in WAYS))
    for per_batch, codec in SHAPES:
        with tempfile.TemporaryDirectory() as place:
            records = write_log(Path(place), options.records, per_batch=per_batch, codec=codec)
            figures = []
            for way in WAYS.values():
                best = 0.0
                for _ in range(options.passes):
                    begin = time.process_time()
                    rows = read(Path(place), way)
                    best = max(best, rows / (time.process_time() - begin) / 1e6)
                    if rows != records:
                        raise SystemExit(f"{rows} rows were read, {records} were written")
                figures.append(best)
        name = f"{per_batch} per batch, {Compression(codec).name.lower()}"
        print(f"{name:28}" + "".join(f"{one:10.2f}" for one in figures), flush=True)


if __name__ == "__main__":
    main()
