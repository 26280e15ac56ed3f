# SPDX-License-Identifier: Apache-2.0
"""Every requirement is held by a test, or says why not; the page says the same."""

from tests.project.requirements import (
    DECIDED,
    HELD,
    NOT_YET,
    PROPOSALS,
    QuoteLocation,
    Quotes,
    quotes,
    read_module,
    requirements,
)

REQUIREMENTS = requirements()


def of_status(status):
    return [one.id for one in REQUIREMENTS.values() if one.status == status]


def test_the_table_is_whole():
    assert len(REQUIREMENTS) == 319
    for one in REQUIREMENTS.values():
        assert one.status in (HELD, NOT_YET, DECIDED), f"{one.id} is {one.status!r}"
        assert bool(one.why) == (one.status != HELD), f"{one.id} says why, or is held"
        assert one.proposal in PROPOSALS, one.id
        assert one.statement.endswith("."), one.id


def test_every_id_in_a_test_is_a_requirement():
    unknown = {name: places for name, places in quotes().by_id.items() if name not in REQUIREMENTS}
    assert unknown == {}


def test_an_id_stands_in_a_docstring_of_a_test_or_its_module():
    """Elsewhere it looks like a promise and holds nothing."""
    assert quotes().strays == []


def test_what_is_held_has_a_test():
    missing = [number for number in of_status(HELD) if not quotes().by_id.get(number)]
    assert missing == [], "no test quotes these: write it, or say `not yet`"


def test_what_is_missing_has_no_test():
    quoted = [number for number in of_status(NOT_YET) if quotes().by_id.get(number)]
    assert quoted == [], "these have a test: they are held, or quoted in vain"


def test_where_an_id_counts():
    found = Quotes()
    text = '''"""K40-01 of a module."""

def test_it():
    """K40-02, K40-03 and K40-02 again."""

def helper():
    """K40-04"""
'''
    read_module(text, "tests/test_x.py", found)

    module, test = QuoteLocation("tests/test_x.py"), QuoteLocation("tests/test_x.py", "test_it")
    assert found.by_id == {"K40-01": [module], "K40-02": [test], "K40-03": [test]}
    assert ("tests/test_x.py", "K40-04") in found.strays
