# SPDX-License-Identifier: Apache-2.0
"""The clocks of the machine, out of reach of what a test patches.

A broker may run inside somebody's test. unittest.mock and freezegun put others in place of
`time.time` and of every name that is bound to it, so these come from a second copy of the module
`time`. time-machine changes the functions themselves, and hands out the real ones on demand.
"""

import sys
import time
from contextlib import suppress
from importlib.machinery import BuiltinImporter
from importlib.util import module_from_spec
from types import ModuleType


def _second_time() -> ModuleType:
    spec = BuiltinImporter.find_spec("time")
    if spec is None:  # no interpreter that is supported; its clocks can be patched
        return time
    module = module_from_spec(spec)
    BuiltinImporter.exec_module(module)
    return module


_time = _second_time()

monotonic = _time.monotonic
"""Seconds since some moment, the same one in the whole process."""

perf_counter = _time.perf_counter
perf_counter_ns = _time.perf_counter_ns
sleep = _time.sleep
localtime = _time.localtime
strftime = _time.strftime


def wall() -> float:
    """Seconds since 1970, as the machine counts them."""
    travel = sys.modules.get("time_machine")
    if travel is None:
        return float(_time.time())
    while True:
        with suppress(ValueError):  # nobody travels
            return float(travel.escape_hatch.time.time())
        seconds = float(_time.time())
        if not travel.escape_hatch.is_travelling():  # nor has anybody begun to
            return seconds
