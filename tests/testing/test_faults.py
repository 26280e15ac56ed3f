# SPDX-License-Identifier: Apache-2.0
"""Faults on demand: what a client sees of each."""

import re

import pytest
from tests.serve.talk import Talk, frame
from tests.testing.members import beat, join

from kohort.errors import ErrorCode, KohortError
from kohort.server.network.request_buffer import FRAMES_MAX
from kohort.testing import Broker, WaitTimeoutError
from kohort.wire.apis import APIS
from kohort.wire.messages.api_versions import ApiVersionsRequest
from kohort.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kohort.wire.messages.find_coordinator import FindCoordinatorRequest
from kohort.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

ASK = ApiVersionsRequest(client_software_name="talk", client_software_version="1")


@pytest.fixture(scope="module", params=[False, True], ids=["thread", "process"])
def broker(request):
    with Broker(process=request.param) as broker:
        broker.create_topic("t")
        broker.create_topic("u")
        yield broker


@pytest.fixture
def client(broker):
    with Talk(broker.bootstrap) as client:
        yield client
    broker.faults.clear()


def test_an_error_once(broker, client):
    fault = broker.faults.error("OffsetCommit", "NOT_COORDINATOR")
    assert [client.commit("g", "t", 1) for _ in range(2)] == [16, 0]
    assert fault.hits == 1
    assert repr(fault) == "<fault NOT_COORDINATOR for OffsetCommit>"


def test_an_error_until_it_is_cleared(broker, client):
    with broker.faults.error("OffsetCommit", 15, times=None) as fault:
        assert [client.commit("g", "t", 1) for _ in range(3)] == [15] * 3
        assert fault.hits == 3
    assert client.commit("g", "t", 1) == 0
    assert broker._host.is_running
    fault.clear()


def test_only_those_who_are_meant(broker, client):
    faults = broker.faults
    for whose in ({"group": "h"}, {"topic": "u"}, {"client_id": "c"}):
        with faults.error("OffsetCommit", ErrorCode.REBALANCE_IN_PROGRESS, **whose) as fault:
            assert client.commit("g", "t", 1) == 0
            assert fault.hits == 0
    for whose in ({"group": "g"}, {"topic": "t"}, {"client_id": "talk"}, {"node": 0}):
        with faults.error("OffsetCommit", ErrorCode.REBALANCE_IN_PROGRESS, **whose) as fault:
            assert client.commit("g", "t", 1) == 27
            assert fault.hits == 1


def test_the_first_fault_that_matches_strikes(broker, client):
    broker.faults.error("OffsetCommit", 15)
    broker.faults.error("OffsetCommit", 14)
    assert [client.commit("g", "t", 1) for _ in range(3)] == [15, 14, 0]


def test_a_delay(broker, client):
    fault = broker.faults.delay("OffsetCommit", 0.2)
    with Talk(broker.bootstrap) as other:
        assert client.commit("delayed", "t", 5) == 0
        assert other.committed("delayed") == {("t", 0): 5}
    assert fault.hits == 1


def _commit(group, offset):
    place = OffsetCommitRequestPartition(
        partition_index=0, committed_offset=offset, committed_metadata=""
    )
    topics = [OffsetCommitRequestTopic(name="t", partitions=[place])]
    return OffsetCommitRequest(group_id=group, topics=topics)


def test_a_delay_does_not_turn_the_order_of_a_connection(broker, client):
    group = f"in-order-{broker.process}"
    broker.faults.delay("OffsetCommit", 0.1)
    with Talk(broker.bootstrap) as one:
        for offset in (5, 6, 7):
            one.send(_commit(group, offset), 8)
        for _ in range(3):
            one.answer()
    assert [one.offset for one in broker.groups[group].commits()] == [5, 6, 7]


