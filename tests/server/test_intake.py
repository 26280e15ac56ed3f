"""What waits on its way in is bounded, for each client and for all of them together."""

import pytest

from kohort.errors import WireError
from kohort.server.budget import Budget
from kohort.server.intake import FRAMES_MAX, LARGE_BYTES, WAITING_BYTES_MAX, Intake

MEGABYTE = 1 << 20


def framed(size: int) -> bytes:
    return size.to_bytes(4) + bytes(size)


def intake(budget: Budget) -> Intake:
    return Intake(100 * MEGABYTE, budget)


def test_a_large_frame_takes_room_before_it_is_read_and_gives_it_back_when_handled():
    budget = Budget(10 * MEGABYTE)
    one = intake(budget)
    data = framed(3 * MEGABYTE)
    one.feed(data[:1000])
    assert 3 * MEGABYTE <= budget.used <= 3 * MEGABYTE + 8
    assert one.holds_room
    one.feed(data[1000:])
    assert (budget.used, one.holds_room, len(one.frames)) == (3 * MEGABYTE, False, 1)
    one.pop()
    assert budget.used == 0


@pytest.mark.parametrize("size", range(LARGE_BYTES - 5, LARGE_BYTES + 6))
def test_whole_frames_hold_no_room_for_one_on_its_way(size):
    budget = Budget(MEGABYTE)
    client = intake(budget)
    data = framed(size)
    client.feed(data[:1000])
    client.feed(data[1000:])
    assert not client.holds_room
    client.pop()
    assert budget.used == 0


def test_a_large_frame_that_carries_no_records_is_refused_by_its_first_bytes():
    budget = Budget(100 * MEGABYTE)
    join_group = (9 * MEGABYTE).to_bytes(4) + (11).to_bytes(2)
    with pytest.raises(WireError, match="JoinGroup of 9437184 bytes, expected at most 8388608"):
        intake(budget).feed(join_group)
    one = intake(budget)
    one.feed(join_group[:5])
    with pytest.raises(WireError, match="JoinGroup of"):
        one.feed(join_group[5:])
    assert budget.used == 0


def test_without_room_a_large_frame_waits_and_small_ones_pass():
    budget = Budget(MEGABYTE)
    first, second, third = intake(budget), intake(budget), intake(budget)
    first.feed(framed(50 * MEGABYTE)[:100])  # nothing is too large for an empty broker
    second.feed(framed(2 * MEGABYTE)[:100])
    third.feed(framed(LARGE_BYTES))
    assert (first.starved, second.starved, third.starved) == (False, True, False)
    assert (first.crowded, second.crowded, third.crowded) == (False, True, False)
    assert not second.reserve()

    first.clear()
    assert budget.used == 0
    assert second.reserve()
    assert not second.crowded


def test_one_client_has_little_waiting():
    budget = Budget(1 << 40)
    one = intake(budget)
    for _ in range(WAITING_BYTES_MAX // 60_000 + 1):
        one.feed(framed(60_000))
    assert one.crowded
    small = intake(budget)
    small.feed(framed(10) * (FRAMES_MAX + 1))
    assert small.crowded


def test_several_frames_in_one_piece_are_counted_one_by_one():
    budget = Budget(10 * MEGABYTE)
    one = intake(budget)
    one.feed(framed(100_000) + framed(10) + framed(200_000) + framed(300_000)[:50])
    assert len(one.frames) == 3
    assert budget.used == 100_000 + 200_000 + 300_004
    for _ in range(3):
        one.pop()
    assert budget.used == 300_004
    one.clear()
    assert budget.used == 0


def test_what_is_whole_before_a_bad_size_is_there_and_all_room_is_given_back():
    budget = Budget(10 * MEGABYTE)
    one = intake(budget)
    with pytest.raises(WireError):
        one.feed(framed(100_000) + (-1).to_bytes(4, signed=True))
    assert len(one.frames) == 1
    one.clear()
    assert budget.used == 0


def test_a_client_that_speaks_tls_is_recognised():
    hello = bytes.fromhex("160301020001000001fc0303")
    told = "a frame of 369295618 bytes.*: it looks like a TLS handshake; this port speaks plain"
    with pytest.raises(WireError, match=told):
        intake(Budget(MEGABYTE)).feed(hello)
    one = intake(Budget(MEGABYTE))
    with pytest.raises(WireError, match=told):
        one.feed(framed(10) + hello)
    assert len(one.frames) == 1  # what is whole comes first
    with pytest.raises(WireError) as other:
        intake(Budget(MEGABYTE)).feed(b"GET / HTTP/1.1")
    assert "TLS" not in str(other.value)
    assert ": it looks like HTTP; this port speaks plain Kafka" in str(other.value)
