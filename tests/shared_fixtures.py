# SPDX-License-Identifier: Apache-2.0
"""Fixtures that many tests share have a time limit of their own, and can be started anew.

The limit of a test is too short for what starts a JVM on a loaded machine. And without a second try
one start that failed is an error of every test behind it.
"""

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
import pytest_timeout

TRIES = 3
LIVES: dict[str, Callable[[Any], bool]] = {}
"""Whether the value of a fixture can still be used, by the name of the fixture."""
_FAILED = pytest.StashKey[Counter]()


def pytest_addoption(parser):
    parser.addini(
        "shared_fixture_timeout",
        "seconds that the set-up of a fixture of a module or of the session may take",
        default="600",
    )


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef, request):
    """The clock of the test stands still meanwhile, and begins anew."""
    item = request._pyfuncitem
    settings = pytest_timeout._get_item_settings(item)
    if fixturedef.scope == "function" or not settings.timeout or settings.func_only:
        return (yield)
    own = max(settings.timeout, float(item.config.getini("shared_fixture_timeout")))
    hooks = item.config.pluginmanager.hook
    hooks.pytest_timeout_cancel_timer(item=item)
    hooks.pytest_timeout_set_timer(item=item, settings=settings._replace(timeout=own))
    try:
        return (yield)
    finally:
        hooks.pytest_timeout_cancel_timer(item=item)
        hooks.pytest_timeout_set_timer(item=item, settings=settings)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """What failed for an earlier test is started anew, as is what no longer lives."""
    failed = item.session.stash.setdefault(_FAILED, Counter())
    for name, definitions in item._fixtureinfo.name2fixturedefs.items():
        for one in definitions:
            if one.cached_result is None or one.scope == "function":
                continue
            value, _, error = one.cached_result
            if error is None:
                again = name in LIVES and not LIVES[name](value)
            elif isinstance(error[0], pytest.skip.Exception):
                again = False
            else:
                failed[one] += 1
                again = failed[one] < TRIES
            if again:
                with suppress(Exception):  # it is gone, and may say so once more
                    one.finish(item._request)
