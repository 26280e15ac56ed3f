# SPDX-License-Identifier: Apache-2.0
"""Causes as headers of records, there and back."""

from kohort.records.causes import (
    CAUSE,
    LONGEST_REASON,
    MEMBER,
    MOST,
    REASON,
    Because,
    Cause,
    causes_in,
    headers_of,
)


def test_there_and_back():
    causes = [
        Because(Cause.LEAVE, "a", "the consumer is being closed"),
        Because(Cause.TOPICS),
        Because(Cause.SESSION, "b"),
    ]
    headers = headers_of(causes)
    assert headers[:3] == [
        (CAUSE, b"leave"),
        (MEMBER, b"a"),
        (REASON, b"the consumer is being closed"),
    ]
    assert causes_in(headers) == causes


def test_a_reason_has_a_bound_and_so_have_causes():
    """Upstream keeps to 255 characters; others may not."""
    headers = headers_of([Because(Cause.LEAVE, f"m{i}", "é" * 1000) for i in range(20)])
    found = causes_in(headers)
    assert len(found) == MOST
    assert {one.reason for one in found} == {"é" * LONGEST_REASON}


def test_a_cause_is_named_once():
    assert len(headers_of([Because(Cause.JOIN, "a")] * 3)) == 2


def test_a_text_that_is_not_one_is_written_all_the_same():
    assert headers_of([Because(Cause.LEAVE, "\ud800", "\ud800")])[1:] == [
        (MEMBER, b"?"),
        (REASON, b"?"),
    ]


def test_headers_of_others_are_skipped():
    headers = [(MEMBER, b"lost"), ("trace", b"1"), (CAUSE, None), (REASON, b"\xff"), ("x", None)]
    assert causes_in(headers) == [Because("", None, "\ufffd")]
