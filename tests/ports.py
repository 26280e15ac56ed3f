# SPDX-License-Identifier: Apache-2.0
"""Ports that a test may have."""

import socket
from contextlib import ExitStack
from random import SystemRandom


def free_port() -> int:
    """A port of loopback that nobody listens on; see `free_ports`."""
    (port,) = free_ports(1)
    return port


def free_ports(count: int) -> list[int]:
    """Ports of loopback that nobody listens on now, each a different one.

    No client is given one of them as its own: a client that knocks at a closed
    port of that range is sooner or later connected to itself.
    """
    random = SystemRandom()
    found: list[int] = []
    with ExitStack() as held:
        while len(found) < count:
            port = random.randrange(12_000, 30_000)
            probe = held.enter_context(socket.socket())
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            found.append(port)
    return found
