# SPDX-License-Identifier: Apache-2.0
"""What callers may give to calls that are about no group, and what they are told otherwise."""

import re

import pytest

from kohort import FeatureUpdate, TransactionState
from kohort.client.admin import operation_arguments
from kohort.client.admin.arguments import INT16_MAX, INT32_MAX, INT64_MAX
from kohort.terms import uuid_text

ID = bytes(range(16))

WRONG = [
    (operation_arguments.broker, "1", TypeError, "broker_id is '1', expected a number"),
    (operation_arguments.broker, True, TypeError, "broker_id is True, expected a number"),
    (operation_arguments.broker, -1, ValueError, "broker_id is -1, expected 0 to 2147483647"),
    (operation_arguments.topic_ids, 3, TypeError, "ids is 3, expected a list of ids of topics"),
    (operation_arguments.topic_ids, {ID: 1}, TypeError, "expected a list of ids of topics"),
    (operation_arguments.topic_ids, [ID, 3], TypeError, "ids has 3, expected 16 bytes or the 22"),
    (operation_arguments.topic_ids, b"short", ValueError, "ids has b'short', expected 16 bytes"),
    (operation_arguments.topic_ids, "orders", ValueError, "ids has 'orders', expected 16 bytes"),
    (operation_arguments.topic_ids, "\u00e4" * 22, ValueError, "expected 16 bytes or the 22"),
    (operation_arguments.before_offsets, [1], TypeError, "before is [1], expected a mapping"),
    (operation_arguments.before_offsets, {"t": 1}, TypeError, "before has 't', expected (topic,"),
    (
        operation_arguments.before_offsets,
        {("t", 0): -1},
        ValueError,
        "the offset of t:0 in before is -1, expected 0 to 9223372036854775807",
    ),
    (
        operation_arguments.before_offsets,
        {("t", 0): "earliest"},
        TypeError,
        "the offset of t:0 in before is 'earliest', expected a number or 'latest'",
    ),
    (
        operation_arguments.election_type,
        "uncle",
        ValueError,
        "election_type is 'uncle', expected preferred or unclean",
    ),
    (operation_arguments.partitions_or_all, "t", TypeError, "partitions is 't', expected a list"),
    (operation_arguments.feature_updates, {"f": 1}, TypeError, "updates of feature f is 1, expec"),
    (operation_arguments.feature_updates, {3: 1}, TypeError, "updates has 3, expected texts"),
    (
        operation_arguments.feature_updates,
        {"f": FeatureUpdate(INT16_MAX + 1)},
        ValueError,
        "the level of feature f is 32768, expected 0 to 32767",
    ),
    (
        operation_arguments.feature_updates,
        {"f": FeatureUpdate(1, "downgrade")},
        ValueError,
        "upgrade_type of feature f is 'downgrade', expected one of upgrade, safe_downgrade,",
    ),
    (
        operation_arguments.transaction_states,
        "open",
        ValueError,
        "'open' is not a state, expected one of Empty, Ongoing,",
    ),
    (operation_arguments.transaction_states, [], ValueError, "states is empty, expected None"),
    (operation_arguments.transaction_states, [1], TypeError, "states has 1, expected texts"),
]


@pytest.mark.parametrize(("read", "given", "kind", "text"), WRONG)
def test_what_makes_no_sense_is_said_in_one_line(read, given, kind, text):
    with pytest.raises(kind, match=re.escape(text)) as raised:
        read(given)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("given", ["1", b"1", {1: 2}, None, [1, "2"], 1.5])
def test_numbers_are_numbers(given):
    with pytest.raises(TypeError, match=r"ids (is|has) .*, expected a number"):
        operation_arguments.numbers("ids", given, INT32_MAX)


def test_what_makes_sense_is_taken():
    assert operation_arguments.numbers("ids", 3, INT32_MAX) == [3]
    assert operation_arguments.numbers("ids", (2, 1, 2), INT64_MAX) == [2, 1]
    assert operation_arguments.broker(None) is None
    assert operation_arguments.broker(0) == 0
    assert operation_arguments.transaction_states(None) == []
    assert operation_arguments.transaction_states(["EMPTY", TransactionState.EMPTY]) == ["Empty"]
    assert operation_arguments.topic_ids([ID, uuid_text(ID)]) == {
        ID: ID,
        uuid_text(ID): ID,
    }
    assert operation_arguments.before_offsets({("t", 0): 0, ("t", 1): "latest"}) == {
        ("t", 0): 0,
        ("t", 1): -1,
    }
    assert operation_arguments.election_type("unclean") == "unclean"
    assert operation_arguments.partitions_or_all(None) is None
    updates = {"f": FeatureUpdate(0, "safe_downgrade")}
    assert operation_arguments.feature_updates(updates) == updates
