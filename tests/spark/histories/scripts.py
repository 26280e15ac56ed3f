# SPDX-License-Identifier: Apache-2.0
"""The scripts: small lives of groups, each with the things that go wrong in them."""

from tests.spark.histories.steps import (
    AdminCommit,
    Commit,
    Crash,
    DeleteGroup,
    DeleteOffsets,
    DropTopic,
    Finish,
    Grow,
    Kill,
    Kind,
    Leave,
    Produce,
    Script,
    Sleep,
    Stable,
    Stall,
    Start,
    Step,
    Subscribe,
    Topic,
    Transaction,
)

ORDERS, BILLS = "orders", "bills"


def _life(kind: Kind) -> tuple[Step, ...]:
    """Three join one after the other; one leaves, one is killed, the last one leaves."""
    return (
        Topic(ORDERS, 4),
        Produce(ORDERS, {0: 10, 1: 10, 2: 10, 3: 10}),
        Start("a", "g", (ORDERS,), kind),
        Stable("g", ("a",)),
        Commit("a", ORDERS, {0: 3, 1: 4}),
        Start("b", "g", (ORDERS,), kind),
        Stable("g", ("a", "b")),
        Start("c", "g", (ORDERS,), kind),
        Stable("g", ("a", "b", "c")),
        Commit("b", ORDERS, {0: 5, 2: 2}),
        Leave("b"),
        Stable("g", ("a", "c")),
        Kill("c"),
        Stable("g", ("a",)),
        Commit("a", ORDERS, {0: 4, 3: 10}),
        Leave("a"),
        Stable("g"),
    )


def _short_life(kind: Kind) -> tuple[Step, ...]:
    """Two join, one is killed."""
    return (
        Topic(ORDERS, 4),
        Produce(ORDERS, {0: 5, 3: 5}),
        Start("a", "g", (ORDERS,), kind),
        Stable("g", ("a",)),
        Start("b", "g", (ORDERS,), kind),
        Stable("g", ("a", "b")),
        Kill("a"),
        Stable("g", ("b",)),
        Commit("b", ORDERS, {0: 5, 3: 1}),
    )


def _rolling(kind: Kind, *, static: bool) -> tuple[Step, ...]:
    """Each of three clients goes and comes back. As static members they keep what they have."""
    names = ("a", "b", "c")

    def start(name: str) -> Start:
        return Start(name, "g", (ORDERS,), kind, f"instance-{name}" if static else None)

    steps: list[Step] = [Topic(ORDERS, 6), Produce(ORDERS, {0: 3})]
    steps += [
        one for at, name in enumerate(names) for one in (start(name), Stable("g", names[: at + 1]))
    ]
    for name in names:
        steps.append(Leave(name))
        if not static:
            steps.append(Stable("g", tuple(one for one in names if one != name)))
        steps += [start(name), Stable("g", names)]
    steps.append(Commit("b", ORDERS, {0: 3}))
    return tuple(steps)


def _growth(kind: Kind) -> tuple[Step, ...]:
    """The topic gets more partitions under the group; another group does not read it."""
    return (
        Topic(ORDERS, 2),
        Topic(BILLS, 1),
        Start("a", "g", (ORDERS,), kind),
        Stable("g", ("a",)),
        Start("b", "g", (ORDERS,), kind),
        Stable("g", ("a", "b")),
        Start("x", "other", (BILLS,), kind),
        Stable("other", ("x",)),
        Grow(ORDERS, 5),
        Stable("g", ("a", "b")),
        Stable("other", ("x",)),
    )


def _subscriptions(kind: Kind) -> tuple[Step, ...]:
    """A member adds a topic, later it takes one away."""
    return (
        Topic(ORDERS, 2),
        Topic(BILLS, 2),
        Start("a", "g", (ORDERS,), kind),
        Stable("g", ("a",)),
        Start("b", "g", (ORDERS,), kind),
        Stable("g", ("a", "b")),
        Subscribe("b", (ORDERS, BILLS)),
        Stable("g", ("a", "b")),
        Subscribe("b", (BILLS,)),
        Stable("g", ("a", "b")),
    )


