# SPDX-License-Identifier: Apache-2.0
"""A request that is answered in steps."""

from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from tests.prove.sweep.requests import WIDE_TOPICS, Filler, topic
from tests.server.desk import Desk
from tests.server.effort import KINDS, EffortDesk

from kohort.errors import ApiError, ErrorCode
from kohort.machines.effects import Call, Client
from kohort.server.apis.delete_records import delete_records
from kohort.server.apis.describe_configs import describe_configs
from kohort.server.apis.describe_log_dirs import describe_log_dirs
from kohort.server.apis.describe_producers import describe_producers
from kohort.server.apis.find_coordinator import find_coordinator
from kohort.server.apis.leader_epochs import offset_for_leader_epoch
from kohort.server.apis.list_offsets import list_offsets
from kohort.server.apis.metadata import metadata
from kohort.server.apis.topic_partitions import describe_topic_partitions
from kohort.server.network.connection import EncodedResponse
from kohort.server.network.routes import ROUTES
from kohort.server.requests.steps import (
    LONG_NAME,
    STEP_ELEMENTS,
    StepBudget,
    Steps,
    StepwiseRequest,
    slices,
    slices_of_names,
)
from kohort.server.scheduler import never
from kohort.wire.apis import APIS
from kohort.wire.codec import decode
from kohort.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState


class Token:
    def __init__(self) -> None:
        self.gone = False
        self.answers: list[Any] = []
        self.failures: list[Exception] = []

    def answer(self, response: Any) -> None:
        self.answers.append(response)

    def fail(self, error: Exception) -> None:
        self.failures.append(error)


class Request:
    def refused(self, error: ApiError) -> str:
        return f"refused: {error.code.name}"


@pytest.fixture
def token():
    return Token()


def stepwise(token: Token, steps: Steps[Any]) -> StepwiseRequest:
    return StepwiseRequest(Call(token, Request(), 0, Client("c", "/h")), steps)


def test_a_short_one_is_answered_at_once(token):
    def steps() -> Steps[Any]:
        return "answer"
        yield

    assert not stepwise(token, steps()).run(lambda: True)
    assert token.answers == ["answer"]


def test_a_long_one_goes_on_in_each_slice_and_its_answer_is_encoded_in_one_of_its_own(token):
    taken = []

    def steps() -> Steps[Any]:
        for step in range(3):
            taken.append(step)
            yield
        return "answer"

    work = stepwise(token, steps())
    for count in (1, 2, 3, 3):
        assert work.run(lambda: True)
        assert len(taken) == count
        assert token.answers == []
    assert not work.run(lambda: True)
    assert token.answers == ["answer"]


def test_it_ends_with_its_client(token):
    closed = []

    def steps() -> Steps[Any]:
        try:
            while True:
                yield
        finally:
            closed.append(True)

    work = stepwise(token, steps())
    assert work.run(lambda: True)
    token.gone = True
    assert not work.run(lambda: True)
    assert (closed, token.answers) == ([True], [])


def test_it_may_refuse_park_or_fail(token):
    def refuses() -> Steps[Any]:
        yield
        raise ApiError(ErrorCode.INVALID_REQUEST)

    def parks() -> Steps[Any]:
        yield

    def fails() -> Steps[Any]:
        yield
        raise ZeroDivisionError

    for steps in (refuses(), parks(), fails()):
        assert not stepwise(token, steps).run(never)
    assert token.answers == ["refused: INVALID_REQUEST"]
    assert [type(error) for error in token.failures] == [ZeroDivisionError]


