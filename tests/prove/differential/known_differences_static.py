# SPDX-License-Identifier: Apache-2.0
"""Known differences about static members (KIP-345, docs/skipped.md): who holds an instance id is
that member, with what it brings now.
"""

from __future__ import annotations

from typing import Any

from tests.prove.differential.occasions import PICKS, Explanation, Occasion, codes

UNKNOWN_SERVER_ERROR = -1
ILLEGAL_GENERATION, INCONSISTENT_GROUP_PROTOCOL, UNKNOWN_MEMBER_ID = 22, 23, 25
GROUP_MAX_SIZE_REACHED, FENCED_INSTANCE_ID, GROUP_SUBSCRIBED_TO_TOPIC = 81, 82, 86
UNRELEASED_INSTANCE_ID, STALE_MEMBER_EPOCH = 111, 113
AWAY = -2  # the epoch of a static member that leaves for a while
_JOINS = ("JoinGroup", "ConsumerGroupHeartbeat")
_COMMITS = ("OffsetCommit", "TxnOffsetCommit")
_COMMITTED = ("topics[].partitions[].error_code",)
_IN_A_JOIN = (
    *("(when)", "error_code", "member_id", "leader", "members[]", "generation_id"),
    *("protocol_type", "protocol_name", "skip_assignment"),
    *("member_epoch", "heartbeat_interval_ms", "assignment"),
)


def _comes_back(one: Occasion) -> bool:
    """A static member of a classic group has joined twice, by other protocols."""
    joined: dict[str, list[Any]] = {}
    for told in one.before:
        if told.step.api == "JoinGroup" and told.requests:
            request = told.requests[0]
            instance = request.get("group_instance_id")
            if instance is not None and request["protocols"] not in joined.get(instance, []):
                joined.setdefault(instance, []).append(request["protocols"])
    return any(len(protocols) > 1 for protocols in joined.values())


def _instance(request: dict[str, Any]) -> str | None:
    """The instance id of a join of either protocol."""
    instance: str | None = request.get("group_instance_id", request.get("instance_id"))
    return instance


def _claims(one: Occasion, request: dict[str, Any]) -> list[Any]:
    """What was told of the joins to its group with its instance id, and of itself."""
    instance = _instance(request)
    return [
        told
        for told in one.before
        if told.step.api in _JOINS
        and told.requests
        and instance is not None
        and _instance(told.requests[0]) == instance
        and told.requests[0]["group_id"] == request["group_id"]
    ]


def _refused_only_by_kafka(one: Occasion, code: int) -> bool:
    """One with an instance id that somebody has come with before: Kohort lets it in, or wait."""
    return (
        isinstance(one.kafka, dict)
        and one.kafka["error_code"] == code
        and (one.kohort is None or one.kohort["error_code"] == 0)
        and len(_claims(one, one.request)) > 1
    )


def _refused_by_both(one: Occasion) -> bool:
    """By Kafka for the size of the group, by Kohort for another reason."""
    return (
        one.kafka["error_code"] == GROUP_MAX_SIZE_REACHED
        and one.kohort["error_code"]
        in (INCONSISTENT_GROUP_PROTOCOL, FENCED_INSTANCE_ID, UNRELEASED_INSTANCE_ID)
        and len(_claims(one, one.request)) > 1
    )


def _names_a_member(one: Occasion) -> bool:
    return one.step.api == "JoinGroup" and bool(one.request["member_id"])


def _has_a_successor(one: Occasion) -> bool:
    """Somebody has just come with an instance id, and Kafka has answered that join at once, as it
    does when it refuses: that answer is compared next.
    """
    last = one.before[-1]
    return (
        codes(one) == ("waits", "answered")
        and one.kohort["error_code"] == FENCED_INSTANCE_ID
        and last.step.api == "JoinGroup"
        and last.came[0]
        and len(_claims(one, last.requests[0])) > 1
        and last.requests[0]["group_id"] == one.request["group_id"]
    )


def _of_another(one: Occasion) -> bool:
    """A commit in a consumer group names an instance id that is not the member's."""
    instance = one.request.get("group_instance_id")
    joined = [
        told.requests[0]
        for told in one.before
        if told.step.api == "ConsumerGroupHeartbeat"
        and isinstance(told.answers[1], dict)
        and not told.answers[1]["error_code"]
        and told.requests[0]["group_id"] == one.request["group_id"]
    ]
    holders = {_instance(request): request["member_id"] for request in joined}
    return (
        bool(joined) and instance is not None and holders.get(instance) != one.request["member_id"]
    )


def _exchanged_while_away(one: Occasion) -> bool:
    """A member has left for a while by one instance id, and joined by another since."""
    away: dict[tuple[str, str], str | None] = {}
    for told in one.before:
        if told.step.api != "ConsumerGroupHeartbeat" or not told.requests:
            continue
        request = told.requests[0]
        member, epoch = (request["group_id"], request["member_id"]), request["member_epoch"]
        if epoch == AWAY:
            away[member] = _instance(request)
        elif epoch == 0 and member in away and _instance(request) not in (None, away[member]):
            return True
    return False


