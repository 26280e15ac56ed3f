# SPDX-License-Identifier: Apache-2.0
"""A name node of HDFS, asked over HTTP by the few operations of WebHDFS that tables need.

What it, or a data node that it sends us to, turns away for a while is asked again, with growing
pauses. So an operation may be done twice, and late: who calls is to ask for nothing that would do
harm then.
"""

import errno
import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from functools import cache
from http.cookiejar import DefaultCookiePolicy
from secrets import token_hex
from typing import IO, Any, NamedTuple, TypeVar
from urllib.parse import quote, urlsplit

import msgspec

from kohort.pipeline.stores import settings
from kohort.pipeline.stores.failures import ConflictError, MissingError, StoreError

DEFAULT_PORTS = {"webhdfs": 9870, "swebhdfs": 9871}
"""What Hadoop calls WebHDFS without and with TLS -> the port of a name node for it."""
TRIES = 6
_CONNECT_S, _READ_S = 10, 60
_PAUSE_S = 0.5
_PASSING = {"IOException", "RetriableException", "SafeModeException", "StandbyException"}
_REFUSED = {"AccessControlException", "AuthorizationException", "SecurityException"}
_HTTP = {"webhdfs": "http", "swebhdfs": "https"}
_HOST = re.compile(r"([\w.-]+|\[[\da-fA-F:]+\])(?::(\d+))?")

Answer = TypeVar("Answer")


class Status(msgspec.Struct, frozen=True, rename="camel"):
    """What is told of a file or a folder."""

    path_suffix: str
    """Its name, where a folder is listed."""
    type: str
    length: int
    modification_time: int
    """When its writing ended, in milliseconds."""
    file_id: int = 0

    @property
    def is_file(self) -> bool:
        return self.type == "FILE"


class Listing(NamedTuple):
    """What is right in a folder, and when that was, by the clock of the name node."""

    entries: list[Status]
    now: datetime


class _Statuses(msgspec.Struct, frozen=True, rename="pascal"):
    file_status: list[Status]


class _Response(msgspec.Struct, frozen=True, rename="pascal"):
    """What answers say."""

    file_status: Status | None = None
    file_statuses: _Statuses | None = None
    boolean: bool | None = msgspec.field(name="boolean", default=None)
    remote_exception: dict[str, Any] = {}


class _PassingError(Exception):
    """What may be otherwise the next time, and what to tell if it is not."""


