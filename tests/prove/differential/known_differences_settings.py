# SPDX-License-Identifier: Apache-2.0
"""Known differences in settings of groups."""

from __future__ import annotations

from tests.prove.differential.drawing_topics import METRICS
from tests.prove.differential.occasions import PICKS, Explanation, Occasion, codes

_CONFIGS = tuple(
    f"results[].configs[].{field}" for field in ("value", "config_source", "synonyms[]")
)
INVALID_REQUEST = 42
ALTERING = ("IncrementalAlterConfigs", "AlterConfigs")


def _set(one: Occasion, name: str, value: str) -> bool:
    """Whether somebody has asked for this."""
    return any(
        config["name"] == name and config["value"] == value
        for told in one.before
        if told.step.api in ALTERING
        for resource in told.step.fields["resources"]
        for config in resource["configs"]
    )


def _deleted(one: Occasion) -> bool:
    """A group has been deleted that had settings."""
    return any(
        told.step.api == "DeleteGroups"
        and isinstance(told.answers[0], dict)
        and any(not each["error_code"] for each in told.answers[0]["results"])
        for told in one.before
    ) and any(told.step.api in ALTERING for told in one.before)


SETTINGS_OF_GROUPS: tuple[Explanation, ...] = (
    Explanation(
        "settings of a deleted group",
        "the settings of a group go with it (KIP-848); Kafka keeps them",
        (
            *("DescribeConfigs", "ListConfigResources", "ConsumerGroupHeartbeat"),
            *("ConsumerGroupDescribe", "IncrementalAlterConfigs", "AlterConfigs"),
        ),
        (
            *(*_CONFIGS, "config_resources[]", "heartbeat_interval_ms", "responses[].error_code"),
            *("groups[].group_state", "groups[].assignment_epoch", "member_epoch", "assignment"),
            *PICKS,
        ),
        _deleted,
    ),
    Explanation(
        "default of the assignment interval",
        "an assignment is computed at once; Kafka's default is a second (KIP-1263)",
        ("DescribeConfigs",),
        ("results[].configs[].synonyms[].value",),
        lambda one: codes(one) == ("1000", "0"),
        goes_on=True,
    ),
    Explanation(
        "client metrics without a setting",
        "there are no resources of client metrics here; Kafka lets settings of any be deleted",
        ("IncrementalAlterConfigs",),
        ("responses[].error_code",),
        lambda one: (
            codes(one) == (0, INVALID_REQUEST)
            and any(each["resource_type"] == METRICS for each in one.request.get("resources", ()))
        ),
    ),
    Explanation(
        "setting with white space around it",
        "Kafka takes it and shows it, and goes on with the one before",
        ("ConsumerGroupHeartbeat",),
        ("heartbeat_interval_ms",),
        lambda one: (
            one.difference.kohort == 7000 and _set(one, "consumer.heartbeat.interval.ms", " 7000 ")
        ),
    ),
    Explanation(
        "emptied group within the interval",
        "an emptied group gets a new, empty target at its epoch (KAFKA-20442, later than 4.3.1), so"
        " who joins before the next one is due joins at that epoch",
        ("ConsumerGroupHeartbeat",),
        ("member_epoch",),
        lambda one: (
            one.request.get("member_epoch") == 0
            and one.difference.kohort > one.difference.kafka
            and _set(one, "consumer.assignment.interval.ms", "600000")
        ),
    ),
)
