# SPDX-License-Identifier: Apache-2.0
"""AdminClient: all that a cluster may be asked by those who run it, for asyncio programs."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any, Self, Unpack

from kohort.client.admin import arguments, hints
from kohort.client.admin.answers import OutcomeAnswers
from kohort.client.admin.cluster_operations import ClusterOperations
from kohort.client.admin.config_operations import ConfigOperations
from kohort.client.admin.group_operations import GroupOperations
from kohort.client.admin.principal_operations import PrincipalOperations
from kohort.client.admin.settings import AdminSettings
from kohort.client.admin.transaction_operations import TransactionOperations
from kohort.client.settings import (
    DEFAULT_SERVER,
    SecurityOptions,
    check_text,
    check_time,
    client_settings,
    short_repr,
)
from kohort.client.topic_partitions import ByPartition, Partition
from kohort.terms import TopicPartition


class AdminClient(
    GroupOperations,
    ConfigOperations,
    TransactionOperations,
    ClusterOperations,
    PrincipalOperations,
):
    """Administers the groups, topics, configs and transactions of any Kafka-compatible cluster.

        async with AdminClient("127.0.0.1:9092") as admin:
            for group in await admin.list_groups(states=["Stable"]):
                print(group.group_id)

    The client agrees on versions with each broker separately (KIP-35). When a broker is too old for
    a request, the call is refused with the version that has it; a lesser request is never sent.

    Calls about several things return `Outcomes`: one entry for each, a value or an ApiError. While
    a code may pass by itself (a coordinator that moves or loads, an open transaction) the client
    tries again, until `timeout`; an error that stays is in the outcome. A call raises only when
    nothing could be asked at all (ConnectionFailedError, RequestTimeoutError, and, where TLS or
    SASL fails, AuthenticationError, all of them ApiErrors), or when its arguments make no sense
    (ValueError) or are of another kind (TypeError).

    Args:
        bootstrap_servers: `host:port`, several with commas between them, a list of such, or a dict
            of settings under upstream's names: `bootstrap.servers`, `client.id`,
            `default.api.timeout.ms`, `socket.connection.setup.timeout.ms`, and those of security,
            also by their names in librdkafka.
        client_id: how brokers name this client, in their logs and quotas; "kohort-admin".
        timeout: seconds that one call may take altogether; 30.
        security: TLS and SASL, by the keywords of kafka-python (`security_protocol="SASL_SSL"`,
            `ssl_cafile`, `sasl_mechanism`, `sasl_plain_username` and others: docs/admin.md), or a
            `Security`.
    """

    def __init__(
        self,
        bootstrap_servers: str | Iterable[str] | Mapping[str, Any] = DEFAULT_SERVER,
        *,
        client_id: str | None = None,
        timeout: float | None = None,
        **security: Unpack[SecurityOptions],
    ) -> None:
        settings, common = client_settings(AdminSettings, bootstrap_servers, security)
        self._addresses = common.addresses
        if client_id is not None:
            if not isinstance(client_id, str):
                raise TypeError(f"client_id is {short_repr(client_id)}, expected a text")
            settings = replace(settings, client_id=check_text("client_id", client_id))
        self._timeout_s = settings.default_api_timeout_ms / 1000
        if timeout is not None:
            self._timeout_s = check_time("timeout", timeout, "seconds", least=1)
        setup_ms = settings.socket_connection_setup_timeout_ms
        self._cluster = common.cluster(settings.client_id, setup_ms)

    async def __aenter__(self) -> Self:
        self._check_open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections. A later call raises ValueError."""
        self._closed = True
        await self._cluster.close()

    async def create_topics(
        self,
        new_topics: "Iterable[hints.NewTopic]",
        *,
        validate_only: bool = False,
        retry_on_quota_violation: bool = True,
        timeout: float | None = None,
    ) -> "hints.Outcomes[str, hints.CreatedTopic]":
        """Create topics (KIP-4).

        Args:
            new_topics: the topics.
            validate_only: check everything, and create nothing.
            retry_on_quota_violation: ask again where the quota of changes is used up, instead of
                THROTTLING_QUOTA_EXCEEDED (KIP-599).
            timeout: seconds that this call may take, instead of those of the client.
        """
        from kohort.client.admin import topics

        return await topics.create_topics(
            self._cluster,
            arguments.new_topics(new_topics),
            validate_only=validate_only,
            retry_on_quota_violation=retry_on_quota_violation,
            deadline=self._deadline(timeout),
        )

    async def create_partitions(
        self,
        counts: Mapping[str, int],
        *,
        validate_only: bool = False,
        retry_on_quota_violation: bool = True,
        timeout: float | None = None,
    ) -> "hints.Outcomes[str, None]":
        """Give topics more partitions (KIP-195). What was written stays where it is, and keys may
        go elsewhere from now on.

        Args:
            counts: topic -> how many partitions it has in the end; more than now.
            validate_only: check, and change nothing.
            retry_on_quota_violation: as of `create_topics`.
            timeout: seconds that this call may take, instead of those of the client.
        """
        from kohort.client.admin import topics

        return await topics.create_partitions(
            self._cluster,
            arguments.counts(counts),
            validate_only=validate_only,
            retry_on_quota_violation=retry_on_quota_violation,
            deadline=self._deadline(timeout),
        )

    async def delete_topics(
        self,
        names: str | Iterable[str],
        *,
        retry_on_quota_violation: bool = True,
        timeout: float | None = None,
    ) -> "hints.Outcomes[str, None]":
        """Delete topics with all their records (KIP-4). For `retry_on_quota_violation` see
        `create_topics`.
        """
        from kohort.client.admin import topics

        return await topics.delete_topics(
            self._cluster,
            arguments.names("names", names),
            retry_on_quota_violation=retry_on_quota_violation,
            deadline=self._deadline(timeout),
        )

    async def list_topics(
        self, *, internal: bool = False, timeout: float | None = None
    ) -> "hints.TopicListings":
        """All topics, sorted by name; with `internal` those of the brokers, too. One that cannot
        be looked at is there with its `error`.
        """
        from kohort.client.admin import topics

        return await topics.list_topics(
            self._cluster, internal=internal, deadline=self._deadline(timeout)
        )

    async def describe_topics(
        self, names: str | Iterable[str], *, timeout: float | None = None
    ) -> "hints.Outcomes[str, hints.TopicDescription]":
        """Topics, and where their partitions are. This never creates a topic."""
        from kohort.client.admin import topics

        return await topics.describe_topics(
            self._cluster, arguments.names("names", names), deadline=self._deadline(timeout)
        )

    def list_offsets(
        self,
        partitions: "ByPartition[hints.When]",
        *,
        read_committed: bool = False,
        timeout: float | None = None,
    ) -> "OutcomeAnswers[TopicPartition, hints.FoundOffset]":
        """Offsets by time (KIP-79): one ListOffsets per leader.

        Args:
            partitions: (topic, index) -> "earliest", "latest", "max_timestamp" (KIP-734), or a
                time, as milliseconds since 1970 or a datetime with a zone: the first record at or
                after it.
            read_committed: latest is the last stable offset, before any open transaction.
            timeout: seconds that this call may take, instead of those of the client.
        """
        from kohort.client.admin import topics

        whens = arguments.mapping("partitions", partitions).values()
        places = arguments.partitions("partitions", partitions)
        wanted: dict[tuple[str, int], hints.When] = dict(zip(places, whens, strict=True))
        return self._answers(
            timeout,
            lambda deadline, arrived: topics.list_offsets(
                self._cluster,
                wanted,
                read_committed=read_committed,
                deadline=deadline,
                arrived=arrived,
            ),
        )

    def end_offsets(
        self, partitions: Iterable[Partition], *, timeout: float | None = None
    ) -> "OutcomeAnswers[TopicPartition, hints.FoundOffset]":
        """The offset that the next record of each partition will get."""
        places = arguments.partitions("partitions", partitions)
        return self.list_offsets(dict.fromkeys(places, "latest"), timeout=timeout)

    async def time_lags(
        self,
        offsets: ByPartition[int],
        *,
        read_committed: bool = False,
        timeout: float | None = None,
    ) -> "hints.Outcomes[TopicPartition, hints.TimeLag]":
        """For how long the next record to be read has been there, in seconds, by its own timestamp.

        One Fetch per leader reads a few kilobytes of each partition; it takes the right to read the
        topics.

        Args:
            offsets: (topic, index) -> the offset of that record, as a group has committed it.
            read_committed: pass over aborted records, as the group's consumers do with this
                isolation level; what an open transaction holds back is not behind.
            timeout: seconds that this call may take, instead of those of the client.
        """
        from kohort.client.admin import time_lags

        given = arguments.mapping("offsets", offsets).values()
        for offset in given:
            if not isinstance(offset, int) or not 0 <= offset <= arguments.INT64_MAX:
                raise ValueError(f"offsets has offset {offset!r}, expected a number of at least 0")
        places = arguments.partitions("offsets", offsets)
        return await time_lags.time_lags(
            self._cluster,
            dict(zip(places, given, strict=True)),
            read_committed=read_committed,
            deadline=self._deadline(timeout),
        )

    async def commit_times(
        self,
        group_ids: str | Iterable[str],
        *,
        since: "int | hints.datetime | None" = None,
        timeout: float | None = None,
    ) -> "hints.Outcomes[str, int | None]":
        """When each group has committed last, in milliseconds since 1970, by its coordinator's
        clock.

        No request tells it: this reads the partitions of `__consumer_offsets` that have the groups,
        which takes the right to read that topic. A group whose partition could not be read in time
        is REQUEST_TIMED_OUT.

        Args:
            group_ids: the groups. None is the outcome of one that has not committed, or whose
                commits were all deleted or have expired.
            since: only commits from then on, so that less is read: milliseconds since 1970, or a
                datetime with a zone.
            timeout: seconds that this call may take, instead of those of the client.
        """
        from kohort.client.admin import commit_times

        return await commit_times.commit_times(
            self._cluster,
            arguments.names("group_ids", group_ids),
            since=since,
            deadline=self._deadline(timeout),
        )

    async def describe_acls(
        self, wanted: "hints.AclFilter | None" = None, *, timeout: float | None = None
    ) -> "tuple[hints.AclBinding, ...]":
        """The rules that a filter finds, sorted; without one all of them (KIP-140).

        Raises:
            ApiError: SECURITY_DISABLED where the cluster has no authorizer,
                CLUSTER_AUTHORIZATION_FAILED without DESCRIBE on the cluster.
        """
        from kohort.client.admin import acls, security_arguments
        from kohort.client.admin.security_views import AclFilter

        (found,) = security_arguments.filters("wanted", [AclFilter() if wanted is None else wanted])
        return await acls.describe_acls(self._cluster, found, deadline=self._deadline(timeout))

    async def create_acls(
        self, new_acls: "Iterable[hints.AclBinding]", *, timeout: float | None = None
    ) -> "hints.Outcomes[hints.AclBinding, None]":
        """Add rules (KIP-140, KIP-290). One that is there already is a success."""
        from kohort.client.admin import acls, security_arguments

        return await acls.create_acls(
            self._cluster,
            security_arguments.bindings("new_acls", new_acls),
            deadline=self._deadline(timeout),
        )

    async def delete_acls(
        self, filters: "Iterable[hints.AclFilter]", *, timeout: float | None = None
    ) -> "hints.Outcomes[hints.AclFilter, tuple[hints.AclBinding, ...]]":
        """Take away the rules that filters find; returns them, sorted, for each filter."""
        from kohort.client.admin import acls, security_arguments

        return await acls.delete_acls(
            self._cluster,
            security_arguments.filters("filters", filters),
            deadline=self._deadline(timeout),
        )

    async def describe_user_scram_credentials(
        self, users: str | Iterable[str] | None = None, *, timeout: float | None = None
    ) -> "hints.Outcomes[str, tuple[hints.ScramCredential, ...]]":
        """By which mechanisms of SCRAM users can log in (KIP-554); None asks for all users.

        A user without a credential is RESOURCE_NOT_FOUND.
        """
        from kohort.client.admin import scram_credentials

        return await scram_credentials.describe_credentials(
            self._cluster,
            None if users is None else arguments.names("users", users),
            deadline=self._deadline(timeout),
        )

    async def alter_user_scram_credentials(
        self,
        changes: "Iterable[hints.ScramUpsertion | hints.ScramDeletion]",
        *,
        timeout: float | None = None,
    ) -> "hints.Outcomes[str, None]":
        """Give users credentials for SCRAM, or take them away (KIP-554): one change for a user.

        No request is sent twice. A password is salted here, and is not sent.
        """
        from kohort.client.admin import scram_credentials, security_arguments

        return await scram_credentials.alter_credentials(
            self._cluster,
            security_arguments.credential_changes(changes),
            deadline=self._deadline(timeout),
        )

    def _details(self) -> Mapping[str, object]:
        return {"client_id": self._cluster.client_id}
