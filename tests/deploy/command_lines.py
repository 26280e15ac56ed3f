# SPDX-License-Identifier: Apache-2.0
"""Command lines in the files of deploy/, held against the program's own parser and settings."""

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

import pytest

from kohort.cli.main import parser
from kohort.config import BrokerConfig

DEPLOY = Path(__file__).parents[2] / "deploy"


def accepted(words: Sequence[str]) -> Namespace:
    """What `kohort` makes of the words behind its name; fails the test if it refuses them."""
    try:
        args = parser(words).parse_args(words)
    except SystemExit:
        pytest.fail(f"kohort refuses: {' '.join(words)}")
    assert args.command is not None, f"no command: {' '.join(words)}"
    if words[0] == "serve":
        assert_settings_have_an_effect(dict(args.settings))
    return args


def assert_settings_have_an_effect(texts: dict[str, str]) -> None:
    """Fails for a setting that the broker refuses, or of which it warns."""
    assert BrokerConfig.mistakes(texts) == {}
    config = BrokerConfig.of(texts)
    assert not config.ignored
    assert not config.without_effect()
