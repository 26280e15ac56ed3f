"""What people write, and where that is."""

import pickle
from pathlib import Path

import pytest

from kohort.errors import KohortError
from kohort.spark.stores import objects
from kohort.spark.stores.places import is_object, place_of


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("s3://bucket/groups", "s3://bucket/groups"),
        ("s3a://bucket/groups/", "s3://bucket/groups"),
        ("S3://bucket//a//b", "s3://bucket/a/b"),
        ("s3://bucket", "s3://bucket"),
        ("file:///tables/a%20b", "/tables/a b"),
        ("file://localhost/tables", "/tables"),
        ("/tables/a:b", "/tables/a:b"),
        (Path("/tables"), "/tables"),
    ],
)
def test_where_it_is(text, wanted):
    pytest.importorskip("boto3", reason="the extra s3 is not installed")
    place = place_of(text)
    assert str(place) == wanted
    assert is_object(str(text)) == wanted.startswith("s3:")
    assert pickle.loads(pickle.dumps(place)) == place


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("gs://bucket/x", "a path or s3://BUCKET/PREFIX and not gs:…"),
        ("hdfs:tables", "a path or s3://BUCKET/PREFIX and not hdfs:…"),
        ("s3:bucket/x", "names no bucket, expected s3://BUCKET/PREFIX"),
        ("s3://", "names no bucket, expected s3://BUCKET/PREFIX"),
        ("file://other/tables", "is not on this machine, expected file:///PATH"),
    ],
)
def test_where_nothing_can_be(text, words):
    with pytest.raises(KohortError, match=words.replace("/", r"\/")):
        place_of(text)


def test_a_missing_library_is_named(monkeypatch):
    monkeypatch.setattr(objects, "find_spec", lambda _: None)
    with pytest.raises(KohortError, match=r"^boto3 is not installed: pip install '\.\[s3\]'"):
        place_of("s3://bucket/x")
