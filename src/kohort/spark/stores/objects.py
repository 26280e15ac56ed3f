"""An S3 bucket: whole objects, conditional puts, ranges. Everything else is built of these.

Credentials and settings are found as botocore finds them. Requests that a store turns away (503,
SlowDown, time-outs) are tried again by botocore, with growing pauses, before an error is told; an
answer that breaks off in its body is not.
"""

import errno
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from email.utils import parsedate_to_datetime
from functools import cache
from importlib.util import find_spec
from typing import IO, Any, NamedTuple

from kohort.errors import KohortError, how_to_install
from kohort.spark.stores.failures import ConflictError, MissingError, StoreError

TRIES = 6
_CONNECT_S, _READ_S = 10, 60
_SETTINGS = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_REGION", "AWS_DEFAULT_REGION")
_AT_ONCE = 1000
"""So many objects S3 deletes in one request."""


class Object(NamedTuple):
    """An object that is there. `now` and `written_at` are by the clock of the store."""

    data: bytes
    tag: str
    written_at: datetime
    now: datetime


class Listed(NamedTuple):
    """An object as a listing tells it."""

    key: str
    size: int
    tag: str


def require() -> None:
    """Raises KohortError, which names the extra, where boto3 is not installed."""
    if find_spec("boto3") is None:
        raise KohortError(f"boto3 is not installed: {how_to_install('s3')}")


def settings() -> dict[str, str]:
    """Where this process looks for S3, for those that work for it. Credentials stay: every process
    finds its own.
    """
    return {name: os.environ[name] for name in _SETTINGS if name in os.environ}


def adopt(told: Mapping[str, str]) -> None:
    """Look for S3 where another process does."""
    os.environ.update(told)


def get(bucket: str, key: str, span: str | None = None) -> Object:
    """An object, or a range of it such as `bytes=0-99`. Raises MissingError, StoreError."""
    ranged = {} if span is None else {"Range": span}
    with _told(bucket, key):
        answer = _client().get_object(Bucket=bucket, Key=key, **ranged)
        return _object(answer, answer["Body"].read())


def get_end(bucket: str, key: str, count: int) -> tuple[int, bytes]:
    """How large an object is, and its last bytes, `count` of them at most."""
    with _told(bucket, key):
        answer = _client().get_object(Bucket=bucket, Key=key, Range=f"bytes=-{count}")
        data = answer["Body"].read()
    size = answer.get("ContentRange", "").rpartition("/")[2]
    return int(size) if size.isdigit() else len(data), data


def put(bucket: str, key: str, data: bytes | IO[bytes], **more: str) -> None:
    """Write an object as a whole, in the place of what is there. Raises StoreError."""
    with _told(bucket, key):
        _client().put_object(Bucket=bucket, Key=key, Body=data, **more)


def swap(bucket: str, key: str, data: bytes, tag: str | None) -> str:
    """Write an object if it is still the one with this tag, None for: if there is none. Returns the
    new tag. Raises ConflictError where it is not, StoreError.

    `data` is to be unlike anything that was ever written there. A request whose answer was lost is
    sent again, and refused for what it has done itself, so a refusal is looked at.
    """
    condition = {"IfNoneMatch": "*"} if tag is None else {"IfMatch": tag}
    try:
        with _told(bucket, key):
            answer = _client().put_object(Bucket=bucket, Key=key, Body=data, **condition)
            return str(answer["ETag"])
    except StoreError as error:
        there = _there_or_none(bucket, key)
        if there is not None and there.data == data:
            return there.tag
        if isinstance(error, MissingError):  # it was to be there
            raise ConflictError("the object is gone", error.filename, errno.EEXIST) from error
        raise


def _there_or_none(bucket: str, key: str) -> Object | None:
    try:
        return get(bucket, key)
    except StoreError:
        return None


def listed(bucket: str, prefix: str) -> Iterator[Listed]:
    """Every object whose key begins so. Raises StoreError."""
    with _told(bucket, prefix):
        pages = _client().get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        for page in pages:
            for one in page.get("Contents", ()):
                yield Listed(one["Key"], one["Size"], one["ETag"])


def delete(bucket: str, keys: Iterable[str]) -> None:
    """Remove objects, whether they are there or not. Raises StoreError."""
    left = sorted(keys)
    while left:
        some, left = left[:_AT_ONCE], left[_AT_ONCE:]
        with _told(bucket, some[0]):
            asked = {"Objects": [{"Key": one} for one in some], "Quiet": True}
            answer = _client().delete_objects(Bucket=bucket, Delete=asked)
        for one in answer.get("Errors", ()):
            why = f"it was not deleted: {one.get('Message') or one.get('Code')}"
            raise StoreError(why, f"s3://{bucket}/{one.get('Key')}")


def _object(answer: Any, data: bytes) -> Object:
    date = answer["ResponseMetadata"]["HTTPHeaders"].get("date")
    written_at = answer["LastModified"]
    now = written_at if date is None else parsedate_to_datetime(date)
    return Object(data, answer["ETag"], written_at, now)


def _client() -> Any:
    return _made(os.getpid(), *(os.environ.get(one) for one in _SETTINGS))


@cache
def _made(_process: int, *_settings: str | None) -> Any:
    """A client for each process, since a fork must not share connections, and for each place."""
    require()
    import boto3  # noqa: PLC0415  (it is an option)
    from botocore.config import Config  # noqa: PLC0415
    from botocore.exceptions import BotoCoreError  # noqa: PLC0415

    config = Config(
        retries={"total_max_attempts": TRIES, "mode": "standard"},
        connect_timeout=_CONNECT_S,
        read_timeout=_READ_S,
        max_pool_connections=32,
    )
    try:
        session = boto3.session.Session()
        region = session.region_name or "us-east-1"  # S3 itself tells a better one
        return session.client("s3", config=config, region_name=region)
    except (BotoCoreError, ValueError) as error:
        raise KohortError(f"S3 cannot be used: {error}") from error


@contextmanager
def _told(bucket: str, key: str) -> Iterator[None]:
    """What botocore complains of, as an OSError of ours."""
    require()
    from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError  # noqa: PLC0415

    uri = f"s3://{bucket}/{key}"
    try:
        yield
    except ClientError as error:
        told = error.response.get("Error", {})
        code = str(told.get("Code", "unknown"))
        if code == "NoSuchBucket":
            text = f"there is no bucket {bucket}"
            raise StoreError(text, uri, errno.ENXIO) from error
        if code in {"NoSuchKey", "404"}:
            raise MissingError("there is no such object", uri, errno.ENOENT) from error
        if code in {"PreconditionFailed", "ConditionalRequestConflict", "412", "409"}:
            raise ConflictError("it was written meanwhile", uri, errno.EEXIST) from error
        number = errno.EACCES if code in {"AccessDenied", "403"} else errno.EIO
        text = f"the store answered {code}: {told.get('Message') or 'and nothing more'}"
        raise StoreError(text, uri, number) from error
    except (BotoCoreError, HTTPClientError) as error:
        raise StoreError(" ".join(str(error).split()), uri) from error
