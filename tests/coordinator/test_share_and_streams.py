# SPDX-License-Identifier: Apache-2.0
"""Share and streams groups: the state that their records tell, and nothing else."""

from typing import Any

import pytest
from tests.coordinator.classics import commit
from tests.coordinator.committed import delete, fetched
from tests.coordinator.consumers import beat
from tests.coordinator.desk import Desk, replay

from kohort.coordinator.share_and_streams import ShareOrStreamsGroup
from kohort.errors import ErrorCode
from kohort.records.codec import Unknown
from kohort.terms import GroupState, GroupType
from kohort.wire.messages.delete_groups import DeleteGroupsRequest

SHARE, STREAMS = 0, 1  # where a kind of group stands in the next lines
MEMBER, GROUP, TARGET, CURRENT, TOPOLOGY = (10, 19), (11, 17), (12, 20), (14, 22), (0, 23)


def said(kind: int, value: bytes | None, *, of_member: bool = False) -> Unknown:
    return Unknown(
        kind,
        kind.to_bytes(2) + b"\x00\x01g" + (b"\x00\x01m" if of_member else b""),
        None if value is None else b"\x00\x00" + value,
    )


def member(kind: int, *, gone: bool = False) -> Unknown:
    return said(MEMBER[kind], None if gone else b"what it says", of_member=True)


def epoch(kind: int, number: int, topology: int = 0) -> Unknown:
    tag = b"\x01\x00\x04" + topology.to_bytes(4) if kind == STREAMS else b"\x00"
    return said(GROUP[kind], number.to_bytes(4) + bytes(8) + tag)


def target(kind: int, number: int) -> Unknown:
    return said(TARGET[kind], number.to_bytes(4))


def current(kind: int, number: int, state: int = 0) -> Unknown:
    value = number.to_bytes(4) + bytes(4) + state.to_bytes(1)
    return said(CURRENT[kind], value, of_member=True)


def topology(number: int) -> Unknown:
    return said(TOPOLOGY[STREAMS], number.to_bytes(4))


WHOLE = [member(STREAMS), topology(0), epoch(STREAMS, 2), target(STREAMS, 2), current(STREAMS, 2)]


def group_of(*records: Unknown) -> Any:
    shard = Desk().shard
    replay(shard, *records)
    return shard.groups.get("g")


@pytest.mark.parametrize(
    ("records", "state"),
    [
        ([epoch(SHARE, 1)], GroupState.EMPTY),
        ([member(SHARE), epoch(SHARE, 1)], GroupState.STABLE),
        ([member(SHARE), epoch(SHARE, 1), member(SHARE, gone=True)], GroupState.EMPTY),
        ([epoch(STREAMS, 2)], GroupState.EMPTY),
        ([member(STREAMS), epoch(STREAMS, 2)], GroupState.NOT_READY),
        ([member(STREAMS), topology(1), epoch(STREAMS, 2)], GroupState.NOT_READY),
        ([member(STREAMS), topology(0), epoch(STREAMS, 2)], GroupState.ASSIGNING),
        (WHOLE[:4], GroupState.RECONCILING),
        (WHOLE, GroupState.STABLE),
        ([*WHOLE, current(STREAMS, 2, state=1)], GroupState.RECONCILING),
        ([*WHOLE, current(STREAMS, 1)], GroupState.RECONCILING),
        ([*WHOLE, said(CURRENT[STREAMS], None, of_member=True)], GroupState.RECONCILING),
        ([*WHOLE, said(TARGET[STREAMS], None)], GroupState.ASSIGNING),
        ([*WHOLE, said(TOPOLOGY[STREAMS], None)], GroupState.NOT_READY),
        ([*WHOLE, epoch(STREAMS, 3)], GroupState.ASSIGNING),
        ([*WHOLE, Unknown(20, b"\x00\x14\x00\x01g", b"\x00\x09new")], GroupState.STABLE),
    ],
)
def test_the_state_is_what_the_records_tell(records: list[Unknown], state: GroupState) -> None:
    assert group_of(*records).state is state


@pytest.mark.parametrize(
    ("kind", "named"), [(SHARE, GroupType.SHARE), (STREAMS, GroupType.STREAMS)]
)
def test_groups_of_other_brokers_are_noted_until_they_end(kind: int, named: GroupType) -> None:
    group = group_of(member(kind), epoch(kind, 1))
    assert isinstance(group, ShareOrStreamsGroup)
    assert (group.id, group.type, group.protocol_type) == ("g", named, named.value)
    end = said(GROUP[kind], None)
    assert group_of(member(kind), epoch(kind, 1), end) is None
    assert group_of(end, member(kind, gone=True), said(23, None)) is None


def test_what_else_is_unknown_is_passed_over() -> None:
    assert group_of(said(15, b"topics"), said(20000, None), said(13, b"", of_member=True)) is None


def test_a_share_group_is_no_consumer_group() -> None:
    desk = Desk()
    replay(desk.shard, epoch(SHARE, 1))
    answer = beat(desk, "a", 0)
    assert answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert answer.error_message == "Group g is not a consumer group."


@pytest.mark.parametrize(
    ("records", "code"),
    [
        ([member(SHARE), epoch(SHARE, 1)], ErrorCode.NON_EMPTY_GROUP),
        ([epoch(SHARE, 1)], ErrorCode.INVALID_REQUEST),
    ],
)
def test_nobody_deletes_one_here(records: list[Unknown], code: ErrorCode) -> None:
    """Nor an empty one, which could not be told from others before."""
    desk = Desk()
    replay(desk.shard, *records)
    answer = desk.told(DeleteGroupsRequest(groups_names=["g"]), 2)
    assert answer.results[0].error_code == code
    assert desk.log == []


def test_offsets_of_a_streams_group_stay() -> None:
    """K848-122: they were written by its own broker, and nobody here deletes them by request."""
    desk = Desk()
    commit(desk, {("orders", 0): 5}, group_id="g")
    replay(desk.shard, *WHOLE)
    assert fetched(desk, wanted=[("orders", 0)], group_id="g")[("orders", 0)][0] == 5
    assert delete(desk, ("orders", 0)) == ErrorCode.GROUP_ID_NOT_FOUND
    assert desk.shard.groups.get("g").subscribes_to("orders")
