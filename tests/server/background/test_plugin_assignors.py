# SPDX-License-Identifier: Apache-2.0
"""Assignors by entry point: found by name, and a broker that lacks one does not start."""

import pytest
from tests.server.installed import installed
from tests.world import World

from kohort.errors import KohortError
from kohort.server.background.plugin_assignors import load_plugin_assignors

SOURCE = """
NUMBER = 7

def nothing(*_):
    return {}
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """An installed package with assignors, whole and broken."""
    names = {"nothing": "nothing", "missing": "missing", "number": "NUMBER"}
    with installed(tmp_path, monkeypatch, "theirs_assignors", SOURCE, **names):
        yield


def test_the_assignors_of_the_house_need_nobody():
    assert load_plugin_assignors(["uniform", "range"]) == {}


def test_one_of_a_package_is_found(package):
    """K848-048."""
    found = load_plugin_assignors(["uniform", "nothing"])
    assert list(found) == ["nothing"]
    assert found["nothing"]({}, {}) == {}


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("Uniform", "has 'Uniform', expected a list out of uniform, range, missing, nothing, num"),
        ("missing", "'missing' (theirs_assignors:missing) cannot be loaded: AttributeError"),
        ("number", "'number' (theirs_assignors:NUMBER) is 7, expected a function"),
    ],
)
def test_one_that_cannot_be_had_keeps_the_broker_from_starting(package, name, why):
    """K848-051."""
    with pytest.raises(KohortError) as refused:
        World({"group.consumer.assignors": f"uniform,{name}"})
    assert why in str(refused.value)
