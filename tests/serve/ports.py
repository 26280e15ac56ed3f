"""Ports that a test may have."""

import socket
from random import SystemRandom


def free_port() -> int:
    """A port that no client is given as its own: a client that knocks at a
    closed port of that range is sooner or later connected to itself.
    """
    random = SystemRandom()
    while True:
        port = random.randrange(12_000, 30_000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
