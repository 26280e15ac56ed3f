# SPDX-License-Identifier: Apache-2.0
"""The argument type of commands that take topics by a regular expression of RE2."""

from argparse import ArgumentTypeError


def expression(text: str) -> str:
    """An expression that brokers take, too. Raises ArgumentTypeError."""
    from kohort import expressions

    unavailable = expressions.unavailable_or_none()
    if unavailable is not None:
        raise ArgumentTypeError(unavailable)
    try:
        expressions.check(text)
    except expressions.InvalidExpression as error:
        raise ArgumentTypeError(f"{text!r} is not a regular expression of RE2: {error}") from None
    return text
