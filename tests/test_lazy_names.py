# SPDX-License-Identifier: Apache-2.0
"""Names that a package imports at their first use."""

import sys
from types import ModuleType

import pytest

from kohort.lazy_names import lazy_names


@pytest.fixture
def package(monkeypatch):
    made = ModuleType("of_this_test")
    made.__all__ = ["Decimal", "OrderedDict", "sqrt"]
    monkeypatch.setitem(sys.modules, made.__name__, made)
    homes = {"decimal": "Decimal localcontext", "math": "sqrt"}
    made.__getattr__, made.__dir__ = lazy_names(made.__name__, homes, others="collections")
    return made


def test_a_name_is_imported_at_its_first_use_and_stays(package):
    from decimal import Decimal

    assert "Decimal" not in vars(package)
    assert package.Decimal is Decimal
    assert vars(package)["Decimal"] is Decimal


def test_a_name_without_a_home_is_in_the_module_for_others(package):
    from collections import OrderedDict

    assert package.OrderedDict is OrderedDict


def test_all_names_are_listed_before_they_are_imported(package):
    assert {"Decimal", "OrderedDict", "localcontext", "sqrt"} <= set(dir(package))


def test_a_name_that_is_not_there_is_an_attribute_error(package):
    with pytest.raises(AttributeError, match="module 'of_this_test' has no attribute 'deque'"):
        _ = package.deque


def test_without_a_list_of_public_names_another_module_has_all_that_are_not_private(package):
    from collections import deque

    del package.__all__
    find, _ = lazy_names(package.__name__, {}, others="collections")
    assert find("deque") is deque
    with pytest.raises(AttributeError, match="has no attribute '__path__'"):
        find("__path__")
