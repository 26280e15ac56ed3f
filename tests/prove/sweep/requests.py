# SPDX-License-Identifier: Apache-2.0
"""The large requests of an API, made from the layout of its messages: a new API is swept by itself.

An array in which something is named is filled as far as the broker allows the API. There are few
ways to do it: many at the outer array with one in each, one at the outer with many in it, what
is named alone with its inner arrays null; each of them once with different names, and once with one
name again and again. What a field means is guessed by its name, and said by `SCALARS` where that
is not enough.
"""

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from kohort.server.network.routes import ROUTES
from kohort.wire.apis import Api
from kohort.wire.batch import build
from kohort.wire.schema import Field, Primitive, fields_of

MOST = 100_000
"""Elements of one request: the default of request.max.elements."""
MOST_IN_ONE_PIECE = 20_000
"""Those of a request that nobody can come in between."""
LONG_BYTES = 32_767
LONG_NAMES = 240
"""As many as fit into the largest request without records, 8 MiB."""
PIPELINED = 1000

BIG_GROUPS = 10
"""Groups whose offsets are those of all wide topics."""
GROUPS = 2000
WIDE_TOPICS = 2
"""Topics of many partitions; they come first, and the others have one partition each."""
WIDE = 1000
TOPICS = 2000

TOPIC, BROKER, GROUP = 2, 4, 32  # types of resources

SCALARS: dict[str, Any] = {
    "acks": -1,
    "isolation_level": 1,
    "match_type": 0,
    "max_bytes": 1 << 20,
    "max_wait_ms": 0,
    "partition_max_bytes": 1 << 10,
    "producer_id": 1,
    "protocol_type": "consumer",
    "rebalance_timeout_ms": 1000,
    "response_partition_limit": 2000,
    "session_epoch": -1,
    "operation": 3,
    "permission_type": 3,
    "resource_type_filter": TOPIC,
    "session_timeout_ms": 6000,
    "timestamp": 0,
    "timeout_ms": 5000,
    "transaction_timeout_ms": 1000,
    "validate_only": True,
    "verify_only": True,
}
UNNAMED = frozenset({"member_id", "group_instance_id", "instance_id", "subscribed_topic_regex"})
"""At the top of a request: left as they are by default, or no group would take it."""
CHOICES: dict[str, tuple[int, ...]] = {"resource_type": (TOPIC, GROUP), "key_type": (0, 1)}
"""Fields of which several values are worth a way of their own."""

Path = tuple[Field, ...]


def topic(number: int) -> str:
    """The name of a topic: the wide ones come first, and from TOPICS on there is none such."""
    return f"wide-{number}" if number < WIDE_TOPICS else f"narrow-{number}"


def group(number: int) -> str:
    return f"big-{number}" if number < BIG_GROUPS else f"group-{number}"


class Way(NamedTuple):
    """How one request is filled. At `level` of `path` there are `count`; `inner` in each of them at
    the end of the path; `same` of one name; `long` with names as long as can be.
    """

    path: Path
    level: int
    count: int
    inner: int = 1
    same: bool = False
    long: bool = False
    choice: tuple[str, int] = ("", 0)

    @property
    def name(self) -> str:
        if not self.path:
            return "nothing named"
        places = [f"{self._size(depth)} {field.name}" for depth, field in enumerate(self.path)]
        marks = [word for word in ("same", "long") if getattr(self, word)]
        if self.choice[0]:
            marks.append(f"{self.choice[0]}={self.choice[1]}")
        return " of ".join(reversed(places)) + (f" ({', '.join(marks)})" if marks else "")

    def _size(self, depth: int) -> int:
        if depth == self.level:
            return self.count
        return self.inner if depth == len(self.path) - 1 else 1