MANY = 5 * STEP_ELEMENTS
WIDE = "wide-0"
GROUPS = ("resource_type", 32)
LIMITS = {"max_request_partition_size_limit": "100000", "log_sync": "none"}
HANDLERS = {
    "DeleteRecords": delete_records,
    "DescribeConfigs": describe_configs,
    "DescribeLogDirs": describe_log_dirs,
    "DescribeProducers": describe_producers,
    "DescribeTopicPartitions": describe_topic_partitions,
    "FindCoordinator": find_coordinator,
    "ListOffsets": list_offsets,
    "Metadata": metadata,
    "OffsetForLeaderEpoch": offset_for_leader_epoch,
}
BY_NAME = {api.name: api for api in APIS.values()}
SERVED = sorted(name for name, api in BY_NAME.items() if api.request in ROUTES)
FEW, MORE = 512, 768
"""Elements, both more than any step takes."""
IN_STEPS = 0.5
"""Calls in one piece for each more element of a request, where others come in between."""
READ_AT_MOST = 8  # a request is read in one piece
IN_ONE_PIECE = {
    "AddPartitionsToTxn": (9, 7),
    "AlterClientQuotas": (7, 9),
    "AlterConfigs": (17, IN_STEPS),
    "AlterPartitionReassignments": (6, 7),
    "AlterReplicaLogDirs": (6, 7),
    "AlterUserScramCredentials": (14, 10),
    "CreateAcls": (4, 7),
    "CreatePartitions": (5, IN_STEPS),
    "CreateTopics": (15, IN_STEPS),
    "DeleteAcls": (2, 9),
    "DeleteRecords": (8, 5),
    "DeleteTopics": (14, 10),
    "DescribeLogDirs": (IN_STEPS, 3),
    "DescribeProducers": (8, IN_STEPS),
    "DescribeTransactions": (15, 15),
    "DescribeUserScramCredentials": (4, 13),
    "ElectLeaders": (4, 7),
    "Fetch": (35, 15),
    "IncrementalAlterConfigs": (16, IN_STEPS),
    "JoinGroup": (5, IN_STEPS),
    "LeaveGroup": (7, 9),
    "ListGroups": (3, IN_STEPS),
    "ListTransactions": (5, 4),
    "OffsetCommit": (34, 6),
    "OffsetDelete": (14, IN_STEPS),
    "OffsetFetch": (9, 8),
    "OffsetForLeaderEpoch": (2, IN_STEPS),
    "Produce": (95, 14),
    "TxnOffsetCommit": (14, 7),
    "WriteTxnMarkers": (3, 7),
}
"""Those that are handled in one piece, and those whose answer is encoded in one: the most calls for
each more element. An API without a row is in steps.
"""


class Growth(NamedTuple):
    """How many calls its longest piece has more for each more element of a request."""

    reading: float
    handling: float
    encoding: float


