"""Kohort: consumer groups for the Kafka protocol.

`AdminClient` administers the groups of any cluster, `Broker` is a cluster in this process. Both are
imported when they are first named, so `import kohort` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kohort.client.admin import AdminClient as AdminClient
    from kohort.errors import ApiError as ApiError
    from kohort.errors import ErrorCode as ErrorCode
    from kohort.server.broker import Broker as Broker

_HOMES = {
    "AdminClient": "kohort.client.admin",
    "ApiError": "kohort.errors",
    "Broker": "kohort.server.broker",
    "ErrorCode": "kohort.errors",
}

__all__ = ["AdminClient", "ApiError", "Broker", "ErrorCode"]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
