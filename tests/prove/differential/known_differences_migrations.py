# SPDX-License-Identifier: Apache-2.0
"""Known differences in groups that go over to the other protocol; see docs/migration.md."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from tests.prove.differential.conversions import DOWN, UP, Conversion, conversions
from tests.prove.differential.occasions import PICKS, Explanation, Occasion, codes
from tests.prove.differential.steps import RESTART, is_anonymous

from kohort.errors import WireError
from kohort.records.consumer_protocol import decode_subscription

UNKNOWN_SERVER_ERROR = -1
INCONSISTENT_GROUP_PROTOCOL, UNKNOWN_MEMBER_ID, REBALANCE_IN_PROGRESS = 23, 25, 27
UNRELEASED_INSTANCE_ID = 111
_TOPICS = ("DeleteTopics", "CreateTopics", "CreatePartitions")
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
    """By the step before or by this one, which may have converted the group again in Kafka."""
    told = (one.before, one.before[:-1])
    lasts = [next(reversed(list(conversions(some))), None) for some in told]
    return any(
        last is not None and last.way == DOWN and last.api == "JoinGroup" and last.own_id
        for last in lasts
    )


def _rebalances(one: Occasion) -> bool:
    """A static member has joined in the place of the last consumer."""
    last = _last(one)
    return last is not None and last.way == DOWN and last.api == "JoinGroup" and not last.own_id


def _nobody_has_computed(one: Occasion) -> bool:
    """A member has gone, and nobody has joined or sent a heartbeat of the consumer protocol since:
    that computes a new target.
    """
    for told in reversed(one.before[:-1]):
        if not told.requests or not isinstance(told.answers[0], dict):
            continue
        if told.answers[0].get("error_code"):
            continue
        if told.step.api == "LeaveGroup":
            return True
        if told.step.api == "ConsumerGroupHeartbeat":
            return bool(told.requests[0]["member_epoch"] == -1)
        if told.step.api == "JoinGroup":
            return False
    return False


def _restarted(one: Occasion) -> bool:
    return any(told.step is RESTART for told in one.before)


def _handed_twice(one: Occasion) -> bool:
    """A leader has given one partition to two members."""
    handed = [
        told.step.fields["assignments"] for told in one.before if told.step.api == "SyncGroup"
    ]
    return any(getattr(given, "how", "") == "twice" for given in handed)


def _offered(one: Occasion) -> set[tuple[str, ...]]:
    """The assignors that classic members have named."""
    return {
        tuple(known["name"] for known in told.requests[0]["protocols"])
        for told in one.before
        if told.step.api == "JoinGroup" and told.requests
    }


def _drawn_ids(one: Occasion) -> bool:
    """A consumer group has made up the id of a member."""
    return any(
        isinstance(answer, dict) and is_anonymous(answer.get("member_id") or "")
        for told in one.before
        for answer in told.answers
    )


def _upgraded_again(one: Occasion) -> bool:
    """The group has become a consumer group before a downgrade's rebalance was over."""
    steps = list(conversions(one.before))
    return any(
        first.way == DOWN
        and second.way == UP
        and not _synced(one.before[: second.at + 1], first.at)
        for first, second in pairwise(steps)
    )


def _upgraded_in_a_rebalance(one: Occasion) -> bool:
    """The group has become a consumer group while a classic member's join had no assignment yet."""
    return any(
        step.way == UP and _rebalancing(one.before[: step.at]) for step in conversions(one.before)
    )


def _rebalancing(before: Sequence[Any]) -> bool:
    for told in reversed(before):
        if told.step.api in ("JoinGroup", "LeaveGroup") and not _refused(told):
            return True
        answer = told.answers[0]
        if told.step.api == "SyncGroup" and isinstance(answer, dict) and not answer["error_code"]:
            return False
    return False


def _refused(told: Any) -> bool:
    answer = told.answers[0]
    return isinstance(answer, dict) and answer["error_code"] not in (0, REBALANCE_IN_PROGRESS)


def _topics_changed(one: Occasion) -> bool:
    return any(told.step.api in _TOPICS for told in one.before)


def _noticed(one: Occasion) -> bool:
    """A classic member has sent a heartbeat, and joins again, since topics have changed."""
    member = one.request["member_id"]
    beats = [
        at
        for at, told in enumerate(one.before)
        if told.step.api == "Heartbeat" and told.requests and member
        if told.requests[0]["member_id"] == member
    ]
    return bool(beats) and any(told.step.api in _TOPICS for told in one.before[: beats[-1]])


