"""Layer 6: a real broker for tests, with a clock that can be moved and faults on demand.

`Broker` is the way in. The plugin for pytest is `kohort.testing.plugin`; `BrokerCase` is for
unittest. Every name is imported on first use, so that the plugin costs nothing where it is unused.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kohort.records.causes import Because
    from kohort.testing.broker import Broker
    from kohort.testing.cases import BrokerCase
    from kohort.testing.groups import WaitTimeoutError
    from kohort.testing.history import Commit, GroupRecord, Ownership
    from kohort.testing.records import Record

__all__ = [
    "Because",
    "Broker",
    "BrokerCase",
    "Commit",
    "GroupRecord",
    "Ownership",
    "Record",
    "WaitTimeoutError",
]

_HOMES = {
    "Because": "kohort.records.causes",
    "Broker": "kohort.testing.broker",
    "BrokerCase": "kohort.testing.cases",
    "Commit": "kohort.testing.history",
    "GroupRecord": "kohort.testing.history",
    "Ownership": "kohort.testing.history",
    "Record": "kohort.testing.records",
    "WaitTimeoutError": "kohort.testing.groups",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value  # from now on it is found without this function
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
