# SPDX-License-Identifier: Apache-2.0
"""A broker started on folders that Apache Kafka wrote answers as Kafka did.

What it has not learned yet is in WAITING, by the feature's name; an entry that is no longer needed
fails.
"""

import pytest
from tests import golden_logs
from tests.replay.player import RecordedScenario, plain
from tests.replay.test_golden_scenarios import SETTINGS, STORIES
from tests.world import World

from kohort.server.catalog import OFFSETS_TOPIC, Topic
from kohort.storage.compaction import CleaningRules, compact
from kohort.storage.files import DiskFiles
from kohort.terms import TopicId, uuid_bytes
from kohort.wire import codec
from kohort.wire.apis import APIS
from kohort.wire.frames import RequestHeader, encode_request
from kohort.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kohort.wire.messages.describe_groups import DescribeGroupsRequest
from kohort.wire.messages.list_groups import ListGroupsRequest
from kohort.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
)

CAPTURES = ["1-written", "2-compacted", "3-compacted-again", "4-killed"]
CODECS = ["codec-gzip", "codec-lz4", "codec-snappy", "codec-zstd"]
VERSIONS = {
    ListGroupsRequest: 5,
    OffsetFetchRequest: 9,
    DescribeGroupsRequest: 6,
    ConsumerGroupDescribeRequest: 1,
}

# The killed broker was asked when its groups of ten minutes before had just expired.
EXPIRY = {"offsets_retention_minutes": 11, "offsets_retention_check_interval_ms": 100}


class Started:
    """A broker on a directory. `given` are (name, id, partitions) of topics without a folder."""

    def __init__(self, path, given=(), now=1_700_000_000_000, **settings):
        def prepare(catalog):
            for name, topic_id, partitions in given:
                catalog.create(
                    Topic(
                        name=name,
                        topic_id=TopicId(topic_id),
                        partitions=partitions,
                        replication_factor=1,
                    )
                )

        named = {name.replace("_", "."): str(value) for name, value in settings.items()}
        self.world = World(
            SETTINGS | named, files=DiskFiles(), path=str(path), now=now, prepare=prepare
        )
        self.client = self.world.connect()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.world.cluster.close()

    def compact(self):
        """Clean the groups' logs to the last record, without waiting for tombstones to age."""
        for driver in self.world.cluster.drivers.values():
            driver.log.roll()
            list(compact(driver.log, DiskFiles(), CleaningRules(self.world.now, 0)))

    def topics(self):
        """The topics as `given` wants them."""
        known = self.world.cluster.catalog.by_name.values()
        return [
            (one.name, one.topic_id, one.partitions) for one in known if one.name != OFFSETS_TOPIC
        ]

    def ask(self, request):
        version = VERSIONS[type(request)]
        api = APIS[request.api_key]
        header = RequestHeader(
            request_api_key=api.key,
            request_api_version=version,
            correlation_id=1,
            client_id="golden",
        )
        body = codec.encode(request, version)
        self.client.send(encode_request(header, body, flexible=api.flexible(version)))
        answer = self.client.answers.pop()
        return codec.decode(api.response, version, answer, 5 if api.flexible(version) else 4)

    def listed(self):
        return self.ask(ListGroupsRequest()).groups

    def offsets_of(self, group_id):
        asked = OffsetFetchRequestGroup(group_id=group_id, topics=None)
        (answer,) = self.ask(OffsetFetchRequest(groups=[asked])).groups
        return answer

    def answers(self):
        """All that can be asked about groups, an entry per group and per committed offset."""
        said = {}
        for group in self.listed():
            said[f"list {group.group_id}"] = (
                group.protocol_type,
                group.group_state,
                group.group_type,
            )
            for topic in self.offsets_of(group.group_id).topics:
                for one in topic.partitions:
                    said[f"offset {group.group_id} {topic.name}-{one.partition_index}"] = (
                        one.committed_offset,
                        one.committed_leader_epoch,
                        one.metadata,
                        one.error_code,
                    )
            if group.group_type in ("classic", "consumer"):
                said[f"describe {group.group_id}"] = self.described(
                    group.group_id, group.group_type
                )
        return said

    def described(self, group_id, group_type="classic"):
        if group_type == "classic":
            answer = self.ask(DescribeGroupsRequest(groups=[group_id]))
        else:
            answer = self.ask(ConsumerGroupDescribeRequest(group_ids=[group_id]))
        (one,) = answer.groups
        return sorted_members(plain(one, VERSIONS[DescribeGroupsRequest]))


