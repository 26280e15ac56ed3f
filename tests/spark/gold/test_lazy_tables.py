# SPDX-License-Identifier: Apache-2.0
"""Tables that are made when somebody asks for them, and then once."""

import pytest

pytest.importorskip("pyspark")

from kohort.spark.gold.lazy_tables import LazyTables


@pytest.fixture
def made():
    return []


def tables(made, *names):
    def maker(name):
        return lambda: made.append(name) or f"table {name}"

    return LazyTables({name: maker(name) for name in names})


def test_a_table_is_made_once_and_when_it_is_asked_for(made):
    found = tables(made, "a", "b")
    assert ("a" in found, "c" in found, list(found), len(found)) == (True, False, ["a", "b"], 2)
    assert made == []
    assert [found["b"], found["b"]] == ["table b"] * 2
    assert made == ["b"]
    with pytest.raises(KeyError):
        found["c"]


def test_two_together_make_none_and_the_second_one_counts(made):
    first = tables(made, "a", "b")
    both = first | {"b": "given"} | tables(made, "c")
    assert (sorted(both), made) == (["a", "b", "c"], [])
    assert [both["a"], both["b"], both["c"], first["a"]] == [
        "table a",
        "given",
        "table c",
        "table a",
    ]
    assert made == ["a", "c"]
