# SPDX-License-Identifier: Apache-2.0
"""Differences that are known, each with its reason and as narrow as can be.

An explanation is about one field of one API under a condition. `goes_on` says that the state of
both brokers is still the same behind it; otherwise the sequence ends there, so that nothing that
follows from a difference is mistaken for another one. What matches nothing in the pinned seeds of
`test_smoke` any more is told there: take it out.
"""

from __future__ import annotations

from typing import Any

from tests.prove.differential.known_differences_migrations import MIGRATIONS
from tests.prove.differential.known_differences_patterns import PATTERNS
from tests.prove.differential.known_differences_repeats import REPEATS
from tests.prove.differential.known_differences_settings import SETTINGS_OF_GROUPS
from tests.prove.differential.known_differences_static import STATIC_MEMBERS
from tests.prove.differential.occasions import PICKS, Explanation, Occasion, codes
from tests.prove.differential.steps import RESTART


def explanation_of(occasion: Occasion) -> Explanation | None:
    return next((one for one in EXPLANATIONS if one.covers(occasion)), None)


def _batches(one: Occasion) -> set[str]:
    """What kinds of batches a Produce has sent."""
    return {
        data["records"].make
        for topic in one.step.fields["topic_data"]
        for data in topic["partition_data"]
    }


def _produced(answer: Any) -> set[int]:
    """The codes of an answer to Produce."""
    return {
        part["error_code"]
        for topic in answer.get("responses", ())
        for part in topic["partition_responses"]
    }


def _overtaken(one: Occasion) -> bool:
    """Kafka forgets the older call, so that it waits for ever."""
    return (
        codes(one) == ("waits", "answered")
        and bool(one.request["member_id"])
        and one.kohort["error_code"] == REBALANCE_IN_PROGRESS
    )


def _left_behind(one: Occasion) -> bool:
    """The member has left since, in a request behind the one that waited."""
    member = one.request["member_id"]
    leavers = {
        leaver
        for told in one.before
        if told.step.api == "LeaveGroup" and told.requests
        for leaver in (
            told.requests[0].get("member_id"),
            *(each["member_id"] for each in told.requests[0].get("members", ())),
        )
    }
    return (
        codes(one) == ("waits", "answered")
        and one.kohort["error_code"] == UNKNOWN_MEMBER_ID
        and bool(member)
        and member in leavers
    )


def _names_a_deleted_record(one: Occasion) -> bool:
    """Records were deleted, and a partition was asked for its latest timestamp: Kafka finds an
    older record, or any where Kohort finds none.
    """
    asked = any(
        partition["timestamp"] == LATEST_TIMESTAMP
        for topic in one.request["topics"]
        for partition in topic["partitions"]
    )
    deleted = any(told.step.api == "DeleteRecords" for told in one.before)
    kafka, kohort = codes(one)
    older = kafka < kohort if one.difference.path.endswith(".offset") else True
    return asked and deleted and (kohort == -1 or older)


def _only_refused(one: Occasion) -> bool:
    """Whether a group was only ever asked to take offsets whose metadata is too long."""
    codes = {
        partition["error_code"]
        for told in one.before
        if told.step.api == "OffsetCommit" and isinstance(told.answers[0], dict)
        for topic in told.answers[0]["topics"]
        for partition in topic["partitions"]
    }
    return OFFSET_METADATA_TOO_LARGE in codes


def _without_topics(one: Occasion) -> bool:
    """Somebody subscribes to nothing."""
    return any(
        told.requests[0].get("subscribed_topic_names") == []
        for told in one.before
        if told.step.api == "ConsumerGroupHeartbeat" and told.requests
    )


def _lost(one: Occasion) -> bool:
    """A member of a consumer group, now empty, has sent a JoinGroup."""
    joined = {
        told.requests[0]["group_id"]
        for told in one.before
        if told.step.api == "JoinGroup"
        and told.requests
        and told.requests[0]["member_id"]
        and isinstance(told.answers[0], dict)
        and told.answers[0]["error_code"] == UNKNOWN_MEMBER_ID
    }
    return any(
        told.requests[0]["group_id"] in joined
        for told in one.before
        if told.step.api == "ConsumerGroupHeartbeat" and told.requests
    )


