# SPDX-License-Identifier: Apache-2.0
"""KIP-709: offsets of many groups, from brokers that take many and from those that take one."""

import inspect

import pytest
from tests.client.scripted import CLOSE, ScriptedCluster, asynchronous, in_turn

from kohort.client.admin import AdminClient, CommittedOffset, TopicPartition
from kohort.errors import ApiError, ErrorCode
from kohort.wire.messages import offset_fetch as wire
from kohort.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse

# What each group has committed: partition -> offset.
COMMITTED = {
    "a": {("orders", 0): 10, ("orders", 1): 11},
    "b": {("orders", 0): 20},
    "c": {},
}


def partitions_of(cls, group, wanted, codes=None):
    """The partitions of one group in the classes of either layout."""
    codes = codes or {}
    offsets = COMMITTED[group]
    keys = offsets if wanted is None else [(t.name, i) for t in wanted for i in t.partition_indexes]
    topics = {}
    for topic, index in keys:
        code = codes.get((topic, index), 0)
        topics.setdefault(topic, []).append(
            cls(
                partition_index=index,
                committed_offset=-1 if code else offsets.get((topic, index), -1),
                committed_leader_epoch=4 if (topic, index) == ("orders", 1) else -1,
                metadata=None if index else "note",
                error_code=code,
            )
        )
    return topics


def fetched(asked, group_codes=None, codes=None):
    """An honest broker: v8 and above group by group, below that one group."""
    group_codes = group_codes or {}
    request = asked.request
    if asked.version >= 8:
        groups = []
        for one in request.groups:
            error = group_codes.get(one.group_id, 0)
            topics = (
                {}
                if error
                else partitions_of(
                    wire.OffsetFetchResponsePartitions, one.group_id, one.topics, codes
                )
            )
            groups.append(
                wire.OffsetFetchResponseGroup(
                    group_id=one.group_id,
                    error_code=error,
                    topics=[
                        wire.OffsetFetchResponseTopics(name=name, partitions=each)
                        for name, each in topics.items()
                    ],
                )
            )
        return OffsetFetchResponse(groups=groups)
    error = group_codes.get(request.group_id, 0)
    if error and asked.version < 2:
        codes = dict.fromkeys([("orders", 0), ("orders", 1)], error)
    topics = partitions_of(
        wire.OffsetFetchResponsePartition, request.group_id, request.topics, codes
    )
    return OffsetFetchResponse(
        error_code=error,
        topics=[
            wire.OffsetFetchResponseTopic(name=name, partitions=each)
            for name, each in topics.items()
        ],
    )


def saying(**options):
    return lambda asked: fetched(asked, **options)


FETCH = {OffsetFetchRequest: fetched}
EXPECTED = {
    "a": {
        ("orders", 0): CommittedOffset(10, None, "note"),
        ("orders", 1): CommittedOffset(11, 4, ""),
    },
    "b": {("orders", 0): CommittedOffset(20, None, "note")},
    "c": {},
}


@pytest.mark.parametrize(
    ("newest", "find", "fetches"),
    [(10, 6, 1), (9, 4, 1), (8, 3, 1), (7, 6, 3), (5, 0, 3), (2, 0, 3)],
)
@asynchronous
async def test_brokers_of_every_age_give_the_same_result(newest, find, fetches):
    """K709-27, K709-28, K709-29: one request where that is offered, else one per group."""
    async with ScriptedCluster(1, FETCH) as scripted, scripted.admin() as admin:
        scripted.offer("OffsetFetch", f"1-{newest}")
        scripted.offer("FindCoordinator", f"0-{find}")
        result = await admin.list_group_offsets({"a": None, "b": None, "c": None})
    expected = EXPECTED
    if newest < 5:  # the leader epoch came with v5
        expected = {
            **EXPECTED,
            "a": {**EXPECTED["a"], ("orders", 1): CommittedOffset(11, None, "")},
        }
    assert result.all() == expected
    asked = scripted.sent("OffsetFetch")
    assert len(asked) == fetches
    assert {one.version for one in asked} == {min(newest, 9)}
    assert len(scripted.sent("FindCoordinator")) == (1 if find >= 4 else 3)