def test_nothing_behind_a_delayed_request_is_handled_before_it(broker, client):
    """Also when more has come than is read ahead."""
    group = f"crowd-{broker.process}"
    broker.faults.delay("OffsetCommit", 0.05)
    count = 2 * FRAMES_MAX
    with Talk(broker.bootstrap) as one:
        one.socket.sendall(b"".join(frame(_commit(group, offset), 8) for offset in range(count)))
        for _ in range(count):
            one.answer()
    assert [one.offset for one in broker.groups[group].commits()] == list(range(count))


def test_nothing_behind_a_dropped_request_is_handled(broker, client):
    group = f"behind-{broker.process}"
    with Talk(broker.bootstrap) as one:
        fault = broker.faults.drop("OffsetCommit")
        for offset in (5, 6):
            one.send(_commit(group, offset), 8)
        fault.wait()
        fault.clear()
        one.send(_commit(group, 7), 8)
        assert client.commit(group, "t", 1) == 0
    assert [one.offset for one in broker.groups[group].commits()] == [1]


def test_a_delayed_request_of_a_client_that_has_gone(broker, client):
    fault = broker.faults.delay("ApiVersions", 0.05)
    with Talk(broker.bootstrap) as other:
        other.send(ASK)
        fault.wait()
    assert client.ask(ASK).error_code == 0


def test_a_request_that_is_dropped(broker, client):
    with (
        broker.faults.drop("ApiVersions", client_id="talk") as fault,
        Talk(broker.bootstrap) as one,
    ):
        one.send(ASK)
        fault.wait()
    one_more = client.ask(ASK)
    assert one_more.error_code == 0
    assert fault.hits == 1


def test_a_connection_that_is_cut(broker, client):
    broker.faults.close("OffsetCommit")
    with Talk(broker.bootstrap) as one, pytest.raises((EOFError, OSError)):
        one.commit("cut", "t", 5)
    assert client.committed("cut") == {}


def test_an_answer_that_is_lost(broker, client):
    broker.faults.close("OffsetCommit", handled=True)
    with Talk(broker.bootstrap) as one, pytest.raises((EOFError, OSError)):
        one.commit("lost", "t", 5)
    assert client.committed("lost") == {("t", 0): 5}


@pytest.mark.parametrize("handled", [False, True])
def test_a_produce_that_wants_no_answer(broker, client, handled):
    topic = f"silent-{handled}-{broker.process}"
    broker.create_topic(topic)
    broker.faults.close("Produce", topic=topic, handled=handled)
    with Talk(broker.bootstrap) as one:
        one.send(_produce(topic), 9)
        assert one.closed_by_peer()
    assert len(broker.read(topic, int(handled))) == int(handled)
    broker.faults.error("Produce", "NOT_LEADER_OR_FOLLOWER", topic=topic)
    with Talk(broker.bootstrap) as one:
        one.send(_produce(topic), 9)
        assert one.closed_by_peer()


def _produce(topic):
    from kohort.wire.batch import build
    from kohort.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

    data = [PartitionProduceData(index=0, records=build([(None, b"x")], 7))]
    topics = [TopicProduceData(name=topic, partition_data=data)]
    return ProduceRequest(acks=0, timeout_ms=5000, topic_data=topics)


def test_a_heartbeat_that_is_answered_from_memory_fails_too(broker, client):
    epoch = join(client, "beating")
    assert [beat(client, "beating", epoch) for _ in range(3)] == [0, 0, 0]
    fault = broker.faults.error("ConsumerGroupHeartbeat", "FENCED_MEMBER_EPOCH", group="beating")
    assert [beat(client, "beating", epoch) for _ in range(3)] == [110, 0, 0]
    assert fault.hits == 1


@pytest.mark.parametrize("version", [12, 16])
def test_a_fetch_is_known_by_its_topic(broker, client, version):
    request = client.fetch_request("t")
    if version == 16:
        request.topics[0].topic_id = client.metadata("t").topics[0].topic_id
    with broker.faults.error("Fetch", "KAFKA_STORAGE_ERROR", topic="u", times=None) as fault:
        client.ask(request, version)
        assert fault.hits == 0
    with broker.faults.error("Fetch", "KAFKA_STORAGE_ERROR", topic="t"):
        client.ask(request, version)


