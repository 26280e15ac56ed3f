# SPDX-License-Identifier: Apache-2.0
"""What is kept of a history between two readings of the log."""

import pytest
from msgspec import msgpack
from tests.history.log import Log, end_of, epoch, has, has_nothing, member, told

from kohort.errors import Broken
from kohort.history import History
from kohort.history.state import VERSION, State


def test_a_state_of_other_rules_is_refused():
    history = History(told())
    history._state.version += 1
    with pytest.raises(Broken, match="version"):
        History(told(), history.state())


def test_it_is_bytes_that_say_their_version():
    log = Log()
    log.write(member("a"), epoch(2))
    log.write(has("a", 2, *range(20), before=0))
    log.commits(1, 10, partitions=range(20))
    history = History(told())
    history.feed(log.events)
    kept = msgpack.decode(history.state(), type=State)
    assert kept.version == VERSION
    assert [*kept.consumer.members] == ["a"]
    assert len(history.state()) < 8000


def test_it_does_not_grow_with_the_log():
    sizes = []
    history = History(told())
    for number in range(200):
        log = Log()
        log.offset = 1000 * number
        log.at(100 * number).write(member(f"m{number}"), epoch(2 * number + 2))
        log.write(has(f"m{number}", 2 * number + 2, 0, before=0))
        log.commits(100 * number + 1, 100 * number + 10)
        log.at(100 * number + 50).write(
            has_nothing(f"m{number}"), end_of(f"m{number}"), epoch(2 * number + 3)
        )
        history.feed(log.events)
        sizes.append(len(history.state()))
    assert max(sizes[100:]) < 2 * max(sizes[:50])
    assert len(history.closed) > 500
