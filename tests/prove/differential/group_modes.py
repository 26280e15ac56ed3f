# SPDX-License-Identifier: Apache-2.0
"""Modes about groups that go over to the other protocol, their settings, patterns and sessions."""

from __future__ import annotations

from tests.prove.differential.drawing import ACTORS, Draw
from tests.prove.differential.drawing_migrations import DrawMigrations
from tests.prove.differential.drawing_patterns import DrawPatterns
from tests.prove.differential.drawing_sessions import ACTORS as MORTALS
from tests.prove.differential.drawing_sessions import DrawSessions
from tests.prove.differential.drawing_settings import DrawSettings
from tests.prove.differential.drawing_topics import DrawTopics
from tests.prove.differential.picking import looks, pick, several
from tests.prove.differential.steps import PAUSE, RESTART, Name, Step


def migrating(draw: Draw) -> list[Step]:
    """Members of both protocols in one group, which goes over in both directions."""
    of = DrawMigrations(f"{draw.random.random()}", odd=draw.odd)
    topics = DrawTopics(f"{draw.random.random()}", odd=draw.odd)
    if of.chance(0.6):
        begun = of.gathers()
    else:
        begun = [of.new_consumer(one) for one in ("a", "b")[: of.one(1, 2)]]
    return (
        begun
        + several(
            of,
            (6, lambda: of.new_consumer(of.actor())),
            (8, of.stays),
            (3, of.goes),
            (7, of.rolls),
            (5, lambda: of.follows(of.actor("classic"))),
            (4, lambda: of.classic_join(of.actor(of.but("classic", "consumer")))),
            (3, lambda: of.classic_sync(of.actor("classic"))),
            (3, lambda: of.classic_beat(of.actor("classic"))),
            (3, lambda: of.classic_leave(of.actor())),
            (4, of.gathers),
            (3, of.settles),
            (4, of.commits),
            (1, topics.create_partitions),
            (1, topics.delete_topics),
            *looks(of),
        )
    )[:40]


def migrating_restart(draw: Draw) -> list[Step]:
    """The same, and both brokers are killed and started again: they have to know a mixed group."""
    made = migrating(draw)
    return [*made[: len(made) // 2], RESTART, *made[len(made) // 2 :]]


def group_settings(draw: Draw) -> list[Step]:
    """Settings of groups are changed while these have members, which see two of them in answers."""
    of = DrawSettings(f"{draw.random.random()}", odd=draw.odd)
    begun = [draw.consumer_join(one, Name("g1")) for one in ACTORS[: draw.random.randint(0, 2)]]
    return (
        begun
        + several(
            of,
            (12, of.alter),
            (4, of.replace),
            (10, of.describe),
            (4, of.list),
            (3, lambda: of.delete_groups("g1", "g2")),
            (4, lambda: draw.consumer_join(draw.one(*ACTORS), Name("g1"))),
            (12, lambda: [draw.consumer_ack(one, Name("g1")) for one in ACTORS[:2]]),
            (4, lambda: draw.consumer_leave(draw.one(*ACTORS[:3]), Name("g1"))),
            (2, lambda: draw.commit_from_outside(Name("g2"))),
            (2, lambda: draw.describe_consumers("g1")),
            (1, draw.list_groups),
        )
    )[:40]


def patterns(draw: Draw) -> list[Step]:
    """Subscriptions by regular expressions. Groups are compared when they have come to rest: see
    drawing_patterns for what is left out, and why.
    """
    of = DrawPatterns(f"{draw.random.random()}", odd=draw.odd)
    return of.join() + several(
        of,
        (6, of.join),
        (7, of.change),
        (2, of.leave),
        (3, of.create),
        (2, of.delete),
        (1, of.grow),
        (8, of.describe),
        (2, of.commits),
        (1, lambda: of.delete_offsets("g1")),
        (1, of.list_groups),
    )


def sessions(draw: Draw) -> list[Step]:
    """Members fall silent, and are gone after their sessions: see drawing_sessions."""
    of = DrawSessions(f"{draw.random.random()}", odd=draw.odd)
    steps = [step for one in MORTALS[: of.one(1, 2, 3)] for step in of.joins(one)]
    if not of.modern:
        steps += [of.sync(one) for one in MORTALS]
    rounds = of.one(2, 3, 4)
    while rounds > 0 or len(steps) < 10:
        rounds -= 1
        steps.append(PAUSE)
        for one in of.random.sample(MORTALS, of.one(0, 1, 1, 2, 3)):
            steps += pick(
                of,
                (8, lambda one=one: of.beats(one)),
                (2, lambda one=one: of.joins(one)),
                (1, lambda one=one: of.leaves(one)),
                (1, lambda one=one: of.commits(one)),
            )
        steps.append(of.describe_consumers("g1") if of.modern else of.describe_groups("g1"))
    return steps[:40]
