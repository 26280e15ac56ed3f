# SPDX-License-Identifier: Apache-2.0
"""What a script knows of its history: who was there when, what was done to which group and when,
what the brokers said. Times are in milliseconds, as intervals in which a thing has happened.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

TIMES = {"before", "after", "asked", "answered", "at"}


class Between(NamedTuple):
    """Something happened not before the first and not after the second."""

    first_ms: int
    last_ms: int

    def holds(self, at_ms: float, slack_ms: float = 0) -> bool:
        return self.first_ms - slack_ms <= at_ms <= self.last_ms + slack_ms


class Change(NamedTuple):
    """What gave the coordinator a reason to rebalance, and the client ids that did it."""

    cause: str
    clients: tuple[str, ...]
    done: Between


@dataclass
class Window:
    """From one description of a stable group to the next, and what was done between them."""

    group: str
    begin_ms: int
    changes: list[Change] = field(default_factory=list)
    end_ms: int = 0
    before: dict[str, Any] | None = None
    after: dict[str, Any] | None = None  # None: nobody waited for the group to settle again

    @property
    def between(self) -> Between:
        return Between(self.begin_ms, self.end_ms)


class Committed(NamedTuple):
    """An offset that a group committed; `counts` is false in a transaction without a commit."""

    group: str
    topic: str
    partition: int
    offset: int
    done: Between
    counts: bool


@dataclass
class Life:
    """One client in a group, from its start to its end."""

    group: str
    client: str
    start: dict[str, Any]
    joined: Between
    left: Between | None = None
    member_ids: list[str] = field(default_factory=list)


class Truth:
    """The noted truth, every time in it moved by `shift_ms`."""

    def __init__(self, told: dict[str, Any], shift_ms: int = 0) -> None:
        told = _shifted(told, shift_ms)
        self.name: str = told["name"]
        self.on: str = told["on"]
        self.steps: list[dict[str, Any]] = told["steps"]
        self.end: dict[str, Any] = told["end"]
        self.told: list[dict[str, Any]] = told["told"]

    @cached_property
    def groups(self) -> set[str]:
        return {step["group"] for step in self.steps if "group" in step}

    @cached_property
    def topics(self) -> dict[str, int]:
        """The partitions of the topics that are still there."""
        topics: dict[str, int] = {}
        for step in self.steps:
            if step["do"] in {"Topic", "Grow"}:
                topics[step["topic"]] = step["partitions"]
            elif step["do"] == "DropTopic":
                del topics[step["topic"]]
        return topics

    def stable(self, group: str | None = None) -> Iterator[dict[str, Any]]:
        """The steps that saw a group settled."""
        for step in self.steps:
            if step["do"] == "Stable" and group in {None, step["group"]}:
                yield step

    @cached_property
    def windows(self) -> list[Window]:
        """All groups' windows, each group's in order."""
        return _Walk(self).windows

    @cached_property
    def lives(self) -> list[Life]:
        return _Walk(self).lives

    @cached_property
    def commits(self) -> list[Committed]:
        """All that were acknowledged, in order."""
        group_of: dict[str, str] = {}
        found = []
        for step in self.steps:
            if step["do"] == "Start":
                group_of[step["member"]] = step["group"]
            if step["do"] in {"Commit", "AdminCommit", "Transaction"}:
                group = step.get("group") or group_of[step["member"]]
                counts = step.get("end", "commit") == "commit"
                done = Between(step["before"], step["after"])
                found += [
                    Committed(group, step["topic"], int(index), offset, done, counts)
                    for index, offset in step["offsets"].items()
                ]
        return found

    @cached_property
    def offsets(self) -> dict[tuple[str, str, int], int]:
        """What OffsetFetch said at the end: (group, topic, partition) -> offset."""
        return {(group, topic, index): to for group, topic, index, to in self.end["offsets"]}

    @cached_property
    def produced(self) -> dict[tuple[str, int], list[int]]:
        """(topic, partition) -> the timestamps of its records, by offset."""
        found: dict[tuple[str, int], list[int]] = {}
        for step in self.steps:
            for index, offset, timestamp in step.get("produced", ()):
                times = found.setdefault((step["topic"], index), [])
                assert offset == len(times)
                times.append(timestamp)
        return found


class _Walk:
    """Goes through the steps and keeps who is there."""

    def __init__(self, truth: Truth) -> None:
        self.live: dict[str, Life] = {}
        self.lives: list[Life] = []
        self.unsettled: dict[str, list[Life]] = {}  # group -> who came or went since
        self.stalls: set[str] = set()
        self.open: dict[str, Window] = {}
        self.windows: list[Window] = []
        self.away: set[tuple[str, str]] = set()  # (group, instance id)
        self.types: dict[str, str] = {}
        for step in truth.steps:
            self.step(step)
        for window in self.open.values():
            window.end_ms = truth.end["before"]
            self.windows.append(window)

    def step(self, step: dict[str, Any]) -> None:
        done = Between(step["before"], step["after"])
        match step["do"]:
            case "Start":
                self.start(step, done)
            case "Leave" | "Kill":
                self.leave(step, done)
            case "Stall":
                self.stalls.add(step["member"])
            case "Subscribe":
                life = self.live[step["member"]]
                life.start = life.start | {"topics": step["topics"]}
                self.change(life.group, Change("subscription change", (life.client,), done))
            case "Topic" | "Grow" | "DropTopic":
                for group in {life.group for life in self.live.values() if _reads(life, step)}:
                    self.change(group, Change("metadata change", (), done))
            case "Stable":
                self.settle(step)

    def window(self, group: str, begin_ms: int) -> Window:
        return self.open.setdefault(group, Window(group, begin_ms))

    def change(self, group: str, change: Change) -> None:
        self.window(group, change.done.first_ms).changes.append(change)

    def start(self, step: dict[str, Any], done: Between) -> None:
        group, client, instance = step["group"], step["member"], step["instance_id"]
        life = Life(group, client, step, done)
        was = self.types.get(group)
        if (group, instance) in self.away:
            self.away.remove((group, instance))  # it has what it had
            self.window(group, done.first_ms)
        else:
            speaks = "consumer" if step["kind"] == "consumer" else "classic"
            migrates = was is not None and was != speaks
            migrates = migrates and (was == "classic" or not self.of(group))
            self.change(group, Change("migration" if migrates else "join", (client,), done))
            if migrates or was is None:
                self.types[group] = speaks
        self.live[client] = life
        self.lives.append(life)
        self.unsettled.setdefault(group, []).append(life)

    def leave(self, step: dict[str, Any], done: Between) -> None:
        life = self.live.pop(step["member"])
        life.left = done
        self.unsettled.setdefault(life.group, []).append(life)
        if step["do"] == "Leave" and life.start["instance_id"] is not None:
            self.away.add((life.group, life.start["instance_id"]))
            self.window(life.group, done.first_ms)
            return
        cause = "leave" if step["do"] == "Leave" else "session timeout"
        self.change(life.group, Change(cause, (life.client,), done))

    def of(self, group: str) -> list[Life]:
        return [life for life in self.live.values() if life.group == group]

    def settle(self, step: dict[str, Any]) -> None:
        group = step["group"]
        window = self.window(group, step["before"])
        for life in self.of(group):
            if life.client in self.stalls and life.client not in step["members"]:
                done = Between(window.begin_ms, step["answered"])
                window.changes.append(Change("rebalance timeout", (life.client,), done))
            elif life.client in self.stalls and window.before is not None:
                done = Between(step["before"], step["answered"])
                window.changes.append(Change("join", (life.client,), done))
                self.stalls.remove(life.client)
        window.end_ms, window.after = step["answered"], step["described"]
        self.windows.append(window)
        self.open[group] = Window(group, step["answered"], before=step["described"])
        self.types[group] = step["described"]["type"]
        for member_id, member in step["described"]["members"].items():
            life = self.live[member["client_id"]]
            if member_id not in life.member_ids:
                life.member_ids.append(member_id)
        for life in self.unsettled.pop(group, ()):
            if life.left is None:
                life.joined = Between(life.joined.first_ms, step["answered"])
            else:
                life.left = Between(life.left.first_ms, step["answered"])


def _reads(life: Life, step: dict[str, Any]) -> bool:
    return any(
        re.fullmatch(one[1:], step["topic"]) if one.startswith("^") else one == step["topic"]
        for one in life.start["topics"]
    )


def _shifted(value: Any, by_ms: int) -> Any:
    if isinstance(value, dict):
        moved = {key: _shifted(one, by_ms) for key, one in value.items()}
        moved |= {key: value[key] + by_ms for key in TIMES & value.keys() if _is_time(value[key])}
        if "produced" in value:
            moved["produced"] = [[p, offset, at + by_ms] for p, offset, at in value["produced"]]
        return moved
    if isinstance(value, list):
        return [_shifted(one, by_ms) for one in value]
    return value


def _is_time(value: Any) -> bool:
    return isinstance(value, int)
