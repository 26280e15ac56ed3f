"""A listing in which every shard has its part says when it is not whole."""

import pytest
from tests.server.desk import Desk

from kohort.errors import ErrorCode
from kohort.runtime.driver import RETRY_MS, Condition
from kohort.server.apis.resources import Resource
from kohort.sim.disk import MemoryFiles
from kohort.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kohort.wire.messages.init_producer_id import InitProducerIdRequest
from kohort.wire.messages.list_config_resources import ListConfigResourcesRequest
from kohort.wire.messages.list_groups import ListGroupsRequest
from kohort.wire.messages.list_transactions import ListTransactionsRequest
from kohort.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

NAMES = [f"name-{number}" for number in range(12)]


def commit(desk, name):
    place = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topics = [OffsetCommitRequestTopic(name="t", partitions=[place])]
    (topic,) = desk.ask(OffsetCommitRequest(group_id=name, topics=topics), 8).topics
    return topic.partitions[0].error_code


def begin(desk, name):
    request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=1000)
    return desk.ask(request, 4).error_code


def configure(desk, name):
    config = AlterableConfig(name="consumer.session.timeout.ms", config_operation=0, value="50000")
    resource = AlterConfigsResource(
        resource_type=Resource.GROUP, resource_name=name, configs=[config]
    )
    request = IncrementalAlterConfigsRequest(resources=[resource])
    return desk.ask(request, 1).responses[0].error_code


def groups(desk):
    answer = desk.ask(ListGroupsRequest(), 4)
    return answer.error_code, {one.group_id for one in answer.groups}


def transactions(desk):
    answer = desk.ask(ListTransactionsRequest(), 1)
    return answer.error_code, {one.transactional_id for one in answer.transaction_states}


def configured(desk):
    answer = desk.ask(ListConfigResourcesRequest(resource_types=[Resource.GROUP]), 1)
    return answer.error_code, {one.resource_name for one in answer.config_resources}


LISTINGS = pytest.mark.parametrize(
    ("write", "listed"),
    [(commit, groups), (begin, transactions), (configure, configured)],
    ids=["ListGroups", "ListTransactions", "ListConfigResources"],
)


@pytest.fixture
def desk():
    return Desk(
        files=MemoryFiles(),
        offsets_topic_num_partitions="4",
        transaction_state_log_num_partitions="4",
    )


def wait(desk, ms):
    """What is to be read from a log by then has been read."""
    desk.wait(ms)
    while desk.cluster.load_some(desk.now):
        pass
    desk.settle()


def written(desk, write):
    """Something in each shard."""
    desk.create("t")
    write(desk, NAMES[0])  # the log of transactions is made when somebody asks for it
    wait(desk, 1000)
    assert {write(desk, name) for name in NAMES} == {0}


@LISTINGS
def test_while_a_disk_refuses_writes_no_listing_leaves_anything_out(desk, write, listed):
    written(desk, write)
    assert listed(desk) == (0, {*NAMES})
    desk.files.room_bytes = 0
    seen = set()
    for name in NAMES:
        for pause in (0, RETRY_MS // 3, RETRY_MS):
            assert write(desk, f"another-{name}") != 0
            code, found = listed(desk)
            assert (code, found) in [
                (0, {*NAMES}),
                (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, set()),
            ]
            seen.add(code)
            wait(desk, pause)
    assert seen == {0, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
    desk.files.room_bytes = None
    wait(desk, 2 * RETRY_MS)
    assert listed(desk) == (0, {*NAMES})


@LISTINGS
def test_what_has_failed_for_good_is_left_out(desk, write, listed):
    """Metadata says that nobody leads its partition."""
    written(desk, write)
    shards = desk.cluster.transactors if write is begin else desk.cluster.drivers
    for shard in list(shards.values())[:2]:
        shard.condition = Condition.FAILED
    code, found = listed(desk)
    assert code == 0
    assert set() < found < {*NAMES}
    for shard in shards.values():
        shard.condition = Condition.FAILED
    assert listed(desk) == (0, set())
