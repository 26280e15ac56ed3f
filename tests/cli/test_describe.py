# SPDX-License-Identifier: Apache-2.0
"""`kohort groups describe` of many groups: its work grows with them, and not with their square."""

from tests.client.joining import commit, coordinator
from tests.client.scripted import asynchronous
from tests.coordinator.assigning import offer, share
from tests.coordinator.consumers import request
from tests.serve.talk import Talk
from tests.testing.members import beat, join

from kohort.client.admin import AdminClient, NewTopic
from kohort.client.admin.views import Outcomes
from kohort.errors import ErrorCode
from kohort.testing.broker import Broker
from kohort.wire.messages.consumer_group_install_assignment import (
    ConsumerGroupInstallAssignmentRequest,
)
from kohort.wire.messages.consumer_group_prepare_assignment import (
    ConsumerGroupPrepareAssignmentRequest,
)


def test_a_group_more_copies_no_offsets_of_the_others(kohort, monkeypatch):
    """Of 4,000 groups with 19,000 partitions, a copy for each would take gigabytes."""
    copies = []

    def counted(function):
        def count(self):
            copies.append(len(self))
            return function(self)

        return count

    monkeypatch.setattr(Outcomes, "items", counted(Outcomes.items))
    for name in ("succeeded", "failed"):
        monkeypatch.setattr(Outcomes, name, property(counted(getattr(Outcomes, name).fget)))

    @asynchronous
    async def commit_in(groups):
        async with AdminClient(broker.bootstrap) as admin:
            await admin.create_topics([NewTopic("orders", 4, 1)])
        offsets = {("orders", index): 0 for index in range(4)}
        async with coordinator(broker.bootstrap, "any") as connection:
            for group_id in groups:
                assert await commit(connection, group_id, offsets) == [0, 0, 0, 0]

    with Broker(in_memory=True) as broker:
        for fmt in ("table", "json"):
            seen = []
            for count in (2, 40):
                commit_in(f"group-{index}" for index in range(count))
                ids = [f"group-{index}" for index in range(count)]
                copies.clear()
                ran = kohort(
                    *("groups", "describe", *ids, "--format", fmt),
                    *("--bootstrap-server", broker.bootstrap),
                )
                assert (ran.code, ran.err) == (0, "")
                seen.append(len(copies))
            assert seen[0] == seen[1]


def test_static_members_have_a_column_and_one_that_is_away_has_epoch_minus_2(kohort):
    with Broker(in_memory=True) as broker:
        broker.create_topic("t")
        describe = ("groups", "describe", "g", "--bootstrap-server", broker.bootstrap)
        with Talk(broker.bootstrap) as client:
            epoch = join(client, "g", "a")
            assert kohort(*describe).rows[3][:2] == ["MEMBER", "CLIENT"]
            join(client, "g", "b", instance_id="i-1")
            assert beat(client, "g", -2, "b", instance_id="i-1") == 0
            assert beat(client, "g", epoch, "a") == 0
            rows = kohort(*describe).rows
    at = rows.index(next(row for row in rows if row[:1] == ["MEMBER"]))
    assert rows[at][:5] == ["MEMBER", "INSTANCE", "CLIENT", "HOST", "EPOCH"]
    assert [row[:2] for row in rows[at + 1 : at + 3]] == [["a", "-"], ["b", "i-1"]]
    assert rows[at + 2][4] == "-2"


def test_who_computes_is_told_in_a_line_and_in_full_as_json(kohort):
    """K848-073, K848-078."""
    with Broker(in_memory=True) as broker:
        broker.create_topic("orders", partitions=2)
        describe = ("groups", "describe", "g", "--bootstrap-server", broker.bootstrap)
        with Talk(broker.bootstrap) as client:
            answer = client.ask(request("a", 0, client_assignors=[offer(reason=7, metadata=b"m")]))
            assert answer.error_code == ErrorCode.COMPUTE_ASSIGNMENT
            assert "member a computes by x" in kohort(*describe).out
            fields = {"group_id": "g", "member_id": "a", "member_epoch": 1}
            prepared = client.ask(ConsumerGroupPrepareAssignmentRequest(**fields))
            installed = client.ask(
                ConsumerGroupInstallAssignmentRequest(
                    **fields,
                    group_epoch=prepared.group_epoch,
                    error=0,
                    members=share(prepared, b"plan"),
                )
            )
            assert installed.error_code == 0
            ran = kohort(*describe)
            assert "members compute, last reason 7" in ran.out
            [group] = kohort(*describe, "--format", "json").json["groups"]
    assert group["client_side"] == {
        "selected": "x",
        "computing_member": None,
        "last_reason": 7,
        "last_error": 0,
        "why": "",
    }
    [member] = group["members"]
    assert member["client_assignors"][0]["metadata"] == b"m".hex()
    assert member["target_attachment"] == {
        "assignor": "x",
        "error": 0,
        "metadata_version": 0,
        "metadata": b"plan".hex(),
    }
    assert "attachment" not in member