@dataclass(frozen=True)
class NameNode:
    """The name node at one of some addresses: of those that a cluster has for safety, one answers.

    Everything raises StoreError; paths begin at the root, without a slash.
    """

    scheme: str
    hosts: tuple[str, ...]

    @classmethod
    def of(cls, scheme: str, hosts: str) -> "NameNode | None":
        """`HOST:PORT`, or several with commas between; None where one is no such name."""
        port = DEFAULT_PORTS[scheme]
        found = [_HOST.fullmatch(host) for host in hosts.split(",")]
        named = tuple(f"{match[1]}:{match[2] or port}" for match in found if match is not None)
        return cls(scheme, named) if len(named) == len(found) else None

    def uri(self, path: str) -> str:
        """What people write for a path."""
        return f"{self.scheme}://{','.join(self.hosts)}/{path}"

    def status(self, path: str) -> Status:
        """Raises MissingError."""
        answer = self._asked("GET", "GETFILESTATUS", path)
        return self._said(path, answer, _decoded_response(answer).file_status)

    def listing(self, path: str) -> Listing:
        """What is in a folder, all at one moment if it is little; a file is alone and has no name.
        Raises MissingError.
        """
        answer = self._asked("GET", "LISTSTATUS", path)
        found = self._said(path, answer, _decoded_response(answer).file_statuses)
        dates = answer.raw.headers.getlist("Date")  # some give it twice
        if not dates:
            raise StoreError(f"{urlsplit(answer.url).netloc} does not say when", self.uri(path))
        return Listing(found.file_status, parsedate_to_datetime(dates[0]))

    def read(self, path: str, begin: int = 0, length: int | None = None) -> bytes:
        """Some bytes of a file, from one of its data nodes. Raises MissingError."""
        ranged = {} if length is None else {"length": length}
        return bytes(self._asked("GET", "OPEN", path, offset=begin, **ranged).content)

    def write(self, start: str, data: bytes | IO[bytes]) -> str:
        """Write a new file, which nobody knows of yet; its path, which begins so.

        A try whose answer was lost may still be at work, so each has a path of its own.
        """
        return self._tried(start, lambda host: self._written(host, f"{start}{token_hex(4)}", data))

    def rename(self, path: str, to: str) -> bool:
        """Whether something was moved to where nothing was; into a folder that is there."""
        answer = self._asked("PUT", "RENAME", path, destination=f"/{to}")
        return self._said(path, answer, _decoded_response(answer).boolean)

    def replace(self, path: str, to: str) -> None:
        """Move a file into the place of what is there. Raises MissingError: it is moved already, or
        was never there.
        """
        self._asked("PUT", "RENAME", path, destination=f"/{to}", renameoptions="OVERWRITE")

    def delete(self, path: str, *, recursive: bool = False) -> None:
        """Remove a file or an empty folder, whether it is there or not."""
        wanted = "true" if recursive else "false"
        self._asked("DELETE", "DELETE", path, recursive=wanted, skiptrash="true")

    def _asked(self, method: str, operation: str, path: str, **parameters: object) -> Any:
        def ask(host: str) -> Any:
            sent = self._sent(method, host, operation, path, **parameters)
            return self._checked(path, sent)

        return self._tried(path, ask)

    def _written(self, host: str, path: str, data: bytes | IO[bytes]) -> str:
        led = self._sent("PUT", host, "CREATE", path, overwrite="false")
        if not led.is_redirect:
            self._checked(path, led)
            raise StoreError(f"{host} names no data node to write to", self.uri(path))
        if not isinstance(data, bytes):
            data.seek(0)
        kind = {"Content-Type": "application/octet-stream"}
        sent = self._through("PUT", led.headers["Location"], data=data, headers=kind)
        self._checked(path, sent)
        return path

    def _sent(self, method: str, host: str, operation: str, path: str, **parameters: object) -> Any:
        name = settings.user()
        who = {} if name is None else {"user.name": name}
        url = f"{_HTTP[self.scheme]}://{host}/webhdfs/v1/{quote(path)}"
        asked = {"op": operation, **who, **parameters}
        return self._through(method, url, params=asked, allow_redirects=method == "GET")

    def _through(self, method: str, url: str, **more: Any) -> Any:
        from requests import RequestException  # noqa: PLC0415  (it is an option)

        timeout = (_CONNECT_S, _READ_S)
        try:
            return _session(os.getpid()).request(method, url, timeout=timeout, **more)
        except RequestException as error:
            asked = str(getattr(error.request, "url", None) or url)  # behind a redirect another
            raise _PassingError(
                f"{urlsplit(asked).netloc} does not answer: {_why(error)}"
            ) from error

    def _tried(self, path: str, ask: Callable[[str], Answer]) -> Answer:
        """An answer of the name node that gives one."""
        tries = TRIES * len(self.hosts)
        for number in range(1, tries + 1):
            host = _ANSWERING.get(self, self.hosts[0])
            try:
                return ask(host)
            except _PassingError as passing:
                _ANSWERING[self] = self.hosts[(self.hosts.index(host) + 1) % len(self.hosts)]
                if number == tries:
                    raise StoreError(str(passing), self.uri(path)) from passing
            turn, rest = divmod(number, len(self.hosts))
            if rest == 0:
                time.sleep(_PAUSE_S * 2 ** (turn - 1))
        raise AssertionError

    def _checked(self, path: str, answer: Any) -> Any:
        if answer.ok and not answer.is_redirect:
            return answer
        uri, status = self.uri(path), answer.status_code
        exception = _decoded_response(answer).remote_exception
        kind = str(exception.get("exception", ""))
        first, *_ = str(exception.get("message", "")).splitlines() or [answer.reason]
        said = f"the store answered {kind or status}: {first}"
        if kind == "FileNotFoundException":
            raise MissingError("there is no such file", uri, errno.ENOENT)
        if kind == "FileAlreadyExistsException":
            raise ConflictError("it is there already", uri, errno.EEXIST)
        if status == 401 and not kind:
            raise StoreError("it wants Kerberos, which is not supported", uri, errno.EACCES)
        if kind in _REFUSED:
            raise StoreError(said, uri, errno.EACCES)
        if kind == "PathIsNotEmptyDirectoryException":
            raise StoreError(said, uri, errno.ENOTEMPTY)
        if kind in _PASSING or status >= 500:
            raise _PassingError(said)
        raise StoreError(said, uri)

    def _said(self, path: str, answer: Any, what: Answer | None) -> Answer:
        if what is None:
            where = urlsplit(answer.url).netloc
            raise StoreError(f"{where} does not speak WebHDFS", self.uri(path))
        return what


_ANSWERING: dict[NameNode, str] = {}
"""The address that answers now."""


@cache
def _session(_process: int) -> Any:
    """Connections of each process, since a fork must not share them. Who one is each request says
    itself, and no cookie.
    """
    from requests import Session  # noqa: PLC0415  (it is an option)
    from requests.adapters import HTTPAdapter  # noqa: PLC0415

    made = Session()
    made.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
    for start in ("http://", "https://"):
        made.mount(start, HTTPAdapter(pool_maxsize=32))
    return made


def _decoded_response(answer: Any) -> _Response:
    """What an answer says; nothing where it is not one of WebHDFS."""
    try:
        return msgspec.json.decode(answer.content, type=_Response)
    except ValueError:  # of msgspec, or of text that is no UTF-8
        return _Response()


def _why(error: BaseException) -> str:
    """What the system said in the first place."""
    from requests import Timeout  # noqa: PLC0415  (it is an option)

    if isinstance(error, Timeout):
        return "it takes too long"
    found = type(error).__name__
    at: BaseException | None = error
    while at is not None:
        if isinstance(at, OSError) and at.strerror:
            found = at.strerror
        at = at.__cause__ or at.__context__
    return found
