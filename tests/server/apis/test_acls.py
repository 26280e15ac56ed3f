# SPDX-License-Identifier: Apache-2.0
"""Rules: what can be made, what a filter finds, that they are kept, and that they count."""

import pytest
from tests.server.desk import Desk

from kohort.errors import ErrorCode
from kohort.server.access import CLUSTER
from kohort.server.apis import acls
from kohort.sim.disk import SimulatedFiles
from kohort.wire.messages.create_acls import AclCreation, CreateAclsRequest
from kohort.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from kohort.wire.messages.describe_acls import DescribeAclsRequest

TOPIC, GROUP, CLUSTER_TYPE = 2, 3, 4
READ, WRITE, CREATE, DESCRIBE = 3, 4, 5, 8
ANY, MATCH, LITERAL, PREFIXED = 1, 2, 3, 4
DENY, ALLOW = 2, 3
ON = {
    "node_id": "1",
    "authorizer_class_name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super_users": "User:ANONYMOUS",
}
ALICE = "User:alice"
RULES = [
    (TOPIC, "orders", LITERAL, ALICE, "*", READ, ALLOW),
    (TOPIC, "ord", PREFIXED, "User:bob", "*", WRITE, ALLOW),
    (TOPIC, "*", LITERAL, "User:*", "10.0.0.1", DESCRIBE, DENY),
    (GROUP, "orders", LITERAL, ALICE, "*", READ, ALLOW),
]


def create(desk, *rules, version=3):
    request = CreateAclsRequest(creations=[AclCreation(**named(rule)) for rule in rules])
    return [one.error_code for one in desk.ask(request, version).results]


def named(rule):
    names = (
        "resource_type",
        "resource_name",
        "resource_pattern_type",
        "principal",
        "host",
        "operation",
        "permission_type",
    )
    return dict(zip(names, rule, strict=True))


def asked(
    kind=ANY, name=None, pattern=ANY, principal=None, host=None, operation=ANY, permission=ANY
):
    return {
        "resource_type_filter": kind,
        "resource_name_filter": name,
        "pattern_type_filter": pattern,
        "principal_filter": principal,
        "host_filter": host,
        "operation": operation,
        "permission_type": permission,
    }


def found(desk, version=3, **fields):
    answer = desk.ask(DescribeAclsRequest(**asked(**fields)), version)
    if answer.error_code:
        assert answer.resources == []
        return answer.error_code
    return {
        (
            one.resource_type,
            one.resource_name,
            one.pattern_type,
            rule.principal,
            rule.host,
            rule.operation,
            rule.permission_type,
        )
        for one in answer.resources
        for rule in one.acls
    }


def delete(desk, *filters, version=3):
    request = DeleteAclsRequest(filters=[DeleteAclsFilter(**asked(**one)) for one in filters])
    return [
        one.error_code or len(one.matching_acls)
        for one in desk.ask(request, version).filter_results
    ]


def test_without_an_authorizer_there_are_no_rules():
    desk = Desk(node_id="1")
    assert found(desk) == ErrorCode.SECURITY_DISABLED
    assert create(desk, RULES[0]) == [ErrorCode.SECURITY_DISABLED]
    assert delete(desk, {}) == [ErrorCode.SECURITY_DISABLED]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_rules_are_made_told_and_taken_away(version):
    desk = Desk(**ON)
    assert create(desk, *RULES, RULES[0], version=version) == [0] * 5
    assert found(desk, version=version) == set(RULES)
    assert create(desk, RULES[1], version=version) == [0]
    assert delete(desk, {"kind": GROUP}, {"principal": "User:nobody"}, version=version) == [1, 0]
    assert found(desk, version=version) == set(RULES[:3])
    assert delete(desk, {}, version=version) == [3]
    assert found(desk, version=version) == set()


