# SPDX-License-Identifier: Apache-2.0
"""Known differences in subscriptions by regular expressions; see docs/patterns.md."""

from __future__ import annotations

from tests.prove.differential.occasions import PICKS, Explanation, Occasion, codes

INVALID_REGULAR_EXPRESSION = 128


def _replaced(one: Occasion) -> bool:
    """A member has come with another expression than before."""
    known: dict[str, str] = {}
    for told in one.before:
        if told.step.api == "ConsumerGroupHeartbeat" and told.requests:
            request = told.requests[0]
            expression = request.get("subscribed_topic_regex")
            if expression and known.get(request["member_id"], expression) != expression:
                return True
            if expression:
                known[request["member_id"]] = expression
    return False


PATTERNS: tuple[Explanation, ...] = (
    Explanation(
        "pattern that names nothing in the place of another",
        "what the member was to have by the one before is given to others, at a new epoch; Kafka"
        " leaves it without an owner",
        ("ConsumerGroupDescribe", "ConsumerGroupHeartbeat"),
        (*("assignment", "groups[].group_state", "groups[].members[].member_epoch", *PICKS),),
        _replaced,
    ),
    Explanation(
        "deletion that is noticed once more",
        "both look at the expressions of a group when any topic is new, and raise the epoch when"
        " one of theirs has gone; nobody may have sent a heartbeat since",
        ("ConsumerGroupDescribe",),
        (
            *("groups[].group_state", "groups[].assignment_epoch"),
            "groups[].members[].member_epoch",
        ),
        lambda one: (
            any(
                group["group_state"] == "Assigning"
                for group in (*one.kafka["groups"], *one.kohort["groups"])
            )
            and any(told.step.api == "DeleteTopics" for told in one.before)
        ),
        goes_on=True,
    ),
    Explanation(
        "groups of one name in an expression",
        "RE2 takes two groups of one name, RE2/J refuses them",
        ("ConsumerGroupHeartbeat",),
        ("error_code", "member_id", "member_epoch", "heartbeat_interval_ms", "assignment"),
        lambda one: (
            (
                codes(one) == (INVALID_REGULAR_EXPRESSION, 0)
                or one.kafka["error_code"] == INVALID_REGULAR_EXPRESSION
            )
            and str(one.request.get("subscribed_topic_regex")).count("(?P<n>") == 2
        ),
    ),
)