def _stall(kind: Kind) -> tuple[Step, ...]:
    """A member does not give up its partitions in time, and is put out; later it comes back."""
    return (
        Topic(ORDERS, 4),
        Start("a", "g", (ORDERS,), kind, rebalance_timeout_ms=5000),
        Stable("g", ("a",)),
        Stall("a", 9.0),
        Start("b", "g", (ORDERS,), kind, rebalance_timeout_ms=5000),
        Stable("g", ("b",)),
        Stable("g", ("a", "b")),
    )


_REGEX = (
    Topic("match-one", 2),
    Topic(ORDERS, 1),
    Start("a", "g", ("^match-.*",)),
    Stable("g", ("a",)),
    Start("b", "g", (ORDERS,)),
    Stable("g", ("a", "b")),
    Topic("match-two", 2),
    Stable("g", ("a", "b")),
    Subscribe("a", (ORDERS,)),
    Stable("g", ("a", "b")),
)

_MIGRATION_UP = (
    Topic(ORDERS, 4),
    Produce(ORDERS, {0: 3, 1: 3}),
    Start("a", "g", (ORDERS,), "classic"),
    Stable("g", ("a",)),
    Start("b", "g", (ORDERS,), "classic"),
    Stable("g", ("a", "b")),
    Commit("a", ORDERS, {0: 2}),
    Leave("a"),
    Stable("g", ("b",)),
    Start("a", "g", (ORDERS,), "consumer"),
    Stable("g", ("a", "b")),
    Commit("a", ORDERS, {1: 3}),
    Leave("b"),
    Stable("g", ("a",)),
    Start("b", "g", (ORDERS,), "consumer"),
    Stable("g", ("a", "b")),
)

_MIGRATION_DOWN = (
    Topic(ORDERS, 4),
    Start("a", "g", (ORDERS,), "consumer"),
    Stable("g", ("a",)),
    Start("b", "g", (ORDERS,), "classic"),
    Stable("g", ("a", "b")),
    Leave("a"),
    Stable("g", ("b",)),
    Start("a", "g", (ORDERS,), "classic"),
    Stable("g", ("a", "b")),
)

_EMPTY_MIGRATION = (
    Topic(ORDERS, 2),
    Start("a", "g", (ORDERS,), "classic"),
    Stable("g", ("a",)),
    Commit("a", ORDERS, {0: 7}),
    Leave("a"),
    Stable("g"),
    Start("b", "g", (ORDERS,), "consumer"),
    Stable("g", ("b",)),
    Leave("b"),
    Stable("g"),
    Start("c", "g", (ORDERS,), "classic"),
    Stable("g", ("c",)),
)

_DELETES = (
    Topic(ORDERS, 3),
    Topic(BILLS, 2),
    Produce(ORDERS, {0: 5, 1: 5, 2: 5}),
    AdminCommit("simple", ORDERS, {0: 1, 1: 2, 2: 3}),
    AdminCommit("simple", BILLS, {0: 0}),
    AdminCommit("gone", ORDERS, {0: 4}),
    AdminCommit("idle", ORDERS, {0: 5, 1: 5, 2: 5}),
    Start("a", "g", (ORDERS,)),
    Stable("g", ("a",)),
    Commit("a", ORDERS, {0: 2, 1: 2}),
    Commit("a", BILLS, {1: 9}),
    Leave("a"),
    Stable("g"),
    Start("b", "dead", (ORDERS,), "classic"),
    Stable("dead", ("b",)),
    Commit("b", ORDERS, {0: 1}),
    Leave("b"),
    Stable("dead"),
    DeleteOffsets("simple", ORDERS, (0, 2)),
    DeleteOffsets("g", ORDERS, (1,)),
    DeleteGroup("gone"),
    DeleteGroup("dead"),
    DropTopic(BILLS),
    Sleep(1.0),
    AdminCommit("gone", ORDERS, {1: 1}),
    Start("a", "g", (ORDERS,)),
    Stable("g", ("a",)),
    Leave("a"),
    Stable("g"),
    DeleteGroup("g"),
)

