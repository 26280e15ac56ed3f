"""Rules: what can be made, what a filter finds, and that they are kept. None is enforced yet."""

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


def test_an_unknown_element_of_a_filter_is_refused():
    desk = Desk(**ON)
    create(desk, *RULES)
    for field in ("kind", "pattern", "operation", "permission"):
        assert found(desk, **{field: 0}) == ErrorCode.INVALID_REQUEST
        assert delete(desk, {field: 0}, {"kind": GROUP, "name": "x"}) == [42, 0]
    assert found(desk) == set(RULES)


@pytest.mark.parametrize(
    "rule",
    [
        (0, "x", LITERAL, ALICE, "*", READ, ALLOW),
        (TOPIC, "x", MATCH, ALICE, "*", READ, ALLOW),
        (TOPIC, "x", LITERAL, ALICE, "*", READ, ANY),
        (TOPIC, "x", LITERAL, ALICE, "*", ANY, ALLOW),
        (TOPIC, "x", LITERAL, ALICE, "*", 16, ALLOW),
        (TOPIC, "", LITERAL, ALICE, "*", READ, ALLOW),
        (CLUSTER_TYPE, "x", LITERAL, ALICE, "*", CREATE, ALLOW),
        (TOPIC, "x", LITERAL, "alice", "*", READ, ALLOW),
        (TOPIC, "x", LITERAL, ":alice", "*", READ, ALLOW),
        (TOPIC, "x", LITERAL, ALICE, "", READ, ALLOW),
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


def test_rules_are_there_after_a_restart_and_do_not_count():
    files = SimulatedFiles()
    desk = Desk(files=files, **ON)
    create(desk, *RULES, (TOPIC, "*", LITERAL, "User:*", "*", 2, DENY))
    assert any("not enforced yet" in line for line in desk.told.warnings)
    desk.cluster.close()
    desk = Desk(files=files, **ON)
    assert set(RULES) < found(desk)
    desk.create()
    assert desk.produce().error_code == 0, "enforcement is still to come, and the broker says so"


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
