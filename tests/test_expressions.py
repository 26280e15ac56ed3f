# SPDX-License-Identifier: Apache-2.0
"""Regular expressions as RE2 reads them, in Kafka's words."""

from pathlib import Path

import pytest

from kohort import expressions
from kohort.expressions import InvalidExpression


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("[", "missing closing ]"),
        ("(", "missing closing )"),
        ("a)", "missing closing )"),
        ("*a", "missing argument to repetition operator"),
        ("a**", "invalid nested repetition operator"),
        ("a++", "invalid nested repetition operator"),
        ("a{1001}", "invalid repeat count"),
        ("a{2,1}", "invalid repeat count"),
        (r"(a)\1", "invalid escape sequence"),
        (r"\h", "invalid escape sequence"),
        ("[z-a]", "invalid character class range"),
        ("(?=a)b", "invalid or unsupported Perl syntax"),
        ("(?<!a)b", "invalid or unsupported Perl syntax"),
        ("(?>a)", "invalid or unsupported Perl syntax"),
        ("(?#c)", "invalid or unsupported Perl syntax"),
        ("(?P<n", "invalid named capture"),
        ("a\\", "trailing backslash at end of expression"),
        ("\ud800", "invalid UTF-8"),
        ("a" * 4097, "expression too large, 4097 characters, at most 4096"),
        (r"\pL" * 51, "expression too large, 51 Unicode classes, at most 50"),
        (r"(\pL{20}){20}", "expression too large"),
    ],
)
def test_what_is_no_expression_is_refused_in_kafkas_words(expression: str, why: str) -> None:
    """K848-110, K848-111."""
    with pytest.raises(InvalidExpression) as refused:
        expressions.check(expression)
    assert str(refused.value) == why


@pytest.mark.parametrize(
    ("expression", "matching", "other"),
    [
        ("k", "k", "k1"),
        ("k.*", "k1", "ak1"),
        ("^k.$", "k1", "k12"),
        ("(?i)K1", "k1", "k2"),
        ("(?P<n>k)1", "k1", "k"),
        ("(?<n>k)1", "k1", "k"),
        (r"\Qk.1\E", "k.1", "k11"),
        (r"\p{Greek}", "\u03b1", "a"),
        ("[[:alpha:]]+", "k", "1"),
        (" ", " ", "k"),
        ("a|ab", "ab", "abc"),
        ("", "", "k"),
    ],
)
def test_a_name_is_matched_as_a_whole(expression: str, matching: str, other: str) -> None:
    expressions.check(expression)
    assert expressions.matches(expression, matching)
    assert not expressions.matches(expression, other)


def test_many_names_are_looked_at_in_parts() -> None:
    names = [f"t{number}" for number in range(3000)]
    work = expressions.resolve({"t1.": names, "x": names, "[": names})
    parts = 0
    while True:
        try:
            next(work)
        except StopIteration as end:
            found = end.value
            break
        parts += 1

    assert found == {"t1.": tuple(f"t1{one}" for one in range(10)), "x": (), "[": ()}
    assert parts > 4


def test_a_long_expression_is_done_in_smaller_parts() -> None:
    names = [f"t{number}" for number in range(100)]
    assert len(list(expressions.resolve({"x" * 4000: names}))) == 25


def test_a_machine_without_re2_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    assert expressions.unavailable_or_none() is None
    monkeypatch.setattr(expressions, "re2", None)
    assert "google-re2" in (expressions.unavailable_or_none() or "")


def rows_of_the_page() -> list[tuple[str, str]]:
    text = (Path(__file__).parents[1] / "docs" / "patterns.md").read_text()
    table = text.partition("<!-- expressions: begin -->")[2].partition("<!-- expressions: end -->")
    cells = [line.strip("|").split(" | ") for line in table[0].strip().splitlines()[2:]]
    return [(row[0].strip().strip("`"), row[1].strip()) for row in cells]


@pytest.mark.parametrize(("expression", "says"), rows_of_the_page())
def test_the_page_about_patterns_is_true(expression: str, says: str) -> None:
    """K848-113."""
    if says.startswith("matches"):
        expressions.check(expression)
        return
    with pytest.raises(InvalidExpression, match=says):
        expressions.check(expression)
