# SPDX-License-Identifier: Apache-2.0
"""`kohort pipeline warm`: a run over a made-up log, and from the classes that it loads an archive
for all that follow.
"""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from kohort.errors import KohortError
from kohort.pipeline.sources.options import GROUP_LOG
from kohort.records.codec import Record, encode
from kohort.records.schemas import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
    TopicPartition,
    TopicPartitions,
)
from kohort.spark import jobs
from kohort.spark.engine import class_archive
from kohort.spark.engine.java import find_java
from kohort.spark.engine.session import INTERPRETED, end_jvm, session
from kohort.terms import GroupId, TopicId
from kohort.wire import batch

_FIRST_MS = 1_790_000_000_000
_TOPIC = "orders"
_TOPIC_ID = TopicId(bytes(15) + b"\1")


class WarmingError(KohortError):
    """No archive can be made; the text is one sentence that says why."""


def warm(told: Callable[[str], None] = lambda _: None) -> Path:
    """The archive of classes of this Java and this Spark, which is made if it is not there. That
    takes about a minute; `told` is given a line before. Raises KohortError.
    """
    if class_archive.is_off():
        raise WarmingError(f"{class_archive.SWITCH} is off, so no archive would be used")
    home = find_java()
    place = class_archive.Place(home)
    found = place.archive_or_none()
    if found is not None:
        return found
    told("making an archive of Spark's classes: about a minute")
    place.failed.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="kohort-") as name:
        directory = Path(name)
        _write_log(directory / "log")
        spark = session(conf=INTERPRETED, quick=True, alone=True)
        try:
            jobs.run(f"log:{directory / 'log'}", directory / "tables", spark=spark)
            recipe = class_archive.recipe_or_none(spark, home)
        finally:
            end_jvm()
    if recipe is None:
        raise WarmingError(
            f"{place.directory} cannot hold an archive: it must be writable and have "
            f"{class_archive.ROOM_BYTES >> 20} MB of room"
        )
    made = class_archive.make(recipe)
    if made is None:
        why = "cannot make one" if place.failed.exists() else "is not needed for one being made now"
        raise WarmingError(f"no archive was made: the Java at {home} {why}")
    return made


def _write_log(directory: Path) -> None:
    """A log of one partition, and a topic beside it."""
    for name, batches in ((f"{GROUP_LOG}-0", _group_log()), (f"{_TOPIC}-0", _topic())):
        folder = directory / name
        folder.mkdir(parents=True)
        (folder / f"{0:020}.log").write_bytes(b"".join(batches))


def _topic() -> Iterator[bytes]:
    for number in range(20):
        yield batch.build([(None, b"x")] * 10, _FIRST_MS + 500 * number, base_offset=10 * number)


def _group_log() -> Iterator[bytes]:
    following = 0
    for number, records in enumerate((*_lives(), *_commits())):
        entries = [encode(record) for record in records]
        yield batch.build(entries, _FIRST_MS + 500 * number, base_offset=following)
        following += len(entries)


def _lives() -> Iterator[list[Record]]:
    """A group that gets a member, and a second one; the first one leaves. And a classic group."""
    for epoch, members in ((1, ("a",)), (2, ("a", "b")), (3, ("b",))):
        yield [
            Record(ConsumerGroupMetadataKey(group_id="g"), ConsumerGroupMetadataValue(epoch=epoch)),
            *(record for member in ("a", "b") for record in _member(member, epoch, members)),
            Record(
                ConsumerGroupTargetAssignmentMetadataKey(group_id="g"),
                ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch),
            ),
        ]
    value = GroupMetadataValue(
        protocol_type="consumer", generation=1, protocol=None, leader=None, members=[]
    )
    yield [Record(GroupMetadataKey(group="c"), value)]


def _member(member: str, epoch: int, members: tuple[str, ...]) -> Iterator[Record]:
    is_there = member in members
    mine = [index for index in range(2) if members[index % len(members)] == member]
    yield Record(
        ConsumerGroupMemberMetadataKey(group_id="g", member_id=member),
        ConsumerGroupMemberMetadataValue(
            instance_id=None,
            rack_id=None,
            client_id=member,
            client_host="/127.0.0.1",
            subscribed_topic_names=[_TOPIC],
            subscribed_topic_regex=None,
            server_assignor=None,
            client_assignors=[],
        )
        if is_there
        else None,
    )
    target = [TopicPartition(topic_id=_TOPIC_ID, partitions=mine)]
    yield Record(
        ConsumerGroupTargetAssignmentMemberKey(group_id="g", member_id=member),
        ConsumerGroupTargetAssignmentMemberValue(topic_partitions=target) if is_there else None,
    )
    current = [TopicPartitions(topic_id=_TOPIC_ID, partitions=mine)]
    yield Record(
        ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id=member),
        ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=epoch,
            previous_member_epoch=epoch - 1,
            state=0,
            assigned_partitions=current,
            partitions_pending_revocation=[],
        )
        if is_there
        else None,
    )


def _commits() -> Iterator[list[Record]]:
    for number in range(10):
        at_ms = _FIRST_MS + 2000 + 500 * number
        yield [
            Record(
                OffsetCommitKey(group=group, topic=_TOPIC, partition=partition),
                OffsetCommitValue(
                    offset=10 * number, metadata="", commit_timestamp=at_ms, topic_id=_TOPIC_ID
                ),
            )
            for group in (GroupId("g"), GroupId("c"), GroupId("alone"))
            for partition in range(2)
        ]
