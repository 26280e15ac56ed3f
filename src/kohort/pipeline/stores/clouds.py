# SPDX-License-Identifier: Apache-2.0
"""Google Cloud Storage and Azure, by obstore: their objects are swapped by conditional puts.

Credentials and settings are found in the environment, as obstore finds them. The type of its error
decides what a failure is; its words only make the sentence better. It leaves a put alone whose
answer was lost, so that each request is tried again here, with growing pauses.
"""

import errno
import mmap
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import IO, Any, TypeVar

from kohort.errors import KohortError
from kohort.pipeline.stores import settings
from kohort.pipeline.stores.failures import ConflictError, MissingError, StoreError
from kohort.pipeline.stores.objects import ListedObject, Object, done_or_refused, require

TRIES = 6
_PAUSE_S = 0.5
_CONNECT_S = 10
_MINUTE_S, _BYTES_A_MINUTE = 60.0, 64 << 20
"""A request may take a minute, or as many as its data does at this pace."""
_AT_ONCE = 16
_CLOCK = ".now"
_STATUS = re.compile(r"\bcode: (\d+) ?([^:\n]*)")
_CODE, _MESSAGE = re.compile(r"<Code>(\w+)"), re.compile(r"<Message>([^<\n]+)")
_ASKED = re.compile(r"Error performing [A-Z]+ (?:\w+://)?([^/\s]+)")
_WHY = re.compile(
    r"code: (?P<number>\d+),"
    r"|kind: (?P<late>TimedOut|Timeout)\b"
    r"|error: \"?(?!Custom)(?P<words>[\w ,:]+)"
)
_ACCOUNT = re.compile(r"([a-z0-9]+)\.(?:dfs|blob)\.(core\.[a-z0-9.]+)")
_BROKEN = "HTTP error"
_HIDDEN = "REDACTED"
"""An address that has a signature in it."""
_NO_CONFLICTS = {
    *("BlobImmutableDueToPolicy", "Immutable"),
    *("ContainerBeingDeleted", "LeaseAlreadyPresent", "LeaseIdMissing", "LeaseLost"),
}
"""The codes of answers 409 and 412 that tell of no other writer."""
_NO_BUCKET = {"NoSuchBucket", "ContainerNotFound"}

Answer = TypeVar("Answer")


class _PassingError(Exception):
    """What may be otherwise the next time."""


