# SPDX-License-Identifier: Apache-2.0
"""IncrementalAlterConfigs: what changes, and in which order it is checked."""

import pytest
from tests.server.apis.asking import value
from tests.server.apis.topics import create, topic
from tests.server.desk import Desk

from kohort.errors import ErrorCode
from kohort.server.apis import alter_configs
from kohort.wire.messages import alter_configs as replacing
from kohort.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

SET, DELETE, APPEND, SUBTRACT = range(4)

TOPIC, BROKER, GROUP = 2, 4, 32


@pytest.fixture
def desk():
    desk = Desk(node_id="1", log_retention_ms="5000")
    desk.create(retention_bytes="77")
    return desk


def alter(desk, *changes, kind=TOPIC, name="orders", **more):
    resource = AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[
            AlterableConfig(name=key, config_operation=operation, value=value)
            for key, operation, value in changes
        ],
    )
    request = IncrementalAlterConfigsRequest(
        resources=[resource], **{"validate_only": False, **more}
    )
    return desk.ask(request, 1).responses[0].error_code


@pytest.mark.parametrize(
    ("change", "codes"),
    [
        (("retention.ms", SET, "3600000"), (0, 3, 17, 42)),
        (("retention.ms", SET, "soon"), (40, 40, 17, 42)),
        (("no.such.setting", SET, "1"), (40, 40, 17, 42)),
        (("retention.ms", SET, None), (42, 42, 42, 42)),
        (("retention.ms", 4, "1"), (42, 42, 42, 42)),
        (("retention.ms", APPEND, "1"), (40, 40, 40, 40)),
        (("no.such.setting", SUBTRACT, "1"), (40, 40, 40, 40)),
        (("retention.ms", DELETE, None), (0, 3, 17, 42)),
        (("cleanup.policy", APPEND, "bad"), (40, 40, 17, 42)),
    ],
)
def test_the_order_of_checks_of_a_change(desk, change, codes):
    """What cannot be said at all comes first, then the name, the value, and whether it exists."""
    for name, code in zip(("orders", "nothing", "a/b", ""), codes, strict=True):
        assert alter(desk, change, name=name, validate_only=True) == code


def test_a_null_among_others_is_found_before_a_bad_value(desk):
    changes = [("retention.ms", SET, "soon"), ("cleanup.policy", SET, None)]
    assert alter(desk, *changes, name="nothing") == ErrorCode.INVALID_REQUEST


def test_an_unknown_operation_is_found_before_one_that_does_not_fit(desk):
    changes = [("retention.ms", APPEND, "1"), ("cleanup.policy", 4, "compact")]
    assert alter(desk, *changes) == ErrorCode.INVALID_REQUEST


def test_settings_change_and_count_at_once(desk):
    assert alter(desk, ("max.message.bytes", SET, "100"), ("retention.ms", SET, " 9 ")) == 0

    assert value(desk, "retention.ms") == ("9", 1)
    assert desk.produce(value=b"x" * 200).error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert alter(desk, ("max.message.bytes", DELETE, None)) == 0
    assert desk.produce(value=b"x" * 200).error_code == 0


def test_lists_are_changed_entry_by_entry(desk):
    assert alter(desk, ("cleanup.policy", APPEND, "compact,delete")) == 0
    assert value(desk, "cleanup.policy") == ("delete,compact", 1)
    assert alter(desk, ("cleanup.policy", SUBTRACT, "delete")) == 0
    assert value(desk, "cleanup.policy") == ("compact", 1)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ([("no.such.key", SET, "1")], ErrorCode.INVALID_CONFIG),
        ([("no.such.key", APPEND, "1")], ErrorCode.INVALID_CONFIG),
        ([("retention.ms", SET, "soon")], ErrorCode.INVALID_CONFIG),
        ([("retention.ms", APPEND, "1")], ErrorCode.INVALID_CONFIG),
        ([("cleanup.policy", APPEND, "keep")], ErrorCode.INVALID_CONFIG),
        ([("retention.ms", SET, None)], ErrorCode.INVALID_REQUEST),
        ([("retention.ms", 7, "1")], ErrorCode.INVALID_REQUEST),
        ([("retention.ms", SET, "1"), ("retention.ms", SET, "2")], ErrorCode.INVALID_REQUEST),
        ([("no.such.key", DELETE, None)], 0),
        ([], 0),
    ],
)
def test_changes_that_are_refused_change_nothing(desk, changes, code):
    before = desk.cluster.catalog.by_name["orders"]

    assert alter(desk, ("segment.ms", SET, "5"), *changes) == code
    if code:
        assert desk.cluster.catalog.by_name["orders"] == before


