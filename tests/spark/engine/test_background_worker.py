# SPDX-License-Identifier: Apache-2.0
"""Work beside one's own: all of it is over when the block is, whatever becomes of either."""

import threading
import time
from concurrent.futures import CancelledError

import pytest

pytest.importorskip("pyspark")

from pyspark import InheritableThread
from pyspark.errors import PySparkException

from kohort.spark.engine.background_worker import InlineWorker, background_worker

HERE, THERE = "here", "there"


def failing(text):
    raise ValueError(text)


def both(spark, here, *there):
    """What comes of what is done beside, of all of it."""
    with background_worker(spark) as worker:
        results = [worker.submit(one) for one in there]
        here(*results)
    return results


def test_both_results(spark):
    met = threading.Barrier(2, timeout=60)  # neither gets through it alone

    def count(rows):
        met.wait()
        return spark.range(rows).count()

    with background_worker(spark) as worker:
        there = worker.submit(lambda: count(5))
        here = count(3)

    assert (here, there.result()) == (3, 5)


def test_one_after_the_other(spark):
    done = []
    with background_worker(spark) as worker:
        first = worker.submit(lambda: (time.sleep(0.1), done.append(1)))
        worker.submit(lambda: done.append(2))
        first.result()
        worker.submit(lambda: done.append(3))

    assert done == [1, 2, 3]


@pytest.mark.parametrize(
    ("here", "there", "told"),
    [
        (lambda: failing(HERE), lambda: 1, HERE),
        (lambda: 1, lambda: failing(THERE), THERE),
        (lambda: failing(HERE), lambda: failing(THERE), HERE),
    ],
)
def test_what_fails_is_raised(spark, here, there, told):
    with pytest.raises(ValueError, match=told):
        both(spark, lambda _: here(), there)


def test_behind_what_fails_nothing_begins(spark):
    done, results = [], []

    def here(*given):
        results.extend(given)
        results[1].result()

    with pytest.raises(ValueError, match=THERE):
        both(spark, here, lambda: failing(THERE), lambda: done.append(2))

    assert done == []
    assert str(results[1].exception()) == THERE


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_what_has_begun_is_waited_for_and_no_more(spark, error):
    begun, done = threading.Event(), []

    def there():
        begun.set()
        time.sleep(0.2)
        done.append(spark.range(2).count())

    results = []

    def here(*given):
        results.extend(given)
        assert begun.wait(60)
        raise error

    with pytest.raises(error):
        both(spark, here, there, lambda: done.append("more"))

    assert done == [2]
    with pytest.raises(CancelledError):
        results[1].result()


def test_an_error_of_sparks_comes_whole(spark):
    with pytest.raises(PySparkException, match="nowhere"):
        both(spark, lambda _: None, lambda: spark.table("nowhere").count())


def test_where_the_thread_cannot_begin_all_has_failed(spark, monkeypatch):
    """PySpark asks the JVM first, which may be gone."""

    def gone(_self):
        raise ConnectionError("nobody answers")

    monkeypatch.setattr(InheritableThread, "run", gone)
    with pytest.raises(ConnectionError, match="nobody answers"):
        both(spark, lambda result: result.result(), lambda: 1)
    with pytest.raises(ConnectionError, match="nobody answers"):
        both(spark, lambda: None)


def test_its_jobs_are_of_the_same_group(spark):
    """A stream, or a cell of a notebook, is ended by the group of its jobs."""
    context = spark.sparkContext
    context.setJobGroup("a cell", "of a notebook")
    try:
        with background_worker(spark) as worker:
            theirs = worker.submit(lambda: context.getLocalProperty("spark.jobGroup.id"))
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)

    assert theirs.result() == "a cell"


def test_in_turn_all_is_done_where_it_is_given():
    worker = InlineWorker()
    done = []
    assert worker.submit(lambda: done.append(1)).result() is None
    assert done == [1]
    with pytest.raises(ValueError, match=THERE):
        worker.submit(lambda: failing(THERE))
