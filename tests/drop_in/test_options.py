# SPDX-License-Identifier: Apache-2.0
"""Arguments as the parser of Kafka's tools reads them."""

import pytest

from kohort.drop_in.java import JavaError
from kohort.drop_in.options import OPTIONAL, REQUIRED, Option, parse

KNOWN = (
    Option("list", ""),
    Option("describe", ""),
    Option("group", "", REQUIRED),
    Option("to-offset", "", REQUIRED),
    Option("state", "", OPTIONAL, "STATE", ("list", "describe")),
)


def test_a_value_is_the_next_word_whatever_it_looks_like():
    assert parse(["--group", "--list"], KNOWN).value("group") == "--list"
    assert parse(["--to-offset", "-5"], KNOWN).number("to-offset") == -5
    assert parse(["--group=a=b"], KNOWN).value("group") == "a=b"
    assert parse(["--group=-5"], KNOWN).value("group") == "-5"
    assert parse(["-group", "g"], KNOWN).value("group") == "g"
    assert parse(["--group", ""], KNOWN).value("group") == ""


def test_an_empty_value_behind_an_equals_sign_takes_no_other_word():
    """As `--group=$GROUP` leaves it: the next option stays one."""
    found = parse(["--describe", "--group=", "--state=", "--to-offset=", "--list"], KNOWN)
    assert (found.values("group"), found.values("state")) == ([""], [""])
    assert found.has("list")
    with pytest.raises(JavaError, match="Cannot parse argument '' of option to-offset"):
        found.number("to-offset")


def test_an_optional_value_is_the_next_word_that_looks_like_no_option():
    for argv in (["--list", "--state"], ["--state", "--list"], ["--state", "-list"]):
        found = parse(argv, KNOWN)
        assert (found.has("state"), found.value("state")) == (True, None)
    assert parse(["--list", "--state", "stable"], KNOWN).value("state") == "stable"
    assert parse(["--list", "--state=stable"], KNOWN).value("state") == "stable"
    assert parse(["--list", "--state", "-"], KNOWN).value("state") == "-"


def test_options_may_be_repeated_and_other_words_are_ignored():
    found = parse(["x", "--group", "a", "y", "--group=b", "--", "--list"], KNOWN)
    assert found.values("group") == ["a", "b"]
    assert not found.has("list")
    with pytest.raises(JavaError, match="Found multiple arguments for option group, but you asked"):
        found.value("group")
    assert parse(["--list=no"], KNOWN).has("list"), "a value of an option without one is ignored"


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        (["--grou", "g"], "grou is not a recognized option"),
        (["--Group", "g"], "Group is not a recognized option"),
        (["--list", "--group"], "Option group requires an argument"),
        (["--state"], "Option(s) [state] are unavailable given other options on the command line"),
    ],
)
def test_what_is_wrong_is_told_in_the_words_of_the_parser(argv, text):
    with pytest.raises(JavaError) as raised:
        parse(argv, KNOWN)
    assert raised.value.text == text


def test_an_option_that_is_needed_is_named():
    needed = (Option("server", "", REQUIRED, needed=True), Option("help", ""))
    with pytest.raises(JavaError, match=r"Missing required option\(s\) \[server\]"):
        parse([], needed)
    assert parse(["--help"], needed).has("help")


@pytest.mark.parametrize("text", ["x", "", "1.5", "0x10", " 1", "1_0", str(1 << 63), "9" * 500])
def test_a_number_has_64_bits(text):
    with pytest.raises(JavaError) as raised:
        parse(["--to-offset", text], KNOWN).number("to-offset")
    assert raised.value.text.startswith("Cannot parse argument '")
    first, *causes = raised.value.trace()
    assert first.startswith("joptsimple.OptionArgumentConversionException: ")
    assert len(causes) == 2


def test_the_largest_numbers_are_numbers():
    for number in (-(1 << 63), (1 << 63) - 1, 0):
        assert parse(["--to-offset", str(number)], KNOWN).number("to-offset") == number
    assert parse([], KNOWN).number("to-offset") is None
