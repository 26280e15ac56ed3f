# SPDX-License-Identifier: Apache-2.0
"""Rules and credentials that the admin client is given, before it asks anybody."""

from dataclasses import replace

import pytest

from kohort.client.admin import (
    AclBinding,
    AclFilter,
    AclOperation,
    ResourceType,
    ScramDeletion,
    ScramUpsertion,
)
from kohort.client.admin.security_arguments import bindings, credential_changes, filters

RULE = AclBinding(ResourceType.GROUP, "g", "User:a", AclOperation.READ)


@pytest.mark.parametrize(
    ("given", "kind", "told"),
    [
        (RULE, TypeError, "expected a list of AclBinding"),
        ([AclFilter()], TypeError, "expected AclBinding"),
        ([replace(RULE, operation=3)], TypeError, "operation in acls is 3, expected AclOperation"),
        ([replace(RULE, host=None)], TypeError, "host in acls is None, expected str"),
        ([replace(RULE, principal="a" * 40_000)], ValueError, "principal in acls has a text of"),
    ],
)
def test_rules_are_of_the_right_kind(given, kind, told):
    with pytest.raises(kind, match=told):
        bindings("acls", given)
    assert bindings("acls", [RULE]) == [RULE]
    assert filters("acls", [AclFilter()]) == [AclFilter()]


@pytest.mark.parametrize(
    ("given", "kind", "told"),
    [
        ("hunter2", TypeError, "changes is no list"),
        (["hunter2"], TypeError, "changes has a str, expected ScramUpsertion"),
        ([ScramUpsertion("a", b"hunter2")], TypeError, "the password of user a is of type bytes"),
        ([ScramUpsertion("a", "")], ValueError, "the password of user a is empty"),
        ([ScramUpsertion("a", "hunter2", "PLAIN")], ValueError, "mechanism is 'PLAIN'"),
        ([ScramUpsertion("a", "hunter2", iterations=10**9)], ValueError, "expected 4096 to 16384"),
        ([ScramDeletion("a"), ScramDeletion("a")], ValueError, "user a twice, expected each once"),
        ([ScramDeletion(5)], TypeError, "changes is 5, expected a text"),
    ],
)
def test_credentials_are_of_the_right_kind_and_no_error_has_a_password(given, kind, told):
    with pytest.raises(kind, match=told) as refusal:
        credential_changes(given)
    assert "hunter2" not in str(refusal.value)
