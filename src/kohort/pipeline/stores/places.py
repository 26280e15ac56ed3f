# SPDX-License-Identifier: Apache-2.0
"""From what people write to where tables are: a path, `file://…`, `s3://BUCKET/PREFIX`,
`gs://BUCKET/PREFIX`, `abfs://CONTAINER@ACCOUNT.dfs.core.windows.net/PREFIX`, or
`webhdfs://HOST:PORT/PATH`.
"""

from pathlib import Path
from typing import TypeAlias
from urllib.parse import unquote, urlsplit

from kohort.errors import KohortError
from kohort.pipeline.stores import hdfs, s3
from kohort.pipeline.stores.clouds import Cloud
from kohort.pipeline.stores.name_node import DEFAULT_PORTS, NameNode
from kohort.pipeline.stores.object_path import ObjectPath, Root
from kohort.pipeline.stores.objects import Objects, require

Folder: TypeAlias = Path | ObjectPath
"""A directory of tables, or a file or folder in it."""

_BUCKETS = ("s3", "s3a")
"""`s3a` is what Spark calls it."""
_BUCKET, _NAME_NODE = "s3://BUCKET/PREFIX", "webhdfs://HOST:PORT/PATH"
_CONTAINER = "abfs://CONTAINER@ACCOUNT.dfs.core.windows.net/PREFIX"
_CLOUDS = {
    "gs": "gs://BUCKET/PREFIX",
    "abfs": _CONTAINER,
    "abfss": _CONTAINER,
    "az": "az://CONTAINER/PREFIX",
}
"""Scheme -> what is expected of such a URI."""


class PlaceError(KohortError):
    """Nowhere that tables can be; the text is one sentence."""


def is_object(text: str) -> bool:
    """Whether it is a URI of objects, wherever these are."""
    return scheme_of(text) in (*_BUCKETS, *_CLOUDS, *DEFAULT_PORTS)


def scheme_of(text: str) -> str:
    """The scheme of a URI, in small letters; empty for a path."""
    scheme, colon, _ = text.partition(":")
    known = colon and scheme.isascii() and scheme[:1].isalpha() and "/" not in scheme
    return scheme.lower() if known else ""


def place_of(directory: str | Folder) -> Folder:
    """Where that is, in full. Raises PlaceError, and KohortError where the extra is missing."""
    if isinstance(directory, ObjectPath):
        return directory
    text = str(directory)
    scheme = scheme_of(text)
    if not scheme:
        return Path(directory).resolve()
    if scheme == "file":
        return _of_file(text)
    if scheme == "hdfs":
        raise PlaceError(
            f"{text} is for libraries of Hadoop, expected {_NAME_NODE} with the address of "
            f"the name node for HTTP, whose port is {DEFAULT_PORTS['webhdfs']} by default"
        )
    if not is_object(text):
        raise PlaceError(
            "tables are kept in a directory, in a bucket or on HDFS, expected a path, "
            f"{', '.join((_BUCKET, *dict.fromkeys(_CLOUDS.values())))} or {_NAME_NODE} and not "
            f"{scheme}:… (of a directory with a colon in its name: the whole path)"
        )
    start, slashes, rest = text.partition(":")[2].partition("//")
    where, _, path = rest.partition("/")
    objects = _objects(text, scheme, "" if start or not slashes else where)
    return ObjectPath(Root(objects, "/".join(part for part in path.split("/") if part)))


def _objects(text: str, scheme: str, where: str) -> Objects:
    """Those of a bucket, of a container or of a name node."""
    if scheme in _BUCKETS:
        if not where:
            raise PlaceError(f"{text} names no bucket, expected {_BUCKET}")
        require("boto3", "s3")
        return s3.Bucket(where)
    if scheme in _CLOUDS:
        cloud = Cloud.of(scheme, where)
        if cloud is None:
            of_account = scheme.startswith("abfs") and not where.startswith("@") and where
            what = "bucket" if scheme == "gs" else "account" if of_account else "container"
            raise PlaceError(f"{text} names no {what}, expected {_CLOUDS[scheme]}")
        require("obstore", "clouds")
        return cloud
    node = NameNode.of(scheme, where)
    if node is None:
        raise PlaceError(f"{text} names no name node, expected {_NAME_NODE}")
    require("requests", "hdfs")
    return hdfs.Hdfs(node)


def _of_file(text: str) -> Path:
    parts = urlsplit(text)
    if parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
        raise PlaceError(f"{text} is not on this machine, expected file:///PATH")
    return Path(unquote(parts.path)).resolve()
