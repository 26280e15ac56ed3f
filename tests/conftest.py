"""Options of the whole test suite."""

import functools
import re
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

ROOT = Path(__file__).parents[1]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite",
        action="store_true",
        help="write the transcripts of tests/scenarios anew; then read the diff",
    )


class _ByFile(LoadScopeScheduling):
    """Which tests run in one process, one after the other: those that share a Spark session, and
    otherwise those of one file, which may share a broker.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return "spark" if _shares_a_session(file) else file


@functools.cache
def _shares_a_session(file: str) -> bool:
    text = (ROOT / file).read_text(encoding="utf-8") if file.startswith("tests/spark/") else ""
    return re.search(r"def \w+\([^)]*\b(spark|told)\b", text) is not None


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> _ByFile:
    return _ByFile(config, log)
