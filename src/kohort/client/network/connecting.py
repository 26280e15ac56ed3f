# SPDX-License-Identifier: Apache-2.0
"""A way to a broker: its name, TCP, and TLS where the settings say so. Each has its own errors."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ssl import SSLError
from typing import TypeVar

from kohort.client.network.address import PORT_MAX, Address
from kohort.client.network.connection_errors import ConnectionFailedError, RequestTimeoutError
from kohort.client.network.credentials import Credentials
from kohort.client.network.refusals import refused_handshake, server_name

AnyProtocol = TypeVar("AnyProtocol", bound=asyncio.Protocol)


async def hosts_of(address: Address, deadline: float) -> list[str]:
    """The numeric addresses that its name stands for. Raises as `connect`."""
    with _refusals_at(address):
        async with asyncio.timeout_at(deadline):
            return await address.hosts()


async def connect(
    make: Callable[[], AnyProtocol],
    host: str,
    address: Address,
    credentials: Credentials | None,
    deadline: float,
) -> AnyProtocol:
    """A connection to one of these numeric addresses. A certificate must have the name.

    Raises ConnectionFailedError, RequestTimeoutError, and AuthenticationError where TLS fails.
    """
    loop = asyncio.get_running_loop()
    with _refusals_at(address):
        async with asyncio.timeout_at(deadline):
            if credentials is None or not credentials.security.uses_tls:
                return (await loop.create_connection(make, host, address.port))[1]
            tls = await credentials.context()
            try:
                return (
                    await loop.create_connection(
                        make, host, address.port, ssl=tls, server_hostname=server_name(address)
                    )
                )[1]
            except (SSLError, ConnectionResetError, ConnectionAbortedError) as error:
                refusal = await refused_handshake(error, host, address, credentials.security)
                raise refusal or error from None


@contextmanager
def _refusals_at(address: Address) -> Iterator[None]:
    """What goes wrong before a connection is open, as the two errors that it has."""
    try:
        yield
    except TimeoutError:
        text = f"cannot connect to {address}: no answer in time"
        raise RequestTimeoutError(text, sent=False) from None
    except OSError as error:
        text = f"cannot connect to {address}: {reason_of(error)}"
        raise ConnectionFailedError(text, sent=False) from None
    except (ValueError, OverflowError) as error:  # a broker may name any host and any port
        raise ConnectionFailedError(
            f"cannot connect to {address}: {error}, expected a host and a port from 1 to "
            f"{PORT_MAX}",
            sent=False,
        ) from None


def reason_of(error: OSError) -> str:
    """Why a connection has failed, for people."""
    if isinstance(error, ConnectionRefusedError):
        return "refused"
    if isinstance(error, ConnectionResetError):
        return "reset"
    if "Connect call failed" in str(error):  # several addresses of one name, each of them refused
        return "refused"
    return (error.strerror or str(error)).lower()
