# SPDX-License-Identifier: Apache-2.0
"""What a person was shown, and then said yes to, is looked at again: a cluster goes on meanwhile.

Offsets that a group has committed since, topics that were made again under the same name, and
credentials that were, as far as anybody can tell, are left alone. With `--yes` nobody is asked, and
there is no such moment between.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from kohort.cli.lags import offset_of
from kohort.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from kohort.client.admin import AdminClient, ScramCredential
    from kohort.terms import TopicPartition

Offsets = Mapping["TopicPartition", Any]
"""What is committed, by partition; None where nothing is."""


TopicIds = Mapping[str, bytes | None]
"""By name, of topics that are there; None where the broker does not know ids."""


async def topic_ids(admin: "AdminClient", topics: Iterable[str]) -> TopicIds:
    """Those of the topics that are there."""
    names = list(dict.fromkeys(topics))
    described = (await admin.describe_topics(names)).succeeded if names else {}
    return {name: topic.topic_id for name, topic in described.items()}


async def changed_topics(admin: "AdminClient", shown: TopicIds) -> dict[str, ApiError]:
    """The topics that are not those that were shown, and those that cannot be looked at again."""
    now = dict((await admin.describe_topics(list(shown))).items()) if shown else {}
    found = {}
    for name, topic in now.items():
        if isinstance(topic, ApiError):
            is_gone = topic.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            found[name] = recreated(name) if is_gone else topic
        elif topic.topic_id != shown[name]:
            found[name] = recreated(name)
    return found


def recreated(topic: str) -> ApiError:
    return ApiError(
        ErrorCode.UNKNOWN_TOPIC_ID,
        f"topic {topic} was deleted since it was shown; another one of this name is left alone",
    )


async def committed_since(
    admin: "AdminClient", shown: Mapping[str, Offsets], *, elsewhere: bool = False
) -> dict[str, dict["TopicPartition", ApiError]]:
    """By group, the partitions of which it has committed another offset than the one shown, and
    with `elsewhere` those that were not shown. A group whose offsets cannot be read any more is not
    among them: the change itself says why.
    """
    now = dict((await admin.list_group_offsets(list(shown))).items())
    found = {}
    for group_id, offsets in shown.items():
        committed = now[group_id]
        if isinstance(committed, ApiError):
            continue
        places = dict.fromkeys([*offsets, *(committed if elsewhere else ())])
        moved = {
            place: _moved(committed.get(place), offsets.get(place))
            for place in places
            if offset_of(committed.get(place)) != offset_of(offsets.get(place))
        }
        if moved:
            found[group_id] = moved
    return found


async def changed_credentials(
    admin: "AdminClient", shown: "Mapping[str, tuple[ScramCredential, ...]]"
) -> dict[str, ApiError]:
    """The users one of whose credentials was made again with another number of iterations. No
    request tells more of a credential, so one that was made again with the same looks unchanged.
    """
    now = (await admin.describe_user_scram_credentials(list(shown))).succeeded if shown else {}
    found = {}
    for user, credentials in now.items():
        before = {one.mechanism: one.iterations for one in shown[user]}
        for one in credentials:
            was = before.get(one.mechanism, one.iterations)
            if one.iterations != was:
                found[user] = ApiError(
                    ErrorCode.INVALID_REQUEST,
                    f"its {one.mechanism} had {was} iterations when it was shown and has "
                    f"{one.iterations} now: it is left alone",
                )
    return found


def _moved(now: Any, before: Any) -> ApiError:
    is_at, was_at = (
        "nothing" if offset is None else f"{offset:,}"
        for offset in (offset_of(now), offset_of(before))
    )
    return ApiError(
        ErrorCode.INVALID_REQUEST,
        f"its committed offset was {was_at} when it was shown and is {is_at} now: it is left alone",
    )
