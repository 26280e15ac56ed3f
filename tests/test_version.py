# SPDX-License-Identifier: Apache-2.0
"""The version that clients tell brokers is the one that is installed."""

from importlib.metadata import version

from kohort.version import VERSION


def test_it_is_that_of_the_package():
    assert version("kohort") == VERSION
