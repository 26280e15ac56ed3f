"""One Spark session for all tests that need one."""

import pytest


@pytest.fixture(scope="session")
def spark():
    pytest.importorskip("pyspark")
    from kohort.spark.session import session

    one = session("local[2]", {"spark.sql.shuffle.partitions": "1"}, quick=True)
    one.sparkContext.setLogLevel("ERROR")
    yield one
    one.stop()


def pytest_collection_modifyitems(items):
    """Whoever takes the session is a Spark test."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
