# SPDX-License-Identifier: Apache-2.0
"""What a setting's text becomes, and back."""

import pytest

from kohort.config import BrokerConfig, text_of
from kohort.config.broker import BROKER_SETTINGS


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        (True, "true"),
        (False, "false"),
        (("a", "b"), "a,b"),
        ((), ""),
        (0.5, "0.5"),
        (2**63 - 1, "9223372036854775807"),
        ("producer", "producer"),
    ],
)
def test_values_are_shown_as_upstream_shows_them(value, text):
    assert text_of(value) == text


def test_shown_values_read_back():
    config = BrokerConfig()
    for name, setting in BROKER_SETTINGS.items():
        text = text_of(config.value(name))
        if text is not None:
            assert setting.parse(text) == config.value(name), name
