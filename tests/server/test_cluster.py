# SPDX-License-Identifier: Apache-2.0
"""One of many fails: a log that does not open, and what everybody is told meanwhile."""

import errno

import msgspec
import pytest
from tests.server.desk import Desk
from tests.server.transactional import Producing

from kohort.errors import ErrorCode
from kohort.sim.disk import SimulatedFiles
from kohort.wire.messages.find_coordinator import FindCoordinatorRequest
from kohort.wire.messages.list_groups import ListGroupsRequest
from kohort.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kohort.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup

GROUPS = [f"group-{number}" for number in range(40)]
GONE = ErrorCode.COORDINATOR_NOT_AVAILABLE


def commit(desk: Desk, group_id: str, offset: int) -> int:
    place = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    topic = OffsetCommitRequestTopic(name="orders", partitions=[place])
    answer = desk.ask(OffsetCommitRequest(group_id=group_id, topics=[topic]), 8)
    code: int = answer.topics[0].partitions[0].error_code
    return code


def committed(desk: Desk, group_id: str) -> int | str:
    """The offset, or the name of the error."""
    asked = OffsetFetchRequestGroup(group_id=group_id, topics=None)
    (group,) = desk.ask(OffsetFetchRequest(groups=[asked]), 8).groups
    if group.error_code:
        return ErrorCode(group.error_code).name
    (topic,) = group.topics
    offset: int = topic.partitions[0].committed_offset
    return offset


@pytest.fixture
def files():
    """A disk on which each group has committed 100."""
    files = SimulatedFiles()
    desk = Desk(files=files)
    desk.create()
    assert {commit(desk, group_id, 100) for group_id in GROUPS} == {0}
    desk.cluster.close()
    return files


@pytest.mark.parametrize("name", ["", "/leader-epoch-checkpoint", "/00000000000000000000.log"])
def test_a_log_that_does_not_open_concerns_its_groups_alone(files, name):
    """K848-024: And what was acknowledged meanwhile is there afterwards."""
    files.refused["/data/__consumer_offsets-1" + name] = errno.EACCES
    desk = Desk(files=files)
    lost = [one for one in GROUPS if desk.cluster.placement.shard_of(one) == 1]
    assert 0 < len(lost) < len(GROUPS)

    for group_id in GROUPS:
        expected = GONE if group_id in lost else 0
        assert committed(desk, group_id) == (GONE.name if group_id in lost else 100)
        assert commit(desk, group_id, 200) == expected
    many = [OffsetFetchRequestGroup(group_id=one, topics=None) for one in GROUPS]
    answer = desk.ask(OffsetFetchRequest(groups=many), 8)
    assert [one.group_id for one in answer.groups if one.error_code] == lost
    assert "__consumer_offsets-1 cannot be opened, and is tried again" in desk.told.warnings[0]

    files.refused.clear()
    desk.housekeep()
    assert [committed(desk, one) for one in lost] == [100] * len(lost)
    assert {commit(desk, one, 300) for one in lost} == {0}
    desk.cluster.close()

    again = Desk(files=files)
    assert {one: committed(again, one) for one in GROUPS} == {
        one: 300 if one in lost else 200 for one in GROUPS
    }


def test_without_any_log_of_groups_everything_else_is_served(files):
    """An error for each group, not an answer that there are none."""
    files.refused["/data/__consumer_offsets-"] = errno.EIO
    desk = Desk(files=files)

    assert {committed(desk, one) for one in GROUPS} == {GONE.name}
    assert desk.produce().error_code == 0
    found = desk.ask(FindCoordinatorRequest(coordinator_keys=["group-0"]), 4).coordinators[0]
    assert found.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert desk.ask(ListGroupsRequest(), 5).groups == []


def test_a_partition_that_does_not_open_is_told_as_such(files):
    files.refused["/data/orders-0"] = errno.EACCES
    desk = Desk(files=files)

    assert desk.produce().error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert desk.produce(partition=1).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert committed(desk, "group-0") == 100
    files.refused.clear()
    desk.housekeep()
    assert desk.produce().error_code == 0


def test_a_topic_whose_settings_cannot_be_read_is_out_of_service_alone(files):
    desk = Desk(files=files)
    desk.create("spoiled")
    catalog = desk.cluster.catalog
    draft = catalog.draft()
    draft.put(msgspec.structs.replace(draft.by_name["spoiled"], configs={"retention.ms": "many"}))
    catalog.save(draft)
    desk.cluster.close()

    desk = Desk(files=files)
    assert any("retention.ms is 'many'" in line for line in desk.told.errors)
    assert desk.produce("spoiled").error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert desk.produce().error_code == 0
    assert committed(desk, "group-0") == 100


def test_transactions_whose_log_does_not_open_are_refused_and_the_others_go_on(files):
    desk = Desk(files=files)
    names = [f"t{number}" for number in range(12)]
    for name in names:
        Producing(desk, name)
    homes = {name: desk.cluster.placement.transaction_coordinator_of(name)[0] for name in names}
    desk.cluster.close()
    files.refused["/data/__transaction_state-1"] = errno.EIO
    desk = Desk(files=files)

    asked = FindCoordinatorRequest(key_type=1, coordinator_keys=names)
    found = {one.key: one.error_code for one in desk.ask(asked, 4).coordinators}
    gone = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert found == {name: gone if homes[name] == 1 else 0 for name in names}
    assert gone in found.values()
    for name in names:
        if homes[name] != 1:
            one = Producing(desk, name)
            one.write(b"a")
            assert one.end() == 0
    files.refused.clear()
    desk.housekeep()
    assert {one.error_code for one in desk.ask(asked, 4).coordinators} == {0}
