# SPDX-License-Identifier: Apache-2.0
"""The settings of a consumer: what contradicts itself is refused."""

from typing import Any

import pytest

from kohort.client.consumer.settings import OF_THE_OTHER, ConsumerSettings
from kohort.client.settings import settings_of


def of(**settings: Any) -> ConsumerSettings:
    """By keyword, or where they have dots, as in upstream's files."""
    dotted = {name: settings.pop(name) for name in list(settings) if "." in name}
    found = settings_of(ConsumerSettings, dotted, settings)
    found.check()
    return found


def test_defaults_are_upstreams() -> None:
    found = of()
    assert (found.session_timeout_ms, found.max_poll_records) == (45_000, 500)
    assert (found.auto_offset_reset, found.enable_auto_commit) == ("latest", True)
    assert found.partition_assignment_strategy == ("range", "cooperative-sticky")


@pytest.mark.parametrize(
    "given", ["roundrobin,range", " roundrobin , range", ["roundrobin", "range"]]
)
def test_strategies_are_a_list_in_any_form(given: Any) -> None:
    assert of(partition_assignment_strategy=given).partition_assignment_strategy == (
        "roundrobin",
        "range",
    )


@pytest.mark.parametrize("given", ["", "range,range", "sticky", ["range", "x"]])
def test_a_strategy_has_to_be_known_and_said_once(given: Any) -> None:
    with pytest.raises(ValueError, match="expected some of range, roundrobin, cooperative-sticky"):
        of(partition_assignment_strategy=given)


def test_heartbeats_come_within_a_session() -> None:
    with pytest.raises(ValueError, match="heartbeat_interval_ms is 900, expected less than"):
        of(heartbeat_interval_ms=900, session_timeout_ms=900)


def test_an_instance_is_one_of_a_group() -> None:
    with pytest.raises(ValueError, match="group_instance_id needs a group_id"):
        of(group_instance_id="i")


@pytest.mark.parametrize(
    ("protocol", "name", "given", "instead"),
    [
        ("consumer", "session_timeout_ms", 9000, "group.consumer.session.timeout.ms"),
        ("consumer", "heartbeat_interval_ms", 900, "group.consumer.heartbeat.interval.ms"),
        ("consumer", "partition_assignment_strategy", "range", "group_remote_assignor"),
        ("classic", "group_remote_assignor", "range", "partition_assignment_strategy"),
    ],
)
def test_what_means_nothing_in_a_protocol_is_refused(
    protocol: str, name: str, given: Any, instead: str
) -> None:
    """K848-178: under both spellings, with what counts instead."""
    for spelled in ({name: given}, {name.replace("_", "."): given}):
        with pytest.raises(ValueError, match=rf"{name} is .*means nothing.*{instead}"):
            of(group_protocol=protocol, **spelled)
    assert of(group_protocol="auto", **{name: given})


@pytest.mark.parametrize(
    ("protocol", "name"),
    [(protocol, name) for protocol, names in OF_THE_OTHER.items() for name in names],
)
def test_so_is_the_default_where_it_is_given(protocol: str, name: str) -> None:
    """As by Java: who writes it down believes that it counts."""
    default = getattr(ConsumerSettings(), name)
    if default is None:
        assert of(group_protocol=protocol, **{name: None})  # None says nothing
        return
    for spelled in ({name: default}, {name.replace("_", "."): default}):
        with pytest.raises(ValueError, match=rf"{name} is .*means nothing with group_protocol"):
            of(group_protocol=protocol, **spelled)
    assert of(group_protocol=protocol)
    assert of(**{name: default})


def test_nothing_is_committed_by_itself_without_a_group() -> None:
    """Who asks for it is told so, and who does not is not."""
    with pytest.raises(ValueError, match="enable_auto_commit is true, and there is no group_id"):
        of(enable_auto_commit=True)
    assert of(enable_auto_commit=False)
    assert of(enable_auto_commit=True, group_id="g")
    assert of().enable_auto_commit