def _several_assignors(one: Occasion) -> bool:
    """Members of the sequence have asked for both assignors, so that there may be a tie."""
    return {"range", "uniform"} <= {
        told.requests[0].get("server_assignor")
        for told in one.before
        if told.step.api == "ConsumerGroupHeartbeat" and told.requests
    }


def _mixed_uniform(one: Occasion) -> bool:
    """Members of one group have named different topics, and nobody has asked for range."""
    subscribed, assignors = set(), set()
    for told in one.before:
        if told.step.api == "ConsumerGroupHeartbeat" and told.requests:
            request = told.requests[0]
            assignors.add(request.get("server_assignor"))
            names = request.get("subscribed_topic_names")
            if names is not None:
                subscribed.add((request["group_id"], frozenset(names)))
    groups = [group for group, _ in subscribed]
    return len(groups) > len(set(groups)) and "range" not in assignors


def _other_picks(one: Occasion) -> bool:
    """An epoch differs only together with the partitions that are given."""
    return (
        one.difference.path != "member_epoch" or one.kafka["assignment"] != one.kohort["assignment"]
    )


UNKNOWN_SERVER_ERROR = -1
OFFSET_METADATA_TOO_LARGE = 12
ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID = 22, 25
REBALANCE_IN_PROGRESS = 27
INVALID_CONFIG, INVALID_REQUEST = 40, 42
INVALID_TXN_STATE, INVALID_PRODUCER_ID_MAPPING, CONCURRENT_TRANSACTIONS = 48, 49, 51
FENCED = (47, 90)  # INVALID_PRODUCER_EPOCH, PRODUCER_FENCED
TRANSACTION_ABORTABLE = 120
LATEST_TIMESTAMP = -3
GROUP_ID_NOT_FOUND = 69
UNSUPPORTED_COMPRESSION_TYPE, INVALID_RECORD = 76, 87
_PRODUCED = "responses[].partition_responses[].error_code"

_SYNONYMS = ("results[].configs[].synonyms[].value",)

