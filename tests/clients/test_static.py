# SPDX-License-Identifier: Apache-2.0
"""Stock clients with a `group.instance.id`: a restart disturbs nobody (KIP-345)."""

import pytest
from tests.clients.conftest import SETTINGS
from tests.clients.member_processes import KINDS, create_topic, numbers_read, produce, settled
from tests.waiting import eventually

from kohort.testing import Broker

pytestmark = [pytest.mark.clients, pytest.mark.timeout(900)]

INSTANCES = ("i-1", "i-2", "i-3")


@pytest.fixture
def broker():
    """KIP-848 sessions are the broker's, and last longer than a restart on a busy machine."""
    patient = {"group.consumer.session.timeout.ms": "60000"}
    with Broker(SETTINGS | patient, process=True) as running:
        yield running


# A KIP-848 member that dies without a word keeps its instance id until its session is over.
ENDS = [(kind, "leave") for kind in KINDS] + [
    (kind, "kill") for kind in KINDS if not kind.endswith("-consumer")
]


@pytest.mark.parametrize(("kind", "end"), ENDS)
def test_a_rolling_restart_disturbs_nobody(kind, end, broker, crew):
    """Each of three static members is replaced in turn: it has its partitions again, the others are
    told nothing, and every record is seen.

    Holds K848-106, K848-107, K848-108.
    """
    create_topic(broker.bootstrap, "orders", 6)
    produce(broker.bootstrap, "orders", range(300))
    members = {}
    for instance in INSTANCES:
        members[instance] = crew.join(kind, broker.bootstrap, "orders", "g", instance)
        settled(members.values(), 6)
    group = broker.groups["g"]
    group.wait("Stable", members=3)
    epoch = epoch_of(group)
    records = 300

    for instance in INSTANCES:
        old = members[instance]
        owned, known = old.owns, dict(members)
        told = {name: len(one.notes("owns")) for name, one in members.items() if one is not old}
        getattr(old, end)()
        produce(broker.bootstrap, "orders", range(records, records + 100))
        records += 100
        members[instance] = new = crew.join(kind, broker.bootstrap, "orders", "g", instance)
        eventually(lambda new=new, owned=owned: new.owns == owned, f"{instance} owns {owned}")
        eventually(
            lambda records=records: set(numbers_read(crew.members)) == set(range(records)),
            f"{records} records are read",
        )
        group.wait("Stable", members=3)
        assert {name: len(known[name].notes("owns")) for name in told} == told
        assert epoch_of(group) == epoch


def epoch_of(group):
    """The epoch or the generation that the group's log ends with."""
    return max(one.epoch for one in group.history())
