# SPDX-License-Identifier: Apache-2.0
"""Rules that are made by requests, and what clients may do by them from then on."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.coordinator.consumers import request as heartbeat_request
from tests.server.desk import Desk

from kohort.config import STANDARD_AUTHORIZER
from kohort.errors import ErrorCode
from kohort.terms import GroupId
from kohort.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kohort.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kohort.wire.messages.consumer_group_install_assignment import (
    ConsumerGroupInstallAssignmentRequest,
)
from kohort.wire.messages.consumer_group_prepare_assignment import (
    ConsumerGroupPrepareAssignmentRequest,
)
from kohort.wire.messages.create_acls import AclCreation, CreateAclsRequest
from kohort.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from kohort.wire.messages.delete_groups import DeleteGroupsRequest
from kohort.wire.messages.describe_groups import DescribeGroupsRequest
from kohort.wire.messages.list_groups import ListGroupsRequest
from kohort.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kohort.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)

DOCS = Path(__file__).parents[2] / "docs"
TOPIC, GROUP, CLUSTER = 2, 3, 4
ALL, READ, DELETE, DESCRIBE = 2, 3, 6, 8
LITERAL, ALLOW = 3, 3
NO_GROUP, NO_TOPIC = (
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
)


class Ruled(Desk):
    """A broker with rules, its administrator's connection, and one of each further person."""

    def __init__(self, **settings: str) -> None:
        super().__init__(
            authorizer_class_name=STANDARD_AUTHORIZER, super_users="User:admin", **settings
        )
        self.people: dict[str, int] = {}
        self._be(0, "User:admin")
        for name in ("one", "two"):
            self.create(name)

    def _be(self, connection: int, principal: str) -> None:
        known = self.connections[connection]
        known.client = replace(known.client, principal=principal)

    def of(self, name: str) -> int:
        """The connection of a person."""
        if name not in self.people:
            self.another()
            self.people[name] = len(self.clients) - 1
            self._be(self.people[name], f"User:{name}")
        return self.people[name]

    def allow(self, name: str, operation: int, kind: int, *things: str) -> None:
        creations = [
            AclCreation(
                resource_type=kind,
                resource_name=thing,
                resource_pattern_type=LITERAL,
                principal=f"User:{name}",
                host="*",
                operation=operation,
                permission_type=ALLOW,
            )
            for thing in things
        ]
        for result in self.ask(CreateAclsRequest(creations=creations), 3).results:
            assert result.error_code == 0

    def forbid(self, name: str) -> None:
        """Take all rules about a person away."""
        self.ask(DeleteAclsRequest(filters=[rules_about(name)]), 3)

    def commit(self, group: str, *topics: str) -> None:
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
        wanted = [OffsetCommitRequestTopic(name=one, partitions=[partition]) for one in topics]
        self.ask(OffsetCommitRequest(group_id=group, topics=wanted), 9)

    def ask_as(self, name: str, request: Any, version: int) -> Any:
        return self.ask(request, version, node=self.of(name))


def rules_about(name: str) -> DeleteAclsFilter:
    return DeleteAclsFilter(
        resource_type_filter=1,
        resource_name_filter=None,
        pattern_type_filter=1,
        principal_filter=f"User:{name}",
        host_filter=None,
        operation=1,
        permission_type=1,
    )


def codes(answer: Any, field: str = "groups", name: str = "group_id") -> dict[str, int]:
    return {getattr(one, name): one.error_code for one in getattr(answer, field)}


def test_a_rule_counts_from_its_answer_on():
    """SEC-67: on every connection, and not later; the answer and the next request may even come
    together.
    """
    desk = Ruled()
    desk.commit("g", "one")
    asked = DescribeGroupsRequest(groups=["g"])
    assert codes(desk.ask_as("alice", asked, 5)) == {"g": NO_GROUP}
    desk.allow("alice", DESCRIBE, GROUP, "g")
    assert codes(desk.ask_as("alice", asked, 5)) == {"g": 0}
    desk.forbid("alice")
    assert codes(desk.ask_as("alice", asked, 5)) == {"g": NO_GROUP}


def test_one_group_of_two_may_be_described():
    """K40-28, K848-164."""
    desk = Ruled()
    for group in ("classic", "hidden"):
        desk.commit(group, "one")
    for group in ("mine", "secret"):
        desk.ask(heartbeat_request("m", 0, group_id=group, names=["one"]), 1)
    desk.allow("alice", DESCRIBE, GROUP, "classic", "mine")
    desk.allow("alice", DESCRIBE, TOPIC, "one")

    answer = desk.ask_as("alice", DescribeGroupsRequest(groups=["classic", "hidden"]), 5)
    assert codes(answer) == {"hidden": NO_GROUP, "classic": 0}
    assert next(iter(codes(answer))) == "hidden", "what is refused comes first"
    wanted = ConsumerGroupDescribeRequest(
        group_ids=["mine", "secret"], include_authorized_operations=False
    )
    answer = desk.ask_as("alice", wanted, 1)
    assert codes(answer) == {"secret": NO_GROUP, "mine": 0}
    assert [len(group.members) for group in answer.groups if not group.error_code] == [1]


