# SPDX-License-Identifier: Apache-2.0
"""The answers of a call, all together or as they come: one shape for every call over many nodes."""

import asyncio
import gc
import warnings
from time import monotonic

import pytest
from tests.client.scripted import ScriptedCluster, asynchronous

from kohort.client.admin import AdminClient, Answers, Outcomes
from kohort.errors import ApiError, ErrorCode
from kohort.wire.messages import delete_groups, describe_groups, list_groups, offset_fetch
from kohort.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

SILENT = 1
GROUPS = {"a": 0, "b": SILENT, "c": 2}  # who coordinates them
PLACES = [("t", index) for index in range(3)]  # led by the node of their number
CALLS = {
    "describe_groups": (lambda it, **how: it.describe_groups(GROUPS, **how), list(GROUPS)),
    "delete_groups": (lambda it, **how: it.delete_groups(GROUPS, **how), list(GROUPS)),
    "list_group_offsets": (
        lambda it, **how: it.list_group_offsets(list(GROUPS), **how),
        list(GROUPS),
    ),
    "end_offsets": (lambda it, **how: it.end_offsets(PLACES, **how), PLACES),
    "list_groups": (lambda it, **how: it.list_groups(**how), [0, SILENT, 2]),
}


def described(asked):
    groups = [
        describe_groups.DescribedGroup(group_id=one, group_state="Empty")
        for one in asked.request.groups
    ]
    return describe_groups.DescribeGroupsResponse(groups=groups)


def deleted(asked):
    results = [
        delete_groups.DeletableGroupResult(group_id=one) for one in asked.request.groups_names
    ]
    return delete_groups.DeleteGroupsResponse(results=results)


def fetched(asked):
    groups = [
        offset_fetch.OffsetFetchResponseGroup(group_id=one.group_id) for one in asked.request.groups
    ]
    return offset_fetch.OffsetFetchResponse(groups=groups)


def listed(asked):
    return list_groups.ListGroupsResponse(
        groups=[list_groups.ListedGroup(group_id=f"of-{asked.node}", protocol_type="consumer")]
    )


def found(asked):
    topics = [
        ListOffsetsTopicResponse(
            name=topic.name,
            partitions=[
                ListOffsetsPartitionResponse(partition_index=one.partition_index, offset=7)
                for one in topic.partitions
            ],
        )
        for topic in asked.request.topics
    ]
    return ListOffsetsResponse(topics=topics)


def but_for_one(answer):
    return lambda asked: None if asked.node == SILENT else answer(asked)


def three_nodes(wrapped=but_for_one):
    """Three nodes, and the second takes requests and never answers."""
    scripted = ScriptedCluster(
        3,
        {
            describe_groups.DescribeGroupsRequest: wrapped(described),
            delete_groups.DeleteGroupsRequest: wrapped(deleted),
            offset_fetch.OffsetFetchRequest: wrapped(fetched),
            list_groups.ListGroupsRequest: wrapped(listed),
            ListOffsetsRequest: wrapped(found),
        },
    )
    scripted.offer("ConsumerGroupDescribe", None)
    scripted.coordinators = GROUPS
    scripted.topics = {"t": [0, SILENT, 2]}
    return scripted


@pytest.mark.parametrize("name", CALLS)
@asynchronous
async def test_what_the_others_say_is_there_long_before_one_that_is_silent(name):
    """K518-27, K709-34, K229-25."""
    call, keys = CALLS[name]
    begun = monotonic()
    async with three_nodes() as scripted, scripted.admin(30.0) as admin:
        heard = {}
        async for key, outcome in call(admin):
            assert not isinstance(outcome, ApiError)
            heard[key] = outcome
            if len(heard) == 2:
                break
    assert set(heard) == {keys[0], keys[2]}
    assert monotonic() - begun < 10


