# SPDX-License-Identifier: Apache-2.0
"""What callers give to the calls that are about no group: of the right kinds, before anything is
asked. Names and partitions are read by `arguments`.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from kohort.client.admin import arguments
from kohort.client.admin.arguments import INT16_MAX, INT32_MAX, INT64_MAX
from kohort.client.admin.broker_views import ElectionType, FeatureUpdate
from kohort.client.admin.elections import ELECTION_TYPES
from kohort.client.admin.features import UPGRADE_TYPES
from kohort.client.admin.quota_views import ClientQuotaEntity, NameMatch
from kohort.client.admin.records import HIGH_WATERMARK
from kohort.client.admin.transaction_views import TransactionState
from kohort.terms import TopicId, TopicPartition, uuid_bytes

END: Literal["latest"] = "latest"
_STATES = {state.value.lower(): state for state in TransactionState}


def number(what: str, given: object, most: int, least: int = 0) -> int:
    """Raises TypeError, and ValueError for a number that is out of bounds."""
    if not isinstance(given, int) or isinstance(given, bool):
        raise TypeError(f"{what} is {given!r}, expected a number")
    if not least <= given <= most:
        raise ValueError(f"{what} is {given}, expected {least} to {most}")
    return given


def number_or_none(what: str, given: object) -> int | None:
    """Raises TypeError, and ValueError for a number that is out of bounds."""
    return None if given is None else number(what, given, INT64_MAX)


def numbers(what: str, given: object, most: int) -> list[int]:
    """Several numbers, or one. Raises TypeError and ValueError."""
    if isinstance(given, int):
        return [number(what, given, most)]
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise TypeError(f"{what} is {given!r}, expected a number or a list of numbers")
    return list(dict.fromkeys(number(what, each, most) for each in given))


def broker(given: object) -> int | None:
    """Raises TypeError and ValueError."""
    return None if given is None else number("broker_id", given, INT32_MAX)


def topic_ids(given: object) -> dict[Any, TopicId]:
    """Each id as it was given, several or one, and its bytes. Raises TypeError and ValueError."""
    if isinstance(given, str | bytes):
        return {given: _topic_id(given)}
    if isinstance(given, Mapping) or not isinstance(given, Iterable):
        raise TypeError(f"ids is {given!r}, expected a list of ids of topics")
    return {each: _topic_id(each) for each in given}


def _topic_id(given: object) -> TopicId:
    expected = "16 bytes or the 22 characters that Kafka shows"
    if isinstance(given, bytes):
        if len(given) == len(bytes(16)):
            return TopicId(given)
    elif isinstance(given, str):
        try:
            return TopicId(uuid_bytes(given))
        except ValueError:
            pass  # the text below says what was expected
    else:
        raise TypeError(f"ids has {given!r}, expected {expected}")
    raise ValueError(f"ids has {given!r}, expected {expected}")


def before_offsets(given: object) -> dict[TopicPartition, int]:
    """Raises TypeError, and ValueError for what is no offset."""
    offsets = arguments.mapping("before", given).values()
    found = {}
    for partition, offset in zip(arguments.partitions("before", given), offsets, strict=True):
        what = f"the offset of {partition} in before"
        if offset == END:
            found[partition] = HIGH_WATERMARK
        elif isinstance(offset, str):
            raise TypeError(f"{what} is {offset!r}, expected a number or {END!r}")
        else:
            found[partition] = number(what, offset, INT64_MAX)
    return found


def election_type(given: object) -> ElectionType:
    """Raises ValueError."""
    for word in ELECTION_TYPES:
        if given == word:
            return word
    expected = " or ".join(ELECTION_TYPES)
    raise ValueError(f"election_type is {given!r}, expected {expected}")


def partitions_or_all(given: object) -> list[TopicPartition] | None:
    """Raises TypeError and ValueError."""
    return None if given is None else arguments.partitions("partitions", given)


def replicas(given: object) -> dict[TopicPartition, list[int] | None]:
    """The replicas of each partition. Raises TypeError, and ValueError for what is no id."""
    found: dict[TopicPartition, list[int] | None] = {}
    ids = arguments.mapping("replicas", given).values()
    for partition, some in zip(arguments.partitions("replicas", given), ids, strict=True):
        what = f"replicas of {partition}"
        if some is None:
            found[partition] = None
        elif isinstance(some, str | bytes | Mapping) or not isinstance(some, Iterable):
            raise TypeError(f"{what} is {some!r}, expected a list of ids of brokers, or None")
        else:
            found[partition] = [number(what, each, INT32_MAX) for each in some]
    return found


def name_matches(given: object) -> dict[str, NameMatch]:
    """A filter of quotas; None finds all. Raises TypeError and ValueError."""
    if given is None:
        return {}
    found = arguments.mapping("wanted", given)
    arguments.names("wanted", found)
    for kind, name in found.items():
        if not (name is None or name is ...):
            if not isinstance(name, str):
                raise TypeError(f"{kind} in wanted is {name!r}, expected a text, None or ...")
            arguments.name(f"{kind} in wanted", name)
    return dict(found)


def quota_changes(given: object) -> dict[ClientQuotaEntity, dict[str, float | None]]:
    """Raises TypeError, and ValueError for what cannot be sent."""
    found: dict[ClientQuotaEntity, dict[str, float | None]] = {}
    for entity, quotas in arguments.mapping("changes", given).items():
        if not isinstance(entity, ClientQuotaEntity):
            raise TypeError(
                f"changes has {entity!r}, expected a ClientQuotaEntity, as "
                "ClientQuotaEntity({'user': 'alice'})"
            )
        arguments.texts(f"{entity}", entity.names, none=True)
        what = f"the quotas of {entity}"
        arguments.names(what, arguments.mapping(what, quotas))
        for key, value in quotas.items():
            if value is None:
                continue
            if not isinstance(value, int | float) or isinstance(value, bool):
                raise TypeError(f"{key} of {entity} is {value!r}, expected a number or None")
        found[entity] = {
            key: None if value is None else float(value) for key, value in quotas.items()
        }
    return found


def principals(what: str, given: object) -> list[tuple[str, str]]:
    """The type and the name of each. Raises TypeError, and ValueError for what is no principal."""
    found = []
    for text in arguments.names(what, given):
        kind, colon, name = text.partition(":")
        if not (kind and colon and name):
            raise ValueError(f"{what} has {text!r}, expected a principal, as 'User:alice'")
        found.append((kind, name))
    return found


def hmac(given: object) -> bytes:
    """What a token is known by. Raises TypeError, and does not show it."""
    if not isinstance(given, bytes):
        raise TypeError(
            f"hmac is of type {type(given).__name__}, expected bytes, as the hmac of a "
            "DelegationToken"
        )
    return given


def feature_updates(given: object) -> dict[str, FeatureUpdate]:
    """Raises TypeError and ValueError."""
    found = arguments.mapping("updates", given)
    arguments.names("updates", found)
    for name, update in found.items():
        if not isinstance(update, FeatureUpdate):
            raise TypeError(f"updates of feature {name} is {update!r}, expected a FeatureUpdate")
        number(f"the level of feature {name}", update.level, INT16_MAX)
        if update.upgrade_type not in UPGRADE_TYPES:
            expected = ", ".join(UPGRADE_TYPES)
            raise ValueError(
                f"upgrade_type of feature {name} is {update.upgrade_type!r}, "
                f"expected one of {expected}"
            )
    return dict(found)


def transaction_states(given: object) -> list[TransactionState]:
    """States to filter by; None filters nothing. Raises TypeError and ValueError."""
    if given is None:
        return []
    found = arguments.names("states", given)
    expected = ", ".join(TransactionState)
    if not found:
        raise ValueError(f"states is empty, expected None for all or some of {expected}")
    for name in found:
        if name.lower() not in _STATES:
            raise ValueError(f"{name!r} is not a state, expected one of {expected}")
    return list(dict.fromkeys(_STATES[name.lower()] for name in found))
