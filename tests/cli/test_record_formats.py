# SPDX-License-Identifier: Apache-2.0
"""Records as text and as JSON, and lines back to records."""

import json
from argparse import ArgumentTypeError

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.cli.record_formats import (
    NewRecord,
    TextForm,
    as_it_is,
    escaped,
    json_of,
    new_record,
    new_record_of_json,
    template,
    templated,
    text_of,
    visible_bytes,
)
from kohort.client.fetcher.record import ConsumerRecord
from kohort.errors import KohortError

TEXTS = st.none() | st.binary() | st.text().map(str.encode)
HEADERS = st.lists(st.tuples(st.text(), TEXTS)).map(tuple)


def record(key=None, value=b"v", headers=()):
    return ConsumerRecord("orders", 3, 42, 1700, "create", key, value, headers)


@given(TEXTS, TEXTS, HEADERS)
def test_json_loses_nothing(key, value, headers):
    line = json_of(record(key, value, headers))
    assert line.count(b"\n") == 1
    assert new_record_of_json(line) == NewRecord(key, value, headers, 3, 1700)


def test_json_needs_a_value_and_no_more():
    assert new_record_of_json(b'{"value": null}') == NewRecord(None, None)
    assert new_record_of_json(b'{"value": "x", "timestamp": -1}') == NewRecord(None, b"x")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"{", "is not JSON: "),
        (b'{"value": "a", "value": "b"}', 'has "value" twice in an object, expected it once'),
        (b'{"value": "a", "headers": [{"key": "a", "key": "b"}]}', 'has "key" twice in an object'),
        (b"\xff", "is not JSON: "),
        (b"[" * 100_000, "is not JSON: "),
        (b"[]", "is a list, expected an object"),
        (b"{}", "has no value, expected one, or null"),
        (b'{"vlaue": "x"}', "has the unknown field 'vlaue', expected headers, key, "),
        (b'{"value": {"a": 1}}', "has a value that is an object, expected a text or null"),
        (b'{"value": "x", "value_bytes": "00"}', "has value and value_bytes, expected one of"),
        (b'{"value_bytes": "0g"}', "has value_bytes that is not hexadecimal"),
        (b'{"value": "\\ud800"}', "has half of a character in value"),
        (b'{"value": "x", "key": 7}', "has a key that is a number, expected a text or null"),
        (b'{"value": "x", "partition": -1}', "has partition -1, expected a number from 0 on"),
        (b'{"value": "x", "partition": true}', "has partition true, expected a number from 0"),
        (b'{"value": "x", "timestamp": 1.5}', "has timestamp 1.5, expected a number from -1"),
        (b'{"value": "x", "headers": {}}', "has headers that are not a list of objects"),
        (b'{"value": "x", "headers": [{}]}', "has a header whose key is null, expected a text"),
    ],
)
def test_a_line_that_is_no_record_says_why(line, words):
    with pytest.raises(KohortError) as caught:
        new_record_of_json(line)
    assert str(caught.value).startswith(words)


@pytest.mark.parametrize(
    ("text", "data"),
    [
        (":", b":"),
        (r"\t", b"\t"),
        (r"\n\r\0", b"\n\r\0"),
        (r"\x1f\\x", b"\x1f\\x"),
        ("ö", "ö".encode()),
        ("\udcff", b"\xff"),
    ],
)
def test_escapes(text, data):
    assert escaped(text) == data


@pytest.mark.parametrize("text", ["", "\\", r"\q", r"\xg0", r"\x1"])
def test_what_is_no_escape_is_refused(text):
    with pytest.raises(ArgumentTypeError, match=r"it is empty|is no escape, expected"):
        escaped(text)


@given(st.binary(), st.binary(), st.booleans())
def test_text_comes_back_where_the_separator_is_in_no_key(key, value, null):
    form = TextForm(b"\xff\xfe\n", b"\xff\xfe\t", b"\xff\xfenull")
    given = record(None if null else key.replace(b"\xff", b""), value)
    line = text_of(given, form, as_it_is).removesuffix(form.delimiter)
    assert new_record(line, form) == NewRecord(given.key, given.value)


def test_null_and_nothing_are_two_things():
    form = TextForm(key_separator=b":", null=b"NULL")
    assert text_of(record(None, None), form, as_it_is) == b"NULL:NULL\n"
    assert text_of(record(b"", b""), form, as_it_is) == b":\n"
    assert new_record(b"NULL:", form) == NewRecord(None, b"")
    assert new_record(b"a:", TextForm(key_separator=b":", null=b"")) == NewRecord(b"a", None)


def test_a_template_has_every_token_of_kcat():
    parts = template(r"%t[%p]@%o %T %k(%K)=%s(%S) %h %%\n")
    given = record(b"k", None, (("a", b"1"), ("b", None)))
    assert templated(given, parts, b"NULL", as_it_is) == (
        b"orders[3]@42 1700 k(1)=NULL(-1) a=1,b=NULL %\n"
    )


@pytest.mark.parametrize("text", ["%", "%q", "%s\\"])
def test_what_is_no_template_is_refused(text):
    with pytest.raises(ArgumentTypeError, match=r"is no token, expected|is no escape, expected"):
        template(text)


def test_a_terminal_gets_no_control_characters_of_a_record():
    given = record(b"\x1b[2J", b"\xff\n")
    form = TextForm(key_separator=b"\t")
    assert text_of(given, form, visible_bytes) == b"\\x1b[2J\t\\xff\\n\n"
    assert b"\x1b" not in json_of(given)
    assert json.loads(json_of(given))["key"] == "\x1b[2J"
