# SPDX-License-Identifier: Apache-2.0
"""What a person reads before a deletion."""

import re

import pytest

from kohort import AdminClient
from kohort.cli.consequences import of_groups, of_topics, which
from kohort.client.admin import Outcomes
from kohort.errors import ApiError, ErrorCode
from kohort.testing import Broker

pytestmark = pytest.mark.asyncio


@pytest.fixture(scope="module")
def broker():
    with Broker(in_memory=True) as broker:
        broker.create_topic("orders", partitions=2)
        broker.produce("orders", *range(7), partition=0)
        yield broker


def commit(broker, group, *offsets):
    for topic, partition, offset in offsets:
        broker.groups[group].commit(topic, offset, partition=partition)


async def look(admin, *topics):
    return (await admin.describe_topics(topics)).items()


async def test_a_group_says_its_state_members_offsets_and_lag(broker):
    commit(broker, "billing", ("orders", 0, 3), ("orders", 1, 0))
    async with AdminClient(broker.bootstrap) as admin:
        lines = await of_groups(admin, ["billing", "nobody"])
    assert re.fullmatch(
        "group billing: Empty, 0 members, committed offsets of 2 partitions, 4 records behind, "
        r"last commit [\d.]+ m?s ago",
        lines[0],
    )
    assert lines[1].startswith("group nobody: ")
    assert "not found" in lines[1]
    assert len(lines) == 2


async def test_a_partition_without_an_end_makes_the_lag_a_lower_bound(broker, monkeypatch):
    commit(broker, "half", ("orders", 0, 5), ("orders", 1, 0))
    async with AdminClient(broker.bootstrap) as admin:
        ends = admin.end_offsets

        async def without_the_second(partitions):
            return await ends([*partitions[:1], ("nowhere", 1)])

        monkeypatch.setattr(admin, "end_offsets", without_the_second)
        (line,) = await of_groups(admin, ["half"])
    assert "committed offsets of 2 partitions, at least 2 records behind, 1 unknown, " in line


async def test_a_last_commit_that_is_not_known_says_why(broker, monkeypatch):
    commit(broker, "billing", ("orders", 0, 3))

    async def denied(_self, _ids, **_options):
        raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "you may not read it")

    async def absent(_self, ids, **_options):
        return Outcomes(dict.fromkeys(ids))

    async with AdminClient(broker.bootstrap) as admin:
        for answer, why in ((denied, "you may not read it"), (absent, "not in the log of groups")):
            monkeypatch.setattr(AdminClient, "commit_times", answer)
            (line,) = await of_groups(admin, ["billing"])
            assert "last commit not known: " in line
            assert why in line


async def test_a_topic_says_how_much_is_in_it(broker):
    async with AdminClient(broker.bootstrap) as admin:
        lines = await of_topics(admin, dict(await look(admin, "orders", "nothing")))
    assert lines[0] == "topic orders: 2 partitions, 7 offsets of records"
    assert lines[1].startswith("topic nothing: ")


async def test_where_nothing_is_there_nothing_would_be_destroyed(broker):
    async with AdminClient(broker.bootstrap) as admin:
        assert await of_groups(admin, ["nobody", "no one"]) == []
        assert await of_topics(admin, dict(await look(admin, "nothing"))) == []


async def test_many_are_counted_and_not_all_looked_up(broker):
    async with AdminClient(broker.bootstrap) as admin:
        lines = await of_groups(admin, [f"g{number}" for number in range(25)])
        assert len(lines) == 11
        assert lines[-1] == "and 15 more"
        topics = await look(admin, "orders", *(f"t{number}" for number in range(13)))
        lines = await of_topics(admin, dict(topics))
    assert len(lines) == 11
    assert lines[-1] == "and 4 more"


async def test_one_is_called_by_its_name():
    assert which(["billing"], "group") == "group billing"
    assert which(["a", "b"], "topic") == "2 topics"
    assert which([""], "group") == 'group ""'


async def test_the_group_without_a_name_is_shown(broker):
    commit(broker, "", ("orders", 0, 3))
    async with AdminClient(broker.bootstrap) as admin:
        (line,) = await of_groups(admin, [""])
    assert line.startswith('group "": Empty')
