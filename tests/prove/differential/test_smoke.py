# SPDX-License-Identifier: Apache-2.0
"""A few pinned seeds beside a real Apache Kafka. Those of modes with settings of their own, each of
which starts Kafka once more, are played when things are proven; the others with every test run.
"""

import asyncio

import pytest
from tests.peers.kafka import unavailable
from tests.prove.differential.campaign import campaign, seeds
from tests.prove.differential.known_differences import EXPLANATIONS
from tests.prove.differential.modes import SETTINGS

pytestmark = [pytest.mark.java, pytest.mark.timeout(1200)]

# A seed in which each explanation is needed. One that does not show it any more is stale.
SHOWN_BY: dict[str, tuple[str, int]] = {
    "call of a member that has left": ("classic", 1795370052),
    "code of an unknown operation": ("admin", 9002),
    "code of unreadable records": ("records", 9001),
    "commit to a group lost by a refused join": ("mixed", 1795352450),
    "effective assignor": ("consumer", 1795352413),
    "emptied group": ("mixed", 9069),
    "group lost by a refused join": ("mixed", 9040),
    "group named as several members": ("consumer", 22025),
    "group of nothing": ("mixed", 9124),
    "client of a static member": ("static", 1795376191),
    "call of a static member that only Kafka refuses to replace": ("static", 1795898147),
    "commit with the instance id of another member": ("static", 1795898119),
    "instance id that was exchanged": ("static", 1795376187),
    "member that comes back by another instance id": ("static", 1795902752),
    "refusal of a member in a full group": ("static", 1795903363),
    "refusal of a static member in a full group": ("static", 1795898121),
    "refused commit with the instance id of another member": ("static", 1795898377),
    "static member that comes back to a full group": ("static", 1795898147),
    "static member that comes back with other assignors": ("static", 1795898177),
    "subscription of a static member that is back": ("static", 1795638326),
    "instance id of an expected member": ("static", 1795376624),
    "offset deltas": ("records", 9004),
    "latest timestamp of a deleted record": ("records", 1795370754),
    "older call": ("classic", 9001),
    "another id in an open transaction, for offsets": ("transactions", 2003),
    "end of an older epoch": ("transactions", 2009),
    "marker of nobody": ("transactions", 2026),
    "older epoch and an open transaction": ("transactions", 2168),
    "tied assignors": ("consumer", 7043),
    "what is named again": ("mixed", 9053),
    "white space of settings": ("mixed", 9053),
    "assignment that a downgrade writes": ("migrating", 10021),
    "assignor that not everybody offers": ("upgrading", 4041),
    "calls of a refused upgrade": ("upgrading", 4046),
    "downgrade by a static member while others are not at their target": ("migrating", 10049),
    "heartbeat before a new target": ("migrating", 10013),
    "last consumer that joins under its own id": ("migrating", 10050),
    "order of ids drawn by chance": ("downgrading", 10033),
    "static consumer that joins again under its own id": ("upgrading", 3029),
    "sync before a new target": ("migrating", 4093),
    "sync by another assignor before a join": ("downgrading", 10042),
    "topics that a classic member's heartbeat notices": ("migrating", 1061),
    "upgrade before a downgrade's rebalance is over": ("migrating", 10031),
    "upgrade in a rebalance": ("migrating", 3011),
    "vote of the member before": ("migrating", 3014),
    "client metrics without a setting": ("settings", 1182),
    "default of the assignment interval": ("settings", 1007),
    "emptied group within the interval": ("settings", 193),
    "setting with white space around it": ("settings", 1171),
    "settings of a deleted group": ("settings", 1062),
    "groups of one name in an expression": ("patterns", 51),
    "pattern that names nothing in the place of another": ("patterns", 20022),
}
NOT_PINNED = {
    "aborted transactions of no records": "too rare to be pinned",
    "code of a partition that was not added": "hangs on what other sequences ask meanwhile",
    "another id in an open transaction": "too rare to be pinned",
    "leader by hash": "drawn by chance in each run",
    "leader epoch after a restart": "a restart would take half of the time",
    "member without topics": "too rare to be pinned",
    "classic member that is unknown and has partitions": "too rare to be pinned",
    "epoch of topics that a classic member's heartbeat has noticed": "too rare to be pinned",
    "deletion that is noticed once more": "hangs on the topics of other sequences",
    "partition of two members": "too rare to be pinned",
    "restart before a downgrade's rebalance is over": "a restart would take half of the time",
    "uniform over mixed subscriptions": "goes by topic ids, which are drawn in each run",
}


def answered_alike(wanted, more):
    """Play the pinned seeds whose mode is wanted, and some more."""
    if reason := unavailable():
        pytest.skip(reason)
    shown_by = {name: (mode, seed) for name, (mode, seed) in SHOWN_BY.items() if wanted(mode)}
    report = asyncio.run(campaign(list(dict.fromkeys([*shown_by.values(), *more]))))
    assert not report.differing, f"{report}"
    assert not report.unsteady, f"{report}"
    assert report.pairs > 300
    by_chance = {"order of ids drawn by chance"}  # Kafka draws them anew in each run
    stale = shown_by.keys() - report.explained.keys() - by_chance
    assert not stale, f"explained, and not needed by {[shown_by[name] for name in stale]}: {stale}"


def test_pinned_seeds_are_answered_alike():
    answered_alike(lambda mode: mode not in SETTINGS, seeds(MODES, 1, 15))


@pytest.mark.prove
def test_pinned_seeds_of_modes_with_settings_are_answered_alike():
    answered_alike(lambda mode: mode in SETTINGS, ALONE)


ALONE = (("sessions", 1), ("sessions", 2))  # of a mode in which nothing is to be explained
MODES = ("classic", "consumer", "mixed", "admin", "records", "static", "transactions")


def test_every_explanation_is_pinned():
    assert {one.name for one in EXPLANATIONS} == SHOWN_BY.keys() | NOT_PINNED.keys()
