# SPDX-License-Identifier: Apache-2.0
"""Every step of the disk fails once, in every way, under every request that changes something."""

import pytest
from tests.server import refusals
from tests.server.mutations import CASES

pytestmark = [pytest.mark.prove, pytest.mark.timeout(3600)]


@pytest.mark.parametrize("name", CASES)
def test_what_is_refused_is_unchanged_and_what_is_acknowledged_is_there(name):
    for fault in refusals.faults(name):
        refusals.tried(name, fault)
