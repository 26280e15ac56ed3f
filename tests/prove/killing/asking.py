# SPDX-License-Identifier: Apache-2.0
"""What a campaign asks of its broker between two faults."""

import time
from collections.abc import Callable
from typing import TypeVar

from tests.serve.talk import Talk
from tests.waiting import SOON_S

T = TypeVar("T")


def asked(bootstrap: str, ask: Callable[[Talk], T]) -> T:
    """What the broker says over a connection of its own, or over another one where it has closed
    that: on a busy machine this process may be silent for longer than `connections.max.idle.ms`.
    A broker that is gone is noticed by who kills it.
    """
    deadline = time.monotonic() + SOON_S
    while True:
        with Talk(bootstrap) as client:
            try:
                return ask(client)
            except (EOFError, ConnectionError):
                if time.monotonic() > deadline:
                    raise
