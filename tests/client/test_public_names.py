# SPDX-License-Identifier: Apache-2.0
"""What `import kohort` offers, and that a program may be written with it alone."""

import asyncio
import importlib
import subprocess
import sys

import pytest
from tests.client.typed_names import imported_for_types

import kohort
from kohort import testing
from kohort.client import admin


@pytest.mark.parametrize("name", kohort.__all__)
def test_every_name_is_there(name):
    assert getattr(kohort, name) is not None
    assert name in dir(kohort)


@pytest.mark.parametrize("package", [kohort, admin, testing], ids=lambda one: one.__name__)
def test_type_checkers_see_the_same_names_from_the_same_places(package):
    seen = imported_for_types(package)
    assert sorted(seen) == package.__all__ == sorted(package.__all__)
    for name, module in seen.items():
        assert getattr(package, name) is getattr(importlib.import_module(module), name)
        assert name in dir(package)
    with pytest.raises(AttributeError, match=f"module '{package.__name__}' has no attribute 'No'"):
        _ = package.No


def test_all_views_of_the_admin_client_are_offered():
    assert set(admin.__all__) <= set(kohort.__all__)


def test_what_is_not_there_is_said():
    with pytest.raises(AttributeError, match="module 'kohort' has no attribute 'Konsumer'"):
        _ = kohort.Konsumer


def test_the_admin_client_does_not_bring_the_broker_along():
    program = (
        "import sys, kohort; kohort.AdminClient, kohort.NewTopic\n"
        "print([one for one in sys.modules if one.startswith('kohort.server')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_a_broker_and_its_administration_in_one_program():
    async def program():
        config = kohort.BrokerConfig.of({"num.partitions": "4"})
        async with kohort.Broker(config, nodes=2) as broker:
            servers = [f"{host}:{port}" for host, port in broker.addresses]
            async with kohort.AdminClient(servers) as client:
                nodes = await client.describe_cluster()
                created = await client.create_topics([kohort.NewTopic("t")])
            return broker.addresses, nodes, created["t"].partitions

    addresses, nodes, partitions = asyncio.run(program())
    assert nodes == tuple(
        kohort.NodeDescription(index, host, port, None)
        for index, (host, port) in enumerate(addresses)
    )
    assert partitions == 4
