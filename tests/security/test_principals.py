# SPDX-License-Identifier: Apache-2.0
"""`ssl.principal.mapping.rules`, as Apache Kafka 4.3.1 applies them."""

import json
import lzma
from pathlib import Path
from typing import Any

import pytest

from kohort.security.principals import MappingRuleError, NoMatchingRuleError, PrincipalMapping

DATA = Path(__file__).parents[1] / "data/security"
CASES: list[dict[str, Any]] = [
    json.loads(line)
    for line in lzma.decompress((DATA / "principal-mapping.jsonl.xz").read_bytes()).splitlines()
]
CERTIFICATES = json.loads((DATA / "certificates.json").read_text())


def test_each_recorded_name_becomes_what_upstream_makes_of_it() -> None:
    """SEC-21."""
    assert len(CASES) == 216
    for case in CASES:
        if "result" in case:
            assert PrincipalMapping(case["rules"]).principal(case["name"]) == case["result"], case
        elif case["error"].startswith("NoMatchingRule"):
            mapping = PrincipalMapping(case["rules"])
            with pytest.raises(NoMatchingRuleError, match="applies to"):
                mapping.principal(case["name"])
        else:
            with pytest.raises(MappingRuleError, match=r"ssl\.principal\.mapping\.rules has '"):
                PrincipalMapping(case["rules"])


@pytest.mark.parametrize(
    "name",
    [name for name, one in CERTIFICATES["certificates"].items() if one.get("principal_by_rules")],
)
def test_the_rules_of_the_recorded_listener(name: str) -> None:
    """SEC-20, SEC-21."""
    recorded = CERTIFICATES["certificates"][name]
    subject = recorded["principal_default"].removeprefix("User:")
    principal = PrincipalMapping(CERTIFICATES["rules"]).principal(subject)
    assert f"User:{principal}" == recorded["principal_by_rules"]


@pytest.mark.parametrize(
    ("rules", "name", "expected"),
    [
        ("RULE:CN=(?<user>[a-z]+).*/${user}!/", "CN=alice,O=x", "alice!"),
        ("RULE:CN=(.*?),O=(.*)/$2$1/", "CN=a,O=b", "ba"),
        ("RULE:CN=(.*?),O=(.*)/$10/", "CN=a,O=b", "a0"),
        ("RULE:CN=(.*)/$0/", "CN=a", "CN=a"),
        (r"RULE:CN=(.*)/\$1\/$1/", "CN=a", "$1/a"),
        ("RULE:CN=(.*)(x)?/$1$2/", "CN=a", "a"),
    ],
)
def test_replacements_are_those_of_java(rules: str, name: str, expected: str) -> None:
    assert PrincipalMapping(rules).principal(name) == expected


def test_a_group_that_no_pattern_has_is_refused_before_a_client_comes() -> None:
    with pytest.raises(MappingRuleError, match="names group 'user', expected one that the pattern"):
        PrincipalMapping("RULE:CN=(.*)/${user}/")
    assert PrincipalMapping(r"RULE:CN=(.*)/\${user}/").principal("CN=a") == "${user}"
