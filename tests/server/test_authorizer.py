# SPDX-License-Identifier: Apache-2.0
"""Who may do what under which rules: as Apache Kafka has answered, and as a naive reading says."""

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.golden import access

from kohort.config import BrokerConfig
from kohort.machines.effects import Client
from kohort.security.acls import AclOperation, ResourceType
from kohort.server import authorizer
from kohort.server.access import (
    ANY,
    CLUSTER,
    CLUSTER_NAME,
    CREATE,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    GROUP,
    IDEMPOTENT_WRITE,
    READ,
    TOPIC,
    TRANSACTIONAL_ID,
    USER,
    WRITE,
    cluster_operations,
    may_create,
    operations,
)
from kohort.server.authorizer import Authorizer, authorizer_or_none
from kohort.server.catalog import Acl

LITERAL, PREFIXED = 3, 4
DENY, ALLOW = 2, 3
OPERATIONS = [one for one in AclOperation if READ <= one <= AclOperation.CREATE_TOKENS]
KINDS = [TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID, USER]
ALICE = Client("c", "/127.0.0.1", "User:alice")
RULES = [(name, line) for name in ("rules", "rules-allow-everyone") for line in access(name)]


def rule(
    operation: int,
    name: str,
    *,
    kind: int = TOPIC,
    pattern: int = LITERAL,
    principal: str = "User:alice",
    host: str = "*",
    permission: int = ALLOW,
) -> Acl:
    return Acl(kind, name, pattern, principal, host, operation, permission)


def under(*acls: Acl, super_users: tuple[str, ...] = (), allow_unruled: bool = False) -> Authorizer:
    found = Authorizer(super_users, allow_unruled=allow_unruled)
    found.adopt(acls)
    return found


def recorded(given: dict[str, Any]) -> Acl:
    return Acl(
        given["ResourceType"],
        given["ResourceName"],
        given["ResourcePatternType"],
        given["Principal"],
        given["Host"],
        given["Operation"],
        given["PermissionType"],
    )


def told(may: Authorizer, client: Client, answer: dict[str, Any]) -> dict[str, Any]:
    """What a recorded answer tells, asked of ours."""

    def fields(kind: ResourceType, names: dict[str, Any]) -> dict[str, Any]:
        return {
            name: operations(may, client, kind, name) if may(client, DESCRIBE, kind, name) else None
            for name in names
        }

    def each(names: dict[str, Any], operation: AclOperation, kind: ResourceType) -> dict[str, bool]:
        return {name: may(client, operation, kind, name) for name in names}

    def describes(resource: str) -> bool:
        number, name = resource.split(":", 1)
        return may(client, DESCRIBE_CONFIGS, GROUP if number == "32" else TOPIC, name)

    anywhere = may(client, WRITE, TOPIC, ANY)
    return {
        "principal": client.principal,
        "host": client.host.removeprefix("/"),
        "topics": fields(TOPIC, answer["topics"]),
        "groups": fields(GROUP, answer["groups"]),
        "cluster": cluster_operations(may, client),
        "describe_transactional_ids": each(
            answer["describe_transactional_ids"], DESCRIBE, TRANSACTIONAL_ID
        ),
        "write_transactional_ids": each(answer["write_transactional_ids"], WRITE, TRANSACTIONAL_ID),
        "write_topics": each(answer["write_topics"], WRITE, TOPIC),
        "create_topics": {name: may_create(may, client, name) for name in answer["create_topics"]},
        "describe_configs": {name: describes(name) for name in answer["describe_configs"]},
        "init_producer_id_without_transaction": (
            0 if anywhere or may(client, IDEMPOTENT_WRITE, CLUSTER, CLUSTER_NAME) else 31
        ),
    }


def test_840_random_sets_of_rules_mean_what_they_mean_to_kafka():
    """SEC-60 to SEC-65."""
    for name, line in RULES:
        may = under(*map(recorded, line["rules"]), allow_unruled=name != "rules")
        for answer in line["answers"]:
            client = Client("c", "/" + answer["host"], answer["principal"])
            assert told(may, client, answer) == answer, (name, line["case"])