EXPLANATIONS: tuple[Explanation, ...] = (
    *REPEATS,  # first, since a list that differs by these alone is no sign of anything else
    Explanation(
        "code of a partition that was not added",
        "Kafka asks the coordinator for several requests at once, and answers with the code of one"
        " of their versions",
        ("Produce", "TxnOffsetCommit"),
        (_PRODUCED, "topics[].partitions[].error_code"),
        lambda one: set(codes(one)) == {INVALID_TXN_STATE, TRANSACTION_ABORTABLE},
        goes_on=True,
    ),
    Explanation(
        "marker of nobody",
        "Kafka fails inside at a marker of the producer or epoch -1; Kohort writes it",
        ("WriteTxnMarkers",),
        ("markers[].topics[].partitions[].error_code",),
        lambda one: (
            -1 in (one.request["markers"][0][of] for of in ("producer_id", "producer_epoch"))
            and codes(one) == (UNKNOWN_SERVER_ERROR, 0)
        ),
    ),
    Explanation(
        "older epoch and an open transaction",
        "who asks to go on from an older epoch makes Kafka abort what its successor has begun",
        ("InitProducerId",),
        ("error_code",),
        lambda one: (
            one.request["producer_id"] >= 0
            and one.difference.kafka == CONCURRENT_TRANSACTIONS
            and one.difference.kohort in FENCED
        ),
    ),
    Explanation(
        "end of an older epoch",
        "Kafka takes an end at the epoch before for one that is sent again, also where no end has"
        " raised the epoch: a fenced producer may be told its successor's",
        ("EndTxn",),
        ("error_code", "producer_id", "producer_epoch"),
        lambda one: (
            one.step.version >= 5
            and one.kafka["error_code"] in (0, INVALID_TXN_STATE)
            and one.kohort["error_code"] in FENCED
        ),
    ),
    Explanation(
        "another id in an open transaction, for offsets",
        "Kafka does not ask the coordinator again about a group that is in the transaction",
        ("TxnOffsetCommit",),
        ("topics[].partitions[].error_code",),
        lambda one: (
            one.difference.kafka in (0, *FENCED)
            and one.difference.kohort == INVALID_PRODUCER_ID_MAPPING
        ),
    ),
    Explanation(
        "another id in an open transaction",
        "Kafka does not ask the coordinator again about a partition that is in the transaction,"
        " whatever the request calls it",
        ("Produce",),
        (
            _PRODUCED,
            "responses[].partition_responses[].base_offset",
            "responses[].partition_responses[].log_start_offset",
        ),
        lambda one: (
            _produced(one.kafka) == {0}
            and bool(_produced(one.kohort) & {INVALID_PRODUCER_ID_MAPPING, *FENCED})
        ),
    ),
    Explanation(
        "older call",
        "a member that joins or syncs again has its older call answered with 27; Kafka never"
        " answers that one",
        ("JoinGroup", "SyncGroup"),
        ("(when)",),
        _overtaken,
        goes_on=True,
    ),
    Explanation(
        "call of a member that has left",
        "a member that leaves has its SyncGroup that waits answered with 25; Kafka never answers"
        " that one",
        ("SyncGroup",),
        ("(when)",),
        _left_behind,
        goes_on=True,
    ),
    Explanation(
        "emptied group",
        "an emptied group gets a new, empty target at its epoch (KAFKA-20442, later than 4.3.1)",
        ("ConsumerGroupDescribe",),
        ("groups[].assignment_epoch",),
        lambda one: one.difference.kohort > one.difference.kafka,
        goes_on=True,
    ),
    Explanation(
        "effective assignor",
        "a change of the effective assignor raises the epoch (KAFKA-20434, later than 4.3.1)",
        ("ConsumerGroupHeartbeat",),
        ("member_epoch", "assignment", *PICKS),
        lambda one: (
            one.request.get("server_assignor") is not None
            and one.kohort["member_epoch"] == one.kafka["member_epoch"] + 1
        ),
    ),
    Explanation(
        "code of an unknown operation",
        "Kafka fails with -1, or finds another fault first, in the order of a hash table; Kohort"
        " says that the request is invalid",
        ("IncrementalAlterConfigs",),
        ("responses[].error_code",),
        lambda one: (
            one.difference.kafka in (UNKNOWN_SERVER_ERROR, INVALID_CONFIG)
            and one.difference.kohort == INVALID_REQUEST
            and any(
                not 0 <= config["config_operation"] <= 3
                for resource in one.request["resources"]
                for config in resource["configs"]
            )
        ),
        goes_on=True,
    ),
    Explanation(
        "code of unreadable records",
        "Kafka fails with -1, Kohort says what is wrong with the batch",
        ("Produce",),
        (_PRODUCED,),
        lambda one: (
            one.difference.kafka == UNKNOWN_SERVER_ERROR
            and one.difference.kohort in (UNSUPPORTED_COMPRESSION_TYPE, INVALID_RECORD)
        ),
        goes_on=True,
    ),
    Explanation(
        "offset deltas",
        "Kafka takes records whose offset deltas do not count up: consumers see other offsets than"
        " were acknowledged",
        ("Produce",),
        (_PRODUCED, "responses[].partition_responses[].base_offset"),
        lambda one: (
            "deltas" in _batches(one)
            and (
                codes(one) == (0, INVALID_RECORD)
                or 0 <= one.difference.kafka > one.difference.kohort
            )
        ),
    ),
    Explanation(
        "latest timestamp of a deleted record",
        "after DeleteRecords Kafka goes on naming the record with the latest timestamp of the"
        " segment, deleted or not; Kohort looks at what is left",
        ("ListOffsets",),
        tuple(
            f"topics[].partitions[].{field}" for field in ("timestamp", "offset", "leader_epoch")
        ),
        _names_a_deleted_record,
        goes_on=True,
    ),
    Explanation(
        "aborted transactions of no records",
        "where the bytes of the answer are used up before a partition, Kafka tells readers of"
        " committed records no list of aborted transactions; Kohort tells an empty one",
        ("Fetch",),
        ("responses[].partitions[].aborted_transactions",),
        lambda one: codes(one) == (None, []),
        goes_on=True,
    ),
    Explanation(
        "leader by hash",
        "which of the members that have joined leads depends on the hashes of random member ids",
        ("JoinGroup",),
        ("leader", "members[]"),
        lambda one: (
            one.kafka["error_code"] == one.kohort["error_code"] == 0
            and one.kafka["leader"] != one.kohort["leader"]
        ),
    ),
    Explanation(
        "group of nothing",
        "a commit whose every offset was refused with 12 leaves an empty group in Kafka's memory,"
        " which is told by some requests and forgotten at the next start; Kohort makes none",
        (
            *("DescribeGroups", "ListGroups", "DeleteGroups", "OffsetDelete"),
            *("ConsumerGroupDescribe", "OffsetCommit"),
        ),
        (
            *("groups[].group_state", "groups[].error_code", "groups[]"),
            *("results[].error_code", "error_code", "topics[]"),
            *("topics[].partitions[].error_code", "groups[].authorized_operations"),
        ),
        _only_refused,
    ),
    Explanation(
        "uniform over mixed subscriptions",
        "where subscriptions differ, uniform fills whole topics at once, and so its picks are"
        " others, and what members must give up before they come to the next epoch; loads are the"
        " same",
        ("ConsumerGroupHeartbeat", "ConsumerGroupDescribe"),
        ("member_epoch", "assignment", *PICKS),
        lambda one: not one.by_range and _mixed_uniform(one) and _other_picks(one),
    ),
    Explanation(
        "tied assignors",
        "where as many members want one assignor as the other, Kohort takes the first of"
        " group.consumer.assignors, Kafka the first of a hash table",
        ("ConsumerGroupHeartbeat", "ConsumerGroupDescribe"),
        ("member_epoch", "assignment", *PICKS, "groups[].assignor_name"),
        lambda one: _several_assignors(one) and _other_picks(one),
    ),
    Explanation(
        "member without topics",
        "Kafka gives partitions to a member that reads nothing, where it joins without raising the"
        " epoch: they are in its target and in nobody's hands",
        ("ConsumerGroupHeartbeat", "ConsumerGroupDescribe"),
        (*PICKS, "assignment", "groups[].group_state"),
        _without_topics,
    ),
    Explanation(
        "group lost by a refused join",
        "an empty consumer group that refuses a JoinGroup for its member id is hidden by Kafka, and"
        " begins anew with the next member; in Kohort it stays",
        (
            *("ListGroups", "ConsumerGroupDescribe", "DescribeGroups", "DeleteGroups"),
            *("OffsetDelete", "ConsumerGroupHeartbeat", "OffsetFetch"),
        ),
        (
            "member_epoch",
            *("groups[]", "groups[].error_code", "groups[].group_state"),
            *("groups[].group_epoch", "groups[].assignment_epoch", "groups[].assignor_name"),
            *("results[].error_code", "error_code", "topics[]"),
            *("groups[].authorized_operations", "groups[].topics[]"),
        ),
        _lost,
    ),
    Explanation(
        "commit to a group lost by a refused join",
        "to a group that Kafka hides (see above) nobody can commit without being a member; in"
        " Kohort the group is there, and does not know the member",
        ("OffsetCommit",),
        ("topics[].partitions[].error_code",),
        lambda one: (
            _lost(one)
            and one.difference.kafka in (GROUP_ID_NOT_FOUND, ILLEGAL_GENERATION)  # by its version
            and one.difference.kohort == UNKNOWN_MEMBER_ID
        ),
        goes_on=True,
    ),
    Explanation(
        "leader epoch after a restart",
        "Kafka raises the epochs of leaders when its broker comes back, Kohort has no elections",
        ("Metadata",),
        ("topics[].partitions[].leader_epoch",),
        lambda one: any(told.step is RESTART for told in one.before),
        goes_on=True,
    ),
    Explanation(
        "white space of settings",
        "Kafka keeps and shows a setting as it was written, Kohort as it understands it",
        ("CreateTopics", "DescribeConfigs"),
        ("topics[].configs[].value", "results[].configs[].value", *_SYNONYMS),
        lambda one: str(one.difference.kafka).strip() == one.difference.kohort,
        goes_on=True,
    ),
    *MIGRATIONS,
    *PATTERNS,
    *SETTINGS_OF_GROUPS,
    *STATIC_MEMBERS,
)
