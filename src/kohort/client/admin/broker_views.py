# SPDX-License-Identifier: Apache-2.0
"""What brokers tell of their disks and features, as the admin client returns it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from kohort.errors import ApiError
from kohort.terms import TopicPartition

ElectionType: TypeAlias = Literal["preferred", "unclean"]
"""Which replica is to lead: the first one in sync, or any (KIP-460)."""
UpgradeType: TypeAlias = Literal["upgrade", "safe_downgrade", "unsafe_downgrade"]
"""Whether the level of a feature may fall, and metadata be lost by that (KIP-584, KIP-778)."""


@dataclass(frozen=True, slots=True)
class LogDirReplica:
    """A partition in a log directory (KIP-113).

    `offset_lag` is how many records it is behind the high watermark, or behind the partition that
    it will replace. The latter is `is_future`: it is on its way from one directory to another.
    """

    size_bytes: int
    offset_lag: int
    is_future: bool = False


@dataclass(frozen=True, slots=True)
class LogDirDescription:
    """A log directory of a broker. `error` says that it is offline; then it has no replicas.

    The sizes are those of its volume, None below DescribeLogDirs v4 (KIP-827). `is_cordoned` says
    that it takes no new partitions, None below v5 (KIP-1066).
    """

    path: str
    replicas: Mapping[TopicPartition, LogDirReplica]
    total_bytes: int | None
    usable_bytes: int | None
    is_cordoned: bool | None
    error: ApiError | None = None


@dataclass(frozen=True, slots=True)
class FeatureLevels:
    """A range of levels of a feature."""

    min_level: int
    max_level: int


@dataclass(frozen=True, slots=True)
class FeatureMetadata:
    """The features of a cluster (KIP-584): by name the levels in force, and those that the broker
    supports. `finalized_epoch` grows with each change; None where the broker has none.
    """

    finalized: Mapping[str, FeatureLevels]
    finalized_epoch: int | None
    supported: Mapping[str, FeatureLevels]


@dataclass(frozen=True, slots=True)
class FeatureUpdate:
    """The level that a feature is to have; 0 takes the feature away."""

    level: int
    upgrade_type: UpgradeType = "upgrade"


@dataclass(frozen=True, slots=True)
class PartitionReassignment:
    """A partition that is about to get other replicas (KIP-455), by the ids of their brokers.

    `replicas` has all that there are now, with those that come and those that go. `adding` come,
    `removing` go.
    """

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]
