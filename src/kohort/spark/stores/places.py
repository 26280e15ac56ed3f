"""From what people write to where tables are: a path, `file://…`, or `s3://BUCKET/PREFIX`."""

from pathlib import Path
from typing import TypeAlias
from urllib.parse import unquote, urlsplit

from kohort.errors import KohortError
from kohort.spark.stores.object_path import ObjectPath, Root
from kohort.spark.stores.objects import require

Folder: TypeAlias = Path | ObjectPath
"""A directory of tables, or a file or folder in it."""

_OBJECTS = ("s3", "s3a")
"""`s3a` is what Spark calls it."""


class PlaceError(KohortError):
    """Nowhere that tables can be; the text is one sentence."""


def is_object(text: str) -> bool:
    """Whether it is a URI of an object store."""
    return scheme_of(text) in _OBJECTS


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
    if scheme not in _OBJECTS:
        raise PlaceError(
            f"tables are kept in a directory or on S3, expected a path or s3://BUCKET/PREFIX and "
            f"not {scheme}:… (of a directory with a colon in its name: the whole path)"
        )
    bucket, _, prefix = text.partition(":")[2].lstrip("/").partition("/")
    if not bucket or not text.partition(":")[2].startswith("//"):
        raise PlaceError(f"{text} names no bucket, expected s3://BUCKET/PREFIX")
    require()
    return ObjectPath(Root(bucket, "/".join(one for one in prefix.split("/") if one)))


def _of_file(text: str) -> Path:
    parts = urlsplit(text)
    if parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
        raise PlaceError(f"{text} is not on this machine, expected file:///PATH")
    return Path(unquote(parts.path)).resolve()
