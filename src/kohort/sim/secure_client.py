# SPDX-License-Identifier: Apache-2.0
"""Asks the nodes by their listener with SASL: each connection begins with a login by PLAIN."""

from collections.abc import Callable

from kohort.security.plain import PlainClient
from kohort.sim.events import VirtualLoop
from kohort.sim.network import Network
from kohort.sim.network_client import ClientConnection, NetworkClient
from kohort.sim.process import SECURE_PORT
from kohort.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from kohort.wire.messages.sasl_handshake import SaslHandshakeRequest


class SecureClient(NetworkClient):
    """Call `log_in` before you ask a node: a new connection is served only then."""

    def __init__(
        self,
        loop: VirtualLoop,
        network: Network,
        name: str,
        alarm: Callable[[str], None],
        failed: Callable[[str], None],
    ) -> None:
        super().__init__(loop, network, name, alarm, failed, SECURE_PORT)
        self._logged_in: dict[int, ClientConnection] = {}

    def is_logged_in(self, node: int) -> bool:
        """Whether the connection to a node is there, and known to be somebody's."""
        connected = self._connected.get(node)
        return (
            connected is not None
            and connected.line is not None
            and not connected.line.broken
            and self._logged_in.get(node) is connected
        )

    async def shake_hands(self, node: int) -> bool:
        """Say which mechanism is meant, by a connection of its own."""
        self.hang_up_on(node)
        answer = await self.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1, node=node)
        return answer is not None and not answer.error_code

    async def log_in(self, node: int, user: str) -> bool:
        """Be a user; False where the connection is gone meanwhile, or the broker refuses."""
        if not await self.shake_hands(node):
            return False
        answer = await self.ask(credentials(user, password_of(user)), 2, node=node)
        if answer is None or answer.error_code:
            return False
        self._logged_in[node] = self._connected[node]
        return True

    def hang_up_on(self, node: int) -> None:
        """Close the connection to a node, if there is one."""
        connected = self._connected.pop(node, None)
        if connected is not None:
            connected.hang_up()


def password_of(user: str) -> str:
    return f"secret of {user}"


def credentials(user: str, password: str) -> SaslAuthenticateRequest:
    return SaslAuthenticateRequest(auth_bytes=PlainClient(user, password).first())