def test_so_is_one_of_a_session(broker, client):
    request = client.fetch_request("t")
    request.session_epoch = 0
    request.session_id = client.ask(request, 12).session_id
    assert request.session_id
    request.topics, request.session_epoch = [], 1
    with broker.faults.error("Fetch", "KAFKA_STORAGE_ERROR", topic="t", times=None) as fault:
        assert client.ask(request, 12).error_code == 56
    assert fault.hits == 1


def test_the_tests_own_questions_never_fail(broker, client):
    with broker.faults.error("Metadata", "UNKNOWN_SERVER_ERROR", times=None) as fault:
        assert "t" in broker.topics
        assert fault.hits == 0


def test_what_has_not_struck(broker, client):
    fault = broker.faults.drop("Fetch", times=None)
    with fault, pytest.raises(WaitTimeoutError, match="not within 0 s: 2 hits of drop of Fetch"):
        fault.wait(2, timeout=0)


def test_a_full_disk(broker, client):
    with broker.faults.full_disk():
        assert client.produce("t", b"x").error_code == 56
        assert client.commit("full", "t", 1) != 0
        assert client.committed("full") == {}, "who reads is served"
        assert client.commit("full", "t", 1) != 0
    assert client.produce("t", b"x").error_code == 0
    assert client.commit("full", "t", 2) == 0, "at once"


def test_no_disk_is_never_full():
    with (
        Broker(in_memory=True) as broker,
        pytest.raises(KohortError, match="in memory has no disk"),
    ):
        broker.faults.full_disk()


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (lambda faults: faults.drop("Fetsh"), "no API is called Fetsh; did you mean Fetch?"),
        (lambda faults: faults.error("Fetch", "NOPE_NOPE"), "no error is called NOPE_NOPE"),
        (lambda faults: faults.error("Fetch", 999), "no error is called 999"),
        (
            lambda faults: faults.error("Fetch", "NOT_COORDINATER"),
            "no error is called NOT_COORDINATER; did you mean NOT_COORDINATOR?",
        ),
    ],
)
def test_a_mistake_is_told(fault, words):
    with pytest.raises(KohortError) as raised:
        fault(Broker().faults)
    assert words in str(raised.value)


def test_a_restart_ends_all_faults():
    with Broker() as broker:
        broker.faults.drop("ApiVersions", times=None)
        broker.restart()
        with Talk(broker.bootstrap) as client:
            assert client.ask(ASK).error_code == 0
        broker.faults.clear()


@pytest.mark.parametrize(
    ("whose", "told"),
    [
        ({"times": 0}, "times is 0, expected 1 or more"),
        ({"times": "3"}, "times is '3', expected a whole number"),
        ({"node": 1}, "no node 1, expected 0 to 0"),
        ({"topic": ["t"]}, r"topic is \['t'\], expected a text"),
        ({"group": 5}, "group is 5, expected a text"),
        ({"grup": "g"}, r"no argument of this fault is called grup; did you mean group\?"),
        ({"seconds": 3}, "no argument of this fault is called seconds; "),
    ],
)
def test_a_fault_that_would_never_strike_is_refused(broker, client, whose, told):
    with pytest.raises(KohortError, match=told):
        broker.faults.drop("OffsetCommit", **whose)
    assert client.commit("g", "t", 1) == 0