@pytest.mark.parametrize(
    ("fields", "rules"),
    [
        ({"kind": TOPIC}, RULES[:3]),
        ({"name": "orders"}, [RULES[0], RULES[3]]),
        ({"name": "orders", "kind": TOPIC, "pattern": MATCH}, RULES[:3]),
        ({"name": "other", "kind": TOPIC, "pattern": MATCH}, [RULES[2]]),
        ({"name": "ord", "pattern": PREFIXED}, [RULES[1]]),
        ({"pattern": PREFIXED}, [RULES[1]]),
        ({"principal": ALICE}, [RULES[0], RULES[3]]),
        ({"host": "10.0.0.1"}, [RULES[2]]),
        ({"operation": WRITE}, [RULES[1]]),
        ({"permission": DENY}, [RULES[2]]),
        ({"permission": DENY, "operation": WRITE}, []),
    ],
)
def test_what_a_filter_finds(fields, rules):
    desk = Desk(**ON)
    create(desk, *RULES)
    assert found(desk, **fields) == set(rules)
    assert delete(desk, fields) == [len(rules)]
    assert found(desk) == set(RULES) - set(rules)


@pytest.mark.parametrize("field", ["kind", "pattern", "operation", "permission"])
def test_a_filter_with_a_number_that_nobody_knows_finds_nothing_and_deletes_nothing(field):
    desk = Desk(**ON)
    create(desk, *RULES)
    assert found(desk, **{field: 99}) == set()
    assert delete(desk, {field: 99}, {"kind": GROUP, "name": "x"}) == [42, 0]
    assert found(desk) == set(RULES)


@pytest.mark.parametrize("field", ["kind", "pattern", "operation", "permission"])
def test_a_value_of_zero_ends_the_connection(field):
    """SEC-68: in a filter and in a rule alike, and no rule of the request is made."""
    places = {"kind": 0, "pattern": 2, "operation": 5, "permission": 6}
    rule = list(RULES[0])
    rule[places[field]] = 0
    for request in (
        DescribeAclsRequest(**asked(**{field: 0})),
        DeleteAclsRequest(filters=[DeleteAclsFilter(**asked(**{field: 0}))]),
        CreateAclsRequest(creations=[AclCreation(**named(one)) for one in (RULES[0], rule)]),
    ):
        desk = Desk(**ON)
        desk.send(request, 3)
        desk.settle()
        assert desk.connections[0].finished
        desk.another()
        assert desk.cluster.catalog.acls == ()


