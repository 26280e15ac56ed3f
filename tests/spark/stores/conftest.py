"""One S3 for all tests that need a store; each test has a place of its own."""

import os

import pytest
from tests.spark.stores import bucket as buckets

from kohort.spark.stores import s3
from kohort.spark.stores.places import place_of


@pytest.fixture(scope="session")
def bucket():
    pytest.importorskip("boto3", reason="the extra s3 is not installed")
    pytest.importorskip("moto", reason="moto is not installed")
    one = buckets.Bucket()
    before = dict(os.environ)
    os.environ |= {"AWS_ENDPOINT_URL": one.url, "AWS_REGION": "us-east-1"}
    s3._client().create_bucket(Bucket=buckets.NAME)
    yield one
    one.close()
    os.environ.clear()
    os.environ |= before


@pytest.fixture(params=["s3"])
def server(request):
    """Each of them."""
    return request.getfixturevalue({"s3": "bucket"}[request.param])


@pytest.fixture
def place(server, tmp_path):
    """Where nothing is yet."""
    del server.asked[:]
    return place_of(f"{server.start}{tmp_path.name}")


@pytest.fixture
def objects(place):
    return place.root.objects


@pytest.fixture
def key(place):
    return f"{place.key}/one"


@pytest.fixture
def quick(monkeypatch):
    """No pauses between tries."""
    monkeypatch.setattr("botocore.retries.standard.ExponentialBackoff.delay_amount", lambda *_: 0)
