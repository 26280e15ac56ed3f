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
    assert "group.consumer.min.session.timeout.ms, which is 1000" in refused.err
    assert refused.out == "", "no table without a row"
    as_json = kohort(
        *("groups", "config", "billing", "--set", f"{SESSION}=1", "--format", "json"), *server
    )
    assert as_json.code == 1
    (group,) = as_json.json["groups"]
    assert (group["group_id"], "configs" in group) == ("billing", False)


@pytest.mark.parametrize("change", [("--set", "consumer.session.timeout=1"), ("--unset",)])
def test_a_name_that_is_no_setting_of_the_cluster_is_a_wrong_call(kohort, server, change):
    change = change if len(change) == 2 else (*change, "consumer.session.timeout")
    wrong = kohort("groups", "config", "billing", *change, *server)
    assert (wrong.code, wrong.out) == (2, "")
    (line,) = wrong.complaints
    assert line.startswith(f"kohort: {change[0]}: consumer.session.timeout is not a setting of gro")
    assert line.endswith("did you mean consumer.session.timeout.ms?")


def test_a_setting_is_not_set_and_taken_back_at_once(kohort):
    wrong = kohort("groups", "config", "billing", "--set", f"{SESSION}=1", "--unset", SESSION)
    assert (wrong.code, wrong.out) == (2, "")
    assert wrong.complaints == [
        f"kohort: groups config: {SESSION} is in --set and in --unset, expected one"
    ]


def test_json_tells_what_holds(kohort, server):
    told = kohort("groups", "config", "billing", "--format", "json", *server)
    (group,) = told.json["groups"]
    assert group["configs"][HEARTBEAT] == {"value": "100", "own": False}


def test_a_setting_has_a_name_and_a_value(kohort):
    wrong = kohort("groups", "config", "billing", "--set", "colour")
    assert wrong.code == 2
    assert "'colour' is not a setting, expected NAME=VALUE" in wrong.err
