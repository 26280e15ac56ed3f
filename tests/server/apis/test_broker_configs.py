# SPDX-License-Identifier: Apache-2.0
"""Settings of brokers that change while they run (KIP-226): what is taken, and what follows."""

import pytest
from tests.coordinator.consumers import request
from tests.server.apis.asking import describe, value
from tests.server.apis.test_group_configs import alter, changed
from tests.server.desk import Desk

from kohort.config import UNREAD_AT_MOST
from kohort.errors import ErrorCode
from kohort.sim.disk import SimulatedFiles
from kohort.wire.messages import alter_configs as replacing
from kohort.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource

BROKER = 4
OWN, DEFAULT, FILE, UPSTREAM = 2, 3, 4, 5


def shown(desk, key, name="1"):
    result = describe(desk, BROKER, name, [key], include_synonyms=True)
    assert result.error_code == 0
    if not result.configs:
        return None
    (one,) = result.configs
    return one.value, one.config_source, [(item.value, item.source) for item in one.synonyms]


def test_a_setting_of_the_broker_lies_over_that_of_all_and_both_over_the_file():
    desk = Desk(node_id="1", message_max_bytes="1000")
    default, own = ("message.max.bytes", "2000"), ("message.max.bytes", "3000")
    upstream = ("1048588", UPSTREAM)
    assert alter(desk, changed("", default, kind=BROKER)) == [0]
    assert shown(desk, default[0]) == (
        "2000",
        DEFAULT,
        [("2000", DEFAULT), ("1000", FILE), upstream],
    )
    assert alter(desk, changed("1", own, kind=BROKER)) == [0]
    layers = [("3000", OWN), ("2000", DEFAULT), ("1000", FILE), upstream]
    assert shown(desk, default[0]) == ("3000", OWN, layers)
    assert shown(desk, default[0], name="")[0] is not None
    assert alter(desk, changed("", (default[0], None), kind=BROKER)) == [0]
    assert shown(desk, default[0], name="") is None
    assert alter(desk, changed("1", (default[0], None), kind=BROKER)) == [0]
    assert shown(desk, default[0]) == ("1000", FILE, [("1000", FILE), upstream])


def test_topics_follow_at_once_unless_they_set_their_own():
    desk = Desk(node_id="1")
    desk.create()
    assert desk.produce(value=b"x" * 200).error_code == 0
    assert alter(desk, changed("", ("message.max.bytes", "100"), kind=BROKER)) == [0]
    assert value(desk, "max.message.bytes") == ("100", DEFAULT)
    assert desk.produce(value=b"x" * 200).error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert alter(desk, changed("orders", ("max.message.bytes", "1000"), kind=2)) == [0]
    assert desk.produce(value=b"x" * 200).error_code == 0


def test_groups_follow_at_once():
    desk = Desk(node_id="1")
    desk.create()
    first = desk.ask(request("m", 0), 1)
    assert alter(
        desk, changed("1", ("group.consumer.assignment.interval.ms", "9000"), kind=BROKER)
    ) == [0]
    second = desk.ask(request("n", 0), 1)
    assert second.member_epoch == first.member_epoch, "no new target yet"


def test_they_are_there_after_a_restart():
    files = SimulatedFiles()
    desk = Desk(files=files, node_id="1")
    alter(desk, changed("1", ("message.max.bytes", "100"), kind=BROKER))
    desk.cluster.close()
    desk = Desk(files=files, node_id="1")
    assert shown(desk, "message.max.bytes")[:2] == ("100", OWN)
    desk.create()
    assert desk.produce(value=b"x" * 200).error_code == ErrorCode.MESSAGE_TOO_LARGE


INTERVAL = "group.consumer.assignment.interval.ms"


def restarted(files, **settings):
    """A broker of which one setting contradicts a changed file, unless the file is as before."""
    return Desk(files=files, node_id="1", **settings)