@asynchronous
async def test_a_hundred_groups_are_one_request_per_coordinator():
    """K709-29."""
    COMMITTED.update({f"g{index}": {("t", 0): index} for index in range(100)})
    async with ScriptedCluster(2, FETCH) as scripted, scripted.admin() as admin:
        scripted.coordinators = {f"g{index}": index % 2 for index in range(100)}
        result = await admin.list_group_offsets({f"g{index}": None for index in range(100)})
    assert [one["t", 0].offset for one in result.succeeded.values()] == list(range(100))
    assert [one.name for one in scripted.asked].count("OffsetFetch") == 2
    assert len(scripted.sent("FindCoordinator")) == 1


@asynchronous
async def test_a_cluster_in_upgrade_is_asked_by_each_brokers_age():
    """K709-27: decided per broker."""
    async with ScriptedCluster(2, FETCH) as scripted, scripted.admin() as admin:
        scripted.nodes[1].offer("OffsetFetch", "1-7")
        scripted.coordinators = {"b": 1, "c": 1}
        result = await admin.list_group_offsets({"a": None, "b": None, "c": None})
    assert result.all() == EXPECTED
    versions = sorted((one.node, one.version) for one in scripted.sent("OffsetFetch"))
    assert versions == [(0, 9), (1, 7), (1, 7)]


@pytest.mark.parametrize("newest", [9, 7])
@asynchronous
async def test_named_partitions_are_all_answered(newest):
    """K709-19, K709-24: None where nothing is committed."""
    async with ScriptedCluster(1, FETCH) as scripted, scripted.admin() as admin:
        scripted.offer("OffsetFetch", f"1-{newest}")
        wanted = {"a": [("pay", 3), ("orders", 1)], "b": [TopicPartition("orders", 1)]}
        result = await admin.list_group_offsets(wanted)
    assert result["a"] == {("pay", 3): None, ("orders", 1): CommittedOffset(11, 4, "")}
    assert list(result["a"]) == [("pay", 3), ("orders", 1)]
    assert result["b"] == {("orders", 1): None}


@pytest.mark.parametrize("newest", [9, 7, 2])
@asynchronous
async def test_one_group_that_fails_leaves_the_others_whole(newest):
    """K709-14, K709-22, K709-25: what will not pass is asked once."""
    answers = {OffsetFetchRequest: saying(group_codes={"b": 30})}
    async with ScriptedCluster(1, answers) as scripted, scripted.admin() as admin:
        scripted.offer("OffsetFetch", f"1-{newest}")
        result = await admin.list_group_offsets({"a": None, "b": None})
    assert list(result) == ["a", "b"]
    assert list(result["a"]) == [("orders", 0), ("orders", 1)]
    with pytest.raises(ApiError, match="GROUP_AUTHORIZATION_FAILED"):
        result["b"]
    with pytest.raises(ApiError, match="GROUP_AUTHORIZATION_FAILED"):
        result.all()
    assert len(scripted.sent("OffsetFetch")) == (1 if newest == 9 else 2)


@asynchronous
async def test_v1_writes_a_groups_error_into_each_partition():
    """K709-11."""
    answers = {OffsetFetchRequest: saying(group_codes={"a": 30})}
    async with ScriptedCluster(1, answers) as scripted, scripted.admin() as admin:
        scripted.offer("OffsetFetch", "1-1")
        result = await admin.list_group_offsets({"a": [("orders", 0), ("orders", 1)]})
    assert result.failed["a"].code is ErrorCode.GROUP_AUTHORIZATION_FAILED


@asynchronous
async def test_v1_cannot_tell_all_partitions_and_says_so():
    async with ScriptedCluster(1, FETCH) as scripted, scripted.admin() as admin:
        scripted.offer("OffsetFetch", "1-1")
        result = await admin.list_group_offsets({"a": None, "b": [("orders", 0)]})
    assert "offers OffsetFetch v1; fetching the offsets of all partitions needs v2" in str(
        result.failed["a"]
    )
    assert result["b"][TopicPartition("orders", 0)].offset == 20


