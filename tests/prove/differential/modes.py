# SPDX-License-Identifier: Apache-2.0
"""Modes: what a sequence is about. `sequence(mode, seed)` is always the same one.

To add a mode: write a function
`name(draw) -> list[Step]` here that returns 10 to 40 steps, from the requests of `Draw` and from
new ones beside them; put it in MODES; where it needs other settings of the brokers, put those in
SETTINGS under its name (Kafka reads names that Kohort does not know, the other way round is an
error at start). New APIs have to be in Kohort's table of APIs, ids that brokers hand out need a
line in `steps.learn` and one in `comparing`. Then play a few hundred seeds
(`python -m tests.prove.differential --mode NAME --sequences 200`), mend or explain what differs,
and pin a seed of the new mode in `test_smoke`.

Left out, because the brokers cannot be compared there:
- a JoinGroup that names one protocol twice (Kafka never answers it), and subscriptions whose length
  fields lie (Kafka's group hangs);
- commits to the empty group id, which all sequences would share;
- sessions and rebalance timeouts that end while a sequence runs, but in the mode `sessions`;
- what a group with patterns does before it has come to rest (see `drawing_patterns`).

How a mode keeps chance and time out of its answers is told where its requests are drawn:
`drawing_migrations` (ids of members), `drawing_patterns` (resolving beside the requests),
`drawing_sessions` (who is silent), `drawing_settings`.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.prove.differential.drawing import ACTORS, ADMIN, LONG_MS, TOPICS, Draw, Subscribed
from tests.prove.differential.drawing_sessions import SESSION_MS
from tests.prove.differential.drawing_settings import LONGEST_INTERVAL_MS
from tests.prove.differential.drawing_topics import DrawTopics
from tests.prove.differential.drawing_transactions import DrawTransactions
from tests.prove.differential.group_modes import (
    group_settings,
    migrating,
    migrating_restart,
    patterns,
    sessions,
)
from tests.prove.differential.picking import looks, several
from tests.prove.differential.static_members import static
from tests.prove.differential.steps import (
    RESTART,
    AssignedBy,
    GenerationOf,
    MemberOf,
    Name,
    ProtocolOf,
    Step,
)

GROUPS = ("g1", "g2", "simple", "ghost")


# --- the classic protocol


def gathered(draw: Draw, actors: list[str], group: Name) -> list[Step]:
    """These become the members of a classic group, and it becomes stable."""
    version = draw.random.randint(0, 9)
    preference = [
        draw.one(["range"], ["range", "roundrobin"], ["roundrobin", "range"]) for _ in actors
    ]
    if not set.intersection(*map(set, preference)):
        preference = [["range"] for _ in actors]

    def joins(actor: str, names: list[str]) -> Step:
        return draw.step(
            actor,
            "JoinGroup",
            version,
            group_id=group,
            session_timeout_ms=LONG_MS,
            rebalance_timeout_ms=LONG_MS,
            member_id=MemberOf(actor),
            protocol_type="consumer",
            protocols=[{"name": name, "metadata": Subscribed(TOPICS, 1)} for name in names],
        )

    pairs = list(zip(actors, preference, strict=True))
    steps = []
    if version >= 4:  # each is sent back once for its member id
        steps += [joins(actor, names) for actor, names in pairs]
    steps += [joins(actor, names) for actor, names in pairs]
    if len(actors) > 1:  # who was alone in a generation comes back for the next one
        steps.append(joins(*pairs[0]))
    return steps + [_syncs(draw, actor, group) for actor in actors]


def _syncs(draw: Draw, actor: str, group: Name) -> Step:
    return draw.step(
        actor,
        "SyncGroup",
        group_id=group,
        generation_id=GenerationOf(actor),
        member_id=MemberOf(actor),
        protocol_type="consumer",
        protocol_name=ProtocolOf(actor),
        assignments=AssignedBy(actor),
    )


def classic_actions(draw: Draw) -> list[tuple[int, Callable[[], Step | list[Step]]]]:
    def actor() -> str:
        return draw.one(*ACTORS)

    def group() -> object:
        return draw.but(Name("g1"), Name("g2"), "", Name("ghost"), odd=0.08)

    def joined() -> list[Step]:
        """Twice by the same sender: for the id, and with it."""
        who, where = actor(), group()
        return [draw.join(who, where), draw.join(who, where)]

    def commits() -> Step:
        who = actor()
        return draw.commit(who, draw.stored_group("g1"), draw.generation(who))

    return [
        (10, joined),
        (8, lambda: draw.join(actor(), group())),
        (12, lambda: draw.sync(actor(), group())),
        (4, lambda: [_syncs(draw, one, Name("g1")) for one in ACTORS[:3]]),
        (8, lambda: draw.beat(actor(), group())),
        (6, lambda: draw.leave(actor(), group())),
        (7, commits),
        *looks(draw),
    ]


def classic(draw: Draw) -> list[Step]:
    steps: list[Step] = []
    if draw.chance(0.6):
        count = draw.random.randint(1, 3)
        steps += gathered(draw, list(ACTORS[:count]), Name("g1"))
    return (steps + several(draw, *classic_actions(draw)))[:40]


# --- the consumer protocol


def consumer_actions(draw: Draw) -> list[tuple[int, Callable[[], Step | list[Step]]]]:
    def actor() -> str:
        return draw.one(*ACTORS)

    def group() -> object:
        return draw.but(Name("g1"), Name("g2"), "", Name("ghost"), " ", odd=0.06)

    def commits() -> Step:
        who = actor()
        return draw.commit(who, draw.stored_group("g1"), draw.epoch(who))

    return [
        (9, lambda: draw.consumer_join(actor(), group())),
        (18, lambda: draw.consumer_beat(actor(), group())),
        (14, lambda: draw.consumer_ack(actor(), Name("g1"))),
        (5, lambda: [draw.consumer_ack(one, Name("g1")) for one in ACTORS[:3]]),
        (5, lambda: draw.consumer_leave(actor(), group())),
        (6, commits),
        *looks(draw),
    ]


def consumer(draw: Draw) -> list[Step]:
    steps = [draw.consumer_join(one, Name("g1")) for one in ACTORS[: draw.random.randint(1, 3)]]
    return (steps + several(draw, *consumer_actions(draw)))[:40]


def mixed(draw: Draw) -> list[Step]:
    """Both protocols on the same groups, with topics that come, go and grow meanwhile."""
    topics = DrawTopics(f"{draw.random.random()}", odd=draw.odd)
    return several(
        draw,
        *classic_actions(draw),
        *consumer_actions(draw),
        (2, topics.delete_topics),
        (3, topics.create_partitions),
        (2, topics.create_topics),
    )


# --- topics, settings, records


def admin(draw: Draw) -> list[Step]:
    topics = DrawTopics(f"{draw.random.random()}", odd=0.2)
    return several(
        draw,
        (6, topics.create_topics),
        (5, topics.delete_topics),
        (5, topics.create_partitions),
        (6, topics.metadata),
        (5, topics.describe_topics),
        (1, topics.describe_cluster),
        (5, topics.describe_configs),
        (5, topics.alter_configs),
        (2, lambda: draw.commit_from_outside(Name("simple"))),
        (2, lambda: draw.fetch_offsets(ADMIN, "simple")),
        (1, lambda: draw.delete_offsets("simple")),
        (1, lambda: draw.delete_groups("simple")),
        (1, draw.list_groups),
        (1, lambda: draw.find_coordinator("g1")),
    )


def records(draw: Draw) -> list[Step]:
    topics = DrawTopics(f"{draw.random.random()}", odd=0.25)
    return several(
        draw,
        (2, topics.init_producer),
        (14, topics.produce),
        (7, topics.fetch),
        (5, topics.list_offsets),
        (2, topics.epoch_ends),
        (3, topics.delete_records),
        (1, topics.alter_configs),
        (1, topics.metadata),
    )


def transactions(draw: Draw) -> list[Step]:
    """Producers that have their ids, and do with them what comes to their mind."""
    of = DrawTransactions(f"{draw.random.random()}", odd=draw.odd)
    begun = [of.init_as(one) for one in ("a", "c", of.one("b", "c"))]
    return begun + several(
        of,
        (4, of.init),
        (6, of.add_partitions),
        (3, of.add_offsets),
        (5, of.commit_offsets),
        (10, of.produce),
        (8, of.end),
        (1, of.markers),
        (4, of.fetch),
        (3, of.list_offsets),
        (3, of.offsets),
        (3, of.describe),
        (2, of.list),
        (2, of.producers),
    )


def restart(draw: Draw) -> list[Step]:
    """Either protocol, and in the middle both brokers are killed and started again."""
    made = draw.one(classic, consumer, mixed)(draw)
    return [*made[: len(made) // 2], RESTART, *made[len(made) // 2 :]]


def static_members(draw: Draw) -> list[Step]:
    """Either protocol, by members with instance ids."""
    return static(draw, draw.one(classic, consumer)(draw))


MODES: dict[str, Callable[[Draw], list[Step]]] = {
    "classic": classic,
    "consumer": consumer,
    "mixed": mixed,
    "admin": admin,
    "records": records,
    "restart": restart,
    "static": static_members,
    "transactions": transactions,
    "migrating": migrating,
    "upgrading": migrating,
    "downgrading": migrating,
    "migrating restart": migrating_restart,
    "settings": group_settings,
    "patterns": patterns,
    "sessions": sessions,
}
RESTARTING = ("restart", "migrating restart")  # these share their restarts
IMPATIENT = ("patterns",)  # see impatience
RESTING = ("patterns", "sessions")  # these mostly wait


def _policy(name: str) -> dict[str, str]:
    return {
        "group.consumer.migration.policy": name,
        "group.consumer.assignors": "range,uniform",  # see drawing_migrations
    }


SETTINGS: dict[str, dict[str, str]] = {
    "migrating": _policy("bidirectional"),
    "upgrading": _policy("upgrade"),
    "downgrading": _policy("downgrade"),
    "migrating restart": _policy("bidirectional"),
    "patterns": {"group.consumer.assignors": "range"},
    "sessions": {
        "group.consumer.min.session.timeout.ms": "1000",
        "group.consumer.session.timeout.ms": f"{SESSION_MS}",
        "group.consumer.assignors": "range",
    },
    "settings": {"group.consumer.max.assignment.interval.ms": f"{LONGEST_INTERVAL_MS}"},
}


def sequence(mode: str, seed: int) -> list[Step]:
    """The steps of a seed, with what is looked at behind them."""
    return [*MODES[mode](Draw(f"{mode} {seed}")), *END]


def _end() -> list[Step]:
    """The state that a sequence has led to."""
    groups = [Name(name) for name in GROUPS]
    fetched = [{"group_id": one, "topics": None} for one in groups]
    topics = [{"name": Name(name)} for name in (*TOPICS, "t4", "t5")]
    return [
        Step(ADMIN, "ListGroups", 5, {}),
        Step(ADMIN, "DescribeGroups", 6, {"groups": groups}),
        Step(ADMIN, "ConsumerGroupDescribe", 1, {"group_ids": groups}),
        Step(ADMIN, "OffsetFetch", 8, {"groups": fetched}),
        Step(ADMIN, "Metadata", 12, {"topics": topics, "allow_auto_topic_creation": False}),
    ]


END = _end()
