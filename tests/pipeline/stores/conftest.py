# SPDX-License-Identifier: Apache-2.0
"""One store of each kind for all tests that need one; each test has a place of its own."""

import os

import pytest
from tests.pipeline.stores import bucket as buckets
from tests.pipeline.stores import cloud, emulators, mini_hdfs, name_node
from tests.shared_fixtures import LIVES

from kohort.pipeline.stores import s3
from kohort.pipeline.stores.places import place_of

os.environ |= {**buckets.KEYS, **cloud.KEYS}
LIVES["hdfs"] = lambda node: node.lives
LIVES["azure"] = LIVES["google"] = lambda emulator: emulator.lives
STORES = [
    "s3",
    pytest.param("hdfs", marks=pytest.mark.java),
    pytest.param("azure", marks=pytest.mark.clouds),
    pytest.param("google", marks=pytest.mark.clouds),
]


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


@pytest.fixture(scope="session")
def hdfs():
    pytest.importorskip("requests", reason="the extra hdfs is not installed")
    pytest.importorskip("werkzeug", reason="moto is not installed")
    missing = mini_hdfs.unavailable()
    if missing:
        pytest.skip(missing)
    one = name_node.NameNode()
    yield one
    one.close()


@pytest.fixture(scope="session")
def azure():
    yield from _emulated(emulators.azurite, cloud.Azure)


@pytest.fixture(scope="session")
def google():
    yield from _emulated(emulators.fake_gcs, cloud.Google)


def _emulated(command, server):
    pytest.importorskip("obstore", reason="the extra clouds is not installed")
    pytest.importorskip("werkzeug", reason="moto is not installed")
    missing = emulators.unavailable(command)
    if missing:
        pytest.skip(missing)
    one = server()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in one.environ.items():
            patch.setenv(name, value)
        yield one
    one.close()


@pytest.fixture(params=STORES)
def server(request):
    """Each of them."""
    return request.getfixturevalue("bucket" if request.param == "s3" else request.param)


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
    monkeypatch.setattr("kohort.pipeline.stores.name_node._PAUSE_S", 0)
    monkeypatch.setattr("kohort.pipeline.stores.clouds._PAUSE_S", 0)
