"""Two pieces of work at once: both are over when it ends, whatever becomes of either."""

import threading
import time

import pytest

pytest.importorskip("pyspark")

from pyspark.errors import PySparkException

from kohort.spark.engine.side_by_side import side_by_side

HERE, THERE = "here", "there"


def failing(text):
    raise ValueError(text)


def test_both_results(spark):
    met = threading.Barrier(2, timeout=60)  # neither gets through it alone

    def count(rows):
        met.wait()
        return spark.range(rows).count()

    assert side_by_side(spark, lambda: count(3), lambda: count(5)) == (3, 5)


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
        side_by_side(spark, here, there)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_the_other_one_is_waited_for(spark, error):
    begun, done = threading.Event(), []

    def here():
        assert begun.wait(60)
        raise error

    def there():
        begun.set()
        time.sleep(0.2)
        done.append(spark.range(2).count())

    with pytest.raises(error):
        side_by_side(spark, here, there)

    assert done == [2]


def test_an_error_of_sparks_comes_whole(spark):
    with pytest.raises(PySparkException, match="nowhere"):
        side_by_side(spark, lambda: 1, lambda: spark.table("nowhere").count())


def test_its_jobs_are_of_the_same_group(spark):
    """A stream, or a cell of a notebook, is ended by the group of its jobs."""
    context = spark.sparkContext
    context.setJobGroup("a cell", "of a notebook")
    try:
        ours, theirs = side_by_side(
            spark,
            lambda: context.getLocalProperty("spark.jobGroup.id"),
            lambda: context.getLocalProperty("spark.jobGroup.id"),
        )
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)

    assert ours == theirs == "a cell"
