# SPDX-License-Identifier: Apache-2.0
"""What is wrong between this machine and a cluster: a step after the other, each with a finding.

Steps are in the order in which a client takes them, so the first failure is the cause of what
follows, and what depends on it is left out.
"""

import asyncio
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from kohort.client.admin import AclOperation
from kohort.client.network.address import Address
from kohort.client.network.cluster import Cluster, Node
from kohort.client.network.connecting import connect, hosts_of
from kohort.client.network.connection import Connection
from kohort.client.network.credentials import Credentials
from kohort.errors import (
    ApiError,
    AuthenticationError,
    ErrorCode,
    UnsupportedVersionError,
    WireError,
    api_error,
)
from kohort.escaping import visible
from kohort.figures import counted
from kohort.security.certificates import Certificate, CertificateError, read_certificate
from kohort.security.names import OAUTHBEARER
from kohort.security.settings import Security
from kohort.security.stores import StoreError, certificates
from kohort.wire.apis import APIS
from kohort.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kohort.wire.messages.describe_cluster import DescribeClusterRequest
from kohort.wire.messages.describe_groups import DescribeGroupsRequest
from kohort.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

OK, WARNING, FAILED = "ok", "warning", "failed"
SOON_DAYS = 30
_NOT_ASKED = -2147483648
_WITH_OPERATIONS = 8  # the version of Metadata (KIP-430)
_GROUPS_WITH_OPERATIONS = 3
_NO_GROUP = "Dead"
# An API, a version of it, and the release that brought it: the newest first.
_RELEASES = (
    (0, 13, "4.1"),
    (68, 1, "4.0"),
    (16, 5, "3.8"),
    (69, 0, "3.7"),
    (1, 13, "3.1"),
    (10, 4, "3.0"),
    (60, 0, "2.8"),
    (16, 4, "2.6"),
    (47, 0, "2.4"),
    (42, 0, "1.1"),
    (36, 0, "1.0"),
)
_PASSING = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
)
_ERRORS = (ApiError, UnsupportedVersionError, WireError)


class Finding(NamedTuple):
    """What a step has shown, in a line."""

    check: str
    result: str
    text: str


class _Probe(asyncio.Protocol):
    """A connection on which nothing is said."""

    transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport


async def diagnose(
    servers: Sequence[Address],
    security: Security,
    *,
    client_id: str,
    groups: Sequence[str],
    topics: Sequence[str],
    timeout_s: float,
) -> list[Finding]:
    """All findings. A step may take `timeout_s`. Raises ValueError where the security makes no
    sense.
    """
    diagnosis = _Diagnosis(security, timeout_s)
    cluster = Cluster(servers, client_id=client_id, credentials=diagnosis.credentials)
    try:
        await diagnosis.run(cluster, servers, groups, topics)
    finally:
        await cluster.close()
    return diagnosis.findings


