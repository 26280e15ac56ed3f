# SPDX-License-Identifier: Apache-2.0
"""What waits on its way in is bounded, for each client and for all of them together."""

import pytest

from kohort.errors import WireError
from kohort.server.network.request_buffer import (
    FRAME_BYTES,
    FRAMES_MAX,
    UNCOUNTED_BYTES,
    WAITING_BYTES_MAX,
    RequestBuffer,
)
from kohort.server.requests.memory_pool import RequestMemoryPool

MEGABYTE = 1 << 20
LARGEST = 100 * MEGABYTE


def framed(size: int) -> bytes:
    return size.to_bytes(4) + bytes(size)


def memory(limit: int) -> RequestMemoryPool:
    return RequestMemoryPool(limit, LARGEST)


def request_buffer(budget: RequestMemoryPool) -> RequestBuffer:
    return RequestBuffer(LARGEST, budget)


def test_room_is_taken_by_what_has_come_and_given_back_when_it_is_handled():
    budget = memory(10 * MEGABYTE)
    one = request_buffer(budget)
    data = framed(3 * MEGABYTE)
    one.feed(data[:100])
    assert budget.used == 0
    one.feed(data[100:MEGABYTE])
    assert (budget.used, one.unfinished) == (MEGABYTE, True)
    one.feed(data[MEGABYTE:])
    assert budget.used == 3 * MEGABYTE + FRAME_BYTES
    assert (one.unfinished, len(one.frames)) == (False, 1)
    one.pop()
    assert budget.used == 0


@pytest.mark.parametrize("size", range(UNCOUNTED_BYTES - 60, UNCOUNTED_BYTES + 6))
@pytest.mark.parametrize("cut", [1, 1000])
def test_whatever_the_size_nothing_is_held_by_who_has_nothing_left(size, cut):
    budget = memory(MEGABYTE)
    client = request_buffer(budget)
    data = framed(size)
    client.feed(data[:cut])
    client.feed(data[cut:])
    client.pop()
    assert (budget.used, client.counted_bytes) == (0, 0)


def test_a_large_frame_that_carries_no_records_is_refused_by_its_first_bytes():
    budget = memory(100 * MEGABYTE)
    join_group = (9 * MEGABYTE).to_bytes(4) + (11).to_bytes(2)
    with pytest.raises(WireError, match="JoinGroup of 9437184 bytes, expected at most 8388608"):
        request_buffer(budget).feed(join_group)
    one = request_buffer(budget)
    one.feed(join_group[:5])
    with pytest.raises(WireError, match="JoinGroup of"):
        one.feed(join_group[5:])
    assert budget.used == 0


def test_without_room_who_brings_a_part_waits_and_what_is_handled_at_once_passes():
    budget = memory(MEGABYTE)
    first, second, third = request_buffer(budget), request_buffer(budget), request_buffer(budget)
    first.feed((50 * MEGABYTE).to_bytes(4) + bytes(2 * MEGABYTE))
    assert first.starved  # it has come in one piece; more of it has to wait
    second.feed(framed(2 * MEGABYTE)[:5000])
    third.feed(framed(5000))
    third.pop()
    assert (second.starved, second.crowded) == (True, True)
    assert (third.starved, third.crowded) == (False, False)

    first.clear()
    assert budget.used == 5000
    second.read_on()
    assert not second.crowded


def test_one_may_pass_the_limit_until_its_request_is_whole():
    budget = memory(MEGABYTE)
    one = request_buffer(budget)
    data = framed(3 * MEGABYTE)
    one.feed(data[:MEGABYTE])
    budget.passing = one
    one.read_on()
    one.feed(data[MEGABYTE : 2 * MEGABYTE])
    assert not one.crowded
    one.feed(data[2 * MEGABYTE :] + framed(MEGABYTE)[:10_000])
    assert budget.passing is None
    assert one.starved  # the next request waits for a turn of its own


def test_even_at_once_very_many_do_not_bring_more_than_two_requests_beyond_the_limit():
    """Each connection is read once before it waits, and there may be thousands of them."""
    budget = memory(MEGABYTE)
    refused = 0
    begun = (90 * MEGABYTE).to_bytes(4) + bytes(MEGABYTE // 4)
    for _ in range(1200):
        try:
            request_buffer(budget).feed(begun)
        except WireError as error:
            refused += 1
            assert "no room for a part of its request" in str(error)  # noqa: PT017
    assert refused > 100
    assert budget.used <= budget.most == MEGABYTE + 2 * LARGEST


def test_frames_that_wait_behind_another_are_counted_like_parts_of_one():
    budget = memory(MEGABYTE)
    clients = [request_buffer(budget) for _ in range(100)]
    for client in clients:
        client.feed(framed(100) * 200)
    assert budget.used >= MEGABYTE
    assert clients[-1].starved
    for client in clients:
        client.clear()
    assert budget.used == 0


def test_a_request_is_counted_while_its_answer_waits_for_others():
    budget = memory(MEGABYTE)
    one = request_buffer(budget)
    one.feed(framed(60_000))
    one.pop(True)
    assert budget.used == 60_000
    one.feed(framed(10))
    assert budget.used == 60_000 + 10 + FRAME_BYTES
    one.answered()
    one.pop()
    assert budget.used == 0
    one.feed(framed(60_000))
    one.pop(True)
    one.clear()
    assert budget.used == 0


def test_one_client_has_little_waiting():
    budget = memory(1 << 40)
    one = request_buffer(budget)
    for _ in range(WAITING_BYTES_MAX // 60_000 + 1):
        one.feed(framed(60_000))
    assert one.crowded
    small = request_buffer(budget)
    small.feed(framed(0) * (FRAMES_MAX + 1))
    assert small.crowded
    small.pop()
    assert not small.crowded


def test_several_frames_in_one_piece_are_counted_one_by_one():
    budget = memory(10 * MEGABYTE)
    one = request_buffer(budget)
    one.feed(framed(100_000) + framed(10) + framed(200_000) + framed(300_000)[:50_000])
    assert len(one.frames) == 3
    assert budget.used == 100_000 + 10 + 200_000 + 3 * FRAME_BYTES + 50_000
    for _ in range(3):
        one.pop()
    assert (budget.used, one.handled) == (50_000, 3)
    one.clear()
    assert budget.used == 0


def test_what_is_whole_before_a_bad_size_is_there_and_all_room_is_given_back():
    budget = memory(10 * MEGABYTE)
    one = request_buffer(budget)
    with pytest.raises(WireError):
        one.feed(framed(100_000) + (-1).to_bytes(4, signed=True))
    assert len(one.frames) == 1
    one.clear()
    assert budget.used == 0


def test_a_client_that_speaks_tls_is_recognised():
    hello = bytes.fromhex("160301020001000001fc0303")
    told = "a frame of 369295618 bytes.*: it looks like a TLS handshake; this port speaks plain"
    with pytest.raises(WireError, match=told):
        request_buffer(memory(MEGABYTE)).feed(hello)
    one = request_buffer(memory(MEGABYTE))
    with pytest.raises(WireError, match=told):
        one.feed(framed(10) + hello)
    assert len(one.frames) == 1  # what is whole comes first
    with pytest.raises(WireError) as other:
        request_buffer(memory(MEGABYTE)).feed(b"GET / HTTP/1.1")
    assert "TLS" not in str(other.value)
    assert ": it looks like HTTP; this port speaks plain Kafka" in str(other.value)
