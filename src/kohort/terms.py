# SPDX-License-Identifier: Apache-2.0
"""The words of the protocol as types: two bare ints in a row are a bug waiting for a caller."""

import codecs
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from enum import IntEnum, StrEnum
from typing import NamedTuple, NewType, Self

for _name in (
    "utf-16-be",
    "utf-16-le",
):  # imported at first use: not in a request
    codecs.lookup(_name)

GroupId = NewType("GroupId", str)
MemberId = NewType("MemberId", str)
Millis = NewType("Millis", int)
Offset = NewType("Offset", int)
PartitionIndex = NewType("PartitionIndex", int)  # names a partition; never a place in a list
TopicId = NewType("TopicId", bytes)  # 16 raw bytes, as on the wire

NO_TOPIC_ID = TopicId(bytes(16))
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class TopicPartition(NamedTuple):
    """One partition of a topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}:{self.partition}"


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Topic -> its partitions, in the order given and each once, as requests name them."""
    topics: dict[str, list[int]] = {}
    for topic, partition in dict.fromkeys(partitions):
        topics.setdefault(topic, []).append(partition)
    return topics


class ProtocolNumber(IntEnum):
    """What the protocol numbers. A number that is newer than this version is the one of 0."""

    @classmethod
    def _missing_(cls, _value: object) -> Self:
        return cls(0)


class GroupType(StrEnum):
    """The kind of a group, as ListGroups v5 spells it (KIP-848, KIP-932, KIP-1071)."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"


class GroupState(StrEnum):
    """Every state that ListGroups and the describe calls can name, classic and KIP-848."""

    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"
    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    NOT_READY = "NotReady"


WITHOUT_MEMBERS = frozenset({GroupState.EMPTY, GroupState.DEAD})
"""The states of a group that nobody is in; Dead is also that of one that is not there."""

CONSUMER_PROTOCOL = "consumer"
NO_PROTOCOL = ""
CONSUMER_PROTOCOLS = (CONSUMER_PROTOCOL, NO_PROTOCOL)
"""The protocol types of groups of consumers: the empty one is that of a group that has offsets and
never had a member.
"""


TOPIC_NAME_MAX = 249  # characters: the partition behind it makes a folder's name of 255
_TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]+")


def topic_name_fault(name: str) -> str | None:
    """Why no topic can have this name, as upstream says it; None where one can."""
    if not name:
        return "the empty string is not allowed"
    if name in (".", ".."):
        return f"'{name}' is not allowed"
    if len(name) > TOPIC_NAME_MAX:
        return f"the length of '{name}' is longer than the max allowed length {TOPIC_NAME_MAX}"
    if not _TOPIC_NAME.fullmatch(name):
        return (
            f"'{name}' contains one or more characters other than "
            "ASCII alphanumerics, '.', '_' and '-'"
        )
    return None


def uuid_text(value: bytes) -> str:
    """The text form of a topic id: URL-safe base64 without padding, 22 characters."""
    return urlsafe_b64encode(value).rstrip(b"=").decode()


def uuid_bytes(text: str) -> bytes:
    """The 16 bytes of a topic id in text form. Raises ValueError for anything else."""
    value = urlsafe_b64decode(text + "==")
    if len(value) != 16:
        raise ValueError(f"topic id {text!r} is {len(value)} bytes long, expected 16")
    return value


def millis_of(moment: datetime) -> Millis:
    """Whole milliseconds since 1970, by integers: `timestamp()` is a float, and off by one at
    times. Raises ValueError for a time without a zone.
    """
    if moment.tzinfo is None:
        raise ValueError(f"{moment.isoformat()} has no time zone, expected one")
    return Millis((moment - EPOCH) // timedelta(milliseconds=1))


def java_order(text: str) -> bytes:
    """A sort key: Java compares text by UTF-16 units, which is not the order of code points."""
    return text.encode("utf-16-be", "surrogatepass")
