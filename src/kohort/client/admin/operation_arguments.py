"""What callers give to the calls that are about no group: of the right kinds, before anything is
asked. Names and partitions are read by `arguments`.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from kohort.client.admin import arguments
from kohort.client.admin.arguments import INT32_MAX
from kohort.client.admin.transaction_views import TransactionState
from kohort.terms import TopicId, uuid_bytes

_STATES = {state.value.lower(): state for state in TransactionState}


def number(what: str, given: object, most: int, least: int = 0) -> int:
    """Raises TypeError, and ValueError for a number that is out of bounds."""
    if not isinstance(given, int) or isinstance(given, bool):
        raise TypeError(f"{what} is {given!r}, expected a number")
    if not least <= given <= most:
        raise ValueError(f"{what} is {given}, expected {least} to {most}")
    return given


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