def test_each_group_is_described_with_its_own_code():
    """K848-160: the others of the request are unharmed."""
    desk = Ruled(nodes=2)
    groups = ["mine", "secret", "", "missing", *(f"g{number}" for number in range(8))]
    desk.ask(heartbeat_request("m", 0, group_id="mine", names=["one"]), 1)
    desk.allow("alice", ALL, GROUP, *(group for group in groups if group not in ("secret", "")))
    desk.allow("alice", DESCRIBE, GROUP, "*")
    desk.allow("alice", DESCRIBE, TOPIC, "*")
    wanted = ConsumerGroupDescribeRequest(group_ids=groups, include_authorized_operations=False)
    here = desk.dispatchers[0].node
    closed = next(group for group in reversed(groups) if _is_here(desk, group))
    desk.cluster.drivers.pop(desk.cluster.placement.shard_of(GroupId(closed)))

    found = codes(desk.ask_as("alice", wanted, 1))

    for group in groups:
        if not _is_here(desk, group):
            assert found[group] == ErrorCode.NOT_COORDINATOR
        elif here.cluster.drivers.get(here.cluster.placement.shard_of(GroupId(group))) is None:
            assert found[group] == ErrorCode.COORDINATOR_NOT_AVAILABLE
        elif group == "":
            assert found[group] == ErrorCode.INVALID_GROUP_ID
        elif group != "mine":
            assert found[group] == ErrorCode.GROUP_ID_NOT_FOUND
    desk.forbid("alice")
    assert set(codes(desk.ask_as("alice", wanted, 1)).values()) == {NO_GROUP}


def _is_here(desk: Desk, group: str) -> bool:
    return desk.cluster.placement.coordinator_of(GroupId(group)) == desk.dispatchers[0].node.id


def test_who_may_describe_the_cluster_lists_all_groups_and_others_theirs():
    """K518-22, K848-163."""
    desk = Ruled()
    for number in range(5):
        desk.commit(f"g{number}", "one")
    desk.allow("alice", DESCRIBE, GROUP, "g1", "g3")
    desk.allow("bob", DESCRIBE, CLUSTER, "kafka-cluster")
    assert sorted(codes_of_list(desk, "alice")) == ["g1", "g3"]
    assert sorted(codes_of_list(desk, "bob")) == [f"g{number}" for number in range(5)]
    assert codes_of_list(desk, "carol") == []


def codes_of_list(desk: Ruled, name: str) -> list[str]:
    answer = desk.ask_as(name, ListGroupsRequest(), 5)
    assert answer.error_code == 0
    return [group.group_id for group in answer.groups]


def test_the_documentation_says_what_describe_on_the_cluster_shows():
    """K518-23."""
    text = " ".join((DOCS / "operations.md").read_text(encoding="utf-8").split())
    assert "DESCRIBE on the cluster lists all groups with their states" in text


def test_offsets_of_what_may_not_be_described_are_left_out_or_refused():
    """K709-30: of three principals."""
    desk = Ruled()
    for group in ("g1", "g2"):
        desk.commit(group, "one", "two")
    desk.allow("alice", DESCRIBE, GROUP, "g1")
    desk.allow("alice", DESCRIBE, TOPIC, "one")
    desk.allow("bob", DESCRIBE, GROUP, "g1", "g2")
    desk.allow("bob", DESCRIBE, TOPIC, "one", "two")

    def fetched(name: str, topics: list[str] | None) -> dict[str, Any]:
        named = (
            None
            if topics is None
            else [OffsetFetchRequestTopics(name=one, partition_indexes=[0]) for one in topics]
        )
        wanted = [OffsetFetchRequestGroup(group_id=one, topics=named) for one in ("g1", "g2")]
        answer = desk.ask_as(name, OffsetFetchRequest(groups=wanted), 9)
        return {
            group.group_id: group.error_code
            or {topic.name: topic.partitions[0].error_code for topic in group.topics}
            for group in answer.groups
        }

    assert fetched("alice", None) == {"g1": {"one": 0}, "g2": NO_GROUP}
    assert fetched("alice", ["one", "two"]) == {"g1": {"one": 0, "two": NO_TOPIC}, "g2": NO_GROUP}
    both = {"one": 0, "two": 0}
    assert fetched("bob", None) == {"g1": both, "g2": both}
    assert fetched("carol", None) == {"g1": NO_GROUP, "g2": NO_GROUP}