def lowered(value):
    """The capture's form with names as `plain` writes them."""
    if isinstance(value, dict):
        return {key.lower(): lowered(one) for key, one in value.items()}
    return [lowered(one) for one in value] if isinstance(value, list) else value


def sorted_members(group):
    """Without error texts, and in an order of our own: upstream's is that of a hash map."""
    group.pop("errormessage", None)
    group["members"].sort(key=lambda member: member["memberid"])
    for member in group["members"]:
        for field in ("assignment", "targetassignment"):
            if field in member:
                member[field]["topicpartitions"].sort(key=lambda one: one["topicname"])
        if "subscribedtopicnames" in member:
            member["subscribedtopicnames"].sort()
    return group


def captured(state):
    """What Kafka answered, in the form of `Started.answers`."""
    said = {
        f"list {one['GroupId']}": (one["ProtocolType"], one["GroupState"], one["GroupType"])
        for one in state["groups"]
    }
    for one in state["offsets"]:
        said[f"offset {one['group']} {one['topic']}-{one['partition']}"] = (
            one["offset"],
            one["leader_epoch"],
            one["metadata"],
            one["error"],
        )
    for one in state["describe"]:
        said[f"describe {one['GroupId']}"] = sorted_members(lowered(one))
    return said


def topics_of(name):
    """The topics that the records and the answers speak of: id and number of partitions."""
    state = golden_logs.state(name)
    ids, counts = {}, {}
    for record in golden_logs.dump(name):
        if record.get("type") == 1 and record["value"]:
            key = record["key"]
            counts[key["topic"]] = max(counts.get(key["topic"], 1), key["partition"] + 1)
            if topic_id := record["value"].get("topicId"):
                ids[key["topic"]] = topic_id
    for group in state["describe"]:
        for member in group["Members"]:
            for field in ("Assignment", "TargetAssignment"):
                for one in member.get(field, {}).get("TopicPartitions", ()):
                    ids[one["TopicName"]] = one["TopicId"]
                    highest = max(one["Partitions"], default=0) + 1
                    counts[one["TopicName"]] = max(counts.get(one["TopicName"], 1), highest)
    return [(topic, uuid_bytes(topic_id), counts[topic]) for topic, topic_id in ids.items()]


def moment_of(name):
    """The last thing that was written, just before the capture asked."""
    return max(line["maxTimestamp"] for line in golden_logs.dump(name) if line["kind"] == "batch")


def differing(ours, theirs):
    return [key for key in sorted(ours.keys() | theirs.keys()) if ours.get(key) != theirs.get(key)]


@pytest.mark.parametrize("name", CAPTURES + CODECS)
def test_answers_are_those_of_the_broker_that_wrote_the_folders(name, tmp_path):
    """K848-122, K848-155, K229-21, K229-26."""
    folder = golden_logs.unpack(name, tmp_path)
    theirs = captured(golden_logs.state(name))
    expiry = EXPIRY if name == "4-killed" else {}
    with Started(folder, topics_of(name), moment_of(name), **expiry) as broker:
        broker.world.advance(100)
        ours = broker.answers()

    assert {key: (ours.get(key), theirs.get(key)) for key in differing(ours, theirs)} == {}


