# SPDX-License-Identifier: Apache-2.0
"""The shortest story of a seed that has found something.

First the world is made smaller: kinds of faults and of actors are left out, and minutes, as long as
the same property still does not hold. Since every part of the world has its own stream of chance,
the rest stays much as it was. Then the groups' requests of the last minutes are told as a
transcript, in the words of `tests/scenarios`.
"""

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from kohort.errors import WireError
from kohort.sim.actors.table import KINDS
from kohort.sim.draw import RUNS_OF_TEN
from kohort.sim.events import MICROS
from kohort.sim.facts import TopicsSeen
from kohort.sim.network import Line
from kohort.sim.run import Outcome, simulate
from kohort.wire.codec import decode
from kohort.wire.frames import FrameReader, decode_request_header, peek
from kohort.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kohort.wire.messages.offset_commit import OffsetCommitRequest

HEARTBEAT, COMMIT = 68, 8
TRACE_LENGTH = 40  # commands of a transcript
_PLACES = re.compile(r"([^+:]+):([0-9,]+)")


class TraceRecorder:
    """Watches the wire, and remembers the last requests of every group as commands."""

    def __init__(self) -> None:
        self._readers: dict[Line, FrameReader] = {}
        self._commands: dict[str, deque[tuple[int, str]]] = {}
        self._names: dict[bytes, str] = {}

    def arrived(self, line: Line, data: bytes, *, to_broker: bool) -> None:
        if not to_broker:
            return
        reader = self._readers.setdefault(line, FrameReader(1 << 28))
        try:
            for frame in reader.feed(data):
                key, version, _ = peek(frame)
                now = line.client_loop.events.now
                if key == HEARTBEAT and version <= 1:
                    start = decode_request_header(frame, flexible=True)[1]
                    beat = decode(ConsumerGroupHeartbeatRequest, version, frame, start)
                    self._tell(beat.group_id, now, self._heartbeat(beat))
                elif key == COMMIT and 2 <= version <= 9:
                    start = decode_request_header(frame, flexible=version >= 8)[1]
                    commit = decode(OffsetCommitRequest, version, frame, start)
                    self._tell(commit.group_id, now, _commit(commit))
        except WireError:
            return  # somebody hostile

    def _tell(self, group: str, now: int, command: str) -> None:
        self._commands.setdefault(group, deque(maxlen=TRACE_LENGTH)).append((now, command))

    def happens(self, now: int, what: str) -> None:
        """Something that all groups have seen. Transcripts know restarts, the rest is prose."""
        for recent_commands in self._commands.values():
            recent_commands.append((now, what if what == "restart" else f"# {what}"))

    def topics_seen(self, fact: TopicsSeen) -> None:
        """Learn the names of topics."""
        self._names.update(fact.topics)

    def _heartbeat(self, beat: ConsumerGroupHeartbeatRequest) -> str:
        instance = [] if beat.instance_id is None else [f"instance={beat.instance_id}"]
        if beat.member_epoch < 0:
            return " ".join([f"leave {beat.member_id} epoch={beat.member_epoch}", *instance])
        words = [f"heartbeat {beat.member_id} epoch={beat.member_epoch}", *instance]
        if beat.subscribed_topic_names is not None:
            words.append(f"subscribe={','.join(beat.subscribed_topic_names) or '-'}")
        if beat.topic_partitions is not None and beat.member_epoch:
            parts = [
                f"{self._names.get(topic.topic_id, topic.topic_id.hex()[:6])}:"
                f"{','.join(map(str, topic.partitions))}"
                for topic in beat.topic_partitions
            ]
            words.append(f"owns={'+'.join(parts) or '-'}")
        return " ".join(words)

    def transcript(self, broken: str) -> list[str]:
        """The commands of the group that an alarm names, or of none, below the topics that they
        name.
        """
        groups = [group for group in self._commands if group and group in broken]
        if not groups:
            return []
        commands = list(_lines(self._commands[groups[0]]))
        return [*_topics(commands), *commands]


def _commit(commit: OffsetCommitRequest) -> str:
    places = "+".join(
        f"{topic.name}:{','.join(str(partition.partition_index) for partition in topic.partitions)}"
        for topic in commit.topics
    )
    member = commit.member_id or "-"
    return f"commit {member} epoch={commit.generation_id_or_member_epoch} {places}"


def _topics(commands: Iterable[str]) -> Iterator[str]:
    """A line for each topic, with as many partitions as the commands need."""
    sizes: dict[str, int] = {}
    for command in commands:
        for word in command.split()[1:]:
            if word.startswith("subscribe="):
                sizes |= {
                    name: sizes.get(name, 1)
                    for name in word.partition("=")[2].split(",")
                    if name != "-"
                }
            elif word.startswith("owns=") or (command.startswith("commit ") and ":" in word):
                for name, indices in _PLACES.findall(word.removeprefix("owns=")):
                    most = max(int(index) for index in indices.split(","))
                    sizes[name] = max(sizes.get(name, 1), most + 1)
    for name, size in sorted(sizes.items()):
        yield f"topic {name} partitions={size}"


def _lines(recent_commands: deque[tuple[int, str]]) -> Iterator[str]:
    before: int | None = None
    for now, command in recent_commands:
        if before is not None and now - before >= MICROS // 100:
            yield f"wait {(now - before) * 1000 // MICROS}ms"
        before = now
        yield command


def shortest_trace(
    found: Outcome,
    minutes: float,
    plant: str | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> str:
    """What is left of a seed when everything is left out that the find does not need. `progress`
    hears before each of the runs that this takes how many there are.
    """
    what = found.broken.partition(":")[0]
    without: frozenset[str] = frozenset()
    outcome = found
    lengths = (minutes / 8, minutes / 4, minutes / 2)
    names = [*RUNS_OF_TEN, *KINDS]
    total = len(lengths) + len(names) + 1
    for number, shorter in enumerate(lengths, 1):
        progress(f"looking for a shorter story: run {number} of {total}")
        tried = simulate(found.seed, shorter, plant=plant)
        if tried.broken.startswith(what):
            outcome, minutes = tried, shorter
            break
    for number, name in enumerate(names, len(lengths) + 1):
        progress(f"looking for a shorter story: run {number} of {total}")
        tried = simulate(found.seed, minutes, plant=plant, without=without | {name})
        if tried.broken.startswith(what):
            outcome, without = tried, without | {name}
    teller = TraceRecorder()
    simulate(found.seed, minutes, plant=plant, without=without, witness=teller)
    left = ", ".join(name for name in names if name not in without)
    lines: list[Any] = [
        f"# Seed {found.seed}, {minutes:g} minutes: {outcome.broken}",
        f"# What it needs, at most: {left}.",
        *teller.transcript(outcome.broken),
    ]
    return "\n".join(lines)
