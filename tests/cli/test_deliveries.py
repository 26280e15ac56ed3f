# SPDX-License-Identifier: Apache-2.0
"""The account of records: each is acknowledged, or named with a reason."""

import asyncio

from tests.client.scripted import asynchronous

from kohort.cli.deliveries import Deliveries
from kohort.cli.record_input import Piece
from kohort.client.accumulator.errors import DeliveryError
from kohort.errors import ApiError, ErrorCode

LOST = DeliveryError(ErrorCode.REQUEST_TIMED_OUT, "no answer", maybe_written=True)
LARGE = DeliveryError(ErrorCode.MESSAGE_TOO_LARGE, "too large", maybe_written=False)


async def settled(deliveries, fates):
    """Give each line, from 1 on, its fate: None is acknowledged. The last one is settled first."""
    futures = [asyncio.get_running_loop().create_future() for _ in fates]
    for number, future in enumerate(futures, 1):
        deliveries.add(Piece("", number, b""), future)
    for future, fate in reversed(list(zip(futures, fates, strict=True))):
        if fate is None:
            future.set_result(None)
        elif fate == "given up":
            future.cancel()
        else:
            future.set_exception(fate)
    await asyncio.sleep(0)


@asynchronous
async def test_what_is_acknowledged_is_counted():
    deliveries = Deliveries("orders")
    await settled(deliveries, [None, None])
    assert (deliveries.acknowledged, list(deliveries.report())) == (2, [])
    assert not deliveries.failed.done()


@asynchronous
async def test_runs_of_lines_with_one_fate_are_a_line_each_in_their_order():
    deliveries = Deliveries("orders")
    await settled(deliveries, [LOST, LOST, None, LOST, LARGE, "given up"])
    assert deliveries.failed.done()
    assert deliveries.acknowledged == 1
    doubt = "not in orders, or may be, as the broker has not answered"
    assert list(deliveries.report()) == [
        f"lines 1 to 2 are {doubt}: no answer",
        f"line 4 is {doubt}: no answer",
        "line 5 is not in orders: too large (MESSAGE_TOO_LARGE)",
        f"line 6 is {doubt}: it was given up",
    ]


@asynchronous
async def test_a_record_that_was_not_taken_is_certainly_not_there():
    deliveries = Deliveries("orders")
    error = ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "no")
    deliveries.refuse(Piece("one.bin", 0, b""), error)
    assert list(deliveries.report()) == [
        "one.bin is not in orders: no (TOPIC_AUTHORIZATION_FAILED)",
    ]


@asynchronous
async def test_a_long_report_says_how_much_it_leaves_out():
    deliveries = Deliveries("orders")
    await settled(deliveries, [LARGE, None] * 15)
    *_, last = report = list(deliveries.report())
    assert (len(report), last) == (11, "and 5 more were not acknowledged")
