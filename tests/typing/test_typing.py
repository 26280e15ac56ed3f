# SPDX-License-Identifier: Apache-2.0
"""What a type checker tells of programs that use the clients."""

import importlib
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest

from kohort.client.admin.views import StateName, TypeName
from kohort.client.consumer.settings import ConsumerOptions, ConsumerSettings, Strategy
from kohort.client.fetcher import FetchOptions, FetchSettings
from kohort.client.members.classic_assigning import PROTOCOLS
from kohort.client.producer.settings import ProducerOptions, ProducerSettings
from kohort.client.security_settings import is_about_security
from kohort.client.settings import SecurityOptions, settings_of
from kohort.terms import GroupState, GroupType

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
STRATEGY = get_type_hints(ConsumerOptions)["partition_assignment_strategy"]  # a list of words
PAIRS = [
    (FetchOptions, FetchSettings),
    (ConsumerOptions, ConsumerSettings),
    (ProducerOptions, ProducerSettings),
]


@pytest.fixture(scope="module")
def told():
    """What mypy says of both programs, by file and line."""
    pytest.importorskip("mypy")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", str(HERE / "right.py"), str(HERE / "wrong.py")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = re.findall(r"(\w+)\.py:(\d+): error: (.*)", done.stdout)
    assert lines or done.returncode == 0, done.stdout + done.stderr
    found = {"right": {}, "wrong": {}}
    for name, line, text in lines:
        found[name].setdefault(int(line), text)
    return found


def test_a_program_without_mistakes_passes(told):
    assert told["right"] == {}


def test_each_mistake_is_found_in_its_line(told):
    lines = (HERE / "wrong.py").read_text().splitlines()
    expected = [number for number, line in enumerate(lines, 1) if "# wrong" in line]
    assert len(expected) > 25
    assert sorted(told["wrong"]) == expected


def words_of(hint: Any) -> list[Any]:
    """The values of the Literals in a type."""
    if get_origin(hint) is Literal:
        return list(get_args(hint))
    return [word for part in get_args(hint) for word in words_of(part)]


def hints_of(options: Any) -> dict[str, Any]:
    """Without those of security, which are settings of no class."""
    of_security = get_type_hints(SecurityOptions)
    return {name: hint for name, hint in get_type_hints(options).items() if name not in of_security}


def test_a_type_checker_knows_the_keywords_of_security():
    for name in get_type_hints(SecurityOptions):
        assert name == "security" or is_about_security(name)


@pytest.mark.parametrize(("options", "settings"), PAIRS)
def test_what_a_type_checker_knows_is_what_there_is(options, settings):
    assert list(hints_of(options)) == [field.name for field in fields(settings)]


@pytest.mark.parametrize(("options", "settings"), PAIRS)
def test_a_type_checker_lets_through_what_is_understood(options, settings):
    """A setting has the type of its value, or words that its check takes."""
    values = get_type_hints(settings)
    for name, hint in hints_of(options).items():
        words = words_of(hint)
        assert words or hint == values[name], name
        for word in words:
            settings_of(settings, {}, {name: [word] if hint == STRATEGY else word})


def test_words_are_all_that_there_are():
    assert set(get_args(Strategy)) == set(PROTOCOLS)
    assert set(words_of(StateName)) == {state.value for state in GroupState}
    assert set(words_of(TypeName)) == {kind.value for kind in GroupType}
    hints = get_type_hints(ConsumerOptions) | get_type_hints(ProducerOptions)
    for module, name, words in [
        ("kohort.client.consumer.settings", "group_protocol", "GROUP_PROTOCOLS"),
        ("kohort.client.fetcher.settings", "isolation_level", "ISOLATION_LEVELS"),
        ("kohort.client.producer.settings", "compression_type", "CODECS"),
    ]:
        assert set(words_of(hints[name])) == set(getattr(importlib.import_module(module), words))
