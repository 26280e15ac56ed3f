# SPDX-License-Identifier: Apache-2.0
"""What people write, and where that is."""

import pickle
from pathlib import Path

import pytest

from kohort.errors import KohortError
from kohort.pipeline.stores import objects
from kohort.pipeline.stores.places import is_object, place_of


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("s3://bucket/groups", "s3://bucket/groups"),
        ("s3a://bucket/groups/", "s3://bucket/groups"),
        ("S3://bucket//a//b", "s3://bucket/a/b"),
        ("s3://bucket", "s3://bucket"),
        ("gs://bucket//groups/", "gs://bucket/groups"),
        ("abfs://c@one.dfs.core.windows.net/a/b", "abfss://c@one.dfs.core.windows.net/a/b"),
        ("abfss://c@one.blob.core.windows.net", "abfss://c@one.blob.core.windows.net"),
        ("abfs://c@One.DFS.core.windows.net/A", "abfss://c@one.dfs.core.windows.net/A"),
        ("az://container/groups", "az://container/groups"),
        ("webhdfs://node:9870/groups/", "webhdfs://node:9870/groups"),
        ("WebHDFS://node//a//b", "webhdfs://node:9870/a/b"),
        ("swebhdfs://node/a%20b?c", "swebhdfs://node:9871/a%20b?c"),
        ("webhdfs://one,two:50070/a", "webhdfs://one:9870,two:50070/a"),
        ("webhdfs://[::1]:9870/a", "webhdfs://[::1]:9870/a"),
        ("file:///tables/a%20b", "/tables/a b"),
        ("file://localhost/tables", "/tables"),
        ("/tables/a:b", "/tables/a:b"),
        (Path("/tables"), "/tables"),
    ],
)
def test_where_it_is(text, wanted):
    pytest.importorskip("boto3", reason="the extra s3 is not installed")
    pytest.importorskip("obstore", reason="the extra clouds is not installed")
    pytest.importorskip("requests", reason="the extra hdfs is not installed")
    place = place_of(text)
    assert str(place) == wanted
    assert is_object(str(text)) != wanted.startswith("/")
    assert pickle.loads(pickle.dumps(place)) == place


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ftp://host/x", "expected a path, s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, abfs:"),
        ("ftp://host/x", "az://CONTAINER/PREFIX or webhdfs://HOST:PORT/PATH and not ftp:…"),
        ("gs:///x", "names no bucket, expected gs://BUCKET/PREFIX"),
        ("gs://who@bucket/x", "names no bucket, expected gs://BUCKET/PREFIX"),
        ("abfss://container/x", "names no account, expected abfs://CONTAINER@ACCOUNT.dfs.core"),
        ("abfs://c@one.example/x", "names no account, expected abfs://CONTAINER@ACCOUNT.dfs"),
        ("abfs://c@one/x", "names no account, expected abfs://CONTAINER@ACCOUNT.dfs.core"),
        ("abfs:///x", "names no container, expected abfs://CONTAINER@ACCOUNT.dfs.core"),
        ("abfs://@one.dfs.core.windows.net/x", "names no container, expected abfs://CONTAINER@"),
        ("az:container", "names no container, expected az://CONTAINER/PREFIX"),
        (
            "hdfs://node:8020/x",
            "expected webhdfs://HOST:PORT/PATH with the address of the name node",
        ),
        ("webhdfs:/x", "names no name node, expected webhdfs://HOST:PORT/PATH"),
        ("webhdfs:///x", "names no name node, expected webhdfs://HOST:PORT/PATH"),
        ("webhdfs://node:x/y", "names no name node, expected webhdfs://HOST:PORT/PATH"),
        ("webhdfs://who@node/y", "names no name node, expected webhdfs://HOST:PORT/PATH"),
        ("webhdfs://one,/y", "names no name node, expected webhdfs://HOST:PORT/PATH"),
        ("s3:bucket/x", "names no bucket, expected s3://BUCKET/PREFIX"),
        ("s3://", "names no bucket, expected s3://BUCKET/PREFIX"),
        ("file://other/tables", "is not on this machine, expected file:///PATH"),
    ],
)
def test_where_nothing_can_be(text, words):
    with pytest.raises(KohortError, match=words.replace("/", r"\/")):
        place_of(text)


@pytest.mark.parametrize(
    ("uri", "library", "extra"),
    [
        ("s3://bucket/x", "boto3", "s3"),
        ("gs://bucket/x", "obstore", "clouds"),
        ("az://container/x", "obstore", "clouds"),
        ("webhdfs://node/x", "requests", "hdfs"),
    ],
)
def test_a_missing_library_is_named(monkeypatch, uri, library, extra):
    monkeypatch.setattr(objects, "find_spec", lambda _: None)
    words = rf"^{library} is not installed: pip install '\.\[{extra}\]'"
    with pytest.raises(KohortError, match=words):
        place_of(uri)