_TRANSACTIONS = (
    Topic(ORDERS, 4),
    Produce(ORDERS, {0: 10, 1: 10}),
    Start("a", "g", (ORDERS,)),
    Stable("g", ("a",)),
    Transaction("a", ORDERS, {0: 2, 1: 1}),
    Transaction("a", ORDERS, {0: 9, 2: 5}, "abort"),
    Commit("a", ORDERS, {1: 4}),
    Transaction("a", ORDERS, {0: 6}),
    Transaction("a", ORDERS, {0: 7, 2: 3}, "open"),
    Commit("a", ORDERS, {0: 5, 3: 1}),
    Finish("a"),
    Start("b", "classic", (ORDERS,), "classic"),
    Stable("classic", ("b",)),
    Transaction("b", ORDERS, {0: 8, 3: 0}),
    Transaction("b", ORDERS, {0: 10, 1: 10}, "open"),
)

_LAG = (
    Topic(ORDERS, 3),
    Produce(ORDERS, {0: 4, 1: 4}),
    Start("a", "g", (ORDERS,)),
    Stable("g", ("a",)),
    Commit("a", ORDERS, {0: 4, 1: 2, 2: 0}),
    Sleep(2.0),
    Produce(ORDERS, {0: 6}),
    Sleep(2.0),
    Produce(ORDERS, {0: 1, 1: 5}),
    Commit("a", ORDERS, {0: 7}),
    AdminCommit("still", ORDERS, {0: 11, 1: 9, 2: 0}),
    AdminCommit("beyond", ORDERS, {0: 20}),
    Sleep(1.0),
    Produce(ORDERS, {0: 1}),
    Sleep(1.0),
)


def _steady() -> tuple[Step, ...]:
    """Five groups of one over twelve rounds: one keeps up, one falls behind, one commits the same
    offset again and again, one is silent after three rounds, one is set back in the middle.
    """
    names = ("up", "behind", "stalled", "stopped", "reset")
    steps: list[Step] = [Topic(ORDERS, 1), Produce(ORDERS, {0: 5})]
    steps += [Start(name, name, (ORDERS,)) for name in names]
    steps += [Stable(name, (name,)) for name in names]
    for at in range(12):
        end = 5 + 5 * (at + 1)
        steps.append(Produce(ORDERS, {0: 5}))
        commits = {"up": end, "behind": 5 + 2 * at, "stalled": 5, "reset": end}
        if at < 3:
            commits["stopped"] = end - 5
        if at > 6:
            commits["reset"] = end - 30
        steps += [Commit(name, ORDERS, {0: to}) for name, to in commits.items()]
        steps.append(Sleep(9.0))
    return tuple(steps)


_CRASH = (
    Topic(ORDERS, 4),
    Start("a", "g", (ORDERS,)),
    Stable("g", ("a",)),
    Start("b", "g", (ORDERS,)),
    Stable("g", ("a", "b")),
    Start("c", "old", (ORDERS,), "classic"),
    Stable("old", ("c",)),
    Commit("a", ORDERS, {0: 3}),
    Crash(),
    Sleep(3.0),
    Stable("g", ("a", "b")),
    Stable("old", ("c",)),
    Commit("c", ORDERS, {1: 3}),
    Leave("a"),
    Stable("g", ("b",)),
)

SCRIPTS = {
    one.name: one
    for one in (
        Script("consumer-life", _life("consumer")),
        Script("classic-life", _life("classic")),
        Script("cooperative-life", _short_life("cooperative")),
        Script("aiokafka-life", _short_life("aiokafka")),
        Script("consumer-rolling", _rolling("consumer", static=False)),
        Script("classic-rolling", _rolling("classic", static=False)),
        Script("consumer-static", _rolling("consumer", static=True)),
        Script("classic-static", _rolling("classic", static=True)),
        Script("consumer-growth", _growth("consumer")),
        Script("classic-growth", _growth("classic")),
        Script("consumer-subscriptions", _subscriptions("consumer")),
        Script("classic-subscriptions", _subscriptions("classic")),
        Script("consumer-stall", _stall("consumer")),
        Script("classic-stall", _stall("classic")),
        Script("regex", _REGEX),
        Script("migration-up", _MIGRATION_UP),
        Script("migration-down", _MIGRATION_DOWN),
        Script("empty-migration", _EMPTY_MIGRATION),
        Script("deletes", _DELETES),
        Script("transactions", _TRANSACTIONS),
        Script("lag", _LAG),
        Script("steady", _steady()),
        Script("crash", _CRASH),
    )
}