def test_changes_may_be_tried(desk):
    assert alter(desk, ("retention.ms", SET, "9"), validate_only=True) == 0
    assert value(desk, "retention.ms") == ("5000", 4)


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        (TOPIC, "nothing", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (BROKER, "9", ErrorCode.INVALID_REQUEST),
        (GROUP, "g", ErrorCode.INVALID_CONFIG),
        (GROUP, "", ErrorCode.INVALID_REQUEST),
        (99, "x", ErrorCode.INVALID_REQUEST),
    ],
)
def test_resources_that_cannot_be_changed(desk, kind, name, code):
    assert alter(desk, ("retention.ms", SET, "9"), kind=kind, name=name) == code


def replace(desk, *changes, kind=TOPIC, name="orders", validate_only=False, version=2):
    """AlterConfigs: the resource has these settings then, and no others of its own."""
    resource = replacing.AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[replacing.AlterableConfig(name=key, value=text) for key, text in changes],
    )
    request = replacing.AlterConfigsRequest(resources=[resource], validate_only=validate_only)
    return desk.ask(request, version).responses[0].error_code


@pytest.mark.parametrize("version", [0, 1, 2])
def test_the_older_request_replaces_all_settings_of_a_topic(desk, version):
    assert value(desk, "retention.bytes") == ("77", 1)
    assert replace(desk, ("retention.ms", "9"), validate_only=True, version=version) == 0
    assert value(desk, "retention.ms") == ("5000", 4)
    assert replace(desk, ("retention.ms", "9"), version=version) == 0
    assert value(desk, "retention.ms") == ("9", 1)
    assert value(desk, "retention.bytes") == ("-1", 5)
    assert replace(desk, ("retention.ms", None)) == ErrorCode.INVALID_REQUEST
    assert replace(desk, ("retention.ms", "soon")) == ErrorCode.INVALID_CONFIG
    assert replace(desk, ("retention.ms", "1"), ("retention.ms", "2")) == ErrorCode.INVALID_REQUEST
    assert replace(desk, ("retention.ms", "9"), name="nothing") == 3
    assert value(desk, "retention.ms") == ("9", 1)


def test_the_older_request_leaves_the_topic_of_groups_compacted(desk):
    name = "__consumer_offsets"
    assert replace(desk, ("segment.bytes", "2000000"), name=name) == 0
    assert desk.cluster.catalog.by_name[name].configs == {
        "cleanup.policy": "compact",
        "segment.bytes": "2000000",
    }
    assert replace(desk, ("cleanup.policy", "compact"), name=name) == 0
    assert replace(desk, ("cleanup.policy", "delete"), name=name) == ErrorCode.POLICY_VIOLATION


def test_nothing_may_be_changed_at_all(desk):
    assert (
        desk.ask(IncrementalAlterConfigsRequest(resources=[], validate_only=False), 1) is not None
    )
    assert desk.ask(replacing.AlterConfigsRequest(resources=[], validate_only=False), 2) is not None


def test_a_resource_is_named_once(desk):
    one = AlterConfigsResource(resource_type=TOPIC, resource_name="orders", configs=[])
    request = IncrementalAlterConfigsRequest(resources=[one, one], validate_only=False)

    codes = [answer.error_code for answer in desk.ask(request, 1).responses]
    assert codes == [ErrorCode.INVALID_REQUEST] * 2


