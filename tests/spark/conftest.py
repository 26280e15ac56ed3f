"""One Spark session for all tests that need one."""

import pytest


@pytest.fixture(scope="session")
def spark():
    pytest.importorskip("pyspark")
    from kohort.spark.session import session

    one = session("local[2]", {"spark.sql.shuffle.partitions": "1"})
    one.sparkContext.setLogLevel("ERROR")
    yield one
    one.stop()