@dataclass(frozen=True)
class Cloud:
    """See `objects.Objects`. `where` is a bucket, or a container of Azure and its account, which
    the environment names for `az`.
    """

    scheme: str
    where: str

    conditions = "conditional puts (If-None-Match and If-Match, or x-goog-if-generation-match)"

    @classmethod
    def of(cls, scheme: str, where: str) -> "Cloud | None":
        """None where it names none of these."""
        container, at, host = where.partition("@")
        if scheme.startswith("abfs"):
            host = host.lower()  # a name of a host is the same in capitals
            known = container and _ACCOUNT.fullmatch(host)
            return cls("abfss", f"{container}@{host}") if known else None
        return cls(scheme, where) if container and not at else None

    @property
    def no_such_tag(self) -> str:
        return "1" if self._is_google else '"0x1"'

    @property
    def _is_google(self) -> bool:
        return self.scheme == "gs"

    def uri(self, key: str) -> str:
        return f"{self.scheme}://{self.where}/{key}"

    def read(self, key: str, begin: int = 0, until: int | None = None) -> bytes:
        if until is None:
            size, data = self._short(key) if begin == 0 else (int(self._head(key)["size"]), None)
            if data is not None:
                return data
            until = size

        def get(client: Any) -> bytes:
            return bytes(client.get_range(key, start=begin, end=until))

        return self._tried(key, get, _minutes(until - begin))

    def _short(self, key: str) -> tuple[int, bytes | None]:
        """The size of an object, and all of it where that takes no longer than a minute."""

        def get(client: Any) -> tuple[int, bytes | None]:
            answer = client.get(key)
            size = int(answer.meta["size"])
            return size, bytes(answer.bytes()) if _minutes(size) == 1 else None

        return self._tried(key, get)

    def read_end(self, key: str, count: int) -> tuple[int, bytes]:
        """Azure knows no range that is counted from the end."""
        size = int(self._head(key)["size"])
        return size, self.read(key, max(0, size - count), size) if size else b""

    def put(self, key: str, data: bytes | IO[bytes], content_type: str | None = None) -> None:
        """A file is mapped, not read into memory; whoever lets go of the map last ends it."""
        self._put(
            key, data if isinstance(data, bytes) else _mapped(data), "overwrite", content_type
        )

    def current(self, key: str) -> Object:
        def get(client: Any) -> tuple[Any, bytes]:
            answer = client.get(key)
            return answer.meta, bytes(answer.bytes())

        meta, data = self._tried(key, get)
        return Object(data, self._tag(meta), meta["last_modified"], lambda: self._now(key))

    def swap(self, key: str, data: bytes, tag: str | None) -> str:
        mode = "create" if tag is None else {"e_tag": tag, "version": tag}
        return done_or_refused(self, key, data, lambda: self._tag(self._put(key, data, mode)))

    def create(self, key: str, data: bytes) -> None:
        self.swap(key, data, None)

    def listed(self, folder: str) -> Iterator[ListedObject]:
        def pages(client: Any) -> list[Any]:
            return [one for page in client.list(folder) for one in page]

        for one in self._tried(folder, pages):
            yield ListedObject(one["path"], one["size"], one["e_tag"])

    def delete(self, keys: Iterable[str], inside: str) -> None:
        del inside  # a folder is not there without objects

        def delete(key: str) -> None:
            with suppress(MissingError):
                self._tried(key, lambda client: client.delete(key))

        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for _ in pool.map(delete, keys):
                pass

    def _tag(self, answer: Any) -> str:
        return str(answer["version" if self._is_google else "e_tag"])

    def _head(self, key: str) -> Any:
        return self._tried(key, lambda client: client.head(key))

    def _put(self, key: str, data: bytes | mmap.mmap, mode: Any, kind: str | None = None) -> Any:
        more = {} if kind is None else {"attributes": {"Content-Type": kind}}

        def put(client: Any) -> Any:
            return client.put(key, data, mode=mode, use_multipart=False, **more)

        return self._tried(key, put, _minutes(len(data)))

    def _now(self, key: str) -> datetime:
        """An answer's date obstore does not show, but when an object was written."""
        self._put(f"{key}{_CLOCK}", b"", "overwrite")
        written_at: datetime = self._head(f"{key}{_CLOCK}")["last_modified"]
        return written_at

    def _tried(self, key: str, ask: Callable[[Any], Answer], minutes: int = 1) -> Answer:
        client = self._client(minutes)
        for number in range(1, TRIES + 1):
            try:
                return self._asked(key, client, ask)
            except _PassingError as passing:
                if number == TRIES:
                    raise StoreError(str(passing), self.uri(key)) from passing
            time.sleep(_PAUSE_S * 2 ** (number - 1))
        raise AssertionError

    def _asked(self, key: str, client: Any, ask: Callable[[Any], Answer]) -> Answer:
        """What obstore complains of, as an OSError of ours."""
        from obstore.exceptions import BaseError  # noqa: PLC0415  (it is an option)

        try:
            return ask(client)
        except (BaseError, FileNotFoundError, ValueError) as error:
            raise self._as_os_error(key, error) from error

    def _as_os_error(self, key: str, error: Exception) -> Exception:
        from obstore import exceptions as types  # noqa: PLC0415  (it is an option)

        uri = self.uri(key)
        words, _, details = str(error).partition("Debug source")
        status, host = _STATUS.search(words), _found(_ASKED, words)
        if not (status or host or _BROKEN in words):
            return StoreError(" ".join(words.split()), uri)
        host = "the store" if host in {"", _HIDDEN} else host
        number, code = 0 if status is None else int(status[1]), _found(_CODE, words)
        is_passing = number in {408, 429} or number >= 500
        if "token request" in words and not is_passing:
            how = f"answered {number}" if number else "does not answer"
            text = f"there are no credentials: {host} was asked for some and {how}"
            return StoreError(text, uri, errno.EACCES)
        if status is None:
            return _PassingError(f"{host} does not answer: {_why(details)}")
        if code in _NO_BUCKET:
            what = "bucket" if self._is_google else "container"
            text = f"there is no {what} {self.where.partition('@')[0]}"
            return StoreError(text, uri, errno.ENXIO)
        if isinstance(error, types.NotFoundError | FileNotFoundError):
            return MissingError("there is no such object", uri, errno.ENOENT)
        is_conflict = isinstance(error, types.AlreadyExistsError | types.PreconditionError)
        if is_conflict and code not in _NO_CONFLICTS:
            return ConflictError("it was written meanwhile", uri, errno.EEXIST)
        message = _found(_MESSAGE, words) or status[2].strip() or "and nothing more"
        said = f"the store answered {code or number}: {message}"
        if is_passing:
            return _PassingError(said)
        is_denied = isinstance(error, types.PermissionDeniedError | types.UnauthenticatedError)
        return StoreError(said, uri, errno.EACCES if is_denied else errno.EIO)

    def _client(self, minutes: int) -> Any:
        values = (os.environ.get(name) for name in settings.CLOUDS)
        return _made(os.getpid(), self.scheme, self.where, minutes, *values)