def test_a_group_is_deleted_by_who_may_delete_it():
    """K229-12."""
    desk = Ruled()
    for group in ("mine", "other"):
        desk.commit(group, "one")
    desk.allow("alice", DELETE, GROUP, "mine")
    desk.allow("alice", READ, GROUP, "other")
    answer = desk.ask_as("alice", DeleteGroupsRequest(groups_names=["mine", "other"]), 2)
    assert codes(answer, "results") == {"mine": 0, "other": NO_GROUP}
    left = desk.ask(ListGroupsRequest(), 5).groups
    assert [group.group_id for group in left] == ["other"]


@pytest.mark.parametrize(
    "asked",
    [
        heartbeat_request("m", 0, names=["one"]),
        ConsumerGroupPrepareAssignmentRequest(group_id="g", member_id="m", member_epoch=1),
        ConsumerGroupInstallAssignmentRequest(
            group_id="g",
            member_id="m",
            member_epoch=1,
            group_epoch=1,
            error=0,
            members=[],
        ),
    ],
    ids=lambda asked: type(asked).__name__,
)
def test_who_may_not_read_a_group_is_no_member_of_it(asked):
    """K848-162: and nothing is written."""
    desk = Ruled()
    desk.allow("alice", DESCRIBE, GROUP, "g")
    desk.allow("alice", READ, TOPIC, "one")
    version = 1 if isinstance(asked, ConsumerGroupHeartbeatRequest) else 0
    ends = [driver.log.end for driver in desk.cluster.drivers.values()]
    assert desk.ask_as("alice", asked, version).error_code == NO_GROUP
    assert [driver.log.end for driver in desk.cluster.drivers.values()] == ends


def test_heartbeats_that_were_answered_from_memory_are_judged_anew():
    """SEC-80: a member that loses the right stays one for others, and goes on when it is back."""
    desk = Ruled()
    desk.allow("alice", READ, GROUP, "g")
    desk.allow("alice", READ, TOPIC, "one")
    joined = desk.ask_as("alice", heartbeat_request("m", 0, names=["one"]), 1)
    beat = heartbeat_request("m", joined.member_epoch)
    assert [desk.ask_as("alice", beat, 1).error_code for _ in range(4)] == [0] * 4
    cache = desk.dispatchers[0]._heartbeat_cache
    assert len(cache._known) == 1
    desk.forbid("alice")
    assert len(cache._known) == 0
    assert [desk.ask_as("alice", beat, 1).error_code for _ in range(3)] == [NO_GROUP] * 3
    desk.allow("alice", READ, GROUP, "g")
    assert [desk.ask_as("alice", beat, 1).error_code for _ in range(3)] == [0] * 3


def test_a_change_of_something_else_forgets_no_heartbeat():
    desk = Ruled()
    desk.allow("alice", READ, GROUP, "g")
    desk.allow("alice", READ, TOPIC, "one")
    joined = desk.ask_as("alice", heartbeat_request("m", 0, names=["one"]), 1)
    for _ in range(3):
        desk.ask_as("alice", heartbeat_request("m", joined.member_epoch), 1)
    known = desk.dispatchers[0]._heartbeat_cache._known
    assert len(known) == 1
    desk.create("three")
    assert len(known) == 1


def test_a_hidden_name_is_refused_and_a_pattern_finds_what_may_be_seen():
    """K848-165."""
    desk = Ruled()
    desk.allow("alice", READ, GROUP, "g")
    desk.allow("alice", DESCRIBE, TOPIC, "one")
    refused = desk.ask_as("alice", heartbeat_request("m", 0, names=["one", "two"]), 1)
    assert (refused.error_code, refused.member_id) == (NO_TOPIC, None)
    desk.ask_as("alice", heartbeat_request("m", 0, names=None, subscribed_topic_regex="one|two"), 1)
    answer = desk.ask_as("alice", heartbeat_request("m", 1), 1)
    topics = desk.cluster.catalog.by_id
    given = [topics[one.topic_id].name for one in answer.assignment.topic_partitions]
    assert given == ["one"]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, ("info", "every client may do everything")),
        ({"super_users": "User:a"}, ("info", "everything, whatever super.users says")),
        ({"authorizer_class_name": STANDARD_AUTHORIZER}, ("warning", "super.users names nobody")),
        (
            {"authorizer_class_name": STANDARD_AUTHORIZER, "super_users": "User:a"},
            ("", ""),
        ),
    ],
)
def test_the_start_says_who_may_do_what(settings, said):
    told = Desk(**settings).told
    level, text = said
    lines = {"info": told.lines, "warning": told.warnings, "": told.lines + told.warnings}[level]
    found = [line for line in lines if "authorizer.class.name" in line]
    assert len(found) == (1 if level else 0)
    assert all(text in line for line in found)


def test_super_users_with_commas_between_them_are_one_name():
    (line,) = Desk(super_users="User:a,User:b;User:CN=c,O=d").told.warnings
    assert line.startswith("super.users has 'User:a,User:b', which is one name")