class _Diagnosis:
    def __init__(self, security: Security, timeout_s: float) -> None:
        self.findings: list[Finding] = []
        self.credentials = Credentials(security)
        self._security = security
        self._timeout_s = timeout_s

    async def run(
        self,
        cluster: Cluster,
        servers: Sequence[Address],
        groups: Sequence[str],
        topics: Sequence[str],
    ) -> None:
        reached = [address for address in servers if await self._reach(address)]
        opened = [await self._log_in(cluster, address) for address in reached]
        connection = next((one for one in opened if one is not None), None)
        if connection is None:
            return
        nodes = await self._nodes(cluster)
        if nodes is None:
            return
        self._tell_principal()
        self._add("versions", OK, _versions(connection))
        await self._try_brokers(cluster, nodes)
        await self._ask_cluster(connection)
        if topics:
            await self._ask_topics(connection, topics)
        for group_id in groups:
            await self._ask_group(cluster, group_id)

    def _add(self, check: str, result: str, text: str) -> None:
        self.findings.append(Finding(check, result, text))

    def _add_error(self, check: str, error: Exception) -> None:
        text = error.message or error.code.name if isinstance(error, ApiError) else str(error)
        self._add(check, FAILED, text)

    def _deadline(self) -> float:
        return asyncio.get_running_loop().time() + self._timeout_s

    async def _reach(self, address: Address) -> bool:
        """Name, TCP, TLS of an address that was given."""
        try:
            hosts = await hosts_of(address, self._deadline())
        except ApiError as error:
            self._add_error("name", error)
            return False
        if hosts != [address.host]:
            self._add("name", OK, f"{visible(address.host)} is {', '.join(hosts)}")
        open_hosts = await self._open_hosts(address, hosts)
        if open_hosts and self._security.uses_tls:
            return await self._shake_hands(address, open_hosts[0])
        return bool(open_hosts)

    async def _open_hosts(self, address: Address, hosts: Sequence[str]) -> list[str]:
        """Those of its numeric addresses that take connections."""
        loop = asyncio.get_running_loop()
        taken = []
        for host in hosts:
            begun = loop.time()
            at = Address(host, address.port)
            try:
                probe = await connect(_Probe, host, at, None, self._deadline())
            except ApiError as error:
                # A name may have an address that no broker listens at: clients try the next.
                self._add("tcp", FAILED if len(hosts) == 1 else WARNING, error.message)
            else:
                probe.transport.abort()
                self._add("tcp", OK, f"{at} answers in {(loop.time() - begun) * 1000:.0f} ms")
                taken.append(host)
        if not taken and len(hosts) > 1:
            self._add("tcp", FAILED, f"no address of {address} takes connections")
        return taken

    async def _shake_hands(self, address: Address, host: str) -> bool:
        try:
            probe = await connect(_Probe, host, address, self.credentials, self._deadline())
        except ApiError as error:
            self._add_error("tls", error)
            return False
        tls = probe.transport.get_extra_info("ssl_object")
        der = tls.getpeercert(binary_form=True)
        probe.transport.abort()
        try:
            found = read_certificate(der or b"")
        except CertificateError as error:
            self._add("tls", WARNING, f"{address} speaks {tls.version()}: {error}")
            return True
        result, left = _left(found)
        names = ", ".join(found.host_names) or "no host"
        self._add(
            "tls",
            result,
            f"{address} speaks {tls.version()}; its certificate {visible(found.subject) or '-'} is "
            f"for {names}, {left}, and is issued by {visible(found.issuer) or '-'}",
        )
        if not self._security.verify:
            self._add("tls", WARNING, "nobody looks at certificates: verification is off")
        return True

    async def _log_in(self, cluster: Cluster, address: Address) -> Connection | None:
        check = "sasl" if self._security.uses_sasl else "kafka"
        try:
            connection = await cluster.connection(address, self._deadline())
            if self._security.uses_sasl:
                self._add(check, OK, f"{address} takes {connection.login}")
        except _ERRORS as error:
            self._add_error(check, error)
            return None
        return connection

    def _tell_principal(self) -> None:
        """Whom rules are about. No request tells it: it is what brokers make of it by default."""
        security = self._security
        text = "User:ANONYMOUS: nobody has logged in"
        if security.uses_sasl and security.mechanism == OAUTHBEARER:
            text = "the user that the token names"
        elif security.uses_sasl:
            text = f"User:{visible(security.username or '')}"
        elif security.uses_tls and security.context is not None:
            text = "the subject of the certificate in the ssl_context, if there is one"
        elif security.uses_tls and security.identity is not None:
            try:
                own = read_certificate(certificates(security.identity)[0])
            except (StoreError, CertificateError, IndexError) as error:
                self._add("principal", WARNING, str(error))
                return
            text = f"User:{visible(own.subject)}, if ssl.principal.mapping.rules does not change it"
        self._add("principal", OK, text)

    async def _nodes(self, cluster: Cluster) -> list[Node] | None:
        """The first request that is none of the connection's own: a port that wants a login of a
        client that has none refuses it.
        """
        try:
            nodes = await cluster.nodes(self._deadline())
        except _ERRORS as error:
            self._add_error("sasl" if isinstance(error, AuthenticationError) else "brokers", error)
            return None
        return sorted(nodes.values(), key=lambda node: node.id)

    async def _try_brokers(self, cluster: Cluster, nodes: Sequence[Node]) -> None:
        """Every address that the cluster tells its clients."""

        async def attempt(node: Node) -> Exception | None:
            try:
                await cluster.connection(node.address, self._deadline())
            except _ERRORS as error:
                return error
            return None

        outcomes = await asyncio.gather(*map(attempt, nodes))
        for node, outcome in zip(nodes, outcomes, strict=True):
            if outcome is not None:
                text = outcome.message if isinstance(outcome, ApiError) else str(outcome)
                line = f"node {node.id} tells clients to come to {node.address}: {text}"
                self._add("brokers", FAILED, line)
        if not any(outcomes):
            addresses = ", ".join(f"{node.id} at {node.address}" for node in nodes)
            text = f"{counted(len(nodes), 'node')}, reached where they tell clients to come"
            self._add("brokers", OK, f"{text}: {addresses}")

    async def _ask_cluster(self, connection: Connection) -> None:
        request = DescribeClusterRequest(include_cluster_authorized_operations=True)
        try:
            answer = await connection.ask(request, deadline=self._deadline())
        except UnsupportedVersionError:
            return  # before Apache Kafka 2.8
        except _ERRORS as error:
            self._add_error("cluster", error)
            return
        if answer.error_code:
            self._add_error("cluster", api_error(answer.error_code, answer.error_message))
        else:
            self._add("cluster", OK, _may(answer.cluster_authorized_operations))

    async def _ask_topics(self, connection: Connection, topics: Iterable[str]) -> None:
        if not connection.offers(MetadataRequest, _WITH_OPERATIONS):
            self._add("topic", WARNING, "the broker is too old to tell rights (KIP-430)")
            return
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=topic) for topic in dict.fromkeys(topics)],
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=True,
        )
        try:
            answer = await connection.ask(request, deadline=self._deadline())
        except _ERRORS as error:
            self._add_error("topic", error)
            return
        for topic in answer.topics:
            shown = f"{visible(topic.name or '')}:"
            if topic.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                self._add("topic", FAILED, f"{shown} no right to Describe it")
            elif topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                self._add("topic", FAILED, f"{shown} there is no such topic")
            elif topic.error_code:
                self._add("topic", FAILED, f"{shown} {api_error(topic.error_code).code.name}")
            else:
                self._add("topic", OK, f"{shown} {_may(topic.topic_authorized_operations)}")

    async def _ask_group(self, cluster: Cluster, group_id: str) -> None:
        shown = f"{visible(group_id)}:"
        deadline, attempt = self._deadline(), 0
        try:
            while True:
                try:
                    text = await self._group(cluster, group_id)
                    break
                except ApiError as error:  # a cluster that is new makes its coordinators now
                    if error.code not in _PASSING or not await cluster.pause(attempt, deadline):
                        raise
                attempt += 1
        except ApiError as error:
            if error.code is ErrorCode.GROUP_AUTHORIZATION_FAILED:
                self._add("group", FAILED, f"{shown} no right to Describe it")
            else:
                self._add("group", FAILED, f"{shown} {error.message or error.code.name}")
        except (UnsupportedVersionError, WireError) as error:
            self._add("group", FAILED, f"{shown} {error}")
        else:
            self._add("group", OK, f"{shown} {text}")

    async def _group(self, cluster: Cluster, group_id: str) -> str:
        """What may be done with it. Raises ApiError and the like."""
        node = (await cluster.coordinators([group_id], self._deadline()))[group_id]
        if isinstance(node, ApiError):
            raise node
        connection = await cluster.connection(node.address, self._deadline())
        asked: list[Any] = [
            DescribeGroupsRequest(groups=[group_id], include_authorized_operations=True)
        ]
        if connection.offers(ConsumerGroupDescribeRequest):
            asked.insert(
                0,
                ConsumerGroupDescribeRequest(
                    group_ids=[group_id], include_authorized_operations=True
                ),
            )
        elif not connection.offers(DescribeGroupsRequest, _GROUPS_WITH_OPERATIONS):
            return "the broker is too old to tell rights (KIP-430)"
        for request in asked:
            answer = await connection.ask(request, deadline=self._deadline())
            group = next((one for one in answer.groups if one.group_id == group_id), None)
            if group is None:
                text = f"the answer to {request.name} does not have it"
                raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, text)
            if not group.error_code and group.group_state != _NO_GROUP:
                return _may(group.authorized_operations)
            if group.error_code not in (0, ErrorCode.GROUP_ID_NOT_FOUND):
                raise api_error(group.error_code, group.error_message)
        return "may Describe it, and it does not exist yet"


