# SPDX-License-Identifier: Apache-2.0
"""Stories that a shard is told, and what it says to them: text in, text out.

A transcript is a text file. A line that begins with # is prose. Anything else is a command; below
a line of four dashes stands what came of it: `+` a record, `-` a tombstone, `>` an answer.

    topic NAME partitions=N [id=TEXT]       a topic is made, or grows
    delete NAME                             a topic is deleted
    broker SETTING=VALUE ...                before anything else
    heartbeat MEMBER epoch=N [subscribe=TOPICS] [owns=PARTITIONS] [FIELD=VALUE ...]
    leave MEMBER
    prepare MEMBER epoch=N                  (tests/scenarios/client_side.py)
    install MEMBER epoch=N of=EPOCH [error=N] [MEMBER=PARTITIONS/VERSION:DATA ...]
    commit MEMBER epoch=N PARTITIONS [version=N]
    wait 10s | 500ms
    describe
    restart                                 everything but the log is forgotten

Members of the classic protocol (tests/scenarios/classic.py):

    join MEMBER [protocols=NAMES] [subscribe=TOPICS] [session=MS] [rebalance=MS] [type=NAME]
    sync MEMBER generation=N [gives=MEMBER:TEXT,...]        a TEXT like t:0-1 gives partitions
    beat MEMBER generation=N
    depart MEMBERS

What waits is answered by a later command. Members have their names of the story, whatever ids the
broker gave them.

Topics are `a,b`, partitions `a:0-3,7 b:1` with commas between numbers and + between topics, nothing
is a dash.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tests.coordinator.desk import Desk, topic_id
from tests.scenarios import client_side
from tests.scenarios.classic import ClassicMembers
from tests.scenarios.partitions import parsed, shown

from kohort.coordinator.consumer.member import MemberState
from kohort.coordinator.consumer.target import NOTHING
from kohort.errors import ErrorCode
from kohort.machines.topics import Topic, Topics
from kohort.records import schemas
from kohort.records.codec import Record
from kohort.terms import TopicId
from kohort.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from kohort.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

RULE = "----"
GROUP = "g"
STATES = {
    MemberState.STABLE: "stable",
    MemberState.UNREVOKED_PARTITIONS: "giving up",
    MemberState.UNRELEASED_PARTITIONS: "waiting",
    MemberState.UNKNOWN: "unknown",
}


def replayed(text: str, story: "TranscriptRunner | None" = None) -> str:
    """The same story with what comes of it now, by whoever understands its commands."""
    story = story or TranscriptRunner()
    lines = deque(text.splitlines())
    told: list[str] = []
    outcome: list[str] = []
    while lines:
        line = lines.popleft()
        if outcome and line:
            told.append("")
        told.append(line)
        outcome = []
        if line and not line.startswith("#"):
            outcome = story.tell(line)
            told += [RULE, *outcome] if outcome else []
            if lines and lines[0] == RULE:  # what came of it before
                while lines and lines[0]:
                    lines.popleft()
    return "\n".join(told) + "\n"


class TranscriptRunner:
    """A desk that understands the commands of a transcript."""

    def __init__(self) -> None:
        self.settings: dict[str, str] = {}
        self.topics: dict[str, Topic] = {}
        self.names: dict[TopicId, str] = {}
        self._desk: Desk | None = None
        self._told = 0
        self.classic = ClassicMembers()

    @property
    def desk(self) -> Desk:
        if self._desk is None:
            self._desk = Desk(known=Topics(self.topics.values()), **self.settings)
        return self._desk

    def tell(self, line: str) -> list[str]:
        """Carry out a command and say what came of it."""
        says = self.carry_out(line)
        desk = self.desk if line.split(maxsplit=1)[0] not in ("broker", "topic") else self._desk
        written = [] if desk is None else desk.log[self._told :]
        self._told += len(written)
        records = [self._record(one) for one in written]
        return records + list(says) + self.classic.released()

    def carry_out(self, line: str) -> list[str]:
        """Carry out a command and say what its answer is."""
        command, *words = line.split()
        fields = dict(word.split("=", 1) for word in words if "=" in word)
        plain = [word for word in words if "=" not in word]
        if command not in _COMMANDS:
            raise ValueError(f"{line!r}: no command is called {command}; # begins a line of prose")
        return list(_COMMANDS[command](self, plain, fields))

    def topic(self, name: str) -> Topic:
        """A topic that the story has made."""
        if name not in self.topics:
            raise ValueError(f"no topic {name}, expected a line `topic {name} partitions=N` above")
        return self.topics[name]

    # -- commands

    def _broker(self, words: list[str], fields: dict[str, str]) -> list[str]:
        self.settings.update(fields)
        return words

    def _topic(self, words: list[str], fields: dict[str, str]) -> list[str]:
        [name] = words
        made = Topic(topic_id(fields.get("id", name)), name, int(fields["partitions"]))
        self.topics[name] = made
        self.names[made.id] = fields.get("id", name)
        return self._show_topics()

    def _delete(self, words: list[str], _fields: dict[str, str]) -> list[str]:
        del self.topics[words[0]]
        return self._show_topics()

    def _show_topics(self) -> list[str]:
        if self._desk is not None:
            self._desk.topics_changed(Topics(self.topics.values()))
        return []

    def _heartbeat(self, words: list[str], fields: dict[str, str]) -> list[str]:
        epoch = int(fields.pop("epoch"))
        request = ConsumerGroupHeartbeatRequest(
            group_id=GROUP, member_id=words[0], member_epoch=epoch
        )
        if epoch == 0:
            request.rebalance_timeout_ms = 60_000
            request.topic_partitions = []
        if "owns" in fields:
            request.topic_partitions = [
                TopicPartitions(topic_id=self.topic(name).id, partitions=indices)
                for name, indices in parsed(fields.pop("owns")).items()
            ]
        if "subscribe" in fields:
            names = fields.pop("subscribe")
            request.subscribed_topic_names = [] if names == "-" else names.split(",")
        if "pattern" in fields:
            pattern = fields.pop("pattern")
            request.subscribed_topic_regex = "" if pattern == "-" else pattern
        request.server_assignor = fields.pop("assignor", None)
        request.rack_id = fields.pop("rack", None)
        if "offers" in fields:
            request.client_assignors = client_side.offered(fields.pop("offers"))
        request.instance_id = fields.pop("instance", None)
        request.rebalance_timeout_ms = int(fields.pop("timeout", request.rebalance_timeout_ms))
        assert not fields, f"heartbeat does not know {', '.join(fields)}"
        return [self._answer(self.desk.told(request, 1))]

    def _leave(self, words: list[str], fields: dict[str, str]) -> list[str]:
        request = ConsumerGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=words[0],
            member_epoch=int(fields.get("epoch", "-1")),
            instance_id=fields.get("instance"),
        )
        answer = self.desk.told(request, 1)
        if answer.error_code:
            return [self._answer(answer)]
        return [f"> {words[0]} has left{' for a while' if answer.member_epoch == -2 else ''}"]

    def _commit(self, words: list[str], fields: dict[str, str]) -> list[str]:
        request = OffsetCommitRequest(
            group_id=GROUP,
            member_id="" if words[0] == "-" else self.classic.ids.get(words[0], words[0]),
            generation_id_or_member_epoch=int(fields["epoch"]),
            topics=[
                OffsetCommitRequestTopic(
                    name=name,
                    partitions=[
                        OffsetCommitRequestPartition(partition_index=one, committed_offset=7)
                        for one in indices
                    ],
                )
                for name, indices in parsed(words[1]).items()
            ],
        )
        answer = self.desk.told(request, int(fields.get("version", "9")))
        codes = {one.error_code for topic in answer.topics for one in topic.partitions}
        return [f"> {', '.join(_code(code) for code in sorted(codes))}"]

    def _wait(self, words: list[str], _fields: dict[str, str]) -> list[str]:
        number = words[0].rstrip("ms")
        self.desk.wait(int(number) * (1 if words[0].endswith("ms") else 1000))
        return []

    def _describe(self, words: list[str], _fields: dict[str, str]) -> list[str]:
        group = self.desk.shard.groups.consumer(GROUP)
        if group is None:
            return self.classic.describe(self.desk)
        epochs = f"epoch {group.group_epoch} target {group.target_epoch}"
        lines = [f"> {group.state} {epochs} by {group.assignor}"]
        for one in group.members.values():
            has = f"{self._shown(one.assigned)} {STATES[one.state]}"
            if one.revoking:
                has += f" {self._shown(one.revoking)}"
            target = self._shown(group.targets.get(one.id, NOTHING).partitions)
            name = self.classic.name(one.id)
            lines.append(f"> {name} epoch {one.epoch} {has}, target {target}")
        return lines

    def _prepare(self, words: list[str], fields: dict[str, str]) -> list[str]:
        return client_side.prepare(self.desk, words[0], fields, self.names, self._shown)

    def _install(self, words: list[str], fields: dict[str, str]) -> list[str]:
        ids = {name: topic.id for name, topic in self.topics.items()}
        return client_side.install(self.desk, words[0], fields, ids, parsed)

    def _join(self, words: list[str], fields: dict[str, str]) -> list[str]:
        return self.classic.join(self.desk, words[0], fields)

    def _sync(self, words: list[str], fields: dict[str, str]) -> list[str]:
        return self.classic.sync(self.desk, words[0], fields)

    def _beat(self, words: list[str], fields: dict[str, str]) -> list[str]:
        return self.classic.beat(self.desk, words[0], fields)

    def _depart(self, words: list[str], _fields: dict[str, str]) -> list[str]:
        return self.classic.depart(self.desk, words[0].split(","))

    def _restart(self, words: list[str], _fields: dict[str, str]) -> list[str]:
        self.desk.restart()
        self.classic.forget()
        return []

    # -- what came of it

    def _answer(self, answer: ConsumerGroupHeartbeatResponse) -> str:
        computes = answer.error_code == ErrorCode.COMPUTE_ASSIGNMENT
        if answer.error_code and not computes:
            return f"> {_code(answer.error_code)}: {answer.error_message}"
        owns = "as before"
        if answer.assignment is not None:
            owns = self._shown(
                {one.topic_id: one.partitions for one in answer.assignment.topic_partitions}
            )
            owns += client_side.attached(answer.assignment.attachment)
        asked = ", is asked to compute" if computes else ""
        return f"> {answer.member_id} epoch {answer.member_epoch} {owns}{asked}"

    def _record(self, record: Record) -> str:
        key, value = record.key, record.value
        subject = f"{_SUBJECTS[type(key)]} {self._detail(key)}".strip()
        if value is None:
            return f"- {subject}"
        return f"+ {subject} {self._value(value)}".rstrip()

    def _detail(self, key: Any) -> str:
        if isinstance(key, schemas.OffsetCommitKey):
            return f"{key.topic}:{key.partition}"
        if isinstance(key, schemas.ConsumerGroupRegularExpressionKey):
            return key.regular_expression
        return self.classic.name(getattr(key, "member_id", ""))

    def _value(self, value: Any) -> str:
        match value:
            case schemas.ConsumerGroupMetadataValue():
                return str(value.epoch)
            case schemas.ConsumerGroupTargetAssignmentMetadataValue():
                return str(value.assignment_epoch) + client_side.computed_by(value.computation)
            case schemas.ConsumerGroupMemberMetadataValue():
                extra = "".join(
                    f" {name} {said}"
                    for name, said in (
                        ("pattern", value.subscribed_topic_regex),
                        ("votes", value.server_assignor),
                        ("rack", value.rack_id),
                        ("as", value.instance_id),
                    )
                    if said
                )
                offers = ",".join(client_side.told(one) for one in value.client_assignors)
                extra += f" offers {offers}" if offers else ""
                return "reads " + (",".join(value.subscribed_topic_names) or "-") + extra
            case schemas.ConsumerGroupTargetAssignmentMemberValue():
                partitions = {one.topic_id: one.partitions for one in value.topic_partitions}
                return self._shown(partitions) + client_side.attached(value.attachment)
            case schemas.ConsumerGroupCurrentMemberAssignmentValue():
                state = STATES[MemberState(value.state)]
                has = {one.topic_id: one.partitions for one in value.assigned_partitions}
                ends = {one.topic_id: one.partitions for one in value.partitions_pending_revocation}
                giving_up = f" {self._shown(ends)}" if ends else ""
                has_now = f"{self._shown(has)} {state}{giving_up}"
                return (
                    f"epoch {value.member_epoch} {has_now}{client_side.attached(value.attachment)}"
                )
            case schemas.ConsumerGroupRegularExpressionValue():
                return "names " + (",".join(value.topics) or "-")
            case schemas.GroupMetadataValue():
                return self.classic.recorded(value)
            case schemas.OffsetCommitValue():
                return str(value.offset)
            case _:
                return ""

    def _shown(self, partitions: Mapping[TopicId, Iterable[int]]) -> str:
        named = {self.names.get(topic, "?"): ones for topic, ones in partitions.items()}
        return shown(named)


_COMMANDS: dict[str, Callable[[TranscriptRunner, list[str], dict[str, str]], list[str]]] = {
    "broker": TranscriptRunner._broker,
    "topic": TranscriptRunner._topic,
    "delete": TranscriptRunner._delete,
    "heartbeat": TranscriptRunner._heartbeat,
    "leave": TranscriptRunner._leave,
    "prepare": TranscriptRunner._prepare,
    "install": TranscriptRunner._install,
    "commit": TranscriptRunner._commit,
    "wait": TranscriptRunner._wait,
    "describe": TranscriptRunner._describe,
    "join": TranscriptRunner._join,
    "sync": TranscriptRunner._sync,
    "beat": TranscriptRunner._beat,
    "depart": TranscriptRunner._depart,
    "restart": TranscriptRunner._restart,
}

_SUBJECTS = {
    schemas.GroupMetadataKey: "classic group",
    schemas.OffsetCommitKey: "offset",
    schemas.ConsumerGroupMetadataKey: "group epoch",
    schemas.ConsumerGroupPartitionMetadataKey: "partitions",
    schemas.ConsumerGroupMemberMetadataKey: "member",
    schemas.ConsumerGroupTargetAssignmentMetadataKey: "target epoch",
    schemas.ConsumerGroupTargetAssignmentMemberKey: "target",
    schemas.ConsumerGroupCurrentMemberAssignmentKey: "current",
    schemas.ConsumerGroupRegularExpressionKey: "pattern",
}


def _code(code: int) -> str:
    return ErrorCode(code).name
