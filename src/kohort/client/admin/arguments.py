# SPDX-License-Identifier: Apache-2.0
"""What callers give to the admin client: of the right kinds, before anything is asked.

A name where a list is expected would otherwise be taken for a list of letters.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

from kohort.terms import TopicPartition

if TYPE_CHECKING:  # each call imports what it needs: a short command needs little
    from kohort.client.admin.group_views import CommittedOffset
    from kohort.client.admin.topic_views import NewTopic

INT16_MAX = NAME_BYTES = 2**15 - 1
INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1


def names(what: str, given: object) -> list[str]:
    """A list of names; a single one is a list of one, not of its letters. Raises TypeError, and
    ValueError for a name that cannot be sent.
    """
    if isinstance(given, str):
        return [_sendable(what, given)]
    if not isinstance(given, Iterable) or isinstance(given, bytes | bytearray):
        raise TypeError(f"{what} is {given!r}, expected a text or a list of texts")
    found = list(given)
    for name in found:
        if not isinstance(name, str):
            raise TypeError(f"{what} has {name!r}, expected texts")
        _sendable(what, name)
    return found


def new_topics(given: object) -> "list[NewTopic]":
    """Raises TypeError, and ValueError for a number that cannot be sent or a name given twice."""
    from kohort.client.admin.topic_views import NewTopic

    if isinstance(given, str | bytes | Mapping | NewTopic) or not isinstance(given, Iterable):
        raise TypeError(f"new_topics is {given!r}, expected a list of NewTopic")
    found = list(given)
    seen: set[str] = set()
    for topic in found:
        if not isinstance(topic, NewTopic):
            raise TypeError(
                f"new_topics has {topic!r}, expected NewTopic, as NewTopic('orders', 3)"
            )
        if not isinstance(topic.name, str):
            raise TypeError(f"the name of a new topic is {topic.name!r}, expected a text")
        _sendable("the name of a new topic", topic.name)
        _whole(f"partitions of topic {topic.name}", topic.partitions, INT32_MAX)
        _whole(f"replication_factor of topic {topic.name}", topic.replication_factor, INT16_MAX)
        if topic.configs is not None:
            texts(f"configs of topic {topic.name}", topic.configs)
        if topic.name in seen:
            raise ValueError(f"new_topics has topic {topic.name} twice, expected each once")
        seen.add(topic.name)
    return found


def counts(given: object) -> dict[str, int]:
    """Numbers of partitions by topic. Raises TypeError, and ValueError for what cannot be sent."""
    found = mapping("counts", given)
    names("counts", found)
    for name, count in found.items():
        _whole(f"the count of topic {name}", count, INT32_MAX)
    return dict(found)


def texts(what: str, given: object, *, none: bool = False) -> None:
    """A mapping of names to texts, or with `none` to None. Raises TypeError, and ValueError for
    what cannot be sent.
    """
    if not isinstance(given, Mapping):
        raise TypeError(f"{what} is {given!r}, expected a mapping of names to texts")
    for name, value in given.items():
        if not isinstance(name, str):
            raise TypeError(f"{what} has the name {name!r}, expected a text")
        if not (isinstance(value, str) or (none and value is None)):
            expected = "a text or None" if none else "a text"
            raise TypeError(f"{name} in {what} is {value!r}, expected {expected}")
        _sendable(what, name)
        _sendable(f"{name} in {what}", value or "")


def changes(given: object) -> None:
    """Raises TypeError for what is no mapping of groups to their changes, and ValueError for what
    cannot be sent.
    """
    for group_id, configs in mapping("changes", given).items():
        if not isinstance(group_id, str):
            raise TypeError(f"changes has the group {group_id!r}, expected a text")
        _sendable("changes", group_id)
        texts(f"changes of group {group_id}", configs, none=True)


def mapping(what: str, given: object) -> Mapping[Any, Any]:
    """Raises TypeError."""
    if not isinstance(given, Mapping):
        raise TypeError(f"{what} is {given!r}, expected a mapping")
    return given


def partitions(what: str, given: object) -> list[TopicPartition]:
    """Raises TypeError, and ValueError for a name or an index that cannot be sent."""
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise TypeError(f"{what} is {given!r}, expected a list of (topic, index)")
    return [_partition(what, partition) for partition in given]


def name(what: str, given: object) -> str:
    """One name. Raises TypeError, and ValueError for one that cannot be sent."""
    if not isinstance(given, str):
        raise TypeError(f"{what} is {given!r}, expected a text")
    return _sendable(what, given)


def topics_and_partitions(what: str, given: object) -> list[TopicPartition | str]:
    """Topics by name, or partitions of them; a single name is a list of one. Raises TypeError, and
    ValueError for a name or an index that cannot be sent.
    """
    if isinstance(given, str):
        return [_sendable(what, given)]
    if isinstance(given, bytes | bytearray) or not isinstance(given, Iterable):
        raise TypeError(f"{what} is {given!r}, expected a list of topics or of (topic, index)")
    return [
        _sendable(what, place) if isinstance(place, str) else _partition(what, place)
        for place in given
    ]


def offsets(what: str, given: object) -> "dict[TopicPartition, CommittedOffset]":
    """Offsets by partition: numbers or CommittedOffset. Raises TypeError, and ValueError for what
    cannot be sent, or is no offset.
    """
    found = mapping(what, given)
    return {
        place: _offset(f"the offset of {place} in {what}", found[given_place])
        for place, given_place in zip(partitions(what, found), found, strict=True)
    }


def _offset(what: str, given: object) -> "CommittedOffset":
    from kohort.client.admin.group_views import CommittedOffset

    if isinstance(given, int) and not isinstance(given, bool):
        given = CommittedOffset(given)
    if not isinstance(given, CommittedOffset):
        raise TypeError(f"{what} is {given!r}, expected a number or a CommittedOffset")
    natural(what, given.offset)
    if given.leader_epoch is not None:
        natural(f"the leader epoch beside {what}", given.leader_epoch, INT32_MAX)
    name(f"the metadata beside {what}", given.metadata)
    return given


def whole(what: str, given: object, most: int = INT64_MAX) -> int:
    """A number that may be negative. Raises TypeError, and ValueError for what cannot be sent."""
    _whole(what, given, most)
    return cast("int", given)


def natural(what: str, given: object, most: int = INT64_MAX) -> int:
    """A number from 0 on. Raises TypeError, and ValueError for any other."""
    if whole(what, given, most) < 0:
        raise ValueError(f"{what} is {given}, expected 0 at least")
    return cast("int", given)


def _partition(what: str, given: object) -> TopicPartition:
    match given:
        case (str() as topic, index) if isinstance(index, int) and _is_whole(index):
            _sendable(what, topic)
            _whole(f"the index of a partition of topic {topic} in {what}", index, INT32_MAX)
            return TopicPartition(topic, index)
        case _:
            raise TypeError(f"{what} has {given!r}, expected (topic, index), as ('orders', 0)")


def _whole(what: str, value: object, most: int) -> None:
    """Any whole number that can be sent: brokers judge which make sense."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{what} is {value!r}, expected a number")
    if not -most - 1 <= value <= most:
        raise ValueError(f"{what} is {value}, expected {most} at most")


def _sendable(what: str, text: str) -> str:
    """The text, which older versions write with two bytes of length."""
    try:
        length = len(text.encode())
    except UnicodeEncodeError:
        raise ValueError(f"{what} has {text!r}, expected text in UTF-8") from None
    if length > NAME_BYTES:
        raise ValueError(f"{what} has a text of {length} bytes, expected {NAME_BYTES} at most")
    return text


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
