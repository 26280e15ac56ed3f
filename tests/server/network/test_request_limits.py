# SPDX-License-Identifier: Apache-2.0
"""What of a request is refused before anybody handles it: too many elements, texts too long."""

import pytest
from tests.prove.sweep.requests import Filler, Way
from tests.python_calls import python_calls

from kohort.errors import ErrorCode, WireError
from kohort.server.network.request_limits import (
    LONGEST_STRING,
    ElementLimit,
    check_elements,
    empty_long_texts,
)
from kohort.wire.apis import APIS
from kohort.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kohort.wire.schema import Primitive, fields_of

LIMIT = 10


def ways():
    """Every array of every request, with a number of elements in it."""
    for api in APIS.values():
        for way in Filler(api, []).ways():
            if way.path and not way.same and not way.long:
                yield pytest.param(api, way, id=f"{api.name}: {way.name}")


def elements(message):
    """The plain count, an element at a time."""
    count = 0
    for field in fields_of(type(message)):
        value = getattr(message, field.name)
        if isinstance(value, list):
            count += len(value)
            if not isinstance(field.of, Primitive):
                count += sum(map(elements, value))
    return count


def texts(message, name=""):
    """All texts of a message, each with the name of its field."""
    for field in fields_of(type(message)):
        value = getattr(message, field.name)
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, str):
                yield field.name, item
            elif item is not None and not isinstance(field.of, Primitive):
                yield from texts(item, name)


@pytest.mark.parametrize(("api", "way"), [*ways()])
def test_every_array_of_every_request_counts(api, way):
    request = Filler(api, []).request(way._replace(count=3, inner=2))
    count = elements(request)
    assert check_elements(request, ElementLimit(count)) is None
    error = check_elements(request, ElementLimit(count - 1))
    assert error is not None
    assert error.code == ErrorCode.INVALID_REQUEST
    assert f"{count} elements, expected at most {count - 1}" in error.message


@pytest.mark.parametrize(("api", "way"), [*ways()])
def test_a_long_text_is_found_and_emptied_wherever_it_is(api, way: Way):
    filler = Filler(api, [])
    request = filler.request(way._replace(count=3, inner=2))
    before = list(texts(request))
    assert empty_long_texts(request) == ""
    assert list(texts(request)) == before
    for place in range(len(before)):
        request = filler.request(way._replace(count=3, inner=2))
        name = _lengthen(request, place)
        why = empty_long_texts(request)
        assert why == f"{name} is {LONGEST_STRING + 1} bytes long, expected at most 32767"
        after = [("" if at == place else text) for at, (_, text) in enumerate(before)]
        assert [text for _, text in texts(request)] == after


def _lengthen(message, place, seen=None):
    """Make the text at this place too long, by one byte; the name of its field, or ""."""
    seen = [0] if seen is None else seen
    for field in fields_of(type(message)):
        value = getattr(message, field.name)
        items = value if isinstance(value, list) else [value]
        for at, item in enumerate(items):
            if isinstance(item, str):
                if seen[0] == place:
                    long = "ü" * (LONGEST_STRING // 2) + "xx"
                    if isinstance(value, list):
                        value[at] = long
                    else:
                        setattr(message, field.name, long)
                    return field.name
                seen[0] += 1
            elif item is not None and not isinstance(field.of, Primitive):
                found = _lengthen(item, place, seen)
                if found:
                    return found
    return ""


@pytest.mark.parametrize(("api", "way"), [*ways()])
def test_looking_at_more_costs_no_more_calls(api, way):
    """The loop is held by a request of a hundred thousand elements as long as this takes."""
    limit = ElementLimit(10_000)

    def calls(count):
        request = Filler(api, []).request(way._replace(count=count, inner=2))
        return python_calls(lambda: (check_elements(request, limit), empty_long_texts(request)))

    calls(2)  # what is looked up once
    assert calls(200) == calls(2)


def test_a_text_of_exactly_the_limit_stays():
    place = OffsetCommitRequestPartition(
        partition_index=0, committed_offset=0, committed_metadata="x" * LONGEST_STRING
    )
    topics = [OffsetCommitRequestTopic(name="t", partitions=[place])]
    assert empty_long_texts(OffsetCommitRequest(group_id="g", member_id="", topics=topics)) == ""
    assert len(place.committed_metadata) == LONGEST_STRING


def test_what_is_twice_too_large_is_no_request():
    topics = [
        OffsetCommitRequestTopic(name=str(number), partitions=[]) for number in range(2 * LIMIT + 1)
    ]
    with pytest.raises(WireError, match="21 elements, expected at most 10"):
        check_elements(
            OffsetCommitRequest(group_id="g", member_id="", topics=topics), ElementLimit(LIMIT)
        )


@pytest.mark.parametrize(("whole", "part"), [(100_000, 20_000), (9, 1), (1, 1)])
def test_what_is_handled_in_one_piece_may_name_a_fifth(whole, part):
    limit = ElementLimit(whole).in_one_piece()
    assert limit.most == part
    topics = [OffsetCommitRequestTopic(name="t", partitions=[]) for _ in range(part + 1)]
    error = check_elements(OffsetCommitRequest(group_id="g", member_id="", topics=topics), limit)
    assert error.message.endswith(
        f"{part + 1} elements, expected at most {part} (a fifth of request.max.elements)"
    )