STATIC_MEMBERS: tuple[Explanation, ...] = (
    Explanation(
        "instance id of an expected member",
        "a member id that was handed out to come back with comes back with an instance id as well:"
        " Kafka fails inside, Kohort says that the instance is unknown or another one's",
        ("JoinGroup",),
        ("error_code", "member_id"),
        lambda one: (
            one.request.get("group_instance_id") is not None
            and one.kafka["error_code"] == UNKNOWN_SERVER_ERROR
            and one.kohort["error_code"] in (UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID)
        ),
        goes_on=True,
    ),
    Explanation(
        "client of a static member",
        "a client that takes the place of a static member is shown with its own client id: Kafka"
        " goes on showing the one before",
        ("DescribeGroups",),
        ("groups[].members[].client_id",),
        lambda one: any(
            told.requests[0].get("group_instance_id") is not None
            for told in one.before
            if told.step.api == "JoinGroup" and told.requests
        ),
        goes_on=True,
    ),
    Explanation(
        "subscription of a static member that is back",
        "a static member that comes back with other topics reads them from then on; Kafka counts"
        " those of its former self until the next generation, or its own next start",
        ("OffsetDelete",),
        ("topics[].partitions[].error_code",),
        lambda one: set(codes(one)) == {0, GROUP_SUBSCRIBED_TO_TOPIC} and _comes_back(one),
    ),
    Explanation(
        "instance id that was exchanged",
        "a member that takes another instance id has given up the one before: Kafka goes on knowing"
        " it by both until a restart",
        ("ConsumerGroupHeartbeat",),
        ("error_code", "member_id", "member_epoch", "heartbeat_interval_ms"),
        lambda one: (
            one.kohort["error_code"] == UNKNOWN_MEMBER_ID
            and one.request.get("instance_id") is not None
            and any(
                told.requests[0]["member_epoch"] == 0
                and told.requests[0].get("instance_id") not in (None, one.request["instance_id"])
                for told in one.before
                if told.step.api == "ConsumerGroupHeartbeat" and told.requests
            )
        ),
    ),
    Explanation(
        "member that comes back by another instance id",
        "a static member that has left for a while comes back under its own member id, by another"
        " instance id: 4.3.1 leaves what it had with nobody until the next epoch",
        ("ConsumerGroupHeartbeat", "ConsumerGroupDescribe"),
        ("member_epoch", "assignment", "groups[].group_state", *PICKS),
        _exchanged_while_away,
    ),
    Explanation(
        "static member that comes back to a full group",
        "who comes with an instance id takes no place beside the member that holds it; in 4.3.1 it"
        " does (KAFKA-20601, mended later)",
        _JOINS,
        _IN_A_JOIN,
        lambda one: _refused_only_by_kafka(one, GROUP_MAX_SIZE_REACHED),
    ),
    Explanation(
        "refusal of a static member in a full group",
        "the same, of one that is refused for another reason: a member holds the instance id, or"
        " the assignors do not fit",
        _JOINS,
        ("error_code", "member_id"),  # 4.3.1 names no member where a group is full
        lambda one: _refused_by_both(one) and not _names_a_member(one),
        goes_on=True,
    ),
    Explanation(
        "refusal of a member in a full group",
        "the same, of a classic member that names itself and an instance id that another one holds:"
        " 4.3.1 puts it out of the group",
        ("JoinGroup",),
        ("error_code", "member_id"),
        lambda one: _refused_by_both(one) and _names_a_member(one),
    ),
    Explanation(
        "static member that comes back with other assignors",
        "who comes with an instance id has the assignors that it brings; 4.3.1 counts those of its"
        " former self until that session ends",
        ("JoinGroup",),
        _IN_A_JOIN,
        lambda one: _refused_only_by_kafka(one, INCONSISTENT_GROUP_PROTOCOL),
    ),
    Explanation(
        "call of a static member that only Kafka refuses to replace",
        "where its successor is let in (see the two above), its call that waits is answered with"
        " 82; in Kafka it goes on waiting",
        ("JoinGroup", "SyncGroup"),
        ("(when)",),
        _has_a_successor,
        goes_on=True,  # to the answer to the successor
    ),
    Explanation(
        "commit with the instance id of another member",
        "an instance id that is not the member's, or nobody's, is refused in consumer groups as in"
        " classic ones; 4.3.1 does not look at it there",
        _COMMITS,
        _COMMITTED,
        lambda one: (
            one.difference.kafka == 0
            and one.difference.kohort in (UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID)
            and _of_another(one)
        ),
    ),
    Explanation(
        "refused commit with the instance id of another member",
        "the same, of one that 4.3.1 refuses for its member id or epoch",
        _COMMITS,
        _COMMITTED,
        lambda one: (
            one.difference.kafka in (UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION, STALE_MEMBER_EPOCH)
            and one.difference.kohort in (UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID)
            and _of_another(one)
        ),
        goes_on=True,
    ),
)
