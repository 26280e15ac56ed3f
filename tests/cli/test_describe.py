"""`kohort groups describe` of many groups: its work grows with them, and not with their square."""

from tests.client.members import commit, coordinator
from tests.client.scripted import asynchronous

from kohort.client.admin import AdminClient, NewTopic
from kohort.client.admin.views import Outcomes
from kohort.testing.broker import Broker


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
