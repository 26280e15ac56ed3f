# SPDX-License-Identifier: Apache-2.0
"""Quotas: none to describe and none to set. Codes and texts are those of Apache Kafka 4.3.1, which
takes what is refused here with POLICY_VIOLATION.
"""

import pytest

from kohort.errors import ErrorCode
from kohort.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from kohort.wire.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest

INVALID = ErrorCode.INVALID_REQUEST
EXACT, DEFAULT, SPECIFIED = range(3)
ANY_USER = ("user", SPECIFIED, None)
USER = ("user", "zed")
RATE = "producer_byte_rate"
MIXED = (
    "Invalid entity filter component combination. IP filter component should not be used with user "
    "or clientId filter component."
)


@pytest.mark.parametrize(
    ("components", "code", "message"),
    [
        ([], 0, ""),
        ([ANY_USER], 0, ""),
        ([("user", EXACT, "u")], 0, ""),
        ([ANY_USER, ("client-id", DEFAULT, None)], 0, ""),
        ([("ip", DEFAULT, None)], 0, ""),
        (
            [("user", EXACT, None)],
            INVALID,
            "Request specified MATCH_TYPE_EXACT, but set match string to null.",
        ),
        (
            [("user", DEFAULT, "u")],
            INVALID,
            "Request specified MATCH_TYPE_DEFAULT, but also specified a match string.",
        ),
        (
            [("user", SPECIFIED, "u")],
            INVALID,
            "Request specified MATCH_TYPE_SPECIFIED, but also specified a match string.",
        ),
        ([("user", 3, None)], INVALID, "Unknown match type 3"),
        ([("user", -1, None)], INVALID, "Unknown match type -1"),
        ([("", SPECIFIED, None)], INVALID, "Invalid empty entity type."),
        (
            [("group", SPECIFIED, None)],
            ErrorCode.UNSUPPORTED_VERSION,
            "Unsupported entity type group",
        ),
        (
            [ANY_USER, ANY_USER],
            INVALID,
            "Entity type user cannot appear more than once in the filter.",
        ),
        (
            [ANY_USER, ("ip", SPECIFIED, None)],
            INVALID,
            MIXED,
        ),
    ],
)
@pytest.mark.parametrize("version", [0, 1])
def test_there_are_no_quotas_to_describe(desk, components, code, message, version):
    request = DescribeClientQuotasRequest(
        components=[
            ComponentData(entity_type=entity, match_type=kind, match=match)
            for entity, kind, match in components
        ],
        strict=False,
    )
    answer = desk.ask(request, version)
    assert (answer.error_code, answer.error_message) == (code, message)
    assert answer.entries == (None if code else [])


@pytest.mark.parametrize(
    ("entity", "ops", "code", "message"),
    [
        ([USER], [], 0, None),
        ([USER], [(RATE, 0.0, True)], 0, None),
        ([USER], [("nosuch", 0.0, True)], 0, None),
        ([("user", None)], [(RATE, 0.0, True)], 0, None),
        ([], [], INVALID, "Invalid empty client quota entity"),
        ([("group", "g")], [], INVALID, "Unhandled client quota entity type: group"),
        ([("", "g")], [], INVALID, "Unhandled client quota entity type: "),
        ([("user", "")], [], INVALID, "Empty user not supported"),
        (
            [USER],
            [(RATE, 0.0, True), ("request_percentage", 5.5, False)],
            ErrorCode.POLICY_VIOLATION,
            "request_percentage is 5.5, expected no quota: this broker has none",
        ),
    ],
)
@pytest.mark.parametrize("version", [0, 1])
def test_no_quota_can_be_set_and_all_can_be_taken_away(desk, entity, ops, code, message, version):
    def entry(entity, ops):
        return EntryData(
            entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
            ops=[OpData(key=key, value=value, remove=remove) for key, value, remove in ops],
        )

    entries = [entry(entity, ops), entry([USER], [])]
    for validate_only in (False, True):
        request = AlterClientQuotasRequest(entries=entries, validate_only=validate_only)
        found, other = desk.ask(request, version).entries
        assert (found.error_code, found.error_message) == (code, message)
        assert [(one.entity_type, one.entity_name) for one in found.entity] == entity
        assert other.error_code == 0
