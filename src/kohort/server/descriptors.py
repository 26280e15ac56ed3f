# SPDX-License-Identifier: Apache-2.0
"""Who gets the file descriptors of the process. Nobody takes those of the others: clients can
connect however many partitions there are, and logs can be opened however many clients.

The reserve is for whatever is open for a moment: the catalog and checkpoints while they are
written, a log that is opened, a module that Python imports at its first use, a connection that is
accepted and refused.
"""

from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

from kohort.server.catalog import Topic
from kohort.storage.files import system

try:
    import resource
except ImportError:  # Windows has no such limit
    resource = None  # type: ignore[assignment]

_HAS_LIMIT = bool(resource)
_NO_LIMIT = 1 << 30
_LEAST_RESERVE = 32
_MOST_RESERVE = 1024  # as many connections as asyncio accepts at a time
_LEAST_CONNECTIONS = 8
_LEAST_LOG_FILES = 4


class Limit(NamedTuple):
    """How many descriptors the process may have open, and how many it has open already."""

    most: int = _NO_LIMIT
    in_use: int = 0


class Shares(NamedTuple):
    """How many descriptors each part of a broker may have.

    `coordinators` is for logs that are always open: those of groups and of transactions.
    `log_files` is for all other files of logs. `missing` is how many there are too few: the broker
    cannot work then.
    """

    limit: int
    in_use: int
    coordinators: int
    reserve: int
    connections: int
    log_files: int
    missing: int

    def __str__(self) -> str:
        """Where they go, for whoever must raise the limit."""
        return (
            f"the limit of open files is {self.limit} (`ulimit -n`), expected at least "
            f"{self.limit + self.missing}: {self.in_use} are open already, {self.coordinators} are "
            f"for the logs of groups and transactions, {self.reserve} for small files, and "
            "connections and the logs of other topics share the rest"
        )


WAITING_MAX = 50  # connections that are open and not served yet; upstream's backlog has as many


def open_file_limit() -> Limit:
    """The limit of this process."""
    if not _HAS_LIMIT:
        return Limit()
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most == resource.RLIM_INFINITY:
        return Limit()
    in_use = 0
    with suppress(OSError):
        in_use = len(system.listdir("/dev/fd")) - 1  # the listing has one itself
    return Limit(most, in_use)


def share_out(limit: Limit, coordinators: int, max_connections: int, *, on_disk: bool) -> Shares:
    """The shares of a broker whose coordinators have so many logs. Connections get three quarters
    of what is to be shared, logs the rest and what `max.connections` leaves.
    """
    reserve = min(max(_LEAST_RESERVE, limit.most // 16), _MOST_RESERVE)
    rest = limit.most - limit.in_use - coordinators - reserve
    log_files = max(rest // 4, rest - max_connections, _LEAST_LOG_FILES) if on_disk else 0
    least = min(max_connections, _LEAST_CONNECTIONS)
    log_files = min(log_files, max(rest - least, _LEAST_LOG_FILES if on_disk else 0))
    return Shares(
        limit=limit.most,
        in_use=limit.in_use,
        coordinators=coordinators,
        reserve=reserve,
        connections=min(max(rest - log_files, least), max_connections),
        log_files=log_files,
        missing=max(0, least + (_LEAST_LOG_FILES if on_disk else 0) - rest),
    )


def coordinator_logs(topics: Iterable[Topic]) -> int:
    """The number of logs that are always open."""
    return sum(topic.partitions for topic in topics if topic.is_internal)
