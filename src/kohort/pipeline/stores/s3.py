# SPDX-License-Identifier: Apache-2.0
"""An S3 bucket: its objects are swapped by conditional puts.

Credentials and settings are found as botocore finds them. Requests that a store turns away (503,
SlowDown, time-outs) are tried again by botocore, with growing pauses, before an error is told; an
answer that breaks off in its body is not.
"""

import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from functools import cache
from typing import IO, Any

from kohort.errors import KohortError
from kohort.pipeline.stores import settings
from kohort.pipeline.stores.failures import ConflictError, MissingError, StoreError
from kohort.pipeline.stores.objects import ListedObject, Object, done_or_refused, require

TRIES = 6
_CONNECT_S, _READ_S = 10, 60
_AT_ONCE = 1000
"""So many objects S3 deletes in one request."""


@dataclass(frozen=True)
class Bucket:
    """See `objects.Objects`."""

    name: str

    conditions = "conditional puts (If-None-Match and If-Match)"
    no_such_tag = f'"{"0" * 32}"'

    def uri(self, key: str) -> str:
        return f"s3://{self.name}/{key}"

    def read(self, key: str, begin: int = 0, until: int | None = None) -> bytes:
        if begin == 0 and until is None:
            return self.current(key).data
        return self._get(key, f"bytes={begin}-{'' if until is None else until - 1}").data

    def read_end(self, key: str, count: int) -> tuple[int, bytes]:
        with self._as_os_error(key):
            answer = _client().get_object(Bucket=self.name, Key=key, Range=f"bytes=-{count}")
            data = answer["Body"].read()
        size = answer.get("ContentRange", "").rpartition("/")[2]
        return int(size) if size.isdigit() else len(data), data

    def put(self, key: str, data: bytes | IO[bytes], content_type: str | None = None) -> None:
        more = {} if content_type is None else {"ContentType": content_type}
        with self._as_os_error(key):
            _client().put_object(Bucket=self.name, Key=key, Body=data, **more)

    def current(self, key: str) -> Object:
        return self._get(key)

    def swap(self, key: str, data: bytes, tag: str | None) -> str:
        condition = {"IfNoneMatch": "*"} if tag is None else {"IfMatch": tag}

        def put() -> str:
            with self._as_os_error(key):
                answer = _client().put_object(Bucket=self.name, Key=key, Body=data, **condition)
                return str(answer["ETag"])

        return done_or_refused(self, key, data, put)

    def create(self, key: str, data: bytes) -> None:
        self.swap(key, data, None)

    def listed(self, folder: str) -> Iterator[ListedObject]:
        with self._as_os_error(folder):
            lists = _client().get_paginator("list_objects_v2")
            for page in lists.paginate(Bucket=self.name, Prefix=f"{folder}/"):
                for listed in page.get("Contents", ()):
                    yield ListedObject(listed["Key"], listed["Size"], listed["ETag"])

    def delete(self, keys: Iterable[str], inside: str) -> None:
        del inside  # a folder is not there without objects
        left = sorted(keys)
        while left:
            some, left = left[:_AT_ONCE], left[_AT_ONCE:]
            with self._as_os_error(some[0]):
                asked = {"Objects": [{"Key": key} for key in some], "Quiet": True}
                answer = _client().delete_objects(Bucket=self.name, Delete=asked)
            for error in answer.get("Errors", ()):
                why = f"it was not deleted: {error.get('Message') or error.get('Code')}"
                raise StoreError(why, self.uri(error.get("Key")))

    def _get(self, key: str, span: str | None = None) -> Object:
        ranged = {} if span is None else {"Range": span}
        with self._as_os_error(key):
            answer = _client().get_object(Bucket=self.name, Key=key, **ranged)
            return _object(answer, answer["Body"].read())

    @contextmanager
    def _as_os_error(self, key: str) -> Iterator[None]:
        """What botocore complains of, as an OSError of ours."""
        require("boto3", "s3")
        from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError  # noqa: PLC0415

        uri = self.uri(key)
        try:
            yield
        except ClientError as error:
            details = error.response.get("Error", {})
            code = str(details.get("Code", "unknown"))
            if code == "NoSuchBucket":
                text = f"there is no bucket {self.name}"
                raise StoreError(text, uri, errno.ENXIO) from error
            if code in {"NoSuchKey", "404"}:
                raise MissingError("there is no such object", uri, errno.ENOENT) from error
            status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
            if status == 412 or code in {"ConditionalRequestConflict", "409"}:
                raise ConflictError("it was written meanwhile", uri, errno.EEXIST) from error
            number = errno.EACCES if code in {"AccessDenied", "403"} else errno.EIO
            text = f"the store answered {code}: {details.get('Message') or 'and nothing more'}"
            raise StoreError(text, uri, number) from error
        except (BotoCoreError, HTTPClientError) as error:
            raise StoreError(" ".join(str(error).split()), uri) from error


def _object(answer: Any, data: bytes) -> Object:
    date = answer["ResponseMetadata"]["HTTPHeaders"].get("date")
    written_at = answer["LastModified"]
    now = written_at if date is None else parsedate_to_datetime(date)
    return Object(data, answer["ETag"], written_at, lambda: now)


def _client() -> Any:
    return _made(os.getpid(), *(os.environ.get(name) for name in settings.S3))


@cache
def _made(_process: int, *_settings: str | None) -> Any:
    """A client for each process, since a fork must not share connections, and for each place."""
    require("boto3", "s3")
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
