# SPDX-License-Identifier: Apache-2.0
"""Settings of groups on the wire: every node is asked, and the shard of the group answers."""

from tests.server.apis.asking import describe
from tests.server.desk import Desk

from kohort.errors import ErrorCode
from kohort.server.access import ALTER_CONFIGS, DESCRIBE_CONFIGS, GROUP
from kohort.sim.disk import SimulatedFiles
from kohort.terms import GroupId
from kohort.wire.messages import alter_configs as replacing
from kohort.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kohort.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

RESOURCE = 32
TOPIC, BROKER = 2, 4
SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
SET, DELETE = 0, 1


def changed(name, *changes, kind=RESOURCE):
    return AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[
            AlterableConfig(name=key, config_operation=DELETE if text is None else SET, value=text)
            for key, text in changes
        ],
    )


def alter(desk, *resources, node=0):
    request = IncrementalAlterConfigsRequest(resources=list(resources), validate_only=False)
    return [one.error_code for one in desk.ask(request, 1, node=node).responses]


def shown(desk, name, node=0):
    resource = DescribeConfigsResource(
        resource_type=RESOURCE, resource_name=name, configuration_keys=[SESSION, HEARTBEAT]
    )
    (result,) = desk.ask(DescribeConfigsRequest(resources=[resource]), 4, node=node).results
    assert result.error_code == 0
    return {one.name: (one.value, one.config_source) for one in result.configs}


def test_any_node_takes_a_change_and_tells_it():
    """K848-130."""
    desk = Desk(nodes=3, node_id="1", offsets_topic_num_partitions="6")
    for number in range(12):
        name = f"g{number}"
        assert alter(desk, changed(name, (HEARTBEAT, "7000")), node=number % 3) == [0]
        for node in range(3):
            assert shown(desk, name, node) == {SESSION: ("45000", 5), HEARTBEAT: ("7000", 8)}


def test_where_nobody_leads_the_partition_of_a_group_its_settings_are_not_known():
    desk = Desk(nodes=2, node_id="1", offsets_topic_num_partitions="2")
    names = [f"g{number}" for number in range(8)]
    away = {name for name in names if desk.cluster.placement.shard_of(GroupId(name)) == 1}
    assert 0 < len(away) < len(names)
    desk.cluster.rearrange(lambda placement: placement.leave(2, replaced=False))
    desk.settle()
    for name in names:
        expected = ErrorCode.COORDINATOR_NOT_AVAILABLE if name in away else ErrorCode.NONE
        assert alter(desk, changed(name, (HEARTBEAT, "7000"))) == [expected]
        resource = DescribeConfigsResource(resource_type=RESOURCE, resource_name=name)
        (result,) = desk.ask(DescribeConfigsRequest(resources=[resource]), 4).results
        assert result.error_code == expected
        assert ("nobody leads partition 1" in (result.error_message or "")) == (name in away)


def test_sources_are_those_of_the_group_the_file_and_upstream():
    """K848-127."""
    desk = Desk(node_id="1", group_consumer_session_timeout_ms="50000")
    alter(desk, changed("g", (SESSION, "55000")))
    result = describe(desk, RESOURCE, "g", [SESSION], include_synonyms=True)
    (one,) = result.configs
    assert [(item.name, item.value, item.source) for item in one.synonyms] == [
        (SESSION, "55000", 8),
        (f"group.{SESSION}", "50000", 4),
        (f"group.{SESSION}", "45000", 5),
    ]
    assert one.documentation is None
    assert shown(desk, "other") == {SESSION: ("50000", 4), HEARTBEAT: ("5000", 5)}
    documented = describe(desk, RESOURCE, "g", include_documentation=True).configs
    assert len(documented) == 18  # those of upstream, and a switch of our own
    assert all(item.documentation for item in documented)


