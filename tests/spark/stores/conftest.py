"""One S3 for all tests that need one; each has a place of its own in its bucket."""

import os

import pytest
from tests.spark.stores import bucket as buckets

from kohort.spark.stores import objects
from kohort.spark.stores.places import place_of


@pytest.fixture(scope="session")
def server():
    pytest.importorskip("boto3", reason="the extra s3 is not installed")
    pytest.importorskip("moto", reason="moto is not installed")
    one = buckets.Bucket()
    before = dict(os.environ)
    os.environ |= {"AWS_ENDPOINT_URL": one.url, "AWS_REGION": "us-east-1"}
    objects._client().create_bucket(Bucket=buckets.NAME)
    yield one
    one.close()
    os.environ.clear()
    os.environ |= before


@pytest.fixture
def place(server, tmp_path):
    """Where nothing is yet."""
    del server.asked[:]
    return place_of(f"s3://{buckets.NAME}/{tmp_path.name}")


@pytest.fixture
def quick(monkeypatch):
    """No pauses between tries."""
    monkeypatch.setattr("botocore.retries.standard.ExponentialBackoff.delay_amount", lambda *_: 0)
