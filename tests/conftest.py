# SPDX-License-Identifier: Apache-2.0
"""Options of the whole test suite."""

import functools
import gc
import os
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

pytest_plugins = ["tests.each_codec", "tests.shared_fixtures"]

ROOT = Path(__file__).parents[1]

# A run of the pipeline would go on in the background for half a minute, and leave 200 MB.
os.environ["KOHORT_CLASS_ARCHIVE"] = "off"

# A property test draws the same examples in every run, so that `make test` never depends on luck:
# what fresh seeds find in `make prove` is kept as an `@example`. A loaded machine is slow, and that
# is no fault of a test.
_ANYWHERE = settings(
    database=None, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("fixed", _ANYWHERE, derandomize=True)
settings.register_profile("fresh", _ANYWHERE, derandomize=False, max_examples=400)
settings.load_profile("fixed")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite",
        action="store_true",
        help="write the transcripts of tests/scenarios anew; then read the diff",
    )


_STORES = "tests/pipeline/stores"
_TABLES = "tests/spark/tables"


class _ByFile(LoadScopeScheduling):
    """Which tests run in one process, one after the other: those that share a Spark session (there
    are two, one for each worker), and those that share a name node of HDFS, and otherwise those of
    one file, which may share a broker.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        if _shares_a_session(file):
            return _TABLES if file.startswith(_TABLES) else "spark"
        return _STORES if file.startswith(_STORES) else file


@functools.cache
def _shares_a_session(file: str) -> bool:
    text = (ROOT / file).read_text(encoding="utf-8") if file.startswith("tests/spark/") else ""
    return re.search(r"def \w+\([^)]*\b(spark|told)\b", text) is not None


def pytest_collection_finish() -> None:
    """Some 20,000 tests and what they import stay until the end: no collection looks at them again,
    of which a test may ask for several, at a second each.
    """
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Where the runs of the pipeline on Spark are, which a gate of fifteen minutes has to count."""
    runs: Counter[str] = Counter()
    for report in terminalreporter.stats.get("", ()):
        if report.when == "teardown":
            runs[report.location[0]] += dict(report.user_properties).get("runs on Spark", 0)
    if runs.total():
        terminalreporter.section(f"{runs.total()} runs of the pipeline on Spark")
        for file, count in (+runs).most_common(10):
            terminalreporter.line(f"{count:4} {file}")


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> _ByFile:
    return _ByFile(config, log)