def test_a_setting_that_follows_a_changed_one_of_the_broker_tells_so():
    interval = "consumer.assignment.interval.ms"
    desk = Desk(node_id="1", group_consumer_assignment_interval_ms="100")
    alter(desk, changed("", (f"group.{interval}", "200"), kind=BROKER))
    alter(desk, changed("1", (f"group.{interval}", "300"), kind=BROKER))
    (one,) = describe(desk, RESOURCE, "g", [interval], include_synonyms=True).configs
    assert (one.value, one.config_source) == ("300", 2)
    layers = [("300", 2), ("200", 3), ("100", 4), ("0", 5)]
    assert [(item.value, item.source) for item in one.synonyms] == layers


def test_groups_are_changed_and_told_beside_topics_and_brokers_each_by_itself():
    desk = Desk(node_id="1")
    desk.create()
    codes = alter(
        desk,
        changed("g", (HEARTBEAT, "7000")),
        changed("orders", ("retention.ms", "9"), kind=TOPIC),
        changed("h", (HEARTBEAT, "1")),
        changed("nothing", ("retention.ms", "9"), kind=TOPIC),
        changed("", (HEARTBEAT, "7000")),
        changed("twice"),
        changed("twice"),
    )
    assert codes == [0, 0, 40, 3, 42, 42, 42]
    wanted = [(RESOURCE, "g"), (TOPIC, "orders"), (RESOURCE, ""), (TOPIC, "nothing"), (BROKER, "1")]
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
            for kind, name in wanted
        ]
    )
    results = desk.ask(request, 4).results
    assert [(one.resource_type, one.resource_name) for one in results] == wanted
    assert [one.error_code for one in results] == [0, 0, 42, 3, 0]


def test_the_older_request_works_on_groups():
    """K848-191."""
    desk = Desk(node_id="1")
    alter(desk, changed("g", (SESSION, "50000")))
    resource = replacing.AlterConfigsResource(
        resource_type=RESOURCE,
        resource_name="g",
        configs=[replacing.AlterableConfig(name=HEARTBEAT, value="7000")],
    )
    request = replacing.AlterConfigsRequest(resources=[resource], validate_only=False)
    assert [one.error_code for one in desk.ask(request, 2).responses] == [0]
    assert shown(desk, "g") == {SESSION: ("45000", 5), HEARTBEAT: ("7000", 8)}


def test_they_are_there_after_a_restart():
    """K848-128."""
    files = SimulatedFiles()
    desk = Desk(files=files, node_id="1")
    alter(desk, changed("g", (HEARTBEAT, "7000")))
    desk.cluster.close()
    assert shown(Desk(files=files, node_id="1"), "g")[HEARTBEAT] == ("7000", 8)


def test_who_may_not_is_told():
    def may(_client, operation, kind, name):
        return not (
            kind == GROUP and name == "g" and operation in (ALTER_CONFIGS, DESCRIBE_CONFIGS)
        )

    desk = Desk(node_id="1", may=may)
    codes = alter(desk, changed("g", (HEARTBEAT, "7000")), changed("h", (HEARTBEAT, "7000")))
    assert codes == [ErrorCode.GROUP_AUTHORIZATION_FAILED, 0]
    assert describe(desk, RESOURCE, "g").error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED


def test_a_group_whose_log_is_not_open_is_refused_and_others_are_served():
    desk = Desk(node_id="1")
    shard = desk.cluster.placement.shard_of("g")
    others = [
        f"g{number}"
        for number in range(10)
        if desk.cluster.placement.shard_of(f"g{number}") != shard
    ]
    del desk.cluster.drivers[shard]
    codes = alter(desk, changed("g", (HEARTBEAT, "7000")), changed(others[0], (HEARTBEAT, "7000")))
    assert codes == [ErrorCode.COORDINATOR_NOT_AVAILABLE, 0]
    assert describe(desk, RESOURCE, "g").error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_the_name_of_a_group_that_no_record_has_room_for_is_refused():
    """It is the client's fault, and no failure of the broker."""
    desk = Desk(node_id="1")
    bad, good = changed("g" * 32_768, (HEARTBEAT, "7000")), changed("g", (HEARTBEAT, "7000"))
    assert alter(desk, bad, good) == [ErrorCode.INVALID_REQUEST, 0]
    assert desk.told.errors == []
