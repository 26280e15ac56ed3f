# SPDX-License-Identifier: Apache-2.0
"""Who commits, as a producer is told: and the way back, for what the coordinator thinks of it."""

import copy
import pickle
from typing import Any

import pytest

from kohort.client.consumer import GroupMetadata
from kohort.client.consumer.group_metadata import group_metadata
from kohort.client.consumer.group_offsets import NOT_THE_MEMBER, Identity
from kohort.errors import ApiError, ErrorCode

WHO = Identity("m", 7, "i", is_modern=True)


def test_it_is_what_an_application_would_write_itself() -> None:
    found = group_metadata("g", WHO, lambda _who, _error: None)
    assert found == GroupMetadata("g", 7, "m", "i")
    group_id, generation_id, member_id, group_instance_id = found
    assert (group_id, generation_id, member_id, group_instance_id) == ("g", 7, "m", "i")


@pytest.mark.parametrize("code", [*sorted(NOT_THE_MEMBER), ErrorCode.OFFSET_METADATA_TOO_LARGE])
def test_its_consumer_hears_that_it_is_no_member_of_this_epoch(code: ErrorCode) -> None:
    heard: list[Any] = []
    found = group_metadata("g", WHO, lambda who, error: heard.append((who, error.code)))
    found.refused(ApiError(code))
    assert heard == ([(WHO, code)] if code in NOT_THE_MEMBER else [])


def test_without_a_consumer_nobody_hears_it() -> None:
    GroupMetadata("g", 7, "m", None).refused(ApiError(ErrorCode.UNKNOWN_MEMBER_ID))


def test_it_may_go_to_another_process() -> None:
    found = group_metadata("g", WHO, lambda _who, _error: None)
    there = pickle.loads(pickle.dumps(found))
    assert (there, type(there)) == (found, GroupMetadata)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy])
def test_the_consumer_hears_of_a_refusal_of_a_copy(duplicate: Any) -> None:
    """It commits as this member, whichever object says so."""
    heard: list[Any] = []
    found = duplicate(group_metadata("g", WHO, lambda who, error: heard.append((who, error.code))))
    assert found == GroupMetadata("g", 7, "m", "i")
    found.refused(ApiError(ErrorCode.UNKNOWN_MEMBER_ID))
    assert heard == [(WHO, ErrorCode.UNKNOWN_MEMBER_ID)]


@pytest.mark.parametrize(
    "changes",
    [{"group_id": "h"}, {"generation_id": 6}, {"member_id": "n"}, {"group_instance_id": None}],
)
def test_the_consumer_hears_nothing_of_another_identity(changes: dict[str, Any]) -> None:
    """What the coordinator says of that is not about this member."""
    heard: list[Any] = []
    found = group_metadata("g", WHO, lambda who, error: heard.append((who, error)))
    other = found._replace(**changes)
    assert other == GroupMetadata("g", 7, "m", "i")._replace(**changes)
    other.refused(ApiError(ErrorCode.UNKNOWN_MEMBER_ID))
    for made in (type(found)("g", 6, "m", None), type(found)._make(["g", 6, "m", None])):
        made.refused(ApiError(ErrorCode.UNKNOWN_MEMBER_ID))
    assert heard == []
