# SPDX-License-Identifier: Apache-2.0
"""Each planted bug is found, by a seed that is known to find it.

Where a change of the simulator has moved them:
`python -m kohort.sim --plant NAME --minutes 2 --seeds 1-200`.
"""

import pytest

from kohort.sim.actors.table import KINDS
from kohort.sim.checkers.table import CHECKERS
from kohort.sim.draw import PROGRAMS
from kohort.sim.injected_bugs.table import INJECTED_BUGS
from kohort.sim.run import simulate

FINDS = {  # the seed, its minutes, and the checker that says so
    "reply before sync": (1, 2.0, "durable"),
    "overtake": (100, 1.0, "answers"),
    "keep bytes": (1, 2.0, "holdings"),
    "endless stop": (9, 3.0, "end"),
    "skip revocation": (1, 2.0, "owners"),
    "forget timer": (1, 2.0, "convergence"),
    "listing of before": (1, 1.0, "kept"),
    "session once": (6, 1.0, "fencing"),
    "epoch before": (1, 1.0, "epochs"),
    "answer leader": (5, 1.0, "end"),
    "instance is enough": (7, 1.0, "instances"),
    "raising handler": (1, 2.0, "broker"),
    "expire unwritten": (1, 2.0, "replayed"),
    "part of name": (59, 1.0, "convergence"),
    "unheard setting": (1, 1.0, "settings"),
    "older assignment": (80, 2.0, "assigner"),
    "forgotten member": (5, 2.0, "migrated"),
    "drop tombstone": (18, 1.0, "replayed"),
    "unchecked crc": (19, 2.0, "reader"),
    "forget producers": (17, 1.0, "records"),
    "last offset": (7, 1.0, "audit"),
    "shard by index": (17, 1.0, "migrated"),
    "delete by name": (14, 2.0, "durable"),
    "delete unwritten": (6, 2.0, "durable"),
    "unnoticed topic": (155, 1.0, "convergence"),
    "open once": (13, 1.0, "served"),
    "producer id twice": (8, 1.0, "producer ids"),
    "marker offset": (4, 1.0, "transactions"),
    "fenced producer": (12, 1.0, "fenced producers"),
    "past open": (1, 1.0, "compacted"),
    "early end": (1, 1.0, "durable"),
    "early assignment": (10, 1.0, "durable"),
    "early join": (5, 1.0, "durable"),
    "early producer": (1, 1.0, "durable"),
    "early deletion": (1, 1.0, "durable"),
    "unsynced catalog": (1, 1.0, "durable"),
    "living group": (2, 1.0, "lifetimes"),
    "half lifetime": (2, 1.0, "lifetimes"),
    "no expiry": (2, 1.0, "lifetimes"),
    "young records": (2, 1.0, "lifetimes"),
    "clean open": (2, 1.0, "compacted"),
    "id in use": (5, 1.0, "holder"),
    "leave unheard": (4, 1.0, "departed"),
    "hasty rebalance": (4, 1.0, "owners"),
    "lost offsets": (5, 1.0, "migrated"),
    "refused stands": (8, 1.0, "refused"),
    "deleted lives": (13, 1.0, "deletion"),
    "growth unwritten": (1, 1.0, "durable"),
    "client control": (2, 1.0, "forged"),
    "any count": (2, 1.0, "forged"),
    "starts of all": (1, 1.0, "patience"),
    "endless slice": (3, 1.0, "patience"),
    "endless round": (1, 1.0, "patience"),
    "endless arrivals": (4, 1.0, "patience"),
    "turns in a row": (4, 1.0, "patience"),
    "worked off": (3, 1.0, "patience"),
    "announced room": (3, 1.0, "holdings"),
    "endless turn": (3, 1.0, "patience"),
    "unread answers": (3, 1.0, "holdings"),
    "lasting room": (7, 1.0, "holdings"),
    "lasting fetch": (7, 1.0, "holdings"),
    "repeated group": (7, 1.0, "repeater"),
    "heartbeat of before": (1, 1.0, "owners"),
    "heartbeat of the group": (1, 1.0, "owners"),
    "unrenewed session": (1, 1.0, "fencing"),
    "description of before": (1, 1.0, "kept"),
    "old topic name": (1, 1.0, "kept"),
    "unnoted generation": (3, 1.0, "kept"),
    "remembered heartbeats": (44, 1.0, "rights"),
    "remembered decisions": (27, 1.0, "rights"),
    "harmless prefix": (27, 1.0, "rights"),
    "rules of today": (27, 1.0, "rights"),
    "shared expression": (90, 1.0, "rights"),
    "first login": (27, 1.0, "rights"),
    "served anyway": (27, 1.0, "principal"),
}

FINDS_OF_PROGRAMS = {  # the same of bugs in our clients, in worlds with nothing but programs
    "deaf owner": (61, 1.0, "copied"),
    "commit ahead": (218, 1.0, "processed"),
    "unpaused": (46, 1.0, "handed"),
    "stay outside": (26, 1.0, "processed"),
    "aborted too": (8, 1.0, "handed"),
    "sequence anew": (79, 1.0, "delivered"),
    "silent expiry": (34, 1.0, "copied"),
    "certainly": (46, 1.0, "delivered"),
    "untaken offsets": (3, 1.0, "copied"),
    "unclosed fetcher": (3, 1.0, "left"),
    "dropped buffer": (8, 1.0, "copied"),
}

NO_PROGRAMS = frozenset(KINDS) - PROGRAMS

ELSEWHERE = {
    *("durable", "bounds", "replayed", "broker", "answers", "end", "audit", "left", "patience"),
    *("holdings", "kept"),
}
"""Checkers that are not in the table: they hear no facts."""
FIRST_TO_SEE = {"commits": "owners", "bounds": "holdings"}
"""Another checker, of the bugs that both would see."""


@pytest.mark.parametrize("plant", FINDS)
def test_a_planted_bug_is_found(plant):
    seed, minutes, checker = FINDS[plant]
    outcome = simulate(seed, minutes, plant=plant)
    assert outcome.broken.startswith(f"{checker}: "), outcome.line()


@pytest.mark.parametrize("plant", FINDS_OF_PROGRAMS)
def test_a_bug_of_our_clients_is_found(plant):
    seed, minutes, checker = FINDS_OF_PROGRAMS[plant]
    outcome = simulate(seed, minutes, plant=plant, without=NO_PROGRAMS)
    assert outcome.broken.startswith(f"{checker}: "), outcome.line()


def test_every_plant_has_a_seed():
    assert FINDS.keys() | FINDS_OF_PROGRAMS.keys() == INJECTED_BUGS.keys()


def test_every_checker_finds_a_plant():
    finders = {checker for _, _, checker in (FINDS | FINDS_OF_PROGRAMS).values()}
    assert {one.name for one in CHECKERS} | ELSEWHERE <= finders | FIRST_TO_SEE.keys()
