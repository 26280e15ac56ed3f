# SPDX-License-Identifier: Apache-2.0
"""The kinds of events, and what is made of each."""

import msgspec
import pytest
from tests.history.log import Log, epoch, expression, generation, has, member, target, topics

from kohort.history.events import RECORD_TYPES, Event, Value
from kohort.history.group import HANDLERS


def test_every_type_of_record_has_a_handler():
    assert {*HANDLERS} == {*RECORD_TYPES}


@pytest.mark.parametrize(
    "record",
    [
        epoch(2),
        epoch(None),
        expression("o.*", "orders"),
        generation(1),
        has("a", 2, 0),
        member("a"),
        target(2),
        topics(),
    ],
)
def test_an_event_can_be_put_aside(record):
    log = Log()
    log.write(record)
    log.commit(7)
    kept = msgspec.msgpack.encode(log.events)
    assert msgspec.msgpack.decode(kept, type=list[Event]) == log.events
    if record.value is not None and record.type not in {4, 7}:
        tagged = msgspec.to_builtins(record.value)
        assert tagged["type"] == record.type
        assert msgspec.convert(tagged, Value) == record.value