def naive(acls: list[Acl], client: Client, operation: int, kind: int, name: str) -> bool:
    """SEC-60 to SEC-62, word by word."""
    covering = [
        acl
        for acl in acls
        if acl.resource_type == kind
        and (
            name.startswith(acl.resource_name)
            if acl.pattern_type == PREFIXED
            else acl.resource_name in (name, "*")
        )
        and acl.principal in (client.principal, "User:*")
        and acl.host in (client.host[1:], "*")
    ]
    if any(acl.permission_type == DENY and acl.operation in (2, operation) for acl in covering):
        return False
    implying = {DESCRIBE: (3, 4, 6, 7), DESCRIBE_CONFIGS: (11,)}.get(AclOperation(operation), ())
    return any(
        acl.permission_type == ALLOW and acl.operation in (2, operation, *implying)
        for acl in covering
    )


NAMES = st.text("ab*", min_size=1, max_size=4)
ACLS = st.builds(
    Acl,
    st.sampled_from([2, 3]),
    NAMES,
    st.sampled_from([LITERAL, PREFIXED]),
    st.sampled_from(["User:alice", "User:bob", "User:*", "Group:x"]),
    st.sampled_from(["*", "127.0.0.1", "10.0.0.1"]),
    st.integers(2, 15),
    st.sampled_from([DENY, ALLOW]),
)


@given(st.lists(ACLS, max_size=12), st.lists(NAMES, min_size=1, max_size=4))
def test_an_answer_is_that_of_a_walk_over_all_rules(acls, names):
    """SEC-61: also when it is asked again, and from memory."""
    may = under(*acls)
    for _ in range(2):
        for name in names:
            for operation in OPERATIONS:
                for kind in (TOPIC, GROUP):
                    expected = naive(acls, ALICE, operation, kind, name)
                    assert may(ALICE, operation, kind, name) == expected


def test_a_super_user_may_do_everything():
    """SEC-63: no rule can deny it. The name of a certificate has commas."""
    config = BrokerConfig.of(
        {
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": " User:admin; User:CN=super,O=Kohort;",
        }
    )
    may = authorizer_or_none(config)
    assert may is not None
    may.adopt([rule(2, "*", principal="User:*", permission=DENY)])
    for name in ("User:admin", "User:CN=super,O=Kohort"):
        client = Client("c", "/127.0.0.1", name)
        assert may(client, WRITE, TOPIC, "a")
        assert may(client, WRITE, TOPIC, ANY)
    assert not may(Client("c", "/127.0.0.1", "User:CN=super"), WRITE, TOPIC, "a")


def test_without_its_class_there_is_no_authorizer():
    assert authorizer_or_none(BrokerConfig()) is None


def test_a_thing_that_is_called_as_all_of_them_is_not_any_of_them():
    """A client may ask about a group `*`, and learns no more than the rules say about that."""
    may = under(rule(READ, "a", kind=GROUP))
    assert may(ALICE, READ, GROUP, ANY)
    assert not may(ALICE, READ, GROUP, "*")


def test_rules_of_everybody_and_of_addresses_count_as_well():
    """SEC-5, SEC-60: an address is compared as text."""
    may = under(
        rule(READ, "a", principal="User:*", host="::1"),
        rule(READ, "a", principal="User:bob", host="127.0.0.0/8"),
    )
    assert may(Client("c", "/::1", "User:bob"), READ, TOPIC, "a")
    assert not may(Client("c", "/127.0.0.1", "User:bob"), READ, TOPIC, "a")


def test_the_longest_of_many_prefixes_counts_like_the_others():
    nested = [rule(READ, "x" * size, pattern=PREFIXED) for size in (1, 3, 7)]
    may = under(*nested, rule(READ, "x" * 5, pattern=PREFIXED, permission=DENY))
    assert [may(ALICE, READ, TOPIC, "x" * size) for size in (0, 1, 4, 5, 8)] == [
        *(False, True, True, False, False)
    ]
    assert not may(ALICE, READ, TOPIC, "y")
    assert may(ALICE, READ, TOPIC, "xa")