@pytest.mark.parametrize("policy", ["delete", "compact,delete", "compact"])
def test_the_policy_of_the_topic_of_groups_cannot_be_changed(desk, policy):
    """One call of anybody would wipe out every group."""
    asked = alter(desk, ("cleanup.policy", 0, policy), name="__consumer_offsets")
    assert asked == ErrorCode.POLICY_VIOLATION
    assert alter(desk, ("segment.bytes", 0, "2000000"), name="__consumer_offsets") == 0


def test_a_change_leaves_a_line_in_the_log_and_nothing_else_does(desk):
    cleaner = "log.cleaner.backoff.ms"
    desk.told.lines.clear()
    assert alter(desk, ("retention.ms", SET, "9"), ("retention.bytes", DELETE, None)) == 0
    assert alter(desk, ("retention.ms", SET, "9")) == 0  # as it is
    assert alter(desk, ("retention.ms", SET, "8"), validate_only=True) == 0
    assert alter(desk, ("retention.ms", SET, "x")) == ErrorCode.INVALID_CONFIG
    assert alter(desk, (cleaner, SET, "1000"), kind=BROKER, name="1") == 0
    assert alter(desk, (cleaner, SET, "2000"), kind=BROKER, name="") == 0
    assert alter(desk, (cleaner, DELETE, None), kind=BROKER, name="1") == 0
    assert [line for line in desk.told.lines if "settings" in line] == [
        "settings of topic orders: retention.bytes=(unset), retention.ms=9",
        "settings of broker 1: log.cleaner.backoff.ms=1000",
        "settings of all brokers: log.cleaner.backoff.ms=2000",
        "settings of broker 1: log.cleaner.backoff.ms=(unset)",
    ]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("num.partitions", "Cannot update these configs dynamically: num.partitions"),
        ("queued.max.requests", "Cannot update these configs dynamically: queued.max.requests"),
    ],
)
def test_a_setting_that_is_fixed_is_refused(desk, name, why):
    resource = AlterConfigsResource(
        resource_type=BROKER,
        resource_name="1",
        configs=[AlterableConfig(name=name, config_operation=SET, value="1")],
    )
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)
    (result,) = desk.ask(request, 1).responses
    assert result.error_code == ErrorCode.INVALID_REQUEST
    assert result.error_message.startswith(why)


LAG, LEAST_LAG = "max.compaction.lag.ms", "min.compaction.lag.ms"


def replaced(desk, **texts):
    configs = [replacing.AlterableConfig(name=name, value=text) for name, text in texts.items()]
    resource = replacing.AlterConfigsResource(
        resource_type=TOPIC, resource_name="orders", configs=configs
    )
    request = replacing.AlterConfigsRequest(resources=[resource], validate_only=False)
    return desk.ask(request, 2).responses[0].error_code


def test_a_change_that_contradicts_what_stays_is_refused_and_changes_nothing():
    """Also one that takes a setting back, so that the broker's counts again; as in Kafka."""
    desk = Desk(node_id="1", log_cleaner_max_compaction_lag_ms="50")
    desk.create(max_compaction_lag_ms="500", min_compaction_lag_ms="100")
    before = value(desk, LAG), value(desk, LEAST_LAG)
    refused = [
        alter(desk, (LEAST_LAG, SET, "501")),
        alter(desk, (LAG, SET, "99")),
        alter(desk, (LAG, DELETE, None)),
        alter(desk, (LAG, SET, "10"), ("retention.ms", SET, "5")),
        alter(desk, (LEAST_LAG, SET, "501"), validate_only=True),
        replaced(desk, **{LEAST_LAG: "100"}),
    ]
    assert refused == [ErrorCode.INVALID_CONFIG] * len(refused)
    assert (value(desk, LAG), value(desk, LEAST_LAG)) == before
    assert value(desk, "retention.ms")[0] == "604800000"
    assert alter(desk, (LAG, DELETE, None), (LEAST_LAG, DELETE, None)) == 0
    assert replaced(desk, **{LAG: "7", LEAST_LAG: "7"}) == 0


