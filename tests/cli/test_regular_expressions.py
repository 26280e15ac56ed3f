# SPDX-License-Identifier: Apache-2.0
"""Expressions as arguments: those of RE2, or a wrong call."""

from argparse import ArgumentTypeError

import pytest

from kohort import expressions
from kohort.cli.regular_expressions import expression


def test_an_expression_is_as_it_was_typed():
    assert expression("orders-.*") == "orders-.*"


def test_what_no_broker_would_take_is_refused():
    with pytest.raises(ArgumentTypeError, match=r"'\(' is not a regular expression of RE2: "):
        expression("(")


def test_where_nothing_can_check_it_that_is_said(monkeypatch):
    monkeypatch.setattr(expressions, "unavailable_or_none", lambda: "RE2 is not installed")
    with pytest.raises(ArgumentTypeError, match="RE2 is not installed"):
        expression("orders")