@pytest.fixture(scope="module")
def growth(python_codec_in_use):
    """Of every API, in the worst of its ways. What deletes comes last, since all ask one desk."""
    desk = EffortDesk(**LIMITS)
    ids = [desk.create(topic(number), partitions=MORE // WIDE_TOPICS) for number in (0, 1)]
    in_order = sorted(SERVED, key=lambda name: ("Delete" in name, name))
    return {name: growth_of(desk, Filler(BY_NAME[name], ids)) for name in in_order}


def growth_of(desk, filler):
    pieces = [Growth(0, 0, 0)]
    for way in filler.ways():
        if way.path and not way.same and not way.long:
            _, few, many = (  # what is done once, as to compile a codec, is not counted
                desk.effort_of(filler.request(scaled(way, elements, filler.most)), filler.version)
                for elements in (FEW, FEW, MORE)
            )
            pieces.append(Growth(*((many[kind] - few[kind]) / (MORE - FEW) for kind in KINDS)))
    return Growth(*map(max, zip(*pieces, strict=True)))


def scaled(way, elements, most):
    """The same way with fewer elements than the most of its API."""
    if way.inner > 1:
        return way._replace(inner=elements // way.count)
    return way._replace(count=way.count * elements // most)


@pytest.mark.parametrize("name", SERVED)
def test_others_come_in_between_however_large_a_request_is(growth, name):
    """Of any way to fill it, in calls of functions."""
    most = Growth(READ_AT_MOST, *IN_ONE_PIECE.get(name, (IN_STEPS, IN_STEPS)))
    for kind, calls, bound in zip(KINDS, growth[name], most, strict=True):
        assert calls <= bound, f"{kind} {name} takes {calls:g} calls for each element in one piece"


@pytest.mark.parametrize("name", IN_ONE_PIECE)
def test_who_is_in_steps_needs_no_exception(growth, name):
    assert max(growth[name].handling, growth[name].encoding) > IN_STEPS, f"{name}: delete its row"


@pytest.mark.parametrize("name", ["DescribeConfigs", "DescribeLogDirs"])
def test_steps_that_never_yield_would_be_seen(monkeypatch, name):
    assert IN_ONE_PIECE.get(name, (IN_STEPS,))[0] == IN_STEPS
    monkeypatch.setattr(StepBudget, "is_over", lambda _self, _elements=1: False)
    desk = EffortDesk(**LIMITS)
    ids = [desk.create(topic(0), partitions=MORE)]
    assert growth_of(desk, Filler(BY_NAME[name], ids)).handling > IN_STEPS


def asked(desk, name, request):
    """The handler's steps, as a cluster goes through them."""
    version = BY_NAME[name].versions.last
    call = Call(SimpleNamespace(answer=None, fail=None), request, version, Client("c", "/h"))
    return HANDLERS[name](desk.dispatchers[0].node, call, desk.now)


def all_steps(steps):
    count = 0
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return count, end.value
        count += 1


def ways(name):
    """The largest arrays with different names; groups are asked of their shards."""
    for way in Filler(BY_NAME[name], []).ways():
        innermost = way.path and way.level == len(way.path) - 1
        innermost = innermost and way.path[-1].name != "configuration_keys"  # one frozenset
        if innermost and not way.same and not way.long and way.choice != GROUPS:
            yield way


@pytest.fixture(scope="module")
def desk():
    desk = Desk(**LIMITS)
    desk.create(WIDE, partitions=MANY)
    return desk


def test_everything_that_is_described_counts_not_what_is_named(desk):
    for name in ("Metadata", "DescribeLogDirs"):
        request = BY_NAME[name].request(topics=None)
        count, _ = all_steps(asked(desk, name, request))
        assert count >= MANY // STEP_ELEMENTS - 1


def test_the_items_are_in_one_part_each():
    assert slices([1, 2, 3, 4, 5], 2) == [[1, 2], [3, 4], [5]]
    assert slices([], 2) == []


def test_a_long_name_counts_for_many():
    assert slices_of_names(["a", "b", "c"], 2) == [["a", "b"], ["c"]]
    long = "x" * LONG_NAME * 100
    assert slices_of_names([long, "a", "b", long, long], 102) == [[long, "a"], ["b", long], [long]]
    assert slices_of_names([long, long], 3) == [[long], [long]]
    assert slices_of_names([], 2) == [], "whoever asks for nothing is answered"


def test_a_large_element_ends_a_step():
    step_budget = StepBudget()
    assert not step_budget.is_over()
    assert step_budget.is_over(STEP_ELEMENTS)
    assert [step_budget.is_over() for _ in range(STEP_ELEMENTS)].count(True) == 1


@pytest.mark.parametrize("name", sorted({*HANDLERS} - {"FindCoordinator", "DescribeConfigs"}))
def test_a_topic_that_is_deleted_between_two_steps_is_answered_as_such(name):
    desk = Desk(**LIMITS)
    topic_id = desk.create(WIDE, partitions=MANY)
    filler = Filler(BY_NAME[name], [topic_id])
    way = max(ways(name), key=lambda way: len(way.path))
    one_by_one = len(way.path) > 1
    request = filler.request(way._replace(count=MANY if one_by_one else 1))
    steps = asked(desk, name, request)
    next(steps)
    topics = [DeleteTopicState(name=WIDE)]
    desk.ask(DeleteTopicsRequest(topics=topics, timeout_ms=1000), 6)
    _, answer = all_steps(steps)
    if isinstance(answer, EncodedResponse):
        api = BY_NAME[name]
        answer = decode(api.response, api.versions.last, b"".join(answer))
    told = codes(answer)
    gone = {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID}
    assert told <= gone | {ErrorCode.NONE}
    if name != "DescribeLogDirs":  # which leaves out what is not there
        assert told & gone


def codes(message):
    """All error codes of an answer."""
    found = set()
    for name in type(message).__struct_fields__:
        value = getattr(message, name)
        if name == "error_code":
            found.add(value)
        for item in value if isinstance(value, list) else ():
            if hasattr(item, "__struct_fields__"):
                found |= codes(item)
    return found