class Filler:
    """Makes the request of a way. `topic_ids` are those of the topics, in the order of `topic`."""

    def __init__(self, api: Api, topic_ids: list[bytes]) -> None:
        self.api = api
        self.version = api.versions.last
        self.most = MOST if ROUTES[api.request].in_parts else MOST_IN_ONE_PIECE
        self._topic_ids = topic_ids
        self._batch = build([(None, b"value")], int(time.time() * 1000))

    def ways(self) -> Iterator[Way]:
        """All ways to fill a request of this API."""
        yield Way((), 0, 0)
        for path in self._paths(self.api.request):
            names = {field.name for step in path for field in self._siblings(step)}
            chosen = next((name for name in CHOICES if name in names), "")
            for value in CHOICES.get(chosen, (0,)):
                for way in self._ways_of(path):
                    yield way._replace(choice=(chosen, value) if chosen else ("", 0))

    def request(self, way: Way) -> Any:
        return self._message(self.api.request, way, 0, 0)

    def small(self) -> Any:
        """A request with one of everything that it can name."""
        paths = list(self._paths(self.api.request))
        longest = max(paths, key=len, default=())
        return self.request(Way(longest, 0, 1 if longest else 0))

    def _paths(self, message: Any, before: Path = ()) -> Iterator[Path]:
        for field in self._fields(message):
            if field.array:
                path = (*before, field)
                yield path
                if not isinstance(field.of, Primitive):
                    yield from self._paths(field.of, path)

    def _ways_of(self, path: Path) -> Iterator[Way]:
        last = len(path) - 1
        whole = isinstance(path[-1].of, Primitive) or not any(
            field.array for field in self._fields(path[-1].of)
        )
        ways = [Way(path, last, self.most - last)]
        if last and whole:
            ways.append(Way(path, 0, self.most // (last + 1)))
            ways.append(Way(path, last - 1, WIDE_TOPICS, WIDE))
        for way in ways:
            yield way
            yield way._replace(same=True)
        texts = self._texts(path[-1])
        if texts:
            yield Way(path, last, LONG_NAMES // texts, long=True)

    def _texts(self, field: Field) -> int:
        """The number of texts in an element of an array."""
        within = [field] if isinstance(field.of, Primitive) else self._fields(field.of)
        return sum(isinstance(one.of, Primitive) and one.of.name == "string" for one in within)

    def _fields(self, message: Any) -> list[Field]:
        return [field for field in fields_of(message) if self.version in field.versions]

    def _siblings(self, field: Field) -> list[Field]:
        top = self._fields(self.api.request)
        return top if isinstance(field.of, Primitive) else [*top, *self._fields(field.of)]

    def _message(self, cls: Any, way: Way, depth: int, number: int) -> Any:
        """A message at a depth of the path, the `number`th of its array."""
        message = cls()
        for field in self._fields(cls):
            setattr(message, field.name, self._value(cls, field, way, depth, number))
        return message

    def _value(self, cls: Any, field: Field, way: Way, depth: int, number: int) -> Any:
        if field.array:
            if depth < len(way.path) and field is way.path[depth]:
                return self._elements(cls, field, way, depth)
            return None if self.version in field.nullable else []
        if not isinstance(field.of, Primitive):
            return field.default
        if field.name == way.choice[0]:
            return way.choice[1]
        if field.name in SCALARS:
            return SCALARS[field.name]
        top = depth == 0
        if top and field.name in UNNAMED:
            return field.default
        return self._single(cls, field, way, number, top=top)

    def _elements(self, cls: Any, field: Field, way: Way, depth: int) -> list[Any]:
        numbers = range(way.count if depth == way.level else 1)
        if depth > way.level:
            numbers = range(way.inner)
        if way.same and depth == way.level:
            return [self._element(cls, field, way, depth, 0) for _ in numbers]
        return [self._element(cls, field, way, depth, number) for number in numbers]

    def _element(self, cls: Any, field: Field, way: Way, depth: int, number: int) -> Any:
        if isinstance(field.of, Primitive):
            return self._single(cls, field, way, number, top=False)
        return self._message(field.of, way, depth + 1, number)

    def _single(self, cls: Any, field: Field, way: Way, number: int, *, top: bool) -> Any:
        match field.of.name:
            case "string":
                text = _text(cls, field, way, number)
                return text.ljust(LONG_BYTES, "x") if way.long and not top else text
            case "uuid":
                known = number < len(self._topic_ids)
                return self._topic_ids[number] if known else number.to_bytes(16, "big")
            case "records":
                return self._batch
            case "bytes":
                return b"some bytes"
            case "bool":
                return field.default
            case "int8":
                return number % 128 if field.array else field.default
            case _:
                return number if _is_number(field) and not top else field.default


def _is_number(field: Field) -> bool:
    """Whether an integer says which of the array's elements it is."""
    return field.array or field.name in ("partition", "partition_index", "index")


def _text(cls: Any, field: Field, way: Way, number: int) -> str:
    """The name of the `number`th thing, of those that there are where it can be said."""
    place = f"{cls.__name__}.{field.name}".lower()
    if field.name == "resource_name":
        return {GROUP: group, BROKER: str}.get(way.choice[1], topic)(number)
    if "transactional" in place or way.choice == ("key_type", 1):
        return f"transaction-{number}"
    if "group" in field.name or way.choice == ("key_type", 0):
        return group(number)
    if "topic" in place and ("name" in field.name or "topic" in field.name):
        return topic(number)
    return f"{field.name}-{number}"