@pytest.mark.parametrize("name", CAPTURES)
def test_a_second_start_gives_the_same_answers(name, tmp_path):
    folder = golden_logs.unpack(name, tmp_path)
    topics, now = topics_of(name), moment_of(name)
    with Started(folder, topics, now) as broker:
        first = broker.answers()
    with Started(folder, topics, now) as broker:
        assert broker.answers() == first


@pytest.mark.parametrize("name", CAPTURES)
def test_an_unknown_topic_is_not_a_deleted_one(name, tmp_path):
    """A part of a broker's directory keeps every group and offset, and when the topics come back
    it is as if they had never been away.
    """
    folder = golden_logs.unpack(name, tmp_path)
    topics, now = topics_of(name), moment_of(name)
    with Started(folder, now=now) as broker:
        without = broker.answers()
    with Started(folder, topics, now) as broker:
        complete = broker.answers()
    assert without.keys() == complete.keys()
    assert {key: value for key, value in without.items() if not key.startswith("describe")} == {
        key: value for key, value in complete.items() if not key.startswith("describe")
    }


def test_old_layouts_are_read_and_a_partition_of_an_unknown_one_is_refused_as_a_whole(tmp_path):
    folder = golden_logs.unpack("legacy", tmp_path)
    state = golden_logs.state("legacy")
    with Started(folder, now=moment_of("legacy")) as broker:
        listed = {
            (one.group_id, one.protocol_type, one.group_state, one.group_type)
            for one in broker.listed()
        }
        assert listed == {
            (one["GroupId"], one["ProtocolType"], one["GroupState"], one["GroupType"])
            for one in state["list_groups_v5"]["Groups"]
        }
        refused = 0
        for group in state["groups"]:
            theirs = group["offset_fetch_v7"]
            ours = broker.offsets_of(group["group"])
            assert ours.error_code == theirs["ErrorCode"]
            assert {
                (topic.name, one.partition_index): (
                    one.committed_offset,
                    one.committed_leader_epoch,
                    one.metadata,
                )
                for topic in ours.topics
                for one in topic.partitions
            } == {
                (topic["Name"], one["PartitionIndex"]): (
                    one["CommittedOffset"],
                    one["CommittedLeaderEpoch"],
                    one["Metadata"],
                )
                for topic in theirs["Topics"]
                for one in topic["Partitions"]
            }
            described = sorted_members(lowered(group["describe_groups_v6"]))
            assert broker.described(group["group"]) == described
            refused += described["errorcode"] == 16
        assert refused == 2


# Groups that only offsets of aborted transactions have made: a cleaned log has nothing of them.
ABORTED = ("txn-group-verify",)


@pytest.mark.parametrize("compacted", [False, True])
@pytest.mark.parametrize("name", STORIES)
def test_what_a_scenario_left_is_the_same_after_a_restart(name, compacted, tmp_path):
    """Live state is replayed state: what was answered before a restart is answered after it, also
    when the log was compacted meanwhile.

    A classic rebalance under way is not written down: its group comes back as it was before.
    """
    with Started(tmp_path) as broker:
        RecordedScenario(broker.world, STORIES[name]).play()
        live, topics, now = broker.answers(), broker.topics(), broker.world.now
        if compacted:
            broker.compact()
    with Started(tmp_path, topics, now) as broker:
        reloaded = broker.answers()
    different = {key: (live.get(key), reloaded.get(key)) for key in differing(live, reloaded)}
    for key in list(different):
        group = key.removeprefix("list ")
        if key.startswith("list ") and live.get(key, ("", ""))[1] == "CompletingRebalance":
            assert reloaded[key][1] in ("Empty", "Stable")
            del different[key], different[f"describe {group}"]
        elif compacted and group in ABORTED and key.startswith("list "):
            assert live[key][1] == "Empty"
            assert not [one for one in live if one.startswith(f"offset {group} ")]
            del different[key], different[f"describe {group}"]
    assert different == {}