@asynchronous
async def test_a_partitions_error_stays_with_its_partition():
    """K709-32."""
    answers = {OffsetFetchRequest: saying(codes={("orders", 0): 29})}
    async with ScriptedCluster(1, answers) as scripted, scripted.admin() as admin:
        offsets = (await admin.list_group_offsets({"a": None}))["a"]
    assert offsets[TopicPartition("orders", 1)].offset == 11
    assert offsets[TopicPartition("orders", 0)].code is ErrorCode.TOPIC_AUTHORIZATION_FAILED


@asynchronous
async def test_what_the_answer_lacks_is_an_error_not_a_gap():
    answers = {OffsetFetchRequest: lambda _: OffsetFetchResponse()}
    async with ScriptedCluster(1, answers) as scripted, scripted.admin() as admin:
        result = await admin.list_group_offsets({"a": None})
    assert "lacks an entry for a" in result.failed["a"].message


# --- require_stable


@asynchronous
async def test_an_open_transaction_is_waited_for():
    """K709-25."""
    unstable = saying(codes={("orders", 0): 88})
    answers = {OffsetFetchRequest: in_turn(unstable, unstable, fetched)}
    async with ScriptedCluster(1, answers) as scripted, scripted.admin() as admin:
        result = await admin.list_group_offsets({"a": None}, require_stable=True)
    assert result.all() == {"a": EXPECTED["a"]}
    assert [one.request.require_stable for one in scripted.sent("OffsetFetch")] == [True] * 3
    assert len(scripted.sent("FindCoordinator")) == 1


@asynchronous
async def test_one_that_stays_open_is_told_at_the_end_with_the_rest_kept():
    answers = {OffsetFetchRequest: saying(codes={("orders", 0): 88})}
    async with ScriptedCluster(1, answers) as scripted, scripted.admin(0.5) as admin:
        offsets = (await admin.list_group_offsets({"a": None}, require_stable=True))["a"]
    assert offsets[TopicPartition("orders", 0)].code is ErrorCode.UNSTABLE_OFFSET_COMMIT
    assert offsets[TopicPartition("orders", 1)].offset == 11


@asynchronous
async def test_require_stable_is_never_dropped_in_silence():
    """K709-31."""
    async with ScriptedCluster(1, FETCH) as scripted, scripted.admin() as admin:
        scripted.offer("OffsetFetch", "1-6")
        result = await admin.list_group_offsets({"a": None}, require_stable=True)
    assert "offers OffsetFetch v1-6; require_stable needs v7 (KIP-447" in result.failed["a"].message
    assert scripted.sent("OffsetFetch") == []


# --- coordinators that move, load and die


@pytest.mark.parametrize("newest", [9, 7])
@asynchronous
async def test_a_moved_coordinator_is_asked_for_its_groups_only(newest):
    """K709-25, K709-26."""

    def answer(asked):
        if asked.node == 1 and scripted.coordinators["b"] == 1:
            scripted.coordinators["b"] = 0
            return fetched(asked, group_codes={"b": 16})
        return fetched(asked)

    async with (
        ScriptedCluster(2, {OffsetFetchRequest: answer}) as scripted,
        scripted.admin() as admin,
    ):
        scripted.offer("OffsetFetch", f"1-{newest}")
        scripted.coordinators = {"a": 0, "b": 1, "c": 1}
        result = await admin.list_group_offsets({"a": None, "b": None, "c": None})
    assert result.all() == EXPECTED
    looked_up = [one.request.coordinator_keys for one in scripted.sent("FindCoordinator")]
    assert looked_up == [["a", "b", "c"], ["b"]]
    if newest == 9:
        asked = [
            [one.group_id for one in each.request.groups] for each in scripted.sent("OffsetFetch")
        ]
        assert sorted(asked) == [["a"], ["b"], ["b", "c"]]


@asynchronous
async def test_a_coordinator_that_loads_is_asked_again_without_a_look_up():
    """K709-25."""
    answers = {OffsetFetchRequest: in_turn(saying(group_codes={"a": 14}), fetched)}
    async with ScriptedCluster(1, answers) as scripted, scripted.admin() as admin:
        result = await admin.list_group_offsets({"a": None, "b": None})
    assert result.all() == {"a": EXPECTED["a"], "b": EXPECTED["b"]}
    assert scripted.names() == ["FindCoordinator", "OffsetFetch", "OffsetFetch"]
    assert [one.group_id for one in scripted.asked[-1].request.groups] == ["a"]


