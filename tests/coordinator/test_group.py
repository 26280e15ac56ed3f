# SPDX-License-Identifier: Apache-2.0
"""Questions that a kind of group does not answer are refused, with the kind it would have to be."""

from typing import Any

import pytest

from kohort.coordinator.group import Group
from kohort.errors import ApiError, ErrorCode
from kohort.machines.topics import Topics
from kohort.terms import GroupId, GroupState, GroupType


class Odd(Group):
    """A group of a kind that answers nothing."""

    id = GroupId("g")
    type = GroupType.SHARE
    state = GroupState.STABLE


@pytest.mark.parametrize(
    ("ask", "code", "text"),
    [
        (lambda group: group.check_commit(None, Topics()), 69, "share group, which has no commit"),
        (lambda group: group.check_offset_delete(), 69, "share group, which has no committed"),
        (lambda group: group.check_delete(), 68, "group g is Stable"),
        (lambda group: group.described_classic(), 69, "Group g is not a classic group."),
        (lambda group: group.described_consumer(Topics()), 69, "Group g is not a consumer group."),
    ],
)
def test_a_question_that_is_not_answered_is_refused(ask: Any, code: int, text: str) -> None:
    with pytest.raises(ApiError, match=text) as refused:
        ask(Odd())
    assert refused.value.code == ErrorCode(code)
