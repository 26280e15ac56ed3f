# SPDX-License-Identifier: Apache-2.0
"""The log of a live cluster, read by our own Fetch in the workers: `format("kohort.topic")`.

No group is joined, so that reading the group log writes nothing into it, and no jar is needed.
"""

from typing import ClassVar, cast

from kohort.errors import ApiError, UnsupportedVersionError, WireError
from kohort.pipeline.sources.admin_query import run_query
from kohort.pipeline.sources.log_position import Identity, Settings
from kohort.pipeline.sources.options import GROUP_LOG
from kohort.pipeline.sources.samples import NOTHING, Since
from kohort.pipeline.sources.topic_client import TopicClient
from kohort.security.settings import NO_SECURITY, Security
from kohort.spark.engine import small_runs
from kohort.spark.sources import end_offsets
from kohort.spark.sources.feed import Feed
from kohort.spark.sources.feed_source import FeedFormat, FeedSource
from kohort.spark.sources.record_estimate import SPAN_RECORDS
from kohort.spark.sources.source import Ends
from kohort.spark.sources.topic_feed import TopicFeed
from kohort.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource

_RETENTION = "offsets.retention.minutes"
_SESSIONS = ("group.consumer.session.timeout.ms", "group.consumer.min.session.timeout.ms")
_BROKER = 4  # a resource type of DescribeConfigs


class KohortTopic(FeedFormat):
    """Rows of a topic of a live cluster, fetched by the workers.

    Options: `bootstrap.servers`, and what `options` describes.
    """

    place = "bootstrap.servers"
    example = "127.0.0.1:9092"
    least = 2 * SPAN_RECORDS
    security: ClassVar[Security] = NO_SECURITY

    @classmethod
    def name(cls) -> str:
        return "kohort.topic"

    @classmethod
    def feed(cls, place: str, topic: str) -> Feed:
        return TopicFeed(place, topic, cls.security)

    @classmethod
    def driver_limit(cls) -> int:
        return small_runs.DRIVER_TOPIC_RECORDS


class TopicSource(FeedSource):
    """Keeps the contract of `Source` for a live cluster."""

    def __init__(
        self, bootstrap: str, topic: str = GROUP_LOG, security: Security = NO_SECURITY
    ) -> None:
        self._bootstrap = bootstrap
        self._security = security
        self._topic_feed = TopicFeed(bootstrap, topic, security)
        form = KohortTopic
        if security != NO_SECURITY:
            # It goes to the workers with its class: options are shown in plans and in Spark's UI.
            form = cast("type[KohortTopic]", type("SecureTopic", (form,), {"security": security}))
        super().__init__(form, bootstrap, topic, self._topic_feed)

    def identity(self) -> Identity:
        """As the cluster's metadata tells."""
        return self._topic_feed.identity()

    def ends(self, since: Since = NOTHING) -> Ends:
        """Of all user topics, asked now."""
        del since
        return end_offsets.from_cluster(self._bootstrap, self._security)

    def settings(self) -> Settings:
        """As a broker's configuration says; unknown where we may not ask."""

        async def ask() -> dict[str, int]:
            async with self._topic_feed.client() as client:
                return await _numbers(client, [_RETENTION, *_SESSIONS])

        numbers = run_query(self._bootstrap, ask)
        minutes = numbers.get(_RETENTION)
        sessions = [numbers[name] for name in _SESSIONS if name in numbers]
        return Settings(
            None if minutes is None else minutes * 60_000,
            min(sessions) if len(sessions) == len(_SESSIONS) else None,
        )


async def _numbers(client: TopicClient, names: list[str]) -> dict[str, int]:
    """The settings of a broker that are numbers, by name; none where it does not tell."""
    await client.look_up()
    node = next((leader.node for leader in client.leaders.values()), None)
    if node is None:
        return {}
    resource = DescribeConfigsResource(
        resource_type=_BROKER, resource_name=str(node.id), configuration_keys=names
    )
    try:
        answer = await client.ask(node, DescribeConfigsRequest(resources=[resource]))
    except (ApiError, UnsupportedVersionError, WireError):
        return {}
    return {
        config.name: int(config.value)
        for result in answer.results
        for config in result.configs
        if config.name in names and (config.value or "").isdigit()
    }