@asynchronous
async def test_a_last_question_that_nobody_answers_does_not_hide_why_it_was_asked():
    answers = {OffsetFetchRequest: in_turn(saying(group_codes={"a": 14}), None)}
    async with ScriptedCluster(1, answers) as scripted, scripted.admin(0.5) as admin:
        result = await admin.list_group_offsets({"a": None, "b": None})
    assert result["b"] == EXPECTED["b"]
    assert result.failed["a"].code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert "unchanged when the time was up" in result.failed["a"].message


@asynchronous
async def test_one_that_loads_for_ever_is_told_when_time_is_up():
    answers = {OffsetFetchRequest: saying(group_codes={"a": 14})}
    async with ScriptedCluster(1, answers) as scripted, scripted.admin(0.5) as admin:
        result = await admin.list_group_offsets({"a": None, "b": None})
    assert result["b"] == EXPECTED["b"]
    assert result.failed["a"].code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert "unchanged when the time was up" in result.failed["a"].message


@asynchronous
async def test_one_coordinator_that_is_down_leaves_the_groups_of_the_others():
    async with ScriptedCluster(2, FETCH) as scripted, scripted.admin() as admin:
        scripted.coordinators = {"b": 1}
        await scripted.stop(1)
        result = await admin.list_group_offsets({"a": None, "b": None})
    assert result["a"] == EXPECTED["a"]
    assert f"127.0.0.1:{scripted.nodes[1].port}: refused" in result.failed["b"].message


@asynchronous
async def test_a_group_that_is_asked_for_again_does_not_wait_for_a_broker_that_is_silent():
    """One of many is frozen, and the coordinator of another group is just loading."""
    loading = saying(group_codes={"a": 14})
    ready = in_turn(loading, loading, loading, fetched)

    def answer(asked):
        return ready(asked) if asked.node == 0 else None

    async with (
        ScriptedCluster(2, {OffsetFetchRequest: answer}) as scripted,
        scripted.admin(1.0) as admin,
    ):
        scripted.coordinators = {"b": 1}
        result = await admin.list_group_offsets({"a": None, "b": None})
    assert result["a"] == EXPECTED["a"]
    assert result.failed["b"].code is ErrorCode.REQUEST_TIMED_OUT


@asynchronous
async def test_a_broken_connection_is_opened_again_for_a_read():
    answers = {OffsetFetchRequest: in_turn(CLOSE, fetched)}
    async with ScriptedCluster(1, answers) as scripted, scripted.admin() as admin:
        result = await admin.list_group_offsets({"a": None})
    assert result.all() == {"a": EXPECTED["a"]}


@pytest.mark.parametrize(
    "wanted",
    ["a", ["a"], ("a",), {"a"}, {"a": None}.keys(), (one for one in ["a"]), {"a": None}],
    ids=["name", "list", "tuple", "set", "keys", "generator", "dict"],
)
@asynchronous
async def test_a_group_may_be_asked_for_by_name_alone(wanted):
    """K709-21."""
    answers = {OffsetFetchRequest: saying()}
    async with ScriptedCluster(answers=answers) as scripted, scripted.admin() as admin:
        found = await admin.list_group_offsets(wanted)
    assert {place: one.offset for place, one in found["a"].items()} == COMMITTED["a"]


@asynchronous
async def test_each_group_has_a_spec_of_its_own_and_what_else_is_asked_is_named():
    """K709-19, K709-20: there is room for more, of a group and of the call."""
    asking, spec, *more = inspect.signature(AdminClient.list_group_offsets).parameters.values()
    assert (asking.name, spec.default) == ("self", inspect.Parameter.empty)
    assert {one.kind for one in more} == {inspect.Parameter.KEYWORD_ONLY}
    assert all(one.default is not inspect.Parameter.empty for one in more)

    wanted = {"a": {("orders", 1): "a mapping"}, "b": None, "c": iter([("orders", 0)])}
    async with ScriptedCluster(1, FETCH) as scripted, scripted.admin() as admin:
        result = (await admin.list_group_offsets(wanted)).all()
    assert {name: list(each) for name, each in result.items()} == {
        "a": [("orders", 1)],
        "b": [("orders", 0)],
        "c": [("orders", 0)],
    }