def _minutes(size: int) -> int:
    """How many minutes a request may take for so many bytes."""
    return 1 + size // _BYTES_A_MINUTE


def _mapped(file: IO[bytes]) -> bytes | mmap.mmap:
    """A file that is empty cannot be mapped."""
    empty = os.fstat(file.fileno()).st_size == 0
    return b"" if empty else mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)


def _found(pattern: re.Pattern[str], words: str) -> str:
    found = pattern.search(words)
    return "" if found is None else found[1].strip()


def _why(words: str) -> str:
    found = _WHY.search(words)
    if found is None:
        return "the connection was closed"
    if found["late"]:
        return "it takes too long"
    return os.strerror(int(found["number"])) if found["number"] else found["words"]


_PROCESSES: set[int] = set()


@cache
def _made(process: int, scheme: str, where: str, minutes: int, *values: str | None) -> Any:
    """A client for each place. Its threads are not there after a fork, and it would wait for them
    for ever.
    """
    require("obstore", "clouds")
    from obstore.exceptions import BaseError  # noqa: PLC0415  (it is an option)
    from obstore.store import AzureStore, GCSStore  # noqa: PLC0415

    _PROCESSES.add(process)
    if len(_PROCESSES) > 1:
        raise KohortError(
            f"{scheme}://{where} cannot be used in a process that was forked from one that has "
            "used such a place: start it anew (multiprocessing calls that spawn)"
        )
    options: dict[str, Any] = {
        "retry_config": {"max_retries": 0},
        "client_options": {
            "connect_timeout": timedelta(seconds=_CONNECT_S),
            "timeout": timedelta(seconds=minutes * _MINUTE_S),
            "allow_http": any(one is not None and one.startswith("http:") for one in values),
        },
    }
    container, _, host = where.partition("@")
    account = _ACCOUNT.fullmatch(host)
    if account is not None:
        options["account_name"] = account[1]
        if not any(map(os.environ.get, settings.AZURE_ENDPOINTS)):
            options["endpoint"] = f"https://{account[1]}.blob.{account[2]}"
    try:
        return (GCSStore if scheme == "gs" else AzureStore)(container, **options)
    except (BaseError, ValueError) as error:
        words = " ".join(str(error).partition("Debug source")[0].split())
        raise KohortError(f"{scheme}://{where} cannot be used: {words}") from error
