# SPDX-License-Identifier: Apache-2.0
"""Where a broker listens: a host and a port, and the addresses that a name stands for."""

import asyncio
import re
from typing import NamedTuple

from kohort.escaping import visible

DEFAULT_PORT = 9092
PORT_MAX = 65_535


_PROTOCOL = re.compile(r"(^|,)(\s*)[-0-9A-Za-z%._]*://")
_TCP = 6  # as IANA has it
_DIGITS_MAX = 100  # no port has leading zeros without end


def without_protocols(servers: str) -> str:
    """Bootstrap servers as Java's clients read them: `PLAINTEXT://host:port` has the form of a
    listener, and its protocol says nothing. That of the settings counts.
    """
    return _PROTOCOL.sub(r"\1\2", servers)


class Address(NamedTuple):
    """Where a broker listens."""

    host: str
    port: int

    @classmethod
    def of(cls, text: str) -> "Address":
        """`host:port`, `host`, `[v6]:port` or `[v6]`. Raises ValueError for anything else."""
        bracketed = text.startswith("[")
        host, found, port = text.rpartition(":")
        if not found or (bracketed and not host.endswith("]")):
            host, port = text, str(DEFAULT_PORT)
        if bracketed:
            host = host.removeprefix("[").removesuffix("]")
        if not host or (":" in host and not bracketed) or not (port.isascii() and port.isdigit()):
            raise ValueError(f"{visible(repr(text))} is not an address, expected host:port")
        if len(port) > _DIGITS_MAX or not 0 < int(port) <= PORT_MAX:
            raise ValueError(f"{visible(repr(text))} has port {port}, expected 1 to {PORT_MAX}")
        return cls(host, int(port))

    def __str__(self) -> str:
        """For people: somebody else may have chosen the host, as the brokers of a cluster do."""
        host = visible(self.host)
        return f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"

    async def hosts(self) -> list[str]:
        """The numeric addresses of the host, as many as its name has. Raises OSError and
        ValueError.
        """
        if ":" in self.host or (self.host.isascii() and self.host.replace(".", "").isdigit()):
            return [self.host]
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(self.host, self.port, proto=_TCP)
        return list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found))
