"""`kohort groups config` against a broker of ours."""

import pytest

from kohort.testing.broker import Broker

SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"


@pytest.fixture
def server():
    with Broker(in_memory=True) as broker:
        yield ("--bootstrap-server", broker.bootstrap)


def rows(result, setting):
    return [row for row in result.rows if setting in row]


def test_settings_are_shown_set_and_taken_back(kohort, server):
    """K848-182."""
    shown = kohort("groups", "config", "billing", *server)
    assert (shown.code, shown.err) == (0, "")
    assert rows(shown, SESSION) == [["billing", SESSION, "45000", "broker"]]

    values = ("--set", f"{SESSION}=60000", "--set", f"{HEARTBEAT}=7000")
    changed = kohort("groups", "config", "billing", "audit", *values, *server)
    assert changed.code == 0
    assert rows(changed, SESSION) == [
        ["billing", SESSION, "60000", "group"],
        ["audit", SESSION, "60000", "group"],
    ]
    back = kohort("groups", "config", "billing", "--unset", SESSION, *server)
    assert rows(back, SESSION) == [["billing", SESSION, "45000", "broker"]]
    assert rows(back, HEARTBEAT) == [["billing", HEARTBEAT, "7000", "group"]]


def test_a_refusal_is_told_and_changes_nothing(kohort, server):
    refused = kohort("groups", "config", "billing", "--set", f"{SESSION}=1", *server)
    assert refused.code == 1
    assert "must be greater than or equal to group.consumer.min.session.timeout.ms" in refused.err
    as_json = kohort(
        "groups", "config", "billing", "--set", "colour=blue", "--format", "json", *server
    )
    assert as_json.code == 1
    (group,) = as_json.json["groups"]
    assert (group["group_id"], "configs" in group) == ("billing", False)


def test_json_tells_what_holds(kohort, server):
    told = kohort("groups", "config", "billing", "--format", "json", *server)
    (group,) = told.json["groups"]
    assert group["configs"][HEARTBEAT] == {"value": "100", "own": False}


def test_a_setting_has_a_name_and_a_value(kohort):
    wrong = kohort("groups", "config", "billing", "--set", "colour")
    assert wrong.code == 2
    assert "'colour' is not a setting, expected NAME=VALUE" in wrong.err