def test_a_change_of_the_rules_is_known_at_once():
    may = under(rule(READ, "a"))
    assert may(ALICE, READ, TOPIC, "a")
    assert not may(ALICE, WRITE, TOPIC, ANY)
    may.adopt([rule(WRITE, "b")])
    assert not may(ALICE, READ, TOPIC, "a")
    assert may(ALICE, WRITE, TOPIC, ANY)


def test_what_is_remembered_is_bounded(monkeypatch):
    """Clients choose the names that they ask about."""
    monkeypatch.setattr(authorizer, "REMEMBERED_MAX", 100)
    may = under(rule(READ, "*"))
    for number in range(1000):
        client = Client("c", f"/10.0.0.{number % 7}", "User:alice")
        assert may(client, READ, TOPIC, f"t{number}")
        assert may(client, READ, TOPIC, "x" * 300 + str(number))
        views = [*may._views.values(), *may._old_views.values()]
        kept = [name for view in views for known in view.may for name in known]
        assert len(kept) <= 100
        assert all(len(name) < 300 for name in kept)
        assert {id(view.older) for view in views} <= {id(None), *map(id, views)}


def test_what_is_asked_for_again_and_again_is_not_forgotten_with_the_rest(monkeypatch):
    """No round has to decide everything anew, however many other names are asked about."""
    monkeypatch.setattr(authorizer, "REMEMBERED_MAX", 400)
    may = under(rule(READ, "*"))
    decided = []
    decide = authorizer.Authorizer._decided

    def noted(self, view, kind, name):
        decided.append(name)
        return decide(self, view, kind, name)

    monkeypatch.setattr(authorizer.Authorizer, "_decided", noted)
    often = [f"often-{number}" for number in range(20)]
    for number in range(2000):
        assert may(ALICE, READ, TOPIC, f"once-{number}")
        for name in often[: 1 + number % 20]:
            assert may(ALICE, READ, TOPIC, name)
    assert [decided.count(name) for name in often] == [1] * 20
    may.adopt([rule(WRITE, "b")])
    assert not may(ALICE, READ, TOPIC, often[0])  # neither generation outlives its rules


def calls_of(work: Callable[[], object]) -> int:
    count = 0

    def counted(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def many(count: int) -> Authorizer:
    """Half of the rules are about others, and half of the rest are prefixes."""
    return under(
        *(
            rule(
                READ,
                f"topic-{number}-",
                principal="User:alice" if number % 2 else f"User:{number}",
                pattern=PREFIXED if number % 4 == 1 else LITERAL,
            )
            for number in range(count)
        )
    )


def test_ten_thousand_rules_cost_no_more_than_ten():
    """In calls of functions: of a question that is new, and of one that is not."""
    few, full = many(10), many(10_000)
    for may in (few, full):
        may(ALICE, READ, TOPIC, "first")  # the rules about alice are put in order once
    for name in ("topic-3-", "topic-5-x", "else"):
        asked = [partial(may, ALICE, READ, TOPIC, name) for may in (few, full)]
        new, again = ([calls_of(one) for one in asked] for _ in range(2))
        assert new[1] <= new[0] + 2
        assert again[0] == again[1] <= 5


def test_who_may_do_the_same_is_alike():
    may = under(rule(READ, "a"), rule(READ, "b", host="10.0.0.1"), super_users=("User:admin",))
    here, there, elsewhere = (Client("c", f"/10.0.0.{n}", "User:alice") for n in (1, 2, 3))
    assert may.alike(there) == may.alike(elsewhere) != may.alike(here)
    bob, carol = (Client("c", "/10.0.0.1", f"User:{name}") for name in ("bob", "carol"))
    assert may.alike(bob) == may.alike(carol) != may.alike(here)
    assert may.alike(Client("c", "/10.0.0.1", "User:admin")) not in map(may.alike, (bob, here))


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_thing_has_rules(kind):
    may = under(rule(CREATE, "x", kind=kind))
    assert may(ALICE, CREATE, kind, "x")
    assert not any(may(ALICE, CREATE, other, "x") for other in KINDS if other is not kind)
