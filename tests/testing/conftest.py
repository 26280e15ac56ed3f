# SPDX-License-Identifier: Apache-2.0
"""Alarms that strike in the middle of what a test does."""

import signal

import pytest


class Alarm(Exception):  # noqa: N818  (no error: what the handler of a test raises)
    pass


@pytest.fixture
def alarm():
    """A handler that raises, as that of pytest-timeout; the function lets it strike in so many
    microseconds, and while `work` runs.
    """

    def handler(*_):
        raise Alarm

    def struck(work, microseconds):
        """Whether the alarm came while it ran."""
        try:
            signal.setitimer(signal.ITIMER_REAL, microseconds / 1e6)
            work()
            signal.setitimer(signal.ITIMER_REAL, 0)
        except Alarm:
            return True
        except KeyError as error:  # what Python makes of an alarm at the start of a thread
            if not isinstance(error.__context__, Alarm):
                raise
            return True
        return False

    before = signal.signal(signal.SIGALRM, handler)
    yield struck
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)