def test_one_setting_that_contradicts_a_changed_file_is_left_aside_alone():
    files = SimulatedFiles()
    desk = restarted(files)
    settings = [(INTERVAL, "9000"), ("log.retention.ms", "-1"), ("message.max.bytes", "5000000")]
    assert alter(desk, changed("", *settings, kind=BROKER)) == [0]
    assert alter(desk, changed("1", (INTERVAL, "8000"), kind=BROKER)) == [0]
    desk.cluster.close()

    later = restarted(files, group_consumer_max_assignment_interval_ms="10")
    config = later.cluster.config
    assert config.group_consumer_assignment_interval_ms == 0
    assert (config.log_retention_ms, config.message_max_bytes) == (-1, 5_000_000)
    bound = "expected at most group.consumer.max.assignment.interval.ms, which is 10"
    kept = "is kept and not in force"
    assert later.told.warnings == [
        f"{INTERVAL}=8000, set for broker 1, {kept}: {INTERVAL} is 8000, {bound}",
        f"{INTERVAL}=9000, set for all brokers, {kept}: {INTERVAL} is 9000, {bound}",
    ]
    for name in ("1", ""):
        assert shown(later, INTERVAL, name) == ("0", UPSTREAM, [("0", UPSTREAM)])
    assert shown(later, "log.retention.ms")[:2] == ("-1", DEFAULT)
    later.cluster.close()

    assert shown(restarted(files), INTERVAL)[:2] == ("8000", OWN)


def test_beside_a_setting_that_is_left_aside_others_change():
    files = SimulatedFiles()
    desk = restarted(files)
    assert alter(desk, changed("", (INTERVAL, "9000"), kind=BROKER)) == [0]
    desk.cluster.close()

    later = restarted(files, group_consumer_max_assignment_interval_ms="10")
    warnings = len(later.told.warnings)
    assert alter(later, changed("", ("log.retention.ms", "5"), kind=BROKER)) == [0]
    assert alter(later, changed("1", (INTERVAL, "7"), kind=BROKER)) == [0]
    assert later.cluster.config.group_consumer_assignment_interval_ms == 7
    assert alter(later, changed("", (INTERVAL, "9000"), kind=BROKER)) == [0], "lies under 7"
    assert len(later.told.warnings) == warnings
    # Without its own setting the broker would fall back on one that cannot count.
    refused = [ErrorCode.INVALID_CONFIG]
    assert alter(later, changed("1", (INTERVAL, None), kind=BROKER)) == refused
    assert alter(later, changed("", (INTERVAL, "8"), kind=BROKER)) == [0]
    assert alter(later, changed("1", (INTERVAL, None), kind=BROKER)) == [0]
    assert later.cluster.config.group_consumer_assignment_interval_ms == 8


def test_a_setting_that_is_left_aside_cannot_be_set_again_and_can_be_taken_back():
    files = SimulatedFiles()
    desk = restarted(files)
    assert alter(desk, changed("", (INTERVAL, "9000"), kind=BROKER)) == [0]
    desk.cluster.close()

    later = restarted(files, group_consumer_max_assignment_interval_ms="10")
    refused = [ErrorCode.INVALID_CONFIG]
    assert alter(later, changed("", (INTERVAL, "9000"), kind=BROKER)) == refused
    assert alter(later, changed("", (INTERVAL, None), kind=BROKER)) == [0]
    assert shown(later, INTERVAL, name="") is None
    later.cluster.close()
    assert shown(restarted(files), INTERVAL)[:2] == ("0", UPSTREAM)


def test_any_node_takes_a_change():
    """The empty name and that of the first node, whichever node is asked; each tells its own."""
    desk = Desk(nodes=3, node_id="1")
    for node, setting in enumerate(("log.retention.ms", "message.max.bytes", "log.roll.ms")):
        name = "1" if node == 1 else ""
        assert alter(desk, changed(name, (setting, "3600000"), kind=BROKER), node=node) == [0]
    for node in range(3):
        resource = DescribeConfigsResource(
            resource_type=BROKER,
            resource_name=str(node + 1),
            configuration_keys=["log.retention.ms", "message.max.bytes", "log.roll.ms"],
        )
        asked = DescribeConfigsRequest(resources=[resource])
        (result,) = desk.ask(asked, 4, node=node).results
        shown_there = {one.name: (one.value, one.config_source) for one in result.configs}
        assert shown_there == {
            "log.retention.ms": ("3600000", DEFAULT),
            "message.max.bytes": ("3600000", OWN),
            "log.roll.ms": ("3600000", DEFAULT),
        }


