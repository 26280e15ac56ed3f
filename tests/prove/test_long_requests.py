# SPDX-License-Identifier: Apache-2.0
"""However much a request names, each of its steps is short: others come in between.

What a step does is counted in calls of functions, Python's and C's, so a loaded machine gives the
same figures.
"""

import gc
import sys

import pytest
from tests.prove.sweep.requests import Filler
from tests.server.desk import Desk

from kohort.machines.effects import Call, Client
from kohort.server.network.routes import ROUTES
from kohort.server.scheduler import MACHINES_NS
from kohort.wire.apis import APIS

pytestmark = [pytest.mark.prove, pytest.mark.timeout(600)]

FEW, MANY = 2500, 3500
"""More than the largest part of any request."""
FREE_CALLS = 6
"""What a step may do with each element however many there are: 100,000 times some small calls are a
few hundredths of a second.
"""


class Token:
    gone = False

    def __init__(self):
        self.answers = []

    def answer(self, response):
        self.answers.append(response)

    def fail(self, error):
        raise error


class Slices(Desk):
    """Counts the calls between two looks at the stopwatch; each step is a slice of its own."""

    def __init__(self, **settings):
        self.calls = self.longest = 0
        super().__init__(**settings)
        self.step_ns = MACHINES_NS

    def _stopwatch(self):
        self.longest = max(self.longest, self.calls)
        self.calls = 0
        return super()._stopwatch()

    def note(self, _frame, event, _argument):
        self.calls += event in ("call", "c_call")


def ways():
    for api in APIS.values():
        route = ROUTES.get(api.request)
        if route is not None and route.in_parts:
            for way in Filler(api, []).ways():
                last = len(way.path) - 1
                outer = way.path and not way.long and way.level in (0, last)
                if outer and way.inner == 1 and way.count > MANY:
                    yield pytest.param(api, way, id=f"{api.name}: {way.name}")


def longest_step(api, way, count):
    """The calls of the longest step of a request in which this number is named."""
    desk = Slices(max_partitions="100000", group_initial_rebalance_delay_ms="0")
    request = Filler(api, []).request(way._replace(count=count))
    token = Token()
    call = Call(token, request, api.versions.last, Client("c", "/h"))
    gc.disable()
    sys.setprofile(desk.note)
    try:
        desk.calls = desk.longest = 0
        ROUTES[api.request].handle(desk.dispatchers[0].node, call, desk.now)
        desk.settle()
        desk._stopwatch()
    finally:
        sys.setprofile(None)
        gc.enable()
    assert token.answers
    return desk.longest


@pytest.mark.parametrize(("api", "way"), [*ways()])
def test_a_request_that_names_more_has_no_longer_steps(api, way):
    few, many = longest_step(api, way, FEW), longest_step(api, way, MANY)
    assert many - few <= FREE_CALLS * (MANY - FEW), f"{few} calls for {FEW}, {many} for {MANY}"
