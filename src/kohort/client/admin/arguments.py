"""What callers give to the admin client: of the right kinds, before anything is asked.

A name where a list is expected would otherwise be taken for a list of letters.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from kohort.client.admin.views import NewTopic
from kohort.terms import TopicPartition


def names(what: str, given: object) -> list[str]:
    """A list of names; a single one is a list of one, not of its letters. Raises TypeError."""
    if isinstance(given, str):
        return [given]
    if not isinstance(given, Iterable) or isinstance(given, bytes | bytearray):
        raise TypeError(f"{what} is {given!r}, expected a text or a list of texts")
    found = list(given)
    for name in found:
        if not isinstance(name, str):
            raise TypeError(f"{what} has {name!r}, expected texts")
    return found


def new_topics(given: object) -> list[NewTopic]:
    """Raises TypeError."""
    if isinstance(given, str | bytes | Mapping | NewTopic) or not isinstance(given, Iterable):
        raise TypeError(f"new_topics is {given!r}, expected a list of NewTopic")
    found = list(given)
    for name in found:
        if not isinstance(name, NewTopic):
            raise TypeError(f"new_topics has {name!r}, expected NewTopic, as NewTopic('orders', 3)")
        if not isinstance(name.name, str):
            raise TypeError(f"the name of a new topic is {name.name!r}, expected a text")
        for field in ("partitions", "replication_factor"):
            value = getattr(name, field)
            if not _is_whole(value):
                raise TypeError(f"{field} of topic {name.name} is {value!r}, expected a number")
        if name.configs is not None:
            texts(f"configs of topic {name.name}", name.configs)
    return found


def texts(what: str, given: object, *, none: bool = False) -> None:
    """A mapping of names to texts, or with `none` to None. Raises TypeError."""
    if not isinstance(given, Mapping):
        raise TypeError(f"{what} is {given!r}, expected a mapping of names to texts")
    for name, value in given.items():
        if not isinstance(name, str):
            raise TypeError(f"{what} has the name {name!r}, expected a text")
        if not (isinstance(value, str) or (none and value is None)):
            expected = "a text or None" if none else "a text"
            raise TypeError(f"{name} in {what} is {value!r}, expected {expected}")


def changes(given: object) -> None:
    """Raises TypeError for what is no mapping of groups to their changes."""
    for group_id, its in mapping("changes", given).items():
        if not isinstance(group_id, str):
            raise TypeError(f"changes has the group {group_id!r}, expected a text")
        texts(f"changes of group {group_id}", its, none=True)


def mapping(what: str, given: object) -> Mapping[Any, Any]:
    """Raises TypeError."""
    if not isinstance(given, Mapping):
        raise TypeError(f"{what} is {given!r}, expected a mapping")
    return given


def partitions(what: str, given: object) -> list[TopicPartition]:
    """Raises TypeError."""
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise TypeError(f"{what} is {given!r}, expected a list of (topic, index)")
    return [_partition(what, partition) for partition in given]


def _partition(what: str, given: object) -> TopicPartition:
    match given:
        case (str() as topic, index) if isinstance(index, int) and _is_whole(index):
            return TopicPartition(topic, index)
        case _:
            raise TypeError(f"{what} has {given!r}, expected (topic, index), as ('orders', 0)")


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
