# SPDX-License-Identifier: Apache-2.0
"""The settings of a producer: values, words, and what contradicts itself."""

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from kohort.client.producer.settings import ProducerSettings
from kohort.client.settings import settings_of


def made(**given: Any) -> ProducerSettings:
    settings = settings_of(ProducerSettings, {}, given)
    settings.check()
    return settings


def test_defaults_are_those_of_java() -> None:
    settings = made()
    assert (settings.acks, settings.linger_ms, settings.batch_size) == (-1, 5, 16384)
    assert (settings.buffer_memory, settings.max_request_size) == (33554432, 1048576)
    assert (settings.request_timeout_ms, settings.delivery_timeout_ms) == (30000, 120000)
    assert settings.is_idempotent


@pytest.mark.parametrize(("given", "acks"), [("all", -1), (-1, -1), ("1", 1), (1, 1), (0, 0)])
def test_acks_are_words_or_numbers(given: Any, acks: int) -> None:
    assert made(acks=given).acks == acks


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, True),
        ({"acks": 1}, False),
        ({"enable_idempotence": False}, False),
        ({"enable_idempotence": "true"}, True),
    ],
)
def test_idempotence_is_on_where_acks_is_all(given: dict[str, Any], expected: bool) -> None:  # noqa: FBT001
    assert made(**given).is_idempotent is expected


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"acks": 2}, "acks is 2, expected all, 0 or 1"),
        ({"acks": True}, "acks is True"),
        ({"enable_idempotence": "perhaps"}, "expected true or false"),
        ({"acks": 1, "enable_idempotence": True}, "enable_idempotence needs acks=all"),
        ({"max_in_flight_requests_per_connection": 6}, "expected 5 at most"),
        ({"transactional_id": "a", "acks": 1}, "transactional_id needs"),
        ({"delivery_timeout_ms": 30_000}, "delivery_timeout_ms is 30000, expected linger_ms"),
        ({"compression_type": "zip"}, "none, gzip, snappy, lz4, zstd"),
        ({"linger": 5}, "did you mean 'linger_ms'"),
    ],
)
def test_what_cannot_be_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        made(**given)


def test_without_idempotence_more_may_be_under_way() -> None:
    assert made(acks=1, max_in_flight_requests_per_connection=9)


def test_the_page_has_every_setting_with_its_default() -> None:
    page = (Path(__file__).parents[3] / "docs" / "producer.md").read_text(encoding="utf-8")
    settings = page.partition("\n## Settings\n")[2]
    rows = re.findall(r"^\| (`[\w`, ]+`) \| (\S+) \|", settings, re.MULTILINE)
    told = {name: default for names, default in rows for name in re.findall(r"\w+", names)}
    del told["bootstrap_servers"]
    usual = made()
    expected = {one.name: str(getattr(usual, one.name)) for one in fields(usual)}
    assert told == {**expected, "acks": "all", "partitioner_ignore_keys": "false"}
