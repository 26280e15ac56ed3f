# SPDX-License-Identifier: Apache-2.0
"""Calls that ask every node, and calls that ask the right one, while a coordinator or a leader goes
from node to node: one table for all of them.
"""

import pytest
from tests.client.scripted import CLOSE, ScriptedCluster, asynchronous

from kohort import ApiError, ErrorCode, MemberToRemove, TopicPartition
from kohort.wire.apis import APIS
from kohort.wire.messages.describe_log_dirs import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
)
from kohort.wire.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from kohort.wire.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)
from kohort.wire.messages.metadata import MetadataRequest, MetadataResponseTopic


def groups(*names):
    return ListGroupsResponse(groups=[ListedGroup(group_id=name) for name in names])


def transactions(*names):
    states = [TransactionState(transactional_id=name, producer_id=1) for name in names]
    return ListTransactionsResponse(transaction_states=states)


SWEEPS = {
    "list_groups": ("__consumer_offsets", ListGroupsRequest, groups),
    "list_transactions": ("__transaction_state", ListTransactionsRequest, transactions),
}


def names_in(listings):
    return [getattr(each, "group_id", None) or each.transactional_id for each in listings]


class Sweep:
    """Nodes that list one thing for each partition that they lead, named by its number."""

    def __init__(self, name, nodes=2):
        self.name = name
        self.topic, request, self.answer = SWEEPS[name]
        self.scripted = ScriptedCluster(nodes, {request: self.list})
        self.after = {}  # node -> what happens right after its first answer
        self.honest = self.scripted.answers[MetadataRequest]

    def list(self, asked):
        leaders = self.scripted.topics[self.topic]
        answer = self.answer(*(f"{at}" for at, node in enumerate(leaders) if node == asked.node))
        self.after.pop(asked.node, lambda: None)()
        return answer

    async def run(self):
        async with self.scripted as scripted, scripted.admin() as admin:
            return await getattr(admin, self.name)()


@pytest.mark.parametrize("name", SWEEPS)
@asynchronous
async def test_a_coordinator_that_moves_to_a_node_that_has_answered_is_asked_there(name):
    sweep = Sweep(name)
    sweep.scripted.topics[sweep.topic] = [0, -1]
    sweep.after[0] = lambda: sweep.scripted.topics.update({sweep.topic: [0, 0]})
    found = await sweep.run()
    assert names_in(found) == ["0", "1"]
    assert found.complete


@pytest.mark.parametrize("name", SWEEPS)
@asynchronous
async def test_a_coordinator_that_goes_away_after_its_node_has_answered_was_listed(name):
    sweep = Sweep(name)
    sweep.scripted.topics[sweep.topic] = [0, 1]
    sweep.after[1] = lambda: sweep.scripted.topics.update({sweep.topic: [0, -1]})
    assert names_in(await sweep.run()) == ["0", "1"]


@pytest.mark.parametrize("name", SWEEPS)
@asynchronous
async def test_partitions_that_appear_meanwhile_are_asked_for(name):
    sweep = Sweep(name)
    sweep.scripted.topics[sweep.topic] = [1]
    sweep.after[0] = lambda: sweep.scripted.topics.update({sweep.topic: [1, 0]})
    found = await sweep.run()
    assert names_in(found) == ["0", "1"]
    assert found.complete


@pytest.mark.parametrize("name", SWEEPS)
@asynchronous
async def test_a_node_that_comes_meanwhile_is_asked_for_what_it_has_taken_over(name):
    sweep = Sweep(name, nodes=3)
    sweep.scripted.topics[sweep.topic] = [0, 1]
    there = {0, 1}

    def seen(asked):
        answer = sweep.honest(asked)
        answer.brokers = [broker for broker in answer.brokers if broker.node_id in there]
        return answer

    def come():
        there.add(2)
        sweep.scripted.topics[sweep.topic] = [0, 2]

    sweep.scripted.answers[MetadataRequest] = seen
    sweep.after[0] = come
    found = await sweep.run()
    assert names_in(found) == ["0", "1"]
    assert found.complete


@pytest.mark.parametrize("name", SWEEPS)
@asynchronous
async def test_a_coordinator_that_never_stays_is_named(name):
    sweep = Sweep(name)
    sweep.scripted.topics[sweep.topic] = [0]

    def restless(asked):
        sweep.scripted.topics[sweep.topic][0] ^= 1
        return sweep.honest(asked)

    sweep.scripted.answers[MetadataRequest] = restless
    found = await sweep.run()
    (error,) = found.missing.values()
    assert list(found.missing) == [TopicPartition(sweep.topic, 0)]
    assert error.code is ErrorCode.NOT_COORDINATOR
    assert "has moved from node to node" in error.message


@pytest.mark.parametrize("name", SWEEPS)
@asynchronous
async def test_who_may_not_look_at_the_coordinators_is_told_what_is_not_known(name):
    sweep = Sweep(name)
    sweep.scripted.topics[sweep.topic] = [0]

    def refused(asked):
        answer = sweep.honest(asked)
        answer.topics = [MetadataResponseTopic(name=t.name, error_code=29) for t in answer.topics]
        return answer

    sweep.scripted.answers[MetadataRequest] = refused
    found = await sweep.run()
    assert names_in(found) == ["0"]
    assert found.errors == {}
    assert found.missing == {sweep.topic: found.unverified}
    assert found.unverified.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED


@asynchronous
async def test_a_broker_that_comes_while_log_directories_are_described_is_asked_too():
    there = [0]

    def answer(asked):
        there.append(1)
        return DescribeLogDirsResponse(results=[DescribeLogDirsResult(log_dir=f"/{asked.node}")])

    async with ScriptedCluster(2, {DescribeLogDirsRequest: answer}) as scripted:
        honest = scripted.answers[MetadataRequest]

        def seen(asked):
            metadata = honest(asked)
            metadata.brokers = [each for each in metadata.brokers if each.node_id in there]
            return metadata

        scripted.answers[MetadataRequest] = seen
        async with scripted.admin() as admin:
            described = (await admin.describe_log_dirs()).all()
            there[:] = [0]
            heard = [broker async for broker, _ in admin.describe_log_dirs()]
            some = await admin.describe_log_dirs(0)
    assert {broker: list(found) for broker, found in described.items()} == {0: ["/0"], 1: ["/1"]}
    assert heard == [0, 1]
    assert list(some) == [0]


PLACE = ("t", 0)
NOT_COORDINATOR, NOT_LEADER = ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_LEADER_OR_FOLLOWER
MOVES = {  # the request, how it says that its node is the wrong one, and the call
    "describe_groups": (
        "ConsumerGroupDescribe",
        NOT_COORDINATOR,
        lambda it: it.describe_groups("g"),
    ),
    "delete_groups": ("DeleteGroups", NOT_COORDINATOR, lambda it: it.delete_groups("g")),
    "list_group_offsets": (
        "OffsetFetch",
        NOT_COORDINATOR,
        lambda it: it.list_group_offsets({"g": [PLACE]}),
    ),
    "alter_group_offsets": (
        "OffsetCommit",
        NOT_COORDINATOR,
        lambda it: it.alter_group_offsets("g", {PLACE: 1}),
    ),
    "delete_group_offsets": (
        "OffsetDelete",
        NOT_COORDINATOR,
        lambda it: it.delete_group_offsets("g", [PLACE]),
    ),
    "remove_members": (
        "LeaveGroup",
        NOT_COORDINATOR,
        lambda it: it.remove_members("g", [MemberToRemove("m")]),
    ),
    "describe_transactions": (
        "DescribeTransactions",
        NOT_COORDINATOR,
        lambda it: it.describe_transactions("x"),
    ),
    "fence_producers": ("InitProducerId", NOT_COORDINATOR, lambda it: it.fence_producers("x")),
    "list_offsets": ("ListOffsets", NOT_LEADER, lambda it: it.list_offsets({PLACE: "latest"})),
    "delete_records": ("DeleteRecords", NOT_LEADER, lambda it: it.delete_records({PLACE: 1})),
    "describe_producers": (
        "DescribeProducers",
        NOT_LEADER,
        lambda it: it.describe_producers([PLACE]),
    ),
}
CHANGES = {
    "delete_groups",
    "alter_group_offsets",
    "delete_group_offsets",
    "remove_members",
    "fence_producers",
    "delete_records",
}  # are not sent again where they may have arrived


async def asked_nodes(name, first):
    """Which nodes a call asks whose first answer is `first`, as what it is about goes over to
    another node meanwhile; and whether it then has the answer of the last one.
    """
    api, _, call = MOVES[name]
    nodes = []
    final = ApiError(ErrorCode.INVALID_REQUEST, "the last word")

    def answer(asked):
        nodes.append(asked.node)
        if len(nodes) > 1:
            return asked.request.refused(final)
        scripted.coordinators.update(g=1, x=1)
        scripted.topics["t"] = [1]
        return first(asked)

    request = next(each.request for each in APIS.values() if each.name == api)
    async with ScriptedCluster(2, {request: answer}) as scripted, scripted.admin() as admin:
        scripted.topics["t"] = [0]
        try:
            outcomes = await call(admin)
        except ApiError as error:
            return nodes, error.code is final.code
    (outcome,) = [each for _, each in outcomes.items()]
    if isinstance(outcome, dict):
        (outcome,) = outcome.values()
    return nodes, outcome.code is final.code


@pytest.mark.parametrize("name", MOVES)
@asynchronous
async def test_what_has_moved_is_asked_for_where_it_has_gone(name):
    code = MOVES[name][1]
    moved = await asked_nodes(name, lambda asked: asked.request.refused(ApiError(code)))
    assert moved == ([0, 1], True)


@pytest.mark.parametrize("name", MOVES)
@asynchronous
async def test_what_was_lost_is_asked_for_elsewhere_unless_it_may_have_been_done(name):
    lost = await asked_nodes(name, lambda _: CLOSE)
    assert lost == (([0], False) if name in CHANGES else ([0, 1], True))
