# SPDX-License-Identifier: Apache-2.0
"""Where transactions stand, as the tools see it."""

import pytest
from tests.transactions.desk import P0, START, Desk

from kohort import expressions
from kohort.errors import ApiError, ErrorCode
from kohort.transactions.queries import matching
from kohort.wire.messages.describe_transactions import DescribeTransactionsRequest
from kohort.wire.messages.list_transactions import ListTransactionsRequest


@pytest.fixture
def desk():
    made = Desk()
    ids = {name: made.init(name).producer_id for name in ("idle", "old", "young")}
    made.enrol((ids["old"], 0), P0, name="old")
    made.wait(1000)
    made.enrol((ids["young"], 0), P0, name="young")
    made.ids = ids
    return made


def test_an_id_is_described_and_a_missing_one_is_told(desk):
    """KIP-664."""
    asked = DescribeTransactionsRequest(transactional_ids=["old", "nobody", "idle"])
    old, nobody, idle = desk.tell(asked).transaction_states

    assert (old.error_code, old.transaction_state) == (0, "Ongoing")
    assert (old.producer_id, old.producer_epoch) == (desk.ids["old"], 0)
    assert (old.transaction_timeout_ms, old.transaction_start_time_ms) == (60_000, START)
    assert [(one.topic, one.partitions) for one in old.topics] == [("orders", [0])]
    assert (nobody.error_code, nobody.transactional_id) == (105, "nobody")
    assert (idle.transaction_state, idle.transaction_start_time_ms) == ("Empty", -1)
    assert idle.topics == []


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        ({}, ["idle", "old", "young"]),
        ({"state_filters": ["Ongoing"]}, ["old", "young"]),
        ({"state_filters": ["Ongoing", "Empty"]}, ["idle", "old", "young"]),
        ({"state_filters": ["Sleeping"]}, []),
        ({"state_filters": ["Ongoing"], "duration_filter": 500}, ["old"]),
        ({"state_filters": ["Ongoing"], "duration_filter": 1000}, []),
        ({"duration_filter": -1}, ["idle", "old", "young"]),
        ({"producer_id_filters": [5]}, []),
        ({"transactional_id_pattern": "o.*|id"}, ["old"]),  # of the whole id
        ({"transactional_id_pattern": "(?i)OLD|IDLE", "state_filters": ["Empty"]}, ["idle"]),
        ({"transactional_id_pattern": ""}, ["idle", "old", "young"]),
    ],
)
def test_filters_narrow_the_list(desk, filters, names):
    wanted = ListTransactionsRequest(**{"state_filters": [], "producer_id_filters": [], **filters})
    answer = desk.tell(wanted)

    assert [one.transactional_id for one in answer.transaction_states] == names
    unknown = [one for one in wanted.state_filters if one == "Sleeping"]
    assert answer.unknown_state_filters == unknown


def test_a_producer_is_found_by_its_id(desk):
    wanted = ListTransactionsRequest(state_filters=[], producer_id_filters=[desk.ids["old"]])
    (one,) = desk.tell(wanted).transaction_states

    assert (one.transactional_id, one.transaction_state) == ("old", "Ongoing")
    refused = wanted.refused(ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
    assert refused.error_code == 14


def test_a_pattern_that_cannot_be_read_is_refused(desk, monkeypatch):
    wanted = ListTransactionsRequest(
        state_filters=[], producer_id_filters=[], transactional_id_pattern="(old"
    )
    assert desk.tell(wanted).error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    with pytest.raises(ApiError, match="missing closing"):
        matching("(old")
    monkeypatch.setattr(expressions, "re2", None)
    with pytest.raises(ApiError, match="google-re2"):
        matching("old")
