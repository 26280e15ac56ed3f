# SPDX-License-Identifier: Apache-2.0
"""Bugs of the coordinator of groups whose members compute."""

from collections.abc import Iterator

from kohort.coordinator.consumer.client_side import install
from kohort.sim.injected_bugs.replace_attribute import replace_attribute


def older_assignment() -> Iterator[None]:
    """An installed assignment of an older epoch is taken."""
    with replace_attribute(install, "_check_prepared", lambda _member, _basis, _epoch: None):
        yield
