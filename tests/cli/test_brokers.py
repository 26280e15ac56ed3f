# SPDX-License-Identifier: Apache-2.0
"""`kohort brokers` has its commands under their words."""

from kohort.cli.brokers import COMMANDS


def test_the_noun_has_its_commands(kohort):
    shown = kohort("brokers", "--help")
    assert shown.code == 0
    for word, command in COMMANDS.items():
        assert f"{word} " in shown.out
        assert command.help in " ".join(shown.out.split())