OF_GROUPS = {
    *("OffsetCommit", "OffsetFetch", "FindCoordinator", "JoinGroup", "Heartbeat", "LeaveGroup"),
    *("SyncGroup", "DescribeGroups", "AddOffsetsToTxn", "TxnOffsetCommit", "DeleteGroups"),
    *("OffsetDelete", "ConsumerGroupHeartbeat", "ConsumerGroupDescribe"),
    *("ConsumerGroupPrepareAssignment", "ConsumerGroupInstallAssignment"),
}
OF_TOPICS = {
    *("Produce", "Fetch", "ListOffsets", "Metadata", "OffsetCommit", "OffsetFetch"),
    *("CreateTopics", "DeleteTopics", "DeleteRecords", "OffsetForLeaderEpoch"),
    *("AddPartitionsToTxn", "WriteTxnMarkers", "TxnOffsetCommit", "AlterReplicaLogDirs"),
    *("DescribeLogDirs", "CreatePartitions", "ElectLeaders", "AlterPartitionReassignments"),
    *("ListPartitionReassignments", "OffsetDelete", "DescribeProducers", "DescribeTopicPartitions"),
    *("ConsumerGroupHeartbeat", "ConsumerGroupInstallAssignment"),
}
KINDS = {
    "drop": lambda faults, api, **whose: faults.drop(api, **whose),
    "delay": lambda faults, api, **whose: faults.delay(api, 1, **whose),
    "close": lambda faults, api, **whose: faults.close(api, **whose),
    "error": lambda faults, api, **whose: faults.error(api, "UNKNOWN_SERVER_ERROR", **whose),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("what", "apis"), [("group", OF_GROUPS), ("topic", OF_TOPICS)])
def test_a_group_or_topic_is_refused_where_no_request_of_the_api_names_one(kind, what, apis):
    with Broker(in_memory=True) as broker:
        for api in APIS.values():
            if api.name in apis:
                KINDS[kind](broker.faults, api.name, **{what: "x"})
            else:
                line = f"{what} is 'x', expected None: {api.name} names no {what}"
                with pytest.raises(KohortError, match=re.escape(line)):
                    KINDS[kind](broker.faults, api.name, **{what: "x"})
        assert len(list(broker.faults)) == len(apis)


def test_what_has_the_name_of_a_topic_and_is_none_is_no_topic(broker, client):
    """The protocol of a member, or the setting of a topic."""
    broker.faults.drop("CreateTopics", topic="cleanup.policy")
    config = CreatableTopicConfig(name="cleanup.policy", value="compact")
    topic = CreatableTopic(name="v", num_partitions=1, replication_factor=1, configs=[config])
    assert client.ask(CreateTopicsRequest(topics=[topic])).topics[0].error_code == 0


def test_a_transaction_is_no_group_though_it_has_the_name_of_one(broker, client):
    fault = broker.faults.error("FindCoordinator", "NOT_COORDINATOR", group="g", times=None)
    for key_type, hits in ((1, 0), (0, 1)):
        client.ask(FindCoordinatorRequest(key_type=key_type, coordinator_keys=["g"]), 4)
        assert fault.hits == hits


def test_a_delay_and_an_error_have_to_be_some(broker):
    for seconds in (-1, float("nan"), float("inf"), "1"):
        with pytest.raises(KohortError, match="expected seconds, 0 to"):
            broker.faults.delay("Fetch", seconds)
    for none in (0, "NONE"):
        with pytest.raises(KohortError, match="no error"):
            broker.faults.error("Fetch", none)


def test_clear_ends_a_full_disk_too_and_an_inner_block_no_outer_one(broker, client):
    broker.faults.full_disk()
    broker.faults.clear()
    assert client.produce("t", b"1").error_code == 0
    with broker.faults.full_disk():
        with broker.faults.full_disk():
            pass
        assert client.produce("t", b"2").error_code != 0
    assert client.produce("t", b"3").error_code == 0


def test_a_restart_ends_a_full_disk_too():
    with Broker() as one:
        one.create_topic("t")
        full = one.faults.full_disk()
        one.faults.error("Produce", 15, times=None)
        one.restart()
        assert one.produce("t", "1")
        assert list(one.faults) == []
        full.clear()


def test_a_block_whose_broker_is_stopped_keeps_the_error_of_the_test():
    def stops():
        with one.faults.error("Fetch", 15):
            one.stop()
            raise ValueError("mine")

    with Broker() as one, pytest.raises(ValueError, match="mine"):
        stops()