@pytest.mark.parametrize("name", CALLS)
@asynchronous
async def test_a_call_may_have_a_timeout_of_its_own(name):
    """K518-28, K709-35: the client's is half a minute."""
    call, keys = CALLS[name]
    begun = monotonic()
    async with three_nodes() as scripted, scripted.admin(30.0) as admin:
        heard = {key: outcome async for key, outcome in call(admin, timeout=0.5)}
        at_once = await call(admin, timeout=0.5)
    assert monotonic() - begun < 10
    silent = keys[1]
    assert heard[silent].code is ErrorCode.REQUEST_TIMED_OUT
    assert silent in at_once.missing
    assert not at_once.complete
    assert set(heard) >= set(keys)
    assert [key for key, outcome in heard.items() if isinstance(outcome, ApiError)] == list(
        at_once.missing
    )


@pytest.mark.parametrize("name", CALLS)
@asynchronous
async def test_both_ways_give_the_same(name):
    call, keys = CALLS[name]
    async with three_nodes(lambda answer: answer) as scripted, scripted.admin() as admin:
        heard = {key: outcome async for key, outcome in call(admin)}
        requests = len(scripted.names())
        at_once = await call(admin)
        assert len(scripted.names()) == 2 * requests
    assert at_once.complete
    assert set(heard) == set(keys)
    if isinstance(at_once, Outcomes):
        assert heard == dict(at_once.items())
    else:
        assert sorted(one.group_id for groups in heard.values() for one in groups) == [
            one.group_id for one in at_once
        ]


@pytest.mark.parametrize("name", CALLS)
@asynchronous
async def test_a_cluster_that_cannot_be_reached_raises_in_both_ways_and_nothing_is_heard(name):
    call, _ = CALLS[name]
    async with AdminClient("127.0.0.1:1", timeout=1) as admin:
        with pytest.raises(ApiError, match="refused"):
            await call(admin)
        with pytest.raises(ApiError, match="refused"):
            await anext(aiter(call(admin)))


@pytest.mark.parametrize("timeout", [0, -1, "2", float("nan"), True])
def test_a_timeout_that_makes_no_sense_is_refused(timeout):
    admin = AdminClient("127.0.0.1:1")
    with pytest.raises((TypeError, ValueError), match="timeout is"):
        admin.describe_groups("g", timeout=timeout)


def test_a_call_that_was_forgotten_is_named():
    admin = AdminClient("127.0.0.1:1")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        admin.delete_groups("g")
        gc.collect()
    texts = [str(one.message) for one in caught]  # an earlier test may have left something, too
    assert [text for text in texts if "never awaited" in text] == [
        "coroutine 'GroupOperations.delete_groups' was never awaited"
    ]


def counting(log):
    async def work(arrived):
        try:
            for key in range(3):
                await asyncio.sleep(0)
                arrived(key, key * 10)
            log.append("done")
        except asyncio.CancelledError:
            log.append("cancelled")
            raise
        return "all"

    return Answers(work)


@asynchronous
async def test_they_are_a_coroutine_to_whoever_takes_one():
    log = []
    assert await asyncio.create_task(counting(log)) == "all"
    assert await asyncio.gather(counting(log), counting(log)) == ["all", "all"]
    assert await asyncio.wait_for(counting(log), 5) == "all"
    assert log == ["done"] * 4
    counting(log).close()
    assert log == ["done"] * 4


@asynchronous
async def test_who_leaves_early_cancels_the_rest():
    log = []
    answers = counting(log)
    entries = aiter(answers)
    assert await anext(entries) == (0, 0)
    await entries.aclose()
    assert log == ["cancelled"]


@asynchronous
async def test_they_are_waited_for_once():
    answers = counting([])
    assert await answers == "all"
    with pytest.raises(RuntimeError, match="cannot reuse already awaited coroutine"):
        await answers
    with pytest.raises(RuntimeError, match="cannot reuse already awaited coroutine"):
        [_ async for _ in answers]
