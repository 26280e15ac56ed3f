"""Known differences in groups that go over to the other protocol; see docs/migration.md."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.prove.differential.conversions import DOWN, Conversion, conversions
from tests.prove.differential.occasions import PICKS, Explanation, Occasion
from tests.prove.differential.steps import is_anonymous

_GROUPS = (
    *("JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "OffsetCommit", "OffsetFetch"),
    *("ConsumerGroupHeartbeat", "ConsumerGroupDescribe", "DescribeGroups", "ListGroups"),
    *("OffsetDelete", "DeleteGroups"),
)
_GIVEN = (
    *("groups[].members[].member_assignment", "groups[].members[].member_assignment.named[]"),
    *("assignment", "assignment.named[]"),
)


def _last(one: Occasion) -> Conversion | None:
    return next(reversed(list(conversions(one.before))), None)


def _synced(before: Sequence[Any], since: int) -> bool:
    """Whether a classic member has got an assignment since that step."""
    return any(
        told.step.api == "SyncGroup"
        and isinstance(told.answers[0], dict)
        and not told.answers[0]["error_code"]
        for told in before[since + 1 :]
    )


def _downgraded(one: Occasion) -> bool:
    """The rebalance that a downgrade has led to is not over yet."""
    last = _last(one)
    return last is not None and last.way == DOWN and not _synced(one.before, last.at)


def _own_id(one: Occasion) -> bool:
    last = _last(one)
    return last is not None and last.way == DOWN and last.api == "JoinGroup" and last.own_id


def _drawn_ids(one: Occasion) -> bool:
    """A consumer group has made up the id of a member, or a classic group two ids of one client."""
    made: dict[str, set[str]] = {}
    for told in one.before:
        for answer in told.answers:
            if isinstance(answer, dict) and "member_id" in answer:
                given = answer["member_id"] or ""
                if is_anonymous(given):
                    return True
    return False


MIGRATIONS: tuple[Explanation, ...] = (
    Explanation(
        "assignment that a downgrade writes",
        "a downgrade that leads to a rebalance writes what members have, Kafka what they would"
        " have got next",
        ("DescribeGroups",),
        _GIVEN,
        _downgraded,
        goes_on=True,
    ),
    Explanation(
        "last consumer that joins under its own id",
        "the last member of the consumer protocol joins by the classic one under the id that it"
        " has: the group becomes a classic group, in Kafka it stays a consumer group",
        _GROUPS,
        (),
        _own_id,
    ),
    Explanation(
        "order of ids drawn by chance",
        "who gets what goes by member ids, and a consumer group makes up ids by chance for classic"
        " members that bring none",
        ("ConsumerGroupHeartbeat", "ConsumerGroupDescribe", "SyncGroup"),
        ("member_epoch", *PICKS, *_GIVEN),
        _drawn_ids,
    ),
)
