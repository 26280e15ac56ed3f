# SPDX-License-Identifier: Apache-2.0
"""`kohort groups config` against a broker of ours."""

import asyncio

import pytest
from tests.client.scripted import CLOSE, ScriptedCluster, asynchronous

from kohort.cli.main import main
from kohort.testing.broker import Broker
from kohort.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from kohort.wire.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kohort.wire.messages.metadata import MetadataRequest

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


def test_a_setting_is_not_set_twice_at_once(kohort):
    wrong = kohort("groups", "config", "g", "--set", f"{SESSION}=1", "--set", f"{SESSION}=2")
    assert (wrong.code, wrong.out) == (2, "")
    assert wrong.complaints == [
        f"kohort: groups config: {SESSION} is in --set twice, expected once"
    ]


@pytest.mark.parametrize("denied", [True, False], ids=["denied", "unreachable"])
@asynchronous
async def test_a_change_is_told_when_the_settings_cannot_be_read_after_it(capsys, denied):
    """Who believed that it had failed would look for the reason, or change it again."""

    def told(asked):
        results = [
            DescribeConfigsResult(
                resource_type=32,
                resource_name=one.resource_name,
                error_code=30 if scripted.sent("IncrementalAlterConfigs") else 0,
                configs=[DescribeConfigsResourceResult(name=SESSION, value="1")],
            )
            for one in asked.request.resources
        ]
        return DescribeConfigsResponse(results=results)

    def changed(asked):
        if not denied:
            scripted.answers[MetadataRequest] = lambda _: CLOSE
        responses = [
            AlterConfigsResourceResponse(resource_type=32, resource_name=one.resource_name)
            for one in asked.request.resources
        ]
        return IncrementalAlterConfigsResponse(responses=responses)

    answers = {DescribeConfigsRequest: told, IncrementalAlterConfigsRequest: changed}
    async with ScriptedCluster(1, answers) as scripted:
        argv = ["groups", "config", "g", "--set", f"{SESSION}=1"]
        argv += ["--bootstrap-server", scripted.bootstrap]
        assert await asyncio.to_thread(main, argv) == 1
    expected = "kohort: group g is changed, and its settings could not be read: "
    assert capsys.readouterr().err.startswith(expected)


def test_json_tells_what_holds(kohort, server):
    told = kohort("groups", "config", "billing", "--format", "json", *server)
    (group,) = told.json["groups"]
    assert group["configs"][HEARTBEAT] == {"value": "100", "own": False}


def test_a_setting_has_a_name_and_a_value(kohort):
    wrong = kohort("groups", "config", "billing", "--set", "colour")
    assert wrong.code == 2
    assert "expected NAME=VALUE" in wrong.err
