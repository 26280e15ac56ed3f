# SPDX-License-Identifier: Apache-2.0
"""What an assignment has to be that a member has computed, held against what the member was told.

Everything that is wrong is said, partition by partition, as far as a message has room for it.
What nobody gets is not wrong, and who is not named gets nothing.
"""

from collections.abc import Iterable, Iterator
from itertools import islice

from kohort.coordinator.consumer.client_side.computation import Basis
from kohort.coordinator.consumer.client_side.offers import CLASSIC_VERSION
from kohort.terms import MemberId, TopicId, uuid_text
from kohort.wire.messages.consumer_group_install_assignment import Member

TOLD_AT_MOST = 20
_PER_PARTITION, _PER_TOPIC, _PER_MEMBER = 10, 32, 64  # bytes of a record, at most


def describe_problems(members: Iterable[Member], basis: Basis, record_limit: int) -> str:
    """What is wrong, in words; empty when nothing is."""
    found = _problems(members, basis, record_limit)
    told = list(islice(found, TOLD_AT_MOST))
    more = sum(1 for _ in found)
    return "; ".join(told) + (f"; and {more} more" if more else "")


def _problems(members: Iterable[Member], basis: Basis, record_limit: int) -> Iterator[str]:
    named: set[MemberId] = set()
    owners: dict[TopicId, dict[int, MemberId]] = {}
    for member in members:
        member_id = MemberId(member.member_id)
        if member_id not in basis.reads:
            yield f"member {member_id} is not in the group of epoch {basis.epoch}"
            continue
        if member_id in named:
            yield f"member {member_id} is named twice"
            continue
        named.add(member_id)
        yield from _problems_of(member, member_id, basis, record_limit)
        for part in member.partitions:
            topic_id = TopicId(part.topic_id)
            count = basis.partitions.get(topic_id)
            if count is None:
                yield f"topic id {uuid_text(topic_id)} of member {member_id} is not known"
                continue
            name = f"topic {basis.names[topic_id]}"
            if topic_id not in basis.subscribed[member_id]:
                yield f"member {member_id} does not subscribe to {name}"
                continue
            held = owners.setdefault(topic_id, {})
            for index in part.partitions:
                if not 0 <= index < count:
                    yield f"partition {index} of {name} is given to {member_id}, there are {count}"
                elif index in held:
                    yield (
                        f"partition {index} of {name} is given to {held[index]} and to {member_id}"
                    )
                else:
                    held[index] = member_id


def _problems_of(
    member: Member, member_id: MemberId, basis: Basis, record_limit: int
) -> Iterator[str]:
    """What is wrong with a member's part as a whole."""
    low, high = basis.reads[member_id]
    changes_nothing = not member.metadata_bytes and low == high == CLASSIC_VERSION
    if not low <= member.metadata_version <= high and not changes_nothing:
        yield (
            f"member {member_id} reads metadata of versions {low} to {high}, not "
            f"{member.metadata_version}"
        )
    partitions = sum(len(part.partitions) for part in member.partitions)
    size = _PER_MEMBER + len(member.metadata_bytes)
    size += _PER_TOPIC * len(member.partitions) + _PER_PARTITION * partitions
    if size > record_limit:
        yield (
            f"the part of member {member_id} takes {size} bytes, a record has room for "
            f"{record_limit}"
        )