def _says_that_it_has_some(one: Occasion) -> bool:
    """A classic member that comes with an id names partitions as its own."""
    try:
        said = [decode_subscription(each["metadata"]) for each in one.request["protocols"]]
    except WireError:
        return False
    return bool(one.request["member_id"]) and any(each.owned_partitions for each in said)


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
        "upgrade before a downgrade's rebalance is over",
        "the group goes on with what its members have, and with a new epoch; Kafka with what they"
        " would have got, and what the last consumer had stays without an owner",
        _GROUPS,
        (),
        _upgraded_again,
    ),
    Explanation(
        "upgrade in a rebalance",
        "a group that was rebalancing gets a new epoch, and a cooperative member keeps what it says"
        " that it owns; Kafka goes on at the old epoch where subscriptions are the same",
        ("ConsumerGroupHeartbeat", "ConsumerGroupDescribe", "SyncGroup", "JoinGroup", "Heartbeat"),
        (
            *("member_epoch", "generation_id", "error_code", "groups[].group_state"),
            *(
                "groups[].group_epoch",
                "groups[].assignment_epoch",
                "groups[].members[].member_epoch",
            ),
            *(*PICKS, *_GIVEN),
        ),
        _upgraded_in_a_rebalance,
    ),
    Explanation(
        "calls of a refused upgrade",
        "Kafka tells the members whose calls wait to join again before it looks whether the group"
        " can go over; here they go on waiting where it cannot",
        ("JoinGroup", "SyncGroup"),
        ("(when)",),
        lambda one: (
            codes(one) == ("answered", "waits")
            and one.kafka["error_code"] == REBALANCE_IN_PROGRESS
            and one.before[-1].step.api == "ConsumerGroupHeartbeat"
        ),
    ),
    Explanation(
        "restart before a downgrade's rebalance is over",
        "the group rebalances again; in Kafka the rebalance is forgotten",
        _GROUPS,
        (),
        lambda one: _restarted(one) and _downgraded(one),
    ),
    Explanation(
        "heartbeat before a new target",
        "a classic member is told to join for a new epoch, and its join computes the target; Kafka"
        " waits for the heartbeat of a consumer, for ever where none is left",
        ("Heartbeat",),
        ("error_code",),
        lambda one: codes(one) == (0, REBALANCE_IN_PROGRESS) and _nobody_has_computed(one),
        goes_on=True,
    ),
    Explanation(
        "sync before a new target",
        "the same, where it asks for its assignment",
        ("SyncGroup",),
        ("error_code", "assignment", "protocol_type", "protocol_name"),
        lambda one: (
            one.kafka["error_code"] == 0
            and one.kohort["error_code"] == REBALANCE_IN_PROGRESS
            and _nobody_has_computed(one)
        ),
    ),
    Explanation(
        "sync by another assignor before a join",
        "who has to join again is told so before anything is said of the assignor that it names: it"
        " may be the one of the classic group",
        ("SyncGroup",),
        ("error_code",),
        lambda one: codes(one) == (INCONSISTENT_GROUP_PROTOCOL, REBALANCE_IN_PROGRESS),
        goes_on=True,
    ),
    Explanation(
        "partition of two members",
        "a leader has given a partition to two members: Kafka fails inside at the upgrade, here the"
        " first one has it",
        ("ConsumerGroupHeartbeat",),
        (),
        lambda one: one.kafka["error_code"] == UNKNOWN_SERVER_ERROR and _handed_twice(one),
    ),
    Explanation(
        "assignor that not everybody offers",
        "an upgrade while the classic members are about to choose another assignor: Kafka fails"
        " inside at a member that does not know the one before",
        ("ConsumerGroupHeartbeat",),
        (),
        lambda one: (
            one.kafka["error_code"] == UNKNOWN_SERVER_ERROR
            and one.request.get("member_epoch") == 0
            and len(_offered(one)) > 1
        ),
    ),
    Explanation(
        "static consumer that joins again under its own id",
        "it has lost its answer, or was fenced: Kafka locks it out until its session is over",
        ("ConsumerGroupHeartbeat",),
        ("error_code", "member_id", "member_epoch", "heartbeat_interval_ms", "assignment"),
        lambda one: (
            one.kafka["error_code"] == UNRELEASED_INSTANCE_ID
            and one.kohort["error_code"] == 0
            and one.request.get("member_epoch") == 0
            and one.request.get("instance_id") is not None
        ),
    ),
    Explanation(
        "topics that a classic member's heartbeat notices",
        "a heartbeat of a classic member in a consumer group looks for changes of topics, too:"
        " where no consumer is left, nobody else would",
        ("Heartbeat",),
        ("error_code",),
        lambda one: codes(one) == (0, REBALANCE_IN_PROGRESS) and _topics_changed(one),
    ),
    Explanation(
        "epoch of topics that a classic member's heartbeat has noticed",
        "the same, where it joins with another subscription behind that heartbeat: each is an epoch"
        " here, Kafka notices both in the join",
        ("JoinGroup",),
        ("generation_id",),
        lambda one: (
            one.kafka["error_code"] == one.kohort["error_code"] == 0
            and one.kohort["generation_id"] == one.kafka["generation_id"] + 1
            and _noticed(one)
        ),
    ),
    Explanation(
        "classic member that is unknown and has partitions",
        "it gives up what it says that it has, and joins as a new member; Kafka takes it in, and it"
        " reads on what another member may have by then",
        ("JoinGroup",),
        (
            *("error_code", "generation_id", "protocol_type", "protocol_name", "member_id"),
            "leader",
        ),
        lambda one: (
            one.kafka["error_code"] == 0
            and one.kohort["error_code"] == UNKNOWN_MEMBER_ID
            and _says_that_it_has_some(one)
        ),
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
        "downgrade by a static member while others are not at their target",
        "the group rebalances, since a member may still read what another one is meant to have; in"
        " Kafka it is stable at once, and gives away what is still read",
        _GROUPS,
        (),
        _rebalances,
    ),
    Explanation(
        "vote of the member before",
        "a classic member that takes over from a consumer has no vote for an assignor: a change of"
        " the effective one raises the epoch (KAFKA-20434, later than 4.3.1)",
        ("JoinGroup",),
        ("generation_id",),
        lambda one: (
            one.kohort["generation_id"] == one.kafka["generation_id"] + 1
            and any(
                told.requests and told.requests[0].get("server_assignor") is not None
                for told in one.before
            )
        ),
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