def test_a_topic_is_not_made_with_settings_that_contradict_one_another():
    desk = Desk(node_id="1", log_cleaner_min_compaction_lag_ms="50")
    wrong = topic("wrong", max_compaction_lag_ms="49")
    assert create(desk, wrong) == [ErrorCode.INVALID_CONFIG]
    assert create(desk, wrong, validate_only=True) == [ErrorCode.INVALID_CONFIG]
    assert create(desk, topic("wrong", max_compaction_lag_ms="50")) == [0]


@pytest.mark.parametrize("whose", ["", "1"])
def test_a_change_of_the_broker_that_contradicts_what_stays_is_refused(whose):
    desk = Desk(node_id="1", log_cleaner_min_compaction_lag_ms="50")
    name = "log.cleaner.max.compaction.lag.ms"
    other = "log.cleaner.min.compaction.lag.ms"
    local = "log.local.retention.ms"

    def change(*changes):
        return alter(desk, *changes, kind=BROKER, name=whose)

    assert change((name, SET, "49")) == ErrorCode.INVALID_CONFIG
    assert change((name, SET, "49"), (other, SET, "49")) == 0
    assert change((other, DELETE, None)) == ErrorCode.INVALID_CONFIG
    assert change((other, SET, "50")) == ErrorCode.INVALID_CONFIG
    assert change((local, SET, "604800001")) == ErrorCode.INVALID_CONFIG
    assert change((local, SET, "604800000")) == 0
    assert change(("log.retention.ms", SET, "5")) == ErrorCode.INVALID_CONFIG
    config = desk.cluster.config
    assert config.value(name) == config.value(other) == 49


@pytest.mark.parametrize("kind", [TOPIC, BROKER, GROUP])
def test_a_resource_that_is_named_again_and_again_is_judged_once(desk, monkeypatch, kind):
    judged = []
    check = alter_configs.check_resource

    def check_and_count(may, client, operation, kind, name):
        judged.append(name)
        check(may, client, operation, kind, name)

    monkeypatch.setattr(alter_configs, "_check_size", lambda change: judged.append(change.name))
    monkeypatch.setattr(alter_configs, "check_resource", check_and_count)
    configs = [AlterableConfig(name="retention.ms", config_operation=SET, value="1")]
    resource = AlterConfigsResource(resource_type=kind, resource_name="1", configs=configs)
    desk.ask(IncrementalAlterConfigsRequest(resources=[resource] * 1200, validate_only=True), 1)
    assert judged == ["1", "1"], "once by each check"


def test_each_mention_of_a_repeated_resource_is_refused(desk):
    one, other = (
        AlterConfigsResource(
            resource_type=TOPIC,
            resource_name=name,
            configs=[AlterableConfig(name="retention.ms", config_operation=SET, value="9")],
        )
        for name in ("orders", "absent")
    )
    request = IncrementalAlterConfigsRequest(resources=[one, other, one], validate_only=False)
    answers = desk.ask(request, 1).responses
    assert [answer.resource_name for answer in answers] == ["orders", "absent", "orders"]
    assert [answer.error_code for answer in answers] == [
        ErrorCode.INVALID_REQUEST,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_REQUEST,
    ]
    assert "named twice" in answers[0].error_message


@pytest.mark.parametrize(("kind", "name"), [(TOPIC, "orders"), (GROUP, "g"), (BROKER, "0")])
def test_more_settings_than_there_are_names_are_refused_as_a_whole(desk, kind, name):
    config = AlterableConfig(name="retention.ms", config_operation=SET, value="9")
    resource = AlterConfigsResource(
        resource_type=kind, resource_name=name, configs=[config] * (alter_configs.SETTINGS_MAX + 1)
    )
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)
    (answer,) = desk.ask(request, 1).responses
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert answer.error_message.startswith("more than 1000 settings of ")
