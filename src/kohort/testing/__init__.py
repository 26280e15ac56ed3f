# SPDX-License-Identifier: Apache-2.0
"""Layer 6: a real broker for tests, with a clock that can be moved and faults on demand.

`Broker` is the way in. The plugin for pytest is `kohort.testing.plugin`; `BrokerCase` is for
unittest. Every name is imported on first use, so that the plugin costs nothing where it is unused.
"""

from typing import TYPE_CHECKING

from kohort.lazy_names import lazy_names

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

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "kohort.records.causes": "Because",
        "kohort.testing.broker": "Broker",
        "kohort.testing.cases": "BrokerCase",
        "kohort.testing.groups": "WaitTimeoutError",
        "kohort.testing.history": "Commit GroupRecord Ownership",
        "kohort.testing.records": "Record",
    },
)