def _left(certificate: Certificate) -> tuple[str, str]:
    """How long it holds, and whether that is long enough."""
    days = (certificate.not_after - datetime.now(UTC)).days
    result = OK if days >= SOON_DAYS else WARNING if days >= 0 else FAILED
    return result, f"ends in {counted(days, 'day')}" if days >= 0 else "has ended"


def _versions(connection: Connection) -> str:
    """A guess at the release. Nobody tells it: it is what the newest of its requests came with."""
    offered = connection.offered
    release = next(
        (
            release
            for api, version, release in _RELEASES
            if api in offered and offered[api].last >= version
        ),
        "0.10",
    )
    unknown = [api for api in offered if api not in APIS]
    features = "".join(f", {name} {level}" for name, level in sorted(connection.features.items()))
    newer = f", {counted(len(unknown), 'API')} that Kohort does not use" if unknown else ""
    return f"as Apache Kafka {release} or newer: {counted(len(offered), 'API')}{newer}{features}"


def _may(bits: int) -> str:
    """A bit field of operations (KIP-430)."""
    if bits == _NOT_ASKED:
        return "the broker does not tell rights"
    found = [
        one.name.title().replace("_", "")
        for one in AclOperation
        if one > AclOperation.ALL and bits >> one & 1
    ]
    return f"may {', '.join(found)}" if found else "no rights that the broker tells"