@pytest.mark.parametrize(
    "rule",
    [
        (8, "x", LITERAL, ALICE, "*", READ, ALLOW),
        (TOPIC, "x", 9, ALICE, "*", READ, ALLOW),
        (TOPIC, "x", LITERAL, ALICE, "*", READ, 4),
        (TOPIC, "x", LITERAL, ALICE, "*", 16, ALLOW),
        (TOPIC, "", LITERAL, ALICE, "*", READ, ALLOW),
        (CLUSTER_TYPE, "x", LITERAL, ALICE, "*", CREATE, ALLOW),
        (TOPIC, "x", LITERAL, "alice", "*", READ, ALLOW),
        (CLUSTER_TYPE, "*", LITERAL, ALICE, "*", CREATE, ALLOW),
        (CLUSTER_TYPE, "kafka", PREFIXED, ALICE, "*", CREATE, ALLOW),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused_alone(rule):
    desk = Desk(**ON)
    cluster = (CLUSTER_TYPE, "kafka-cluster", LITERAL, ALICE, "*", CREATE, ALLOW)
    assert create(desk, rule, cluster) == [ErrorCode.INVALID_REQUEST, 0]
    assert found(desk) == {cluster}


@pytest.mark.parametrize("kind", range(2, 8))
def test_a_rule_may_be_about_an_operation_that_its_resource_does_not_have(kind):
    """Kafka 4.3.1 takes each of the 14 operations for each of the six types of resources: a rule
    that forbids to write to a group is one that users have.
    """
    desk = Desk(**ON)
    name = "kafka-cluster" if kind == CLUSTER_TYPE else "x"
    rules = [(kind, name, LITERAL, ALICE, "*", operation, DENY) for operation in range(2, 16)]
    assert create(desk, *rules) == [0] * 14
    assert found(desk, kind=kind) == set(rules)


@pytest.mark.parametrize(
    "values",
    [
        (ANY, LITERAL, READ, ALLOW),
        (TOPIC, ANY, READ, ALLOW),
        (TOPIC, MATCH, READ, ALLOW),
        (TOPIC, LITERAL, ANY, ALLOW),
        (TOPIC, LITERAL, READ, ANY),
    ],
)
def test_a_rule_with_any_in_it_fails_and_none_is_made(values):
    """SEC-68: such values are those of filters."""
    kind, pattern, operation, permission = values
    desk = Desk(**ON)
    rule = (kind, "x", pattern, ALICE, "*", operation, permission)
    assert create(desk, rule, RULES[0]) == [ErrorCode.UNKNOWN_SERVER_ERROR] * 2
    assert found(desk) == set()


@pytest.mark.parametrize(
    "rule",
    [
        (TOPIC, "a/b", LITERAL, ALICE, "*", READ, ALLOW),
        (TOPIC, "*", PREFIXED, ALICE, "*", READ, ALLOW),
        (TOPIC, "x", LITERAL, ":zed", "*", READ, ALLOW),
        (TOPIC, "x", LITERAL, "User:", "*", READ, ALLOW),
        (TOPIC, "x", LITERAL, "*:*", "", READ, ALLOW),
        (TOPIC, "x", LITERAL, ALICE, "not a host", READ, ALLOW),
    ],
)
def test_what_kafka_takes_is_taken(rule):
    """SEC-68: a name, a principal or a host that nobody can have."""
    desk = Desk(**ON)
    assert create(desk, rule) == [0]
    assert found(desk) == {rule}


def test_rules_are_there_after_a_restart_and_count():
    files = SimulatedFiles()
    desk = Desk(files=files, **ON)
    desk.create()
    desk.cluster.close()
    desk = Desk(files=files, **ON)
    create(desk, *RULES, (TOPIC, "*", LITERAL, "User:*", "*", 2, DENY))
    desk.cluster.close()
    desk = Desk(files=files, **{**ON, "super_users": "User:admin"})
    assert len(desk.cluster.catalog.acls) == len(RULES) + 1
    assert desk.produce().error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_there_is_an_end_of_rules(monkeypatch):
    monkeypatch.setattr(acls, "RULES_MAX", 3)
    desk = Desk(**ON)
    assert create(desk, *RULES) == [ErrorCode.POLICY_VIOLATION] * 4
    assert found(desk) == set()
    assert create(desk, *RULES[:3]) == [0] * 3


def test_there_is_an_end_of_what_rules_say(monkeypatch):
    """A principal may be as long as a request, and all rules are written with each change."""
    monkeypatch.setattr(acls, "BYTES_MAX", 1000)
    desk = Desk(**ON)
    assert create(desk, *RULES) == [0] * 4
    long = (TOPIC, "x", LITERAL, "User:" + "x" * 1000, "*", READ, ALLOW)
    assert create(desk, long, RULES[0]) == [ErrorCode.POLICY_VIOLATION] * 2
    assert found(desk) == set(RULES)


def test_many_filters_do_not_look_at_all_rules_many_times(monkeypatch):
    """Filters that name a resource look at its rules alone. Of others there is an end, and what is
    behind it is refused and takes nothing away.
    """
    monkeypatch.setattr(acls, "LOOKED_AT_MAX", 20)
    desk = Desk(**ON)
    create(desk, *RULES)
    by_name = {"name": "none"}
    everything = {"principal": "User:nobody"}  # looks at 4 rules
    late = {"principal": "User:bob"}

    codes = delete(desk, *[by_name] * 100, *[everything] * 5, late, {"name": "ord"})
    assert codes == [0] * 105 + [ErrorCode.POLICY_VIOLATION] * 2
    assert found(desk) == set(RULES)
    assert delete(desk, late, {"name": "orders", "kind": GROUP}) == [1, 1]
    assert found(desk) == {RULES[0], RULES[2]}


def test_who_may_not_is_told():
    desk = Desk(**ON, may=lambda _client, _operation, kind, _name: kind != CLUSTER)
    assert found(desk) == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert create(desk, RULES[0]) == [ErrorCode.CLUSTER_AUTHORIZATION_FAILED]
    assert delete(desk, {}) == [ErrorCode.CLUSTER_AUTHORIZATION_FAILED]
