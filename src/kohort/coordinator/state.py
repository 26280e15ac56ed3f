# SPDX-License-Identifier: Apache-2.0
"""What a shard knows. Handlers read it and describe how it should change.

Only replay changes what a log can bring back. Handlers themselves change what no record tells:
deadlines, and the rebalance of a classic group that is under way. A reload forgets these.
"""

from collections.abc import Callable, Container, Hashable, Mapping
from typing import Any, Protocol

from kohort.assignors import ASSIGNORS, Assign
from kohort.config import BrokerConfig
from kohort.coordinator import descriptions
from kohort.coordinator.causes import Causes
from kohort.coordinator.consumer.client_side.computation import Computation
from kohort.coordinator.counters import GroupCounters
from kohort.coordinator.descriptions import ShardDescriptions
from kohort.coordinator.event_log import GroupEventLog
from kohort.coordinator.groups import Groups
from kohort.coordinator.listing import ShardListings
from kohort.coordinator.offsets.store import Offsets
from kohort.coordinator.settings import (
    ClassicSettings,
    ConsumerSettings,
    ExpirySettings,
    MigrationSettings,
)
from kohort.machines.deadlines import Deadlines
from kohort.machines.effects import Client
from kohort.machines.topics import Topics
from kohort.terms import GroupId

NO_TOPICS = Topics()


class TopicRights(Protocol):
    """Who may know of which topics, where there are rules of access."""

    @property
    def number(self) -> int:
        """Another one whenever the rules have changed."""

    def alike(self, client: Client) -> Hashable:
        """The same for clients that may know of the same topics, while `number` stays."""

    def sees(self, client: Client, topic: str) -> bool:
        """Whether a client may know of a topic."""


class State:
    """The groups of one partition of the log, their offsets, and their deadlines.

    `loading` is true until the log has been read: until then, records that compaction removed are
    not missed.
    """

    def __init__(
        self,
        config: BrokerConfig,
        new_uuid: Callable[[], bytes],
        topics: Topics = NO_TOPICS,
        plugin_assignors: Mapping[str, Assign] | None = None,
        *,
        record_limit: Callable[[], int] = lambda: 1 << 20,
        rights: TopicRights | None = None,
        counters: GroupCounters | None = None,
    ) -> None:
        """`record_limit` returns how many bytes a record may have at the moment; `rights` says
        whether a client may know of a topic, None that everybody may. The assignors in
        `plugin_assignors` were written by others: they never run here. `counters` is that of the
        broker.
        """
        self.rights = rights
        self.rights_number = 0 if rights is None else rights.number  # that groups know of
        self.record_limit = record_limit
        self.broker = config
        self.new_uuid = new_uuid
        self.topics = topics
        self.plugin_assignors = plugin_assignors or {}
        every = {**ASSIGNORS, **self.plugin_assignors}
        self.assignors = {name: every[name] for name in config.group_consumer_assignors}
        self.consumer_settings = ConsumerSettings.of(config)
        self.classic_settings = ClassicSettings.of(config)
        self.migration = MigrationSettings.of(config)
        self.expiry_settings = ExpirySettings.of(config)
        self.longest_metadata = config.offset_metadata_max_bytes
        self.groups = Groups()
        self.listings = ShardListings()
        self.descriptions = ShardDescriptions(
            descriptions.LIMIT_BYTES // config.offsets_topic_num_partitions
        )
        self.group_settings: dict[GroupId, dict[str, str]] = {}  # texts by name
        self.offsets = Offsets()
        self.deadlines = Deadlines()
        self.computations: dict[GroupId, Computation] = {}  # that members are asked for
        self.loading = True
        self.running_tasks: Container[tuple[Any, ...]] = ()
        self.counters = counters or GroupCounters()
        self.event_log = GroupEventLog(self.counters)
        self.causes = Causes()
        self.refused_expressions: dict[tuple[GroupId, str], None] = {}  # told, the oldest first

    def settings_of(self, group_id: GroupId) -> ConsumerSettings:
        """The settings of a consumer group: its own over the broker's."""
        own = self.group_settings.get(group_id)
        return self.consumer_settings if own is None else ConsumerSettings.of(self.broker, own)
