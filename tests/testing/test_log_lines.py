# SPDX-License-Identifier: Apache-2.0
"""The lines of a broker under test, whatever the test has made of logging."""

import logging
import time
from unittest import mock

import pytest

from kohort.testing.log_lines import LINES_MAX, LogLines


def texts(lines):
    return [line.partition(" INFO ")[2] or line.partition(" WARNING ")[2] for line in lines]


def test_lines_are_kept_and_passed_on(caplog):
    lines = []
    log = LogLines(lines)
    with caplog.at_level(logging.WARNING, "kohort"):
        log.info("one\ntwo")
        log.warning("three")
    assert texts(lines) == ["one\\ntwo", "three"]
    assert [record.message for record in caplog.records] == ["three"]
    assert caplog.records[0].levelname == "WARNING"
    for _ in range(LINES_MAX + 5):
        log.info("more")
    assert len(lines) == LINES_MAX


class Failing(logging.Handler):
    def emit(self, record):
        raise ZeroDivisionError


@pytest.fixture
def failing():
    handler = Failing()
    program = logging.getLogger("kohort")
    program.addHandler(handler)
    yield
    program.removeHandler(handler)


def test_a_handler_that_fails_costs_nobody_a_line(failing):
    lines = []
    LogLines(lines).warning("one")
    assert texts(lines) == ["one"]


def test_lines_are_kept_where_logging_is_disabled():
    lines = []
    logging.disable(logging.CRITICAL)
    try:
        LogLines(lines).info("one")
    finally:
        logging.disable(logging.NOTSET)
    assert texts(lines) == ["one"]


def test_a_mock_of_time_is_not_asked(caplog):
    lines = []
    with mock.patch("time.time", side_effect=[1.0]), caplog.at_level(logging.INFO, "kohort"):
        LogLines(lines).info("one")
        assert time.time() == 1.0, "its one value is the test's"
    assert texts(lines) == ["one"]
    assert [record.message for record in caplog.records] == ["one"]
