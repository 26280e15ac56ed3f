"""From what people write to where tables are: a path, `file://…`, or `s3://BUCKET/PREFIX`."""

from pathlib import Path
from typing import TypeAlias
from urllib.parse import unquote, urlsplit

from kohort.errors import KohortError
from kohort.spark.stores import s3
from kohort.spark.stores.object_path import ObjectPath, Root
from kohort.spark.stores.objects import require

Folder: TypeAlias = Path | ObjectPath
"""A directory of tables, or a file or folder in it."""

_BUCKETS = ("s3", "s3a")
"""`s3a` is what Spark calls it."""
_BUCKET = "s3://BUCKET/PREFIX"


class PlaceError(KohortError):
    """Nowhere that tables can be; the text is one sentence."""


def is_object(text: str) -> bool:
    """Whether it is a URI of objects, wherever these are."""
    return scheme_of(text) in _BUCKETS


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
    if not is_object(text):
        raise PlaceError(
            f"tables are kept in a directory or on S3, expected a path or {_BUCKET} and "
            f"not {scheme}:… (of a directory with a colon in its name: the whole path)"
        )
    start, slashes, rest = text.partition(":")[2].partition("//")
    where, _, path = rest.partition("/")
    if start or not slashes or not where:
        raise PlaceError(f"{text} names no bucket, expected {_BUCKET}")
    require("boto3", "s3")
    root = Root(s3.Bucket(where), "/".join(one for one in path.split("/") if one))
    return ObjectPath(root)


def _of_file(text: str) -> Path:
    parts = urlsplit(text)
    if parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
        raise PlaceError(f"{text} is not on this machine, expected file:///PATH")
    return Path(unquote(parts.path)).resolve()