@pytest.mark.parametrize(
    ("name", "change", "code"),
    [
        ("1", ("message.max.bytes", "many"), ErrorCode.INVALID_CONFIG),
        ("1", ("group.consumer.assignment.interval.ms", "99999"), ErrorCode.INVALID_CONFIG),
        ("1", ("num.partitions", "3"), ErrorCode.INVALID_REQUEST),
        ("1", ("ssl.keystore.password", "3"), ErrorCode.INVALID_REQUEST),
        ("1", ("no.such.setting", "3" * UNREAD_AT_MOST), ErrorCode.INVALID_CONFIG),
        ("2", ("message.max.bytes", "1"), ErrorCode.INVALID_REQUEST),
        ("x", ("message.max.bytes", "1"), ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_is_refused_changes_nothing(name, change, code):
    desk = Desk(node_id="1", nodes=2)
    before = desk.cluster.config
    resource = changed(name, ("log.retention.ms", "5"), change, kind=BROKER)
    assert alter(desk, resource) == [code]
    assert desk.cluster.config is before


def test_only_what_can_be_changed_is_shown_so():
    desk = Desk(node_id="1")
    shown_as = {one.name: one.read_only for one in describe(desk, BROKER, "1").configs}
    assert not shown_as["message.max.bytes"]
    assert shown_as["num.partitions"]


@pytest.mark.parametrize(
    "name", ["num.io.threads", "sasl.kerberos.min.time.before.relogin", "ssl.protocol"]
)
def test_what_upstream_can_change_and_nothing_here_reads_is_kept_shown_and_told(name):
    """The tests of librdkafka change such a setting."""
    files = SimulatedFiles()
    desk = Desk(files=files, node_id="1")
    assert alter(desk, changed("", (name, "9"), kind=BROKER)) == [0]
    assert alter(desk, changed("1", (name, "8"), kind=BROKER)) == [0]
    both = [("8", OWN), ("9", DEFAULT)]
    assert shown(desk, name) == ("8", OWN, both)
    assert shown(desk, name, name="") == ("9", DEFAULT, both[1:])
    told = [f"{name}=9, set for all brokers, is kept and not in force: nothing here reads it"]
    told.append(f"{name}=8, set for broker 1, is kept and not in force: nothing here reads it")
    assert [one for one in desk.told.warnings if name in one] == told
    desk.cluster.close()
    desk = Desk(files=files, node_id="1")
    assert shown(desk, name) == ("8", OWN, both)
    assert alter(desk, changed("1", (name, None), kind=BROKER)) == [0]
    assert shown(desk, name) == ("9", DEFAULT, both[1:])


@pytest.mark.parametrize("name", ["no.such.setting", "message.max.byte", "", "a\nb"])
def test_what_upstream_does_not_know_is_kept_and_shown_without_its_text(name):
    """As 4.3.1 does, which takes it for a secret since it cannot know. The tests of kafkajs set
    one.
    """
    files = SimulatedFiles()
    desk = Desk(files=files, node_id="1")
    assert alter(desk, changed("", (name, "text 9"), kind=BROKER)) == [0]
    assert alter(desk, changed("1", (name, "text 8"), kind=BROKER)) == [0]
    both = [(None, OWN), (None, DEFAULT)]
    assert shown(desk, name) == (None, OWN, both)
    assert shown(desk, name, name="") == (None, DEFAULT, both[1:])
    (one,) = describe(desk, BROKER, "1", [name], include_documentation=True).configs
    assert (one.read_only, one.is_sensitive, one.config_type) == (True, True, 0)
    assert one.documentation is None
    assert one in describe(desk, BROKER, "1", include_documentation=True).configs
    told = desk.told.warnings + desk.told.lines
    assert len([line for line in told if line.startswith(f"{name}, set for ")]) == 2
    assert not [line for line in told if "text" in line]
    desk.cluster.close()
    desk = Desk(files=files, node_id="1")
    assert shown(desk, name) == (None, OWN, both)
    assert alter(desk, changed("1", (name, None), kind=BROKER)) == [0]
    assert shown(desk, name) == (None, DEFAULT, both[1:])


def test_a_name_that_is_nearly_that_of_a_setting_is_told_with_it():
    desk = Desk(node_id="1")
    assert alter(desk, changed("1", ("message.max.byte", "9"), kind=BROKER)) == [0]
    (told,) = [line for line in desk.told.warnings if "message.max.byte," in line]
    assert "did you mean message.max.bytes" in told


def test_nothing_is_added_to_a_list_that_upstream_does_not_know():
    desk = Desk(node_id="1")
    for operation in (2, 3):
        resource = changed("1", ("no.such.list", "a"), kind=BROKER)
        resource.configs[0].config_operation = operation
        assert alter(desk, resource) == [ErrorCode.INVALID_CONFIG]


def test_the_older_request_takes_them_and_takes_them_back():
    desk = Desk(node_id="1")
    for configs in ([replacing.AlterableConfig(name="no.such.setting", value="7")], []):
        resource = replacing.AlterConfigsResource(
            resource_type=BROKER, resource_name="1", configs=configs
        )
        (said,) = desk.ask(replacing.AlterConfigsRequest(resources=[resource]), 2).responses
        assert said.error_code == 0
        assert (shown(desk, "no.such.setting") is not None) is bool(configs)


def test_what_nothing_reads_may_be_set_for_a_further_node():
    """The nodes share what is read, so a change of that for one of them would be one for all."""
    files = SimulatedFiles()
    desk = Desk(files=files, nodes=2, node_id="1")
    for setting in ("no.such.setting", "num.io.threads"):
        assert alter(desk, changed("2", (setting, "9"), kind=BROKER), node=1) == [0]
    wrong = [ErrorCode.INVALID_REQUEST]
    assert alter(desk, changed("2", ("log.retention.ms", "9"), kind=BROKER), node=1) == wrong
    assert alter(desk, changed("3", ("no.such.setting", "9"), kind=BROKER), node=1) == wrong

    def own(node):
        resource = DescribeConfigsResource(resource_type=BROKER, resource_name=str(node + 1))
        (result,) = desk.ask(DescribeConfigsRequest(resources=[resource]), 4, node=node).results
        return {one.name: one.value for one in result.configs if one.config_source == OWN}

    assert (own(0), own(1)) == ({}, {"no.such.setting": None, "num.io.threads": "9"})
    desk.cluster.close()
    desk = Desk(files=files, nodes=2, node_id="1")
    assert own(1) == {"no.such.setting": None, "num.io.threads": "9"}
    assert alter(desk, changed("2", ("no.such.setting", None), kind=BROKER), node=0) == [0]
    assert own(1) == {"num.io.threads": "9"}


def test_what_nothing_reads_is_bounded():
    """In the catalog, which is written as a whole, and in answers."""
    desk = Desk(node_id="1")
    room = UNREAD_AT_MOST - len("no.such.setting")
    assert alter(desk, changed("1", ("no.such.setting", "x" * room), kind=BROKER)) == [0]
    assert alter(desk, changed("1", ("y", ""), kind=BROKER)) == [ErrorCode.INVALID_CONFIG]
    assert alter(desk, changed("", ("y", ""), kind=BROKER)) == [0]
    assert alter(desk, changed("1", ("log.retention.ms", "9"), kind=BROKER)) == [0]


@pytest.mark.parametrize(
    "name",
    [
        "listener.name.external.ssl.key.password",
        "listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config",
        "sasl.oauthbearer.client.credentials.client.secret",
        "sasl.oauthbearer.assertion.private.key.passphrase",
        "my.Password",
        "process.roles",
    ],
)
def test_secrets_that_nothing_reads_are_not_kept(name):
    desk = Desk(node_id="1")
    assert alter(desk, changed("1", (name, "x"), kind=BROKER)) == [ErrorCode.INVALID_REQUEST]
    assert shown(desk, name) is None


@pytest.mark.parametrize("name", ["ssl.keystore.password", "sasl.jaas.config", "ssl.keystore.key"])
def test_secrets_of_the_file_are_neither_changed_nor_shown(name):
    desk = Desk(node_id="1")
    assert alter(desk, changed("1", (name, "x"), kind=BROKER)) == [ErrorCode.INVALID_REQUEST]
    assert shown(desk, name) == (None, UPSTREAM, [])


def test_each_node_shows_its_own_rack():
    desk = Desk(node_id="1", nodes=2, broker_rack="east,west")
    shown_by = [
        describe(desk, BROKER, str(1 + node), ["broker.rack"], node=node) for node in (0, 1)
    ]
    assert [one.value for result in shown_by for one in result.configs] == ["east", "west"]
    assert shown(Desk(node_id="1"), "broker.rack") == (None, UPSTREAM, [])


def test_settings_of_the_authorizer_are_shown_as_kafka_shows_them():
    """It knows that they are set, and neither what they mean nor whether they are secret."""
    names = ["super.users", "allow.everyone.if.no.acl.found"]
    desk = Desk(node_id="1")
    assert describe(desk, BROKER, "1", names).configs == []
    desk = Desk(node_id="1", super_users="User:a", allow_everyone_if_no_acl_found="true")
    for one in describe(desk, BROKER, "1", names, include_synonyms=True).configs:
        assert (one.value, one.is_sensitive, one.read_only, one.config_source) == (
            *(None, True, True, 4),
        )
        assert [(synonym.name, synonym.value) for synonym in one.synonyms] == [(one.name, None)]
