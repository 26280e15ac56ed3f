# SPDX-License-Identifier: Apache-2.0
"""What is few, and when nothing is."""

import pytest

from kohort.spark.engine.small_runs import are_open, is_few, spark_only


def test_nothing_is_few_while_a_run_leaves_everything_to_spark():
    assert is_few(5, 5)
    assert not is_few(6, 5)
    with spark_only(asked=False):
        assert are_open()
        with spark_only(), spark_only():
            assert not is_few(0, 5)
            assert not are_open()
    assert is_few(5, 5)


def test_a_run_that_fails_opens_them_again():
    with pytest.raises(ZeroDivisionError), spark_only():
        raise ZeroDivisionError
    assert are_open()
