# SPDX-License-Identifier: Apache-2.0
"""One Spark session for all tests that need one; another one, where it has died."""

import os
import sys
from contextlib import suppress

import pytest
from tests.pipeline.stores import bucket, cloud
from tests.shared_fixtures import LIVES
from tests.spark import sessions

LIVES["spark"] = sessions.lives
# Before a JVM starts: tasks have the environment that it was started in.
os.environ |= {**bucket.KEYS, **cloud.KEYS}


@pytest.fixture(scope="session")
def spark():
    pytest.importorskip("pyspark")
    one = sessions.start()
    yield one
    with suppress(Exception):  # a dead one cannot be stopped
        one.stop()


@pytest.fixture(scope="module", autouse=True)
def nothing_is_left_cached():
    """Modules share a JVM of 1 GB, and one that has no memory ends."""
    yield
    sessions.forget_rows()


@pytest.fixture(autouse=True)
def counted_runs(request, monkeypatch):
    """How many runs of the pipeline a test has Spark make: tests/conftest.py sums them by file."""
    jobs = sys.modules.get("kohort.spark.jobs")
    if jobs is None:
        yield
        return
    made, session = [], jobs._session

    def counted(*args, **named):
        made.append(args)
        return session(*args, **named)

    monkeypatch.setattr(jobs, "_session", counted)
    yield
    if made:
        request.node.user_properties.append(("runs on Spark", len(made)))


def pytest_collection_modifyitems(items):
    """Whoever takes the session is a Spark test."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
