# SPDX-License-Identifier: Apache-2.0
"""Bugs of rules of access, and of logins."""

from collections.abc import Iterator
from typing import Any

from kohort.errors import ErrorCode
from kohort.machines.effects import Client
from kohort.security.acls import AclPermission, PatternType
from kohort.security.plain import PlainServer
from kohort.security.sasl import Identity
from kohort.server import authorizer
from kohort.server.authorizer import Authorizer
from kohort.server.catalog import Acl
from kohort.server.cluster import Cluster
from kohort.server.network.connection import Connection
from kohort.server.network.heartbeat_cache import HeartbeatCache
from kohort.server.sasl.authentication import Authentication
from kohort.sim.injected_bugs.replace_attribute import replace_attribute
from kohort.wire.codec import encode
from kohort.wire.frames import encode_response
from kohort.wire.messages.sasl_authenticate import SaslAuthenticateResponse

FLEXIBLE = 2  # from this version of SaslAuthenticate on


def remembered_heartbeats() -> Iterator[None]:
    """Heartbeats are answered from memory, also after the right has gone."""
    with replace_attribute(HeartbeatCache, "forget", lambda _: None):
        yield


def remembered_decisions() -> Iterator[None]:
    """What was decided once stays when the rules change."""
    forget = Authorizer._forget  # noqa: SLF001

    def forget_once(self: Any) -> None:
        if not hasattr(self, "_views"):
            forget(self)

    with replace_attribute(Authorizer, "_forget", forget_once):
        yield


def harmless_prefix() -> Iterator[None]:
    """A DENY counts only for a name that it has in full."""
    add = authorizer._Patterns.add  # noqa: SLF001

    def lenient(self: Any, acl: Acl) -> None:
        of_prefix = acl.pattern_type == PatternType.PREFIXED
        if acl.permission_type != AclPermission.DENY or not of_prefix:
            add(self, acl)

    with replace_attribute(authorizer._Patterns, "add", lenient):  # noqa: SLF001
        yield


def rules_of_today() -> Iterator[None]:
    """After a restart the rules count only once one of them has changed."""
    adopt = Cluster._adopt_rules  # noqa: SLF001

    def adopt_later(self: Any) -> None:
        if hasattr(self, "skipped_first"):
            adopt(self)
        self.skipped_first = True

    with replace_attribute(Cluster, "_adopt_rules", adopt_later):
        yield


def shared_expression() -> Iterator[None]:
    """An expression names for all members what it names for one of them."""
    with replace_attribute(Authorizer, "alike", lambda _self, _client: None):
        yield


def first_login() -> Iterator[None]:
    """Who logs in is whoever has logged in first from that host."""
    succeed = Authentication._succeed  # noqa: SLF001
    first: dict[str, Identity] = {}

    def remembered(self: Any, connection: Connection, identity: Identity, now: Any) -> int:
        return succeed(self, connection, first.setdefault(connection.host, identity), now)

    with replace_attribute(Authentication, "_succeed", remembered):
        yield


def served_anyway() -> Iterator[None]:
    """A client with a wrong password is told so, and is taken for who it says it is."""
    refuse = PlainServer.answer

    def lenient(self: Any, token: bytes, now: Any) -> bytes:
        try:
            return refuse(self, token, now)
        finally:
            self.identity = Identity(token.split(b"\0")[1].decode())

    def answer_only(
        self: Any, connection: Connection, mechanism: Any, _error: Any, head: tuple[int, int]
    ) -> None:
        connection.client = Client("", connection.host, f"User:{mechanism.identity.name}")
        connection.node = self._dispatcher
        answer = SaslAuthenticateResponse(error_code=ErrorCode.SASL_AUTHENTICATION_FAILED)
        body = encode(answer, head[0])
        connection.put(encode_response(head[1], body, flexible=head[0] >= FLEXIBLE))

    with (
        replace_attribute(PlainServer, "answer", lenient),
        replace_attribute(Authentication, "_refuse_token", answer_only),
    ):
        yield
