# SPDX-License-Identifier: Apache-2.0
"""The types of the calls of clients can be asked for, and are not imported before."""

import importlib
import inspect
import subprocess
import sys
import typing

import pytest
from tests.client.typed_names import imported_for_types

import kohort
from kohort.client.admin import hints


def signatures(client):
    """The public calls and properties of a class, and how it is made."""
    for name, member in inspect.getmembers(client):
        call = member.fget if isinstance(member, property) else member
        if inspect.isfunction(call) and (name == "__init__" or not name.startswith("_")):
            yield name, call


CLIENTS = (kohort.AdminClient, kohort.SyncAdminClient, kohort.Consumer, kohort.Producer)


@pytest.mark.parametrize("client", [*CLIENTS, kohort.Broker], ids=lambda one: one.__name__)
def test_the_types_of_every_call_can_be_asked_for(client):
    """As tools do that check arguments or write documentation."""
    calls = dict(signatures(client))
    assert len(calls) > 5
    for name, call in calls.items():
        types = typing.get_type_hints(call)
        assert "return" in types, name
        assert typing.ForwardRef not in map(type, types.values()), name


def test_type_checkers_see_the_same_types_of_calls():
    for name, module in imported_for_types(hints).items():
        # It may have been looked up before, in a test that had another class of that name there.
        vars(hints).pop(name, None)
        assert getattr(hints, name) is getattr(importlib.import_module(module), name)


def test_types_that_nobody_asks_for_are_not_imported():
    program = (
        "import sys, kohort; kohort.AdminClient\n"
        "print([one for one in sys.modules if one.endswith('_views')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
